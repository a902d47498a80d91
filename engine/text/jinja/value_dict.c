/*
 * Dictionaries: pairs in the order of insertion, and, once there are many, an
 * open-addressing index of them, which is rebuilt when a pair is removed.
 */

#include "engine/text/jinja/value.h"

#define LLM_J_LINEAR  8


int
llm_jv_dict(llm_jrt_t *rt, llm_jtype_t type, llm_jv_t *res)
{
    *res = llm_jv_of(type);
    llm_jnew(rt, res->u.dict, sizeof(llm_jdict_t));
    memset(res->u.dict, 0, sizeof(llm_jdict_t));

    return LLM_OK;
}


uint32_t
llm_js_hash(llm_js_t *s)
{
    size_t       i;
    uint64_t     h;
    const char  *p;

    if (s->hash) {
        return s->hash;
    }

    /* FNV-1a */

    h = 0xcbf29ce484222325u;
    p = llm_js_data(s);

    for (i = 0; i < s->len; i++) {
        h = (h ^ (unsigned char) p[i]) * 0x100000001b3u;
    }

    h ^= h >> 32;
    s->hash = (uint32_t) h ? (uint32_t) h : 1;

    return s->hash;
}


static int
llm_jdict_hash(llm_jrt_t *rt, const llm_jv_t *v, uint32_t *res)
{
    size_t    i;
    int64_t   n;
    uint32_t  item;
    uint64_t  h;

    switch (v->type) {

    case LLM_J_STR:
        *res = llm_js_hash(v->u.s);
        return llm_jrt_charge(rt, v->u.s->len);

    case LLM_J_BOOL:
    case LLM_J_INT:
    case LLM_J_FLOAT:

        /* equal numbers have equal hashes, whatever their types */

        n = v->u.i;

        if (v->type == LLM_J_FLOAT) {
            n = (v->u.f > -9e18 && v->u.f < 9e18) ? (int64_t) v->u.f : 0;
        }

        h = (uint64_t) n * 0x9e3779b97f4a7c15u;
        *res = (uint32_t) (h >> 32) | 1;

        return LLM_OK;

    case LLM_J_TUPLE:
        h = 0xcbf29ce484222325u;

        llm_jtry(llm_jrt_enter(rt));

        for (i = 0; i < v->u.list->n; i++) {
            llm_jtry(llm_jrt_charge(rt, 1));
            llm_jtry(llm_jdict_hash(rt, &v->u.list->v[i], &item));

            h = (h ^ item) * 0x100000001b3u;
        }

        llm_jrt_leave(rt);
        *res = (uint32_t) (h >> 32) | 1;

        return LLM_OK;

    case LLM_J_LIST:
    case LLM_J_DICT:
    case LLM_J_VIEW:
        return llm_jrt_fail(rt, "unhashable type: '%s'", llm_jv_type(v));

    default:
        *res = v->type;
        return LLM_OK;
    }
}


/* may values with these hashes be equal?  Fast, and exact for two strings */

static int
llm_jdict_match(llm_jrt_t *rt, const llm_jpair_t *p, const llm_jv_t *key,
    uint32_t hash)
{
    if (p->hash != hash) {
        return 0;
    }

    if (p->key.type == LLM_J_STR && key->type == LLM_J_STR) {
        return llm_js_equal(p->key.u.s, key->u.s);
    }

    return rt ? llm_jv_equal(rt, &p->key, key) : 0;
}


/* rt may be NULL for strings */

