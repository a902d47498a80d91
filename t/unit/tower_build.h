/*
 * Tiny towers of every family, whose fields, tensors and rows are those of
 * tower_expected.py, as files in memory: for tests and fuzz targets.
 */

#ifndef LLM_T_TOWER_BUILD_H
#define LLM_T_TOWER_BUILD_H

#include "t/unit/gguf_build.h"

typedef enum {
    TOWER_U32,
    TOWER_F32,
    TOWER_STR,
    TOWER_F32S,
    TOWER_BOOLS,
    TOWER_BOOL
} tower_kind_t;

typedef struct {
    const char     *key;
    tower_kind_t    kind;
    uint32_t        u32;                /* or number of items */
    float           f32;
    const char     *str;
    float           items[8];
} tower_field_t;

/* of no more dimensions than are not 0; its numbers are plus + scale * hash */
typedef struct {
    const char     *name;
    uint32_t        ne[4];
    float           scale;
    float           plus;
} tower_tensor_t;

/* pixels of a hash; w 0: the end; of an encoder of spectrograms numbers of one,
   w frames, of which h have rows */
typedef struct {
    uint32_t        seed;
    uint32_t        w;
    uint32_t        h;
} tower_entry_t;

typedef struct {
    const char            *name;
    const tower_field_t   *fields;
    const tower_tensor_t  *tensors;
    const tower_entry_t   *entries;
    const float           *rows;
    size_t                 n_rows;      /* numbers of all rows */
} tower_tiny_t;

/* a change of a file: a field that has another value, is missing or is one
   more, a tensor with another name */
typedef struct {
    const char     *key;
    const char     *str;                /* NULL: u32 */
    uint32_t        u32;
    int             drop;
    int             add;
    const char     *tensor;
    const char     *name;
    const char     *error;
} tower_change_t;

#include "t/unit/tower_expected.h"


static inline uint64_t
tower_hash(uint32_t seed, uint64_t i)
{
    uint64_t  z;

    z = ((uint64_t) seed << 32) + i + 1;
    z *= 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;

    return z ^ z >> 31;
}


static inline void
tower_field(llm_buf_t *b, const tower_field_t *f, const tower_change_t *c)
{
    int       changed;
    uint8_t   flag;
    uint32_t  i;

    changed = c && c->key && strcmp(c->key, f->key) == 0;

    switch (changed ? c->str ? TOWER_STR : TOWER_U32 : f->kind) {

    case TOWER_U32:
        gguf_kv_u32(b, f->key, changed ? c->u32 : f->u32);
        break;

    case TOWER_F32:
        gguf_kv(b, f->key, LLM_GGUF_F32, &f->f32, sizeof(float));
        break;

    case TOWER_STR:
        gguf_kv_str(b, f->key, changed ? c->str : f->str);
        break;

    case TOWER_F32S:
        gguf_kv_array(b, f->key, LLM_GGUF_F32, f->u32);
        (void) llm_buf_add(b, f->items, f->u32 * sizeof(float));
        break;

    case TOWER_BOOLS:
        gguf_kv_array(b, f->key, LLM_GGUF_BOOL, f->u32);

        for (i = 0; i < f->u32; i++) {
            flag = f->items[i] != 0;
            (void) llm_buf_add(b, &flag, 1);
        }

        break;

    case TOWER_BOOL:
        flag = f->u32 != 0;
        gguf_kv(b, f->key, LLM_GGUF_BOOL, &flag, 1);
    }
}


static inline uint64_t
tower_elements(const tower_tensor_t *t, uint64_t ne[4], uint32_t *n_dims)
{
    uint64_t  n;

    for (*n_dims = 0, n = 1; *n_dims < 4 && t->ne[*n_dims]; (*n_dims)++) {
        ne[*n_dims] = t->ne[*n_dims];
        n *= ne[*n_dims];
    }

    return n;
}


static inline int
tower_drops(const tower_change_t *c, const char *key)
{
    return c && c->drop && strcmp(c->key, key) == 0;
}


/* makes the file in b, which the caller frees */

static inline void
tower_make(const tower_tiny_t *tiny, const tower_change_t *c, llm_buf_t *b)
{
    float                  x;
    uint32_t               i, n_kv, n_tensors, n_dims;
    uint64_t               k, at, ne[4];
    const tower_field_t   *f;
    const tower_tensor_t  *t;

    for (f = tiny->fields, n_kv = 0; f->key; f++) {
        n_kv += !tower_drops(c, f->key);
    }

    n_kv += c && c->add;

    for (n_tensors = 0; tiny->tensors[n_tensors].name; n_tensors++) {
        /* void */
    }

    gguf_begin(b, 3, n_tensors, n_kv);

    for (f = tiny->fields; f->key; f++) {
        if (!tower_drops(c, f->key)) {
            tower_field(b, f, c);
        }
    }

    if (c && c->add) {
        gguf_kv_u32(b, c->key, c->u32);
    }

    for (i = 0, at = 0; i < n_tensors; i++) {
        t = &tiny->tensors[i];
        k = tower_elements(t, ne, &n_dims);
        gguf_tensor(b, c && c->tensor && strcmp(c->tensor, t->name) == 0
                        ? c->name : t->name, n_dims, ne, LLM_TYPE_F32, at);
        at += llm_align(k * sizeof(float), 32);
    }

    gguf_pad(b, 32);

    for (i = 0; i < n_tensors; i++) {
        t = &tiny->tensors[i];

        for (k = 0; k < tower_elements(t, ne, &n_dims); k++) {
            x = (float) (tower_hash(i + 1, k) >> 40) / 8388608.0f - 1;
            x = t->plus + t->scale * x;
            (void) llm_buf_add(b, &x, sizeof(x));
        }

        gguf_pad(b, 32);
    }
}

#endif /* LLM_T_TOWER_BUILD_H */
