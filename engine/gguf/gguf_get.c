/*
 * Look-ups in an opened GGUF file: keys and tensors by name, values by type;
 * see gguf.h.  All values were checked when the file was opened.
 */

#include "engine/gguf/gguf_internal.h"

#include <stdio.h>

#include <ctype.h>
#include <math.h>


static const struct {
    const char                *name;
    size_t                     size;    /* 0: the size is not fixed */
} llm_gguf_types[] = {
    [LLM_GGUF_U8]    = { "u8", 1 },
    [LLM_GGUF_I8]    = { "i8", 1 },
    [LLM_GGUF_U16]   = { "u16", 2 },
    [LLM_GGUF_I16]   = { "i16", 2 },
    [LLM_GGUF_U32]   = { "u32", 4 },
    [LLM_GGUF_I32]   = { "i32", 4 },
    [LLM_GGUF_F32]   = { "f32", 4 },
    [LLM_GGUF_BOOL]  = { "bool", 1 },
    [LLM_GGUF_STR]   = { "string", 0 },
    [LLM_GGUF_ARRAY] = { "array", 0 },
    [LLM_GGUF_U64]   = { "u64", 8 },
    [LLM_GGUF_I64]   = { "i64", 8 },
    [LLM_GGUF_F64]   = { "f64", 8 }
};


const char *
llm_gguf_label(llm_gguf_label_t *l, llm_str_t s)
{
    size_t  i, n;

    n = llm_min(s.len, sizeof(l->text) - 4);

    for (i = 0; i < n; i++) {
        l->text[i] = isprint((unsigned char) s.data[i]) ? s.data[i] : '?';
    }

    strcpy(l->text + n, n < s.len ? "..." : "");

    return l->text;
}


size_t
llm_gguf_type_size(uint32_t type)
{
    return llm_gguf_types[type].size;
}


static int
llm_gguf_str_cmp(llm_str_t a, llm_str_t b)
{
    int  rc;

    rc = memcmp(a.data, b.data, llm_min(a.len, b.len));

    if (rc) {
        return rc;
    }

    return a.len < b.len ? -1 : a.len > b.len;
}


int
llm_gguf_kv_cmp(const void *one, const void *two)
{
    const llm_gguf_kv_t  *const *a = one, *const *b = two;

    return llm_gguf_str_cmp((*a)->key, (*b)->key);
}


int
llm_gguf_tensor_cmp(const void *one, const void *two)
{
    const llm_gguf_tensor_t  *const *a = one, *const *b = two;

    return llm_gguf_str_cmp((*a)->name, (*b)->name);
}


int
llm_gguf_types_known(const llm_gguf_t *g, llm_err_t *err)
{
    return g->unknown ? llm_fail(err, "%s", g->unknown) : LLM_OK;
}


const char *
llm_gguf_name(const llm_gguf_t *g)
{
    return g->name;
}


uint32_t
llm_gguf_version(const llm_gguf_t *g)
{
    return g->version;
}


const char *
llm_gguf_format(const llm_gguf_t *g)
{
    return g->format;
}


size_t
llm_gguf_size(const llm_gguf_t *g)
{
    size_t  i, n;

    n = g->len;

    for (i = 0; i < g->n_parts; i++) {
        n += g->parts[i]->len;
    }

    return n;
}


uint64_t
llm_gguf_changed(const llm_gguf_t *g)
{
    size_t    i;
    uint64_t  sum;

    sum = g->changed;

    for (i = 0; i < g->n_parts; i++) {
        sum += g->parts[i]->changed;
    }

    return sum;
}


size_t
llm_gguf_n_files(const llm_gguf_t *g)
{
    return 1 + g->n_parts;
}


size_t
llm_gguf_n_kv(const llm_gguf_t *g)
{
    return g->n_kv;
}


const llm_gguf_kv_t *
llm_gguf_kv(const llm_gguf_t *g, size_t i)
{
    return &g->kv[i];
}


const llm_gguf_kv_t *
llm_gguf_find(const llm_gguf_t *g, const char *key)
{
    llm_gguf_kv_t         kv;
    const llm_gguf_kv_t  *p, **found;

    kv.key.len = strlen(key);
    kv.key.data = key;
    p = &kv;

    found = bsearch(&p, g->kv_sorted, g->n_kv, sizeof(p), llm_gguf_kv_cmp);

    return found ? *found : NULL;
}


static int
llm_gguf_is_int(llm_gguf_type_t type)
{
    return type != LLM_GGUF_F32 && type != LLM_GGUF_F64
           && type != LLM_GGUF_BOOL && type != LLM_GGUF_STR
           && type != LLM_GGUF_ARRAY;
}


static int
llm_gguf_is_float(llm_gguf_type_t type)
{
    return type == LLM_GGUF_F32 || type == LLM_GGUF_F64;
}


static int
llm_gguf_type_error(const llm_gguf_t *g, const llm_gguf_kv_t *kv,
    const char *want, llm_err_t *err)
{
    llm_gguf_label_t  label;

    return llm_fail(err, "%s: %s: its type is %s, not %s", g->name,
                    llm_gguf_label(&label, kv->key),
                    llm_gguf_types[kv->type].name, want);
}


