/*
 * Values: makes them, tests their truth, iterates over them, and converts
 * values of a request.  See value.h for ownership.
 */

#include "engine/text/jinja/value.h"

#include <stdio.h>


const char *
llm_jv_type(const llm_jv_t *v)
{
    static const char *const  names[] = {
        "missing", "Undefined", "NoneType", "bool", "int", "float", "str",
        "list", "tuple", "dict", "dict_items", "range", "generator",
        "Namespace", "LoopContext", "Macro", "function", "method",
        "Joiner"
    };
    static const char *const  views[] = {
        "dict_keys", "dict_values", "dict_items"
    };

    if (v->type == LLM_J_VIEW) {
        return views[v->u.view->kind];
    }

    if (v->type == LLM_J_ITER) {
        return v->u.iter->type;
    }

    return names[v->type];
}


int
llm_jv_truth(const llm_jv_t *v)
{
    switch (v->type) {

    case LLM_J_MISSING:
    case LLM_J_NONE:
        return 0;

    case LLM_J_BOOL:
    case LLM_J_INT:
        return v->u.i != 0;

    case LLM_J_FLOAT:
        return v->u.f != 0;

    case LLM_J_STR:
        return v->u.s->len != 0;

    default:
        return llm_jv_len(v) != 0;
    }
}


int
llm_jv_callable(const llm_jv_t *v)
{
    return v->type == LLM_J_MACRO || v->type == LLM_J_FUNC
           || v->type == LLM_J_METHOD || v->type == LLM_J_LOOP
           || v->type == LLM_J_JOINER || v->type == LLM_J_UNDEF;
}


/* undefined */

int
llm_jv_undef(llm_jrt_t *rt, const char *hint, llm_jv_t *res)
{
    *res = llm_jv_of(LLM_J_UNDEF);
    llm_jnew(rt, res->u.undef, sizeof(llm_jundef_t));

    memset(res->u.undef, 0, sizeof(llm_jundef_t));
    res->u.undef->hint = hint;

    return LLM_OK;
}


int
llm_jv_undef_of(llm_jrt_t *rt, const llm_jv_t *object, const llm_jv_t *name,
    llm_jv_t *res)
{
    llm_jv_t  v;

    llm_jtry(llm_jv_undef(rt, NULL, &v));

    v.u.undef->name = *name;
    v.u.undef->object = object ? *object : llm_jv_of(LLM_J_MISSING);
    *res = v;

    return LLM_OK;
}


int
llm_jv_undef_param(llm_jrt_t *rt, const llm_jv_t *name, llm_jv_t *res)
{
    char    *hint;
    size_t   size;

    size = name->u.s->len + 40;
    llm_jnew(rt, hint, size);

    snprintf(hint, size, "parameter '%.*s' was not provided",
             (int) name->u.s->len, llm_js_data(name->u.s));

    return llm_jv_undef(rt, hint, res);
}


int
llm_jv_undef_fail(llm_jrt_t *rt, const llm_jv_t *v)
{
    llm_jb_t             b;
    llm_jv_t             name;
    const char          *text;
    const llm_jundef_t  *u;

    u = v->u.undef;

    if (u->hint) {
        return llm_jrt_fail(rt, "%s", u->hint);
    }

    llm_jb_init(&b, rt, 0);

    llm_jtry(llm_jb_add_repr(&b, &u->name));
    llm_jtry(llm_jb_done(&b, &name));

    text = llm_js_data(name.u.s);

    if (u->object.type == LLM_J_MISSING) {
        return llm_jrt_fail(rt, "%.*s is undefined",
                            (int) llm_min(name.u.s->len, 200), text);
    }

    if (u->name.type == LLM_J_STR) {
        return llm_jrt_fail(rt, "'%s object' has no attribute %.*s",
                            llm_jv_type(&u->object),
                            (int) llm_min(name.u.s->len, 200), text);
    }

    return llm_jrt_fail(rt, "%s object has no element %.*s",
                        llm_jv_type(&u->object),
                        (int) llm_min(name.u.s->len, 200), text);
}


