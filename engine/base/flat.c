/*
 * Flat values; see flat.h.
 */

#include "engine/base/flat.h"


static llm_flat_t *
llm_flat_node(llm_buf_t *b, llm_flat_type_t type, size_t payload,
    uint32_t count)
{
    size_t       size;
    llm_flat_t  *v;

    size = llm_align(sizeof(llm_flat_t) + payload, 8);

    if (size > UINT32_MAX) {
        b->failed = 1;
        return NULL;
    }

    v = (llm_flat_t *) llm_buf_reserve(b, size);
    if (v == NULL) {
        return NULL;
    }

    memset(v, 0, size);
    v->type = type;
    v->size = (uint32_t) size;
    v->count = count;
    b->len += size;

    return v;
}


void
llm_flat_add_null(llm_buf_t *b)
{
    (void) llm_flat_node(b, LLM_FLAT_NULL, 0, 0);
}


static void
llm_flat_add_i64(llm_buf_t *b, llm_flat_type_t type, int64_t i)
{
    llm_flat_t  *v;

    v = llm_flat_node(b, type, sizeof(int64_t), 0);
    if (v) {
        memcpy(v + 1, &i, sizeof(int64_t));
    }
}


void
llm_flat_add_bool(llm_buf_t *b, int v)
{
    llm_flat_add_i64(b, LLM_FLAT_BOOL, v != 0);
}


void
llm_flat_add_int(llm_buf_t *b, int64_t v)
{
    llm_flat_add_i64(b, LLM_FLAT_INT, v);
}


void
llm_flat_add_big(llm_buf_t *b, double d, const char *digits, size_t len)
{
    llm_flat_t  *v;

    v = llm_flat_node(b, LLM_FLAT_DOUBLE, sizeof(double) + len,
                      (uint32_t) len);
    if (v) {
        memcpy(v + 1, &d, sizeof(double));

        if (len) {
            memcpy((char *) (v + 1) + sizeof(double), digits, len);
        }
    }
}


void
llm_flat_add_double(llm_buf_t *b, double d)
{
    llm_flat_add_big(b, d, NULL, 0);
}


void
llm_flat_add_str(llm_buf_t *b, const char *data, size_t len)
{
    llm_flat_t  *v;

    if (len > UINT32_MAX - 64) {
        b->failed = 1;
        return;
    }

    v = llm_flat_node(b, LLM_FLAT_STRING, len, (uint32_t) len);
    if (v && len) {
        memcpy(v + 1, data, len);
    }
}


size_t
llm_flat_open(llm_buf_t *b, llm_flat_type_t type)
{
    size_t  handle;

    handle = b->len;
    (void) llm_flat_node(b, type, 0, 0);

    return handle;
}


void
llm_flat_close(llm_buf_t *b, size_t handle, uint32_t count)
{
    llm_flat_t  *v;

    if (b->failed) {
        return;
    }

    if (b->len - handle > UINT32_MAX) {
        b->failed = 1;
        return;
    }

    v = (llm_flat_t *) (b->data + handle);
    v->size = (uint32_t) (b->len - handle);
    v->count = count;
}


void
llm_flat_add_node(llm_buf_t *b, const llm_flat_t *v)
{
    (void) llm_buf_add(b, v, v->size);
}


static int
llm_flat_check_node(const char *p, size_t len, int depth)
{
    size_t             off, n, i;
    const llm_flat_t  *v, *child;

    if (len < sizeof(llm_flat_t) || depth > LLM_FLAT_MAX_DEPTH) {
        return LLM_ERROR;
    }

    v = (const llm_flat_t *) p;

    if (v->size < sizeof(llm_flat_t) || v->size > len || v->size % 8) {
        return LLM_ERROR;
    }

    switch (v->type) {

    case LLM_FLAT_NULL:
        return v->size == 16 ? LLM_OK : LLM_ERROR;

    case LLM_FLAT_BOOL:
    case LLM_FLAT_INT:
        return v->size == 24 ? LLM_OK : LLM_ERROR;

    case LLM_FLAT_DOUBLE:
        return v->size == llm_align(24 + (size_t) v->count, 8)
               ? LLM_OK : LLM_ERROR;

    case LLM_FLAT_STRING:
        return v->size == llm_align(16 + (size_t) v->count, 8)
               ? LLM_OK : LLM_ERROR;

    case LLM_FLAT_ARRAY:
    case LLM_FLAT_OBJECT:
        break;

    default:
        return LLM_ERROR;
    }

    n = (size_t) v->count * (v->type == LLM_FLAT_OBJECT ? 2 : 1);
    off = sizeof(llm_flat_t);

    for (i = 0; i < n; i++) {
        if (llm_flat_check_node(p + off, v->size - off, depth + 1)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        child = (const llm_flat_t *) (p + off);

        if (v->type == LLM_FLAT_OBJECT && i % 2 == 0
            && child->type != LLM_FLAT_STRING)
        {
            return LLM_ERROR;
        }

        off += child->size;
    }

    return off == v->size ? LLM_OK : LLM_ERROR;
}


int
llm_flat_check(const void *data, size_t len)
{
    if (llm_flat_check_node(data, len, 0) != LLM_OK) {
        return LLM_ERROR;
    }

    return ((const llm_flat_t *) data)->size == len ? LLM_OK : LLM_ERROR;
}


int64_t
llm_flat_int(const llm_flat_t *v)
{
    double   d;
    int64_t  i;

    if (v->type == LLM_FLAT_DOUBLE) {
        memcpy(&d, v + 1, sizeof(double));

        return d >= 0x1p63 ? INT64_MAX
               : d >= -0x1p63 ? (int64_t) d : INT64_MIN;
    }

    memcpy(&i, v + 1, sizeof(int64_t));

    return i;
}


double
llm_flat_double(const llm_flat_t *v)
{
    double  d;

    if (v->type != LLM_FLAT_DOUBLE) {
        return (double) llm_flat_int(v);
    }

    memcpy(&d, v + 1, sizeof(double));

    return d;
}


llm_str_t
llm_flat_digits(const llm_flat_t *v)
{
    llm_str_t  s;

    s.len = v->type == LLM_FLAT_DOUBLE ? v->count : 0;
    s.data = (const char *) (v + 1) + sizeof(double);

    return s;
}


llm_str_t
llm_flat_str(const llm_flat_t *v)
{
    llm_str_t  s;

    s.len = v->count;
    s.data = (const char *) (v + 1);

    return s;
}


const llm_flat_t *
llm_flat_first(const llm_flat_t *parent)
{
    return parent->count ? parent + 1 : NULL;
}


const llm_flat_t *
llm_flat_next(const llm_flat_t *parent, const llm_flat_t *child)
{
    const char  *p;

    p = (const char *) child + child->size;

    if (p >= (const char *) parent + parent->size) {
        return NULL;
    }

    return (const llm_flat_t *) p;
}


const llm_flat_t *
llm_flat_get(const llm_flat_t *object, const char *key)
{
    size_t             len;
    llm_str_t          s;
    const llm_flat_t  *k, *v, *found;

    if (object == NULL || object->type != LLM_FLAT_OBJECT) {
        return NULL;
    }

    len = strlen(key);
    found = NULL;

    for (k = llm_flat_first(object); k; k = llm_flat_next(object, v)) {
        v = llm_flat_next(object, k);
        s = llm_flat_str(k);

        if (s.len == len && memcmp(s.data, key, len) == 0) {
            found = v;
        }
    }

    return found;
}
