/*
 * Writes GGUF files into a buffer, well-formed or not, for tests and fuzz
 * targets.
 */

#ifndef LLM_T_GGUF_BUILD_H
#define LLM_T_GGUF_BUILD_H

#include "engine/gguf/gguf.h"

#include <stdio.h>


static inline void
gguf_u32(llm_buf_t *b, uint32_t v)
{
    (void) llm_buf_add(b, &v, sizeof(v));
}


static inline void
gguf_u64(llm_buf_t *b, uint64_t v)
{
    (void) llm_buf_add(b, &v, sizeof(v));
}


static inline void
gguf_str(llm_buf_t *b, const char *data, size_t len)
{
    gguf_u64(b, len);
    (void) llm_buf_add(b, data, len);
}


static inline void
gguf_begin(llm_buf_t *b, uint32_t version, uint64_t n_tensors, uint64_t n_kv)
{
    llm_buf_init(b, 0);
    (void) llm_buf_add(b, "GGUF", 4);
    gguf_u32(b, version);
    gguf_u64(b, n_tensors);
    gguf_u64(b, n_kv);
}


static inline void
gguf_key(llm_buf_t *b, const char *key, uint32_t type)
{
    gguf_str(b, key, strlen(key));
    gguf_u32(b, type);
}


/* a scalar of any type but string: its bytes as they are */

static inline void
gguf_kv(llm_buf_t *b, const char *key, uint32_t type, const void *v,
    size_t size)
{
    gguf_key(b, key, type);
    (void) llm_buf_add(b, v, size);
}


static inline void
gguf_kv_u32(llm_buf_t *b, const char *key, uint32_t v)
{
    gguf_kv(b, key, LLM_GGUF_U32, &v, sizeof(v));
}


static inline void
gguf_kv_bool(llm_buf_t *b, const char *key, int v)
{
    uint8_t  u = (uint8_t) v;

    gguf_kv(b, key, LLM_GGUF_BOOL, &u, sizeof(u));
}


static inline void
gguf_kv_str(llm_buf_t *b, const char *key, const char *v)
{
    gguf_key(b, key, LLM_GGUF_STR);
    gguf_str(b, v, strlen(v));
}


static inline void
gguf_kv_array(llm_buf_t *b, const char *key, uint32_t item, uint64_t n)
{
    gguf_key(b, key, LLM_GGUF_ARRAY);
    gguf_u32(b, item);
    gguf_u64(b, n);
}


static inline void
gguf_tensor(llm_buf_t *b, const char *name, uint32_t n_dims,
    const uint64_t *ne, uint32_t type, uint64_t offset)
{
    uint32_t  i;

    gguf_str(b, name, strlen(name));
    gguf_u32(b, n_dims);

    for (i = 0; i < n_dims; i++) {
        gguf_u64(b, ne[i]);
    }

    gguf_u32(b, type);
    gguf_u64(b, offset);
}


static inline void
gguf_pad(llm_buf_t *b, size_t alignment)
{
    while (b->len % alignment) {
        (void) llm_buf_addc(b, 0);
    }
}

#endif /* LLM_T_GGUF_BUILD_H */
