/*
 * Reads the document of a schema: keywords, values, places; and the reader's
 * small tables.
 *
 * Messages name a keyword by its path from the schema's root, such as
 * properties.a.not.
 */

#include "engine/grammar/schema/internal.h"

#include <stdio.h>


#define OBJ   LLM_SCHEMA_OBJECT
#define ARR   LLM_SCHEMA_ARRAY
#define STR   LLM_SCHEMA_STRING
#define NUM   LLM_SCHEMA_NUMBER
#define ANY   LLM_SCHEMA_ANY

/* sorted by name */
static const llm_schema_row_t  llm_schema_rows[] = {
    { "$dynamicRef", LLM_KW_DYNAMIC_REF, ANY, LLM_DRAFT_2020, 9 },
    { "$recursiveRef", LLM_KW_RECURSIVE_REF, ANY, LLM_DRAFT_2019, 8 },
    { "$ref", LLM_KW_REF, ANY, 4, 9 },
    { "additionalItems", LLM_KW_ADDITIONAL_ITEMS, ARR, 4, 9 },
    { "additionalProperties", LLM_KW_ADDITIONAL_PROPERTIES, OBJ, 4, 9 },
    { "allOf", LLM_KW_ALL_OF, ANY, 4, 9 },
    { "anyOf", LLM_KW_ANY_OF, ANY, 4, 9 },
    { "const", LLM_KW_CONST, ANY, 6, 9 },
    { "contains", LLM_KW_CONTAINS, ARR, 6, 9 },
    { "dependencies", LLM_KW_DEPENDENCIES, OBJ, 4, 7 },
    { "dependentRequired", LLM_KW_DEPENDENT_REQUIRED, OBJ, 8, 9 },
    { "dependentSchemas", LLM_KW_DEPENDENT_SCHEMAS, OBJ, 8, 9 },
    { "enum", LLM_KW_ENUM, ANY, 4, 9 },
    { "exclusiveMaximum", LLM_KW_EXCLUSIVE_MAXIMUM, NUM, 4, 9 },
    { "exclusiveMinimum", LLM_KW_EXCLUSIVE_MINIMUM, NUM, 4, 9 },
    { "format", LLM_KW_FORMAT, STR, 4, 9 },
    { "if", LLM_KW_IF, ANY, 7, 9 },
    { "items", LLM_KW_ITEMS, ARR, 4, 9 },
    { "maxItems", LLM_KW_MAX_ITEMS, ARR, 4, 9 },
    { "maxLength", LLM_KW_MAX_LENGTH, STR, 4, 9 },
    { "maxProperties", LLM_KW_MAX_PROPERTIES, OBJ, 4, 9 },
    { "maximum", LLM_KW_MAXIMUM, NUM, 4, 9 },
    { "minItems", LLM_KW_MIN_ITEMS, ARR, 4, 9 },
    { "minLength", LLM_KW_MIN_LENGTH, STR, 4, 9 },
    { "minProperties", LLM_KW_MIN_PROPERTIES, OBJ, 4, 9 },
    { "minimum", LLM_KW_MINIMUM, NUM, 4, 9 },
    { "multipleOf", LLM_KW_MULTIPLE_OF, NUM, 4, 9 },
    { "not", LLM_KW_NOT, ANY, 4, 9 },
    { "oneOf", LLM_KW_ONE_OF, ANY, 4, 9 },
    { "pattern", LLM_KW_PATTERN, STR, 4, 9 },
    { "patternProperties", LLM_KW_PATTERN_PROPERTIES, OBJ, 4, 9 },
    { "prefixItems", LLM_KW_PREFIX_ITEMS, ARR, LLM_DRAFT_2020, 9 },
    { "properties", LLM_KW_PROPERTIES, OBJ, 4, 9 },
    { "propertyNames", LLM_KW_PROPERTY_NAMES, OBJ, 6, 9 },
    { "required", LLM_KW_REQUIRED, OBJ, 4, 9 },
    { "type", LLM_KW_TYPE, ANY, 4, 9 },
    { "unevaluatedItems", LLM_KW_UNEVALUATED_ITEMS, ARR, 8, 9 },
    { "unevaluatedProperties", LLM_KW_UNEVALUATED_PROPERTIES, OBJ, 8, 9 },
    { "uniqueItems", LLM_KW_UNIQUE_ITEMS, ARR, 4, 9 },
};


static int
llm_schema_row_cmp(const void *key, const void *row)
{
    int                      c;
    size_t                   len;
    const llm_str_t         *k = key;
    const llm_schema_row_t  *r = row;

    len = strlen(r->name);
    c = memcmp(k->data, r->name, llm_min(k->len, len));

    return c ? c : (k->len > len) - (k->len < len);
}