int
llm_gguf_get_u32(const llm_gguf_t *g, const char *key, uint32_t *out,
    llm_err_t *err)
{
    int64_t               i;
    const llm_gguf_kv_t  *kv;

    kv = llm_gguf_find(g, key);
    if (kv == NULL) {
        return LLM_ABSENT;
    }

    if (!llm_gguf_is_int(kv->type)) {
        return llm_gguf_type_error(g, kv, "an integer", err);
    }

    i = llm_gguf_item_int(kv, 0);

    if (i < 0 || i > UINT32_MAX) {
        return llm_fail(err, "%s: %s: the value is not within 0 and %u",
                        g->name, key, UINT32_MAX);
    }

    *out = (uint32_t) i;

    return LLM_OK;
}


int
llm_gguf_get_f32(const llm_gguf_t *g, const char *key, float *out,
    llm_err_t *err)
{
    double                d;
    const llm_gguf_kv_t  *kv;

    kv = llm_gguf_find(g, key);
    if (kv == NULL) {
        return LLM_ABSENT;
    }

    if (!llm_gguf_is_int(kv->type) && !llm_gguf_is_float(kv->type)) {
        return llm_gguf_type_error(g, kv, "a number", err);
    }

    d = llm_gguf_item_double(kv, 0);

    if (isfinite(d) && !isfinite((float) d)) {
        return llm_fail(err, "%s: %s: %g does not fit in 32 bits", g->name,
                        key, d);
    }

    *out = (float) d;

    return LLM_OK;
}


int
llm_gguf_get_bool(const llm_gguf_t *g, const char *key, int *out,
    llm_err_t *err)
{
    const llm_gguf_kv_t  *kv;

    kv = llm_gguf_find(g, key);
    if (kv == NULL) {
        return LLM_ABSENT;
    }

    if (kv->type != LLM_GGUF_BOOL) {
        return llm_gguf_type_error(g, kv, "bool", err);
    }

    *out = kv->data[0] != 0;

    return LLM_OK;
}


int
llm_gguf_get_str(const llm_gguf_t *g, const char *key, llm_str_t *out,
    llm_err_t *err)
{
    const char           *p;
    const llm_gguf_kv_t  *kv;

    kv = llm_gguf_find(g, key);
    if (kv == NULL) {
        return LLM_ABSENT;
    }

    if (kv->type != LLM_GGUF_STR) {
        return llm_gguf_type_error(g, kv, "string", err);
    }

    p = kv->data;
    *out = llm_gguf_next_str(&p);

    return LLM_OK;
}


llm_str_t
llm_gguf_next_str(const char **p)
{
    uint64_t   n;
    llm_str_t  s;

    memcpy(&n, *p, sizeof(n));

    s.len = (size_t) n;
    s.data = *p + sizeof(n);
    *p = s.data + s.len;

    return s;
}


/* a u64 above INT64_MAX becomes INT64_MAX, which is too large for any use; a
   float that does not fit becomes 0 */

int64_t
llm_gguf_item_int(const llm_gguf_kv_t *kv, uint64_t i)
{
    size_t       size;
    double       d;
    uint64_t     u;
    const char  *p;

    if (llm_gguf_is_float(kv->item)) {
        d = llm_gguf_item_double(kv, i);
        return d >= -0x1p63 && d < 0x1p63 ? (int64_t) d : 0;
    }

    size = llm_gguf_types[kv->item].size;
    p = kv->data + i * size;
    u = 0;
    memcpy(&u, p, size);

    switch (kv->item) {

    case LLM_GGUF_I8:
        return (int8_t) u;

    case LLM_GGUF_I16:
        return (int16_t) u;

    case LLM_GGUF_I32:
        return (int32_t) u;

    case LLM_GGUF_I64:
        return (int64_t) u;

    default:
        return u > INT64_MAX ? INT64_MAX : (int64_t) u;
    }
}


double
llm_gguf_item_double(const llm_gguf_kv_t *kv, uint64_t i)
{
    float   f;
    double  d;

    switch (kv->item) {

    case LLM_GGUF_F32:
        memcpy(&f, kv->data + i * sizeof(f), sizeof(f));
        return (double) f;

    case LLM_GGUF_F64:
        memcpy(&d, kv->data + i * sizeof(d), sizeof(d));
        return d;

    default:
        return (double) llm_gguf_item_int(kv, i);
    }
}


size_t
llm_gguf_n_tensors(const llm_gguf_t *g)
{
    return g->n_tensors;
}


const llm_gguf_tensor_t *
llm_gguf_tensor(const llm_gguf_t *g, size_t i)
{
    return &g->tensors[i];
}


const llm_gguf_tensor_t *
llm_gguf_find_tensor(const llm_gguf_t *g, const char *name)
{
    llm_gguf_tensor_t         t;
    const llm_gguf_tensor_t  *p, **found;

    t.name.len = strlen(name);
    t.name.data = name;
    p = &t;

    found = bsearch(&p, g->tensors_sorted, g->n_tensors, sizeof(p),
                    llm_gguf_tensor_cmp);

    return found ? *found : NULL;
}


const char *
llm_gguf_key(llm_gguf_key_t *key, const char *arch, const char *name)
{
    snprintf(key->text, sizeof(key->text), "%s.%s", arch, name);

    return key->text;
}
