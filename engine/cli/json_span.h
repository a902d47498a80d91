/*
 * Values of a JSON text as spans of the text, and their output in the format
 * of Python's json.dumps(ensure_ascii=False).  A tree of values would lose the
 * form of numbers (1.0, 1e3, large integers), which a model sees.
 *
 * Spans point into the text, which llm_span_check() must have accepted.
 */

#ifndef LLM_JSON_SPAN_H
#define LLM_JSON_SPAN_H

#include "engine/base/base.h"

/* is the text one JSON object? */
int llm_span_check(llm_str_t text);
/* finds the value of a key in an object; key is compared with the text, in
   which it must have no escapes; 0: no such key, or not an object */
int llm_span_member(llm_str_t object, const char *key, llm_str_t *value);
/* finds the next item of an array; *at is 0 at first; 0: no more items, or
   not an array */
int llm_span_item(llm_str_t array, size_t *at, llm_str_t *item);
/* adds the value as json.dumps() writes it; LLM_ERROR: no memory */
int llm_span_dump(llm_str_t value, llm_buf_t *out);

#endif /* LLM_JSON_SPAN_H */
