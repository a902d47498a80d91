/*
 * JSON (cJSON) to flat values, with what cJSON leaves open made strict:
 * invalid UTF-8, trailing bytes, depth, duplicate or huge numbers.
 */

#ifndef LLM_JSON_H
#define LLM_JSON_H

#include "engine/base/flat.h"

/*
 * Appends one flat value.  Errors are status 400 with the place.  Numbers
 * without fraction and exponent that fit are integers.
 */
int llm_json_to_flat(const char *text, size_t len, llm_buf_t *out,
    llm_err_t *err);

/* a JSON string literal, quotes included, of UTF-8 text */
int llm_json_add_string(llm_buf_t *b, const char *s, size_t len);

#endif /* LLM_JSON_H */
