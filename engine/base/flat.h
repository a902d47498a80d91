/*
 * A JSON-like value as flat bytes: no pointers, so that it travels through
 * the rings between processes as it is.  engine/api makes one from a
 * request's messages, tools and template arguments; engine/text reads it.
 *
 * Invariant: a value is a sequence of nodes in preorder; each begins at a
 * multiple of 8 bytes with a 16-byte header that holds the whole size of
 * the node, children included.  Objects keep the order of their keys; their
 * children alternate key (a string node) and value.
 *
 * A writer owns its buffer; a reader owns nothing and points into the bytes.
 */

#ifndef LLM_FLAT_H
#define LLM_FLAT_H

#include "engine/base/base.h"

typedef enum {
    LLM_FLAT_NULL = 0,
    LLM_FLAT_BOOL,                      /* u.integer 0 or 1 */
    LLM_FLAT_INT,
    LLM_FLAT_DOUBLE,                    /* an integer that int64_t cannot hold,
                                           too: see llm_flat_add_big() */
    LLM_FLAT_STRING,
    LLM_FLAT_ARRAY,
    LLM_FLAT_OBJECT
} llm_flat_type_t;

typedef struct {
    uint32_t     type;                  /* llm_flat_type_t */
    uint32_t     size;                  /* of the node, a multiple of 8 */
    uint32_t     count;                 /* bytes, items or pairs; of a DOUBLE
                                           the bytes of its digits, mostly
                                           none */
    uint32_t     unused;
} llm_flat_t;

#define LLM_FLAT_MAX_DEPTH  128

/* writing; errors are sticky in the buffer (b->failed) */
void llm_flat_add_null(llm_buf_t *b);
void llm_flat_add_bool(llm_buf_t *b, int v);
void llm_flat_add_int(llm_buf_t *b, int64_t v);
void llm_flat_add_double(llm_buf_t *b, double v);
/* an integer that int64_t cannot hold: a DOUBLE for whoever computes with it,
   and its digits, with the sign, for whoever writes it again */
void llm_flat_add_big(llm_buf_t *b, double v, const char *digits, size_t len);
void llm_flat_add_str(llm_buf_t *b, const char *data, size_t len);
/* open() returns the handle for close(); count is items or pairs */
size_t llm_flat_open(llm_buf_t *b, llm_flat_type_t type);
void llm_flat_close(llm_buf_t *b, size_t handle, uint32_t count);
/* adds a copy of another value */
void llm_flat_add_node(llm_buf_t *b, const llm_flat_t *v);

/*
 * Checks that the bytes are one well-formed value (types, sizes, depth);
 * every function below takes values from checked bytes only.  data must be
 * 8-byte aligned.
 */
int llm_flat_check(const void *data, size_t len);

/* of a DOUBLE the nearest integer towards 0 that int64_t holds */
int64_t llm_flat_int(const llm_flat_t *v);
double llm_flat_double(const llm_flat_t *v);    /* of INT and BOOL too */
/* of a DOUBLE that is such an integer, or empty */
llm_str_t llm_flat_digits(const llm_flat_t *v);
llm_str_t llm_flat_str(const llm_flat_t *v);
/* the first child, or NULL; the next node, or NULL at the parent's end */
const llm_flat_t *llm_flat_first(const llm_flat_t *parent);
const llm_flat_t *llm_flat_next(const llm_flat_t *parent,
    const llm_flat_t *child);
/* the value of a key (the last one wins), or NULL */
const llm_flat_t *llm_flat_get(const llm_flat_t *object, const char *key);

#endif /* LLM_FLAT_H */