static int
llm_jdict_find(llm_jrt_t *rt, const llm_jdict_t *d, const llm_jv_t *key,
    uint32_t hash, llm_jv_t **found)
{
    int           rc;
    size_t        i, mask;
    llm_jpair_t  *p;

    *found = NULL;
    mask = d->index ? d->index_cap - 1 : SIZE_MAX;

    for (i = d->index ? hash & mask : 0;
         d->index ? d->index[i] != 0 : i < d->n;
         i = (i + 1) & mask)
    {
        p = &d->v[d->index ? d->index[i] - 1 : i];

        llm_jtry(rt && d->index && llm_jrt_charge(rt, 1));

        rc = llm_jdict_match(rt, p, key, hash);

        if (rc) {
            *found = rc > 0 ? &p->value : NULL;
            return rc > 0 ? LLM_OK : LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_jdict_get(llm_jrt_t *rt, const llm_jdict_t *d, const llm_jv_t *key,
    llm_jv_t **found)
{
    uint32_t  hash;

    llm_jtry(llm_jdict_hash(rt, key, &hash));

    return llm_jdict_find(rt, d, key, hash, found);
}


llm_jv_t *
llm_jdict_gets(const llm_jdict_t *d, const llm_js_t *key)
{
    llm_jv_t   v, *found;

    v = llm_jv_str((llm_js_t *) key);
    (void) llm_jdict_find(NULL, d, &v, llm_js_hash(v.u.s), &found);

    return found;
}


/* puts all pairs into an index that is large enough for them */

static void
llm_jdict_fill(llm_jdict_t *d)
{
    size_t  i, k, mask;

    mask = d->index_cap - 1;
    memset(d->index, 0, d->index_cap * sizeof(uint32_t));

    for (i = 0; i < d->n; i++) {
        for (k = d->v[i].hash & mask; d->index[k]; k = (k + 1) & mask) {
            /* void */
        }

        d->index[k] = (uint32_t) i + 1;
    }
}


static int
llm_jdict_index(llm_jrt_t *rt, llm_jdict_t *d)
{
    size_t     cap;
    uint32_t  *index;

    if (d->n < LLM_J_LINEAR || d->n < d->index_cap / 2) {
        return LLM_OK;
    }

    for (cap = 32; cap / 2 <= d->n; cap *= 2) { /* void */ }

    llm_jnew(rt, index, cap * sizeof(uint32_t));

    d->index = index;
    d->index_cap = cap;
    llm_jdict_fill(d);

    return LLM_OK;
}


int
llm_jdict_set(llm_jrt_t *rt, llm_jdict_t *d, const llm_jv_t *key,
    const llm_jv_t *value)
{
    size_t        k, cap;
    uint32_t      hash;
    llm_jv_t     *found;
    llm_jpair_t  *v;

    llm_jtry(llm_jdict_hash(rt, key, &hash));
    llm_jtry(llm_jdict_find(rt, d, key, hash, &found));

    if (found) {
        *found = *value;
        return LLM_OK;
    }

    if (d->n == d->cap) {
        cap = llm_max(d->cap * 2, 4);

        llm_jnew(rt, v, cap * sizeof(llm_jpair_t));

        if (d->n) {
            memcpy(v, d->v, d->n * sizeof(llm_jpair_t));
        }

        d->v = v;
        d->cap = cap;
    }

    llm_jtry(llm_jdict_index(rt, d));

    v = &d->v[d->n++];
    v->key = *key;
    v->value = *value;
    v->hash = hash;

    if (d->index) {
        for (k = v->hash & (d->index_cap - 1); d->index[k];
             k = (k + 1) & (d->index_cap - 1)) { /* void */ }

        d->index[k] = (uint32_t) d->n;
    }

    return LLM_OK;
}


int
llm_jdict_update(llm_jrt_t *rt, llm_jdict_t *d, const llm_jdict_t *from)
{
    size_t  i;

    for (i = 0; i < from->n; i++) {
        llm_jtry(llm_jrt_charge(rt, 1));
        llm_jtry(llm_jdict_set(rt, d, &from->v[i].key, &from->v[i].value));
    }

    return LLM_OK;
}


int
llm_jdict_take(llm_jrt_t *rt, llm_jdict_t *d, const llm_jv_t *found)
{
    size_t  i;

    for (i = 0; i < d->n && &d->v[i].value != found; i++) { /* void */ }

    llm_jtry(llm_jrt_charge(rt, d->n + d->index_cap));

    d->n--;
    memmove(&d->v[i], &d->v[i + 1], (d->n - i) * sizeof(llm_jpair_t));

    if (d->index) {
        llm_jdict_fill(d);
    }

    return LLM_OK;
}


void
llm_jdict_clear(llm_jdict_t *d)
{
    d->n = 0;
    d->index = NULL;
    d->index_cap = 0;
}