/* lists */

int
llm_jv_list(llm_jrt_t *rt, llm_jtype_t type, size_t cap, llm_jv_t *res)
{
    size_t        size;
    llm_jlist_t  *list;

    if (llm_mul_overflow(cap, sizeof(llm_jv_t), &size)) {
        return llm_jrt_limit(rt, "out of memory");
    }

    llm_jnew(rt, list, sizeof(llm_jlist_t));

    list->n = 0;
    list->cap = cap;
    list->v = cap ? llm_jrt_alloc(rt, size) : NULL;

    if (cap && list->v == NULL) {
        return LLM_ERROR;
    }

    *res = llm_jv_of(type);
    res->u.list = list;

    return LLM_OK;
}


int
llm_jlist_push(llm_jrt_t *rt, llm_jlist_t *list, const llm_jv_t *v)
{
    size_t     cap;
    llm_jv_t  *p;

    if (list->n == list->cap) {
        cap = llm_max(list->cap * 2, 8);

        llm_jnew(rt, p, cap * sizeof(llm_jv_t));

        if (list->n) {
            memcpy(p, list->v, list->n * sizeof(llm_jv_t));
        }

        list->v = p;
        list->cap = cap;
    }

    list->v[list->n++] = *v;

    return LLM_OK;
}


void
llm_jlist_reverse(llm_jlist_t *list)
{
    size_t    i;
    llm_jv_t  v;

    for (i = 0; i < list->n / 2; i++) {
        v = list->v[i];
        list->v[i] = list->v[list->n - 1 - i];
        list->v[list->n - 1 - i] = v;
    }
}


static int
llm_jv_pair(llm_jrt_t *rt, const llm_jv_t *a, const llm_jv_t *b,
    llm_jv_t *res)
{
    llm_jtry(llm_jv_list(rt, LLM_J_TUPLE, 2, res));

    res->u.list->v[0] = *a;
    res->u.list->v[1] = *b;
    res->u.list->n = 2;

    return LLM_OK;
}


int
llm_jv_iter(llm_jrt_t *rt, const llm_jlist_t *list, const char *type,
    llm_jv_t *res)
{
    llm_jiter_t  *it;

    llm_jnew(rt, it, sizeof(llm_jiter_t));

    it->list = *list;
    it->pos = 0;
    it->type = type;

    *res = llm_jv_of(LLM_J_ITER);
    res->u.iter = it;

    return LLM_OK;
}


/* passes */

int64_t
llm_jv_len(const llm_jv_t *v)
{
    switch (v->type) {

    case LLM_J_UNDEF:
        return 0;

    case LLM_J_STR:
        return (int64_t) llm_js_chars(v->u.s);

    case LLM_J_LIST:
    case LLM_J_TUPLE:
        return (int64_t) v->u.list->n;

    case LLM_J_DICT:
        return (int64_t) v->u.dict->n;

    case LLM_J_VIEW:
        return (int64_t) v->u.view->dict->n;

    case LLM_J_RANGE:
        return v->u.range->n;

    default:
        return -1;
    }
}


int
llm_jv_count(llm_jrt_t *rt, const llm_jv_t *v, int64_t *n)
{
    if (v->type == LLM_J_STR && v->u.s->chars == LLM_J_UNCOUNTED) {
        llm_jtry(llm_jrt_charge(rt, v->u.s->len * LLM_J_DECODED));
    }

    *n = llm_jv_len(v);

    return LLM_OK;
}


int
llm_jv_iterable(const llm_jv_t *v)
{
    return llm_jv_len(v) >= 0 || v->type == LLM_J_ITER
           || v->type == LLM_J_LOOP;
}


