/*
 * Pieces of a JSON text where they stand, and a value written again as
 * Python's json.dumps(ensure_ascii=False) writes it: what a model would see
 * is the text, which a tree of values no longer has (1.0, 1e3, large
 * integers).
 *
 * Spans point into the text; llm_span_check() comes first.
 */

#ifndef LLM_JSON_SPAN_H
#define LLM_JSON_SPAN_H

#include "engine/base/base.h"

/* is it one object of JSON? */
int llm_span_check(llm_str_t text);
/* the value of a key (without escapes) of an object: 1, or 0 */
int llm_span_member(llm_str_t object, const char *key, llm_str_t *value);
/* the next item of an array; *at is 0 at first.  1, or 0 at the end */
int llm_span_item(llm_str_t array, size_t *at, llm_str_t *item);
/* LLM_ERROR: no memory */
int llm_span_dump(llm_str_t value, llm_buf_t *out);

#endif /* LLM_JSON_SPAN_H */
