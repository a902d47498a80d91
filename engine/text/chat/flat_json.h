/*
 * JSON text to a flat value: what a chat template needs of it, which is the
 * arguments of tool calls, that clients send as strings.
 */

#ifndef LLM_FLAT_JSON_H
#define LLM_FLAT_JSON_H

#include "engine/base/flat.h"

/*
 * Appends the value to b.  RFC 8259, strictly; numbers that do not fit into
 * 64 bits become doubles, lone surrogates U+FFFD; at most max_depth values
 * inside each other.  LLM_ERROR if the text is anything else (then b->len is
 * as before) or b is full (then b->failed is set too).
 */
int llm_flat_add_json(llm_buf_t *b, const char *text, size_t len,
    int max_depth);

#endif /* LLM_FLAT_JSON_H */