int
llm_jcur_init(llm_jrt_t *rt, llm_jcur_t *c, const llm_jv_t *v)
{
    if (!llm_jv_iterable(v)) {
        return llm_jrt_fail(rt, "'%s' object is not iterable",
                            llm_jv_type(v));
    }

    c->over = *v;
    c->pos = 0;

    return LLM_OK;
}


static int
llm_jcur_next_char(llm_jrt_t *rt, llm_jcur_t *c, llm_jv_t *item)
{
    size_t       len;
    const char  *p;
    llm_js_t    *s;

    s = c->over.u.s;

    if (c->pos >= s->len) {
        return LLM_END;
    }

    p = llm_js_data(s);
    (void) llm_jc_decode(p + c->pos, p + s->len, &len);
    c->pos += len;

    llm_jtry(llm_js_slice(rt, s, c->pos - len, c->pos, item));

    item->u.s->markup = 0;

    return LLM_OK;
}


static int
llm_jcur_next_pair(llm_jrt_t *rt, llm_jcur_t *c, const llm_jdict_t *d,
    llm_jview_kind_t kind, llm_jv_t *item)
{
    llm_jpair_t  *p;

    if (c->pos >= d->n) {
        return LLM_END;
    }

    p = &d->v[c->pos++];

    if (kind == LLM_J_ITEMS) {
        return llm_jv_pair(rt, &p->key, &p->value, item);
    }

    *item = kind == LLM_J_KEYS ? p->key : p->value;

    return LLM_OK;
}


int
llm_jcur_next(llm_jrt_t *rt, llm_jcur_t *c, llm_jv_t *item)
{
    size_t       *pos;
    llm_jlist_t  *list;

    llm_jtry(llm_jrt_charge(rt, 1));

    switch (c->over.type) {

    case LLM_J_STR:
        return llm_jcur_next_char(rt, c, item);

    case LLM_J_DICT:
        return llm_jcur_next_pair(rt, c, c->over.u.dict, LLM_J_KEYS, item);

    case LLM_J_VIEW:
        return llm_jcur_next_pair(rt, c, c->over.u.view->dict,
                                  c->over.u.view->kind, item);

    case LLM_J_RANGE:
        if ((int64_t) c->pos >= c->over.u.range->n) {
            return LLM_END;
        }

        *item = llm_jv_int(c->over.u.range->start
                           + (int64_t) c->pos * c->over.u.range->step);
        c->pos++;

        return LLM_OK;

    case LLM_J_LIST:
    case LLM_J_TUPLE:
        list = c->over.u.list;
        pos = &c->pos;
        break;

    case LLM_J_ITER:
        list = &c->over.u.iter->list;
        pos = &c->over.u.iter->pos;
        break;

    case LLM_J_LOOP:
        return llm_jloop_next(rt, c->over.u.loop, item);

    default:
        return LLM_END;
    }

    if (*pos >= list->n) {
        return LLM_END;
    }

    *item = list->v[(*pos)++];

    return LLM_OK;
}


int
llm_jv_items(llm_jrt_t *rt, const llm_jv_t *v, llm_jlist_t *list)
{
    int         rc;
    llm_jv_t    item;
    llm_jcur_t  cur;

    memset(list, 0, sizeof(*list));

    llm_jtry(llm_jcur_init(rt, &cur, v));

    while ((rc = llm_jcur_next(rt, &cur, &item)) == LLM_OK) {
        llm_jtry(llm_jlist_push(rt, list, &item));
    }

    return rc == LLM_END ? LLM_OK : LLM_ERROR;
}


/* from the request */

static int llm_jv_from_flat(llm_jrt_t *rt, const llm_flat_t *f, int trusted,
    llm_jv_t *res);


static int
llm_jv_from_array(llm_jrt_t *rt, const llm_flat_t *f, int trusted,
    llm_jv_t *res)
{
    llm_jv_t           v;
    const llm_flat_t  *p;

    llm_jtry(llm_jv_list(rt, LLM_J_LIST, f->count, res));

    for (p = llm_flat_first(f); p; p = llm_flat_next(f, p)) {
        llm_jtry(llm_jv_from_flat(rt, p, trusted, &v));
        llm_jtry(llm_jlist_push(rt, res->u.list, &v));
    }

    return LLM_OK;
}


