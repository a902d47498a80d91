/*
 * A JSON-like value as flat bytes, without pointers, so that its bytes can be
 * sent unchanged through the rings between processes.  engine/api writes a
 * request's messages, tools and template arguments in this form; engine/text
 * reads them.
 *
 * Invariant: a value is a sequence of nodes in preorder; each node begins at
 * a multiple of 8 bytes with a 16-byte header that has the size of the node
 * and all its children.  Objects keep the order of their keys; their children
 * alternate key (a string node) and value.
 *
 * A writer owns its buffer; a reader owns nothing and points into the bytes.
 */

#ifndef LLM_FLAT_H
#define LLM_FLAT_H

#include "engine/base/base.h"

typedef enum {
    LLM_FLAT_NULL = 0,
    LLM_FLAT_BOOL,                      /* an int64_t, 0 or 1 */
    LLM_FLAT_INT,
    LLM_FLAT_DOUBLE,                    /* also an integer beyond int64_t, see
                                           llm_flat_add_big() */
    LLM_FLAT_STRING,
    LLM_FLAT_ARRAY,
    LLM_FLAT_OBJECT
} llm_flat_type_t;

typedef struct {
    uint32_t     type;                  /* llm_flat_type_t */
    uint32_t     size;                  /* bytes of the node with its header
                                           and children, a multiple of 8 */
    uint32_t     count;                 /* STRING: bytes; ARRAY: items; OBJECT:
                                           pairs; DOUBLE: bytes of its decimal
                                           digits, usually 0 */
    uint32_t     unused;
} llm_flat_t;

#define LLM_FLAT_MAX_DEPTH  128

/* writing; an error sets b->failed, which stays set */
void llm_flat_add_null(llm_buf_t *b);
void llm_flat_add_bool(llm_buf_t *b, int v);
void llm_flat_add_int(llm_buf_t *b, int64_t v);
void llm_flat_add_double(llm_buf_t *b, double v);
/* an integer beyond int64_t: a DOUBLE to compute with, and its digits with the
   sign, to print it exactly */
void llm_flat_add_big(llm_buf_t *b, double v, const char *digits, size_t len);
void llm_flat_add_str(llm_buf_t *b, const char *data, size_t len);
/* open() returns the handle for close(); count is items or pairs */
size_t llm_flat_open(llm_buf_t *b, llm_flat_type_t type);
void llm_flat_close(llm_buf_t *b, size_t handle, uint32_t count);
void llm_flat_add_node(llm_buf_t *b, const llm_flat_t *v);

/*
 * Checks that the bytes are one well-formed value (types, sizes, depth): the
 * functions below take only values that were checked.  data must be 8-byte
 * aligned.
 */
int llm_flat_check(const void *data, size_t len);

/* takes BOOL and INT, and DOUBLE: truncated towards 0, limited to int64_t */
int64_t llm_flat_int(const llm_flat_t *v);
/* takes BOOL, INT and DOUBLE */
double llm_flat_double(const llm_flat_t *v);
/* digits of llm_flat_add_big(); empty: any other value */
llm_str_t llm_flat_digits(const llm_flat_t *v);
llm_str_t llm_flat_str(const llm_flat_t *v);
/* first child, next child; NULL: there is none */
const llm_flat_t *llm_flat_first(const llm_flat_t *parent);
const llm_flat_t *llm_flat_next(const llm_flat_t *parent,
    const llm_flat_t *child);
/* the value of a key, the last one if the key is repeated; NULL: no such key,
   or not an object */
const llm_flat_t *llm_flat_get(const llm_flat_t *object, const char *key);

#endif /* LLM_FLAT_H */
