/*
 * Models in other formats as an llm_gguf_t: their readers (engine/file) write
 * the keys and the table of tensors here, which then go through GGUF's own
 * parser, so one set of checks holds for all formats: names that occur twice,
 * types, dimensions that overflow, rows that are no whole blocks.
 *
 * A make owns its buffers until llm_gguf_made() or llm_gguf_unmake().  A lack
 * of memory shows in llm_gguf_made().
 */

#ifndef LLM_GGUF_MAKE_H
#define LLM_GGUF_MAKE_H

#include "engine/gguf/gguf.h"
#include "engine/gguf/map.h"

typedef struct {
    llm_buf_t     kv;
    llm_buf_t     table;
    llm_buf_t     data;                 /* const void *[n_tensors] */
    uint64_t      n_kv;
    uint64_t      n_tensors;
    size_t        count_at;             /* of the open array: where its number
                                           of items is */
    uint64_t      count;
} llm_gguf_make_t;

/* a file whose bytes the tensors are in */
typedef struct {
    char         *name;                 /* malloc()ed */
    llm_map_t    *map;                  /* NULL: only headers are read */
    size_t        len;                  /* bytes */
    uint64_t      changed;              /* time of modification, in ns */
} llm_gguf_source_t;

/* frees name and map */
void llm_gguf_source_free(llm_gguf_source_t *f);

void llm_gguf_make(llm_gguf_make_t *mk);
void llm_gguf_unmake(llm_gguf_make_t *mk);

void llm_gguf_make_u32(llm_gguf_make_t *mk, const char *key, uint32_t v);
void llm_gguf_make_f32(llm_gguf_make_t *mk, const char *key, float v);
void llm_gguf_make_bool(llm_gguf_make_t *mk, const char *key, int v);
void llm_gguf_make_str(llm_gguf_make_t *mk, const char *key, llm_str_t s);

/* an array: begin, items of its type, end */
void llm_gguf_make_array(llm_gguf_make_t *mk, const char *key,
    llm_gguf_type_t item);
void llm_gguf_make_item(llm_gguf_make_t *mk, uint32_t v);
void llm_gguf_make_item_str(llm_gguf_make_t *mk, llm_str_t s);
void llm_gguf_make_end(llm_gguf_make_t *mk);

/* ne[n_dims], ne[0] the row length; data NULL: only headers are read.  The
   caller has checked that the bytes are in the file */
void llm_gguf_make_tensor(llm_gguf_make_t *mk, llm_str_t name,
    uint32_t n_dims, const uint64_t *ne, uint32_t type, const void *data);

/*
 * The model; NULL and *err.  name is for messages, format a constant text.
 * Takes over the n files, n > 0, and their maps, also after an error; mk must
 * still be freed.
 */
llm_gguf_t *llm_gguf_made(llm_gguf_make_t *mk, const char *name,
    const char *format, llm_gguf_source_t *files, size_t n, llm_err_t *err);

#endif /* LLM_GGUF_MAKE_H */