/* is the text in a NULL-terminated list, which may be NULL? */

static int
llm_jv_listed(llm_str_t s, const char *const *p)
{
    for ( /* void */ ; p && *p; p++) {
        if (llm_str_is(s, *p)) {
            return 1;
        }
    }

    return 0;
}


int
llm_jv_from_pairs(llm_jrt_t *rt, const llm_flat_t *f, int trusted,
    const char *const *trusted_keys, llm_jdict_t *d)
{
    int                good;
    llm_jv_t           key, value;
    const llm_flat_t  *k, *v;

    for (k = llm_flat_first(f); k; k = llm_flat_next(f, v)) {
        v = llm_flat_next(f, k);
        llm_jtry(llm_jv_from_flat(rt, k, trusted || trusted_keys, &key));

        /* a role that is trusted by name, see llm_jinja_opts_t */

        good = trusted || llm_jv_listed(llm_flat_str(k), trusted_keys)
               || (!trusted_keys && v->type == LLM_FLAT_STRING
                   && llm_js_is(key.u.s, "role")
                   && llm_jv_listed(llm_flat_str(v), rt->trusted_roles));

        llm_jtry(llm_jv_from_flat(rt, v, good, &value));
        llm_jtry(llm_jdict_set(rt, d, &key, &value));
    }

    return LLM_OK;
}


/* digits that a float would lose are kept separately */

static int
llm_jv_from_double(llm_jrt_t *rt, const llm_flat_t *f, llm_jv_t *res)
{
    char       *copy;
    llm_str_t   s, *list;

    *res = llm_jv_float(llm_flat_double(f));
    s = llm_flat_digits(f);

    if (s.len == 0) {
        return LLM_OK;
    }

    if (rt->n_bigs == rt->cap_bigs) {
        llm_jnew(rt, list, (rt->cap_bigs * 2 + 8) * sizeof(llm_str_t));

        if (rt->n_bigs) {
            memcpy(list, rt->bigs, rt->n_bigs * sizeof(llm_str_t));
        }

        rt->bigs = list;
        rt->cap_bigs = rt->cap_bigs * 2 + 8;
    }

    llm_jnew(rt, copy, s.len);
    memcpy(copy, s.data, s.len);

    rt->bigs[rt->n_bigs++] = (llm_str_t) { s.len, copy };
    res->big = rt->n_bigs;

    return LLM_OK;
}


static int
llm_jv_from_flat(llm_jrt_t *rt, const llm_flat_t *f, int trusted,
    llm_jv_t *res)
{
    llm_str_t  s;

    switch (f->type) {

    case LLM_FLAT_NULL:
        *res = LLM_J_NONE_V;
        return LLM_OK;

    case LLM_FLAT_BOOL:
        *res = llm_jv_bool(llm_flat_int(f) != 0);
        break;

    case LLM_FLAT_INT:
        *res = llm_jv_int(llm_flat_int(f));
        break;

    case LLM_FLAT_DOUBLE:
        llm_jtry(llm_jv_from_double(rt, f, res));
        break;

    case LLM_FLAT_STRING:
        s = llm_flat_str(f);
        *res = llm_jv_str(llm_js_wrap(&rt->arena, s.data, s.len, trusted));

        return res->u.s ? LLM_OK : llm_jrt_limit(rt, "out of memory");

    case LLM_FLAT_ARRAY:
        return llm_jv_from_array(rt, f, trusted, res);

    default:
        llm_jtry(llm_jv_dict(rt, LLM_J_DICT, res));
        return llm_jv_from_pairs(rt, f, trusted, NULL, res->u.dict);
    }

    res->tainted = !trusted;

    return LLM_OK;
}