const llm_schema_row_t *
llm_schema_row(const llm_schema_t *s, llm_str_t name)
{
    const llm_schema_row_t  *r;

    r = bsearch(&name, llm_schema_rows, llm_nelems(llm_schema_rows),
                sizeof(llm_schema_row_t), llm_schema_row_cmp);

    return r && r->from <= s->draft && s->draft <= r->to ? r : NULL;
}


int
llm_schema_gone(const llm_schema_t *s, const llm_schema_row_t *row,
    const llm_flat_t *v)
{
    uint32_t  i;

    if (s->gone.unevaluated && row
        && (row->kw == LLM_KW_UNEVALUATED_PROPERTIES
            || row->kw == LLM_KW_UNEVALUATED_ITEMS))
    {
        return 1;
    }

    for (i = 0; i < s->gone.n && s->gone.values[i] != v; i++) { /* void */ }

    return i < s->gone.n;
}


/* the path from the root to v, found by comparing addresses */

static void
llm_schema_path(const llm_schema_t *s, const llm_flat_t *v, llm_buf_t *path)
{
    uint32_t           i;
    llm_str_t          key;
    const char        *end;
    const llm_flat_t  *at, *c;

    at = s->root;

    while (at != v) {
        key.len = 0;
        key.data = "";
        i = 0;

        for (c = llm_flat_first(at); c; c = llm_flat_next(at, c)) {
            if (at->type == LLM_FLAT_OBJECT) {
                key = llm_flat_str(c);
                c = llm_flat_next(at, c);
            }

            end = (const char *) c + c->size;
            if ((const char *) v < end) {
                break;
            }

            i++;
        }

        if (c == NULL || (const char *) v < (const char *) c) {
            return;
        }

        if (path->len) {
            (void) llm_buf_addc(path, '.');
        }

        if (at->type == LLM_FLAT_OBJECT) {
            (void) llm_buf_add(path, key.data, key.len);

        } else {
            (void) llm_buf_addf(path, "%u", i);
        }

        at = c;
    }
}


int
llm_schema_refuse(llm_schema_t *s, const llm_flat_t *value,
    const char *fmt, ...)
{
    char       text[256], clean[256], param[64];
    va_list    args;
    llm_buf_t  path;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    s->refused = value;

    llm_buf_init(&path, 1 << 16);
    llm_schema_path(s, value, &path);

    llm_clean(clean, sizeof(clean), path.data ? path.data : "", path.len);
    llm_clean(param, sizeof(param), path.data ? path.data : "", path.len);
    llm_buf_free(&path);

    return llm_fail_with(s->err, 400, NULL, param,
                         "the schema%s%s%s cannot be used: %s",
                         clean[0] ? "'s \"" : "", clean,
                         clean[0] ? "\"" : "", text);
}


int
llm_schema_too_large(llm_schema_t *s)
{
    return llm_fail_with(s->err, 400, NULL, NULL,
                         "the schema is too large: it has too many"
                         " combinations to be followed");
}


int
llm_schema_is(llm_schema_t *s, const llm_flat_t *v, llm_flat_type_t type)
{
    static const char  *names[] = { "null", "a boolean", "an integer",
                                    "a number", "a string", "an array",
                                    "an object" };

    if (v->type == type) {
        return LLM_OK;
    }

    return llm_schema_refuse(s, v, "it must be %s", names[type]);
}


int
llm_schema_count(llm_schema_t *s, const llm_flat_t *v, uint32_t *n)
{
    double  d;

    d = -1;

    if (v->type == LLM_FLAT_INT || v->type == LLM_FLAT_DOUBLE) {
        d = llm_flat_double(v);
    }

    if (d < 0 || (d < 1e15 && d != (double) (int64_t) d)) {
        return llm_schema_refuse(s, v, "it must be an integer that is not"
                                       " negative");
    }

    *n = d >= UINT32_MAX ? UINT32_MAX - 1 : (uint32_t) d;

    return LLM_OK;
}


llm_schema_item_t
llm_schema_item(const llm_schema_t *s, const llm_flat_t *v, uint32_t flags)
{
    size_t  at;

    at = (size_t) ((const char *) v - (const char *) s->root) / 8;

    return (llm_schema_item_t) (at << 2 | flags);
}


const llm_flat_t *
llm_schema_flat(const llm_schema_t *s, llm_schema_item_t item)
{
    return (const llm_flat_t *) ((const char *) s->root
                                 + (size_t) (item >> 2) * 8);
}


int
llm_schema_trivial(const llm_schema_t *s, const llm_flat_t *v)
{
    const llm_flat_t  *c;

    if (llm_schema_gone(s, NULL, v)) {
        return -1;
    }

    if (v->type == LLM_FLAT_BOOL) {
        return llm_flat_int(v) != 0;
    }

    if (v->type != LLM_FLAT_OBJECT) {
        return -1;
    }

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        if (llm_schema_row(s, llm_flat_str(c))) {
            return -1;
        }

        c = llm_flat_next(v, c);
    }

    return 1;
}


uint32_t
llm_schema_type_of(const llm_schema_t *s, const llm_flat_t *v)
{
    double  d;

    switch (v->type) {

    case LLM_FLAT_NULL:
        return LLM_SCHEMA_NULL;

    case LLM_FLAT_BOOL:
        return llm_flat_int(v) ? LLM_SCHEMA_TRUE : LLM_SCHEMA_FALSE_T;

    case LLM_FLAT_INT:
    case LLM_FLAT_DOUBLE:
        d = llm_flat_double(v);

        if (v->type == LLM_FLAT_DOUBLE && d > -1e15 && d < 1e15
            && d != (double) (int64_t) d)
        {
            return LLM_SCHEMA_FRACTION;
        }

        /* in draft 4 the way a number is written decides whether it is an
           integer */
        return s->draft == LLM_DRAFT_4 ? LLM_SCHEMA_NUMBER : LLM_SCHEMA_INT;

    case LLM_FLAT_STRING:
        return LLM_SCHEMA_STRING;

    case LLM_FLAT_ARRAY:
        return LLM_SCHEMA_ARRAY;

    default:
        return LLM_SCHEMA_OBJECT;
    }
}


void *
llm_schema_alloc(llm_schema_t *s, size_t size)
{
    void  *p;

    p = llm_arena_calloc(&s->arena, size);
    if (p == NULL) {
        (void) llm_schema_too_large(s);
    }

    return p;
}


int
llm_schema_grow(llm_schema_t *s, void *array, uint32_t count, uint32_t *room,
    size_t size)
{
    void      *p;
    void     **a = array;
    uint32_t   n;

    if (count < *room) {
        return LLM_OK;
    }

    n = *room ? *room * 2 : 4;

    p = llm_schema_alloc(s, n * size);
    if (p == NULL) {
        return LLM_ERROR;
    }

    if (count) {
        memcpy(p, *a, count * size);
    }

    *a = p;
    *room = n;

    return LLM_OK;
}


uint32_t
llm_schema_hash(const void *data, size_t len)
{
    size_t          i;
    uint64_t        h = 0xcbf29ce484222325u;
    const uint8_t  *p = data;

    for (i = 0; i < len; i++) {
        h = (h ^ p[i]) * 0x100000001b3u;
    }

    return (uint32_t) (h ^ h >> 32);
}


/* the slot of key, or the one where it would be */

static uint32_t
llm_schema_map_slot(const llm_schema_map_t *m, uint64_t key)
{
    uint32_t  i;

    i = (uint32_t) ((key * 0x9e3779b97f4a7c15u) >> 32) & (m->size - 1);

    while (m->keys[i] && m->keys[i] != key) {
        i = (i + 1) & (m->size - 1);
    }

    return i;
}


int
llm_schema_map_get(const llm_schema_map_t *m, uint64_t key, uint32_t *value)
{
    uint32_t  i;

    if (m->size == 0) {
        return LLM_ABSENT;
    }

    i = llm_schema_map_slot(m, key);
    if (m->keys[i] == 0) {
        return LLM_ABSENT;
    }

    *value = m->values[i];

    return LLM_OK;
}


int
llm_schema_map_put(llm_schema_t *s, llm_schema_map_t *m, uint64_t key,
    uint32_t value)
{
    uint32_t          i, k;
    llm_schema_map_t  old;

    if (2 * m->n >= m->size) {
        old = *m;
        m->size = old.size ? old.size * 2 : 32;
        m->keys = llm_schema_alloc(s, m->size * sizeof(uint64_t));
        m->values = llm_schema_alloc(s, m->size * sizeof(uint32_t));

        if (m->keys == NULL || m->values == NULL) {
            *m = old;
            return LLM_ERROR;
        }

        for (i = 0; i < old.size; i++) {
            if (old.keys[i]) {
                k = llm_schema_map_slot(m, old.keys[i]);
                m->keys[k] = old.keys[i];
                m->values[k] = old.values[i];
            }
        }
    }

    i = llm_schema_map_slot(m, key);
    m->n += m->keys[i] == 0;
    m->keys[i] = key;
    m->values[i] = value;

    return LLM_OK;
}
