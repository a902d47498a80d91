/*
 * JSON (by cJSON) to flat values, with strict checks where cJSON has none:
 * invalid UTF-8, trailing bytes, depth, repeated keys, huge numbers.  And
 * back: strings and flat values to JSON.
 */

#ifndef LLM_JSON_H
#define LLM_JSON_H

#include "engine/base/flat.h"

/* a tree takes about 100 bytes for each value */
#define LLM_JSON_MAX_VALUES  (1 << 18)

/* beginning of an error's message; what is wrong and where follows */
#define LLM_JSON_COMPLAINT  "We could not parse the JSON body of your request: "

/* for an error of llm_json_to_flat() about JSON that is not a request's body:
   what is wrong and where, without a full stop; NULL: the error is not about
   JSON */
const char *llm_json_why(llm_err_t *err);

/* makes such an error "it is no JSON: ...", leaves others as they are;
   LLM_ERROR */
int llm_json_refuse(llm_err_t *err);

/* bounds of a text; one struct can be the bound of several texts together */
typedef struct {
    uint32_t     depth;                 /* levels of brackets */
    uint32_t     values;                /* values left; reading counts them
                                           down */
    int          lenient;               /* for what clients send: U+0000 and
                                           halves of surrogate pairs, which no
                                           text may contain, become U+FFFD; a
                                           byte order mark may come first */
} llm_json_limits_t;

/*
 * Appends one flat value at out's end, which is a multiple of 8.  Errors have
 * status 400 and the place; out must then not be used.  Numbers without
 * fraction and exponent are integers and keep all digits, also those that are
 * stored as doubles because they do not fit; others are doubles.  Of equal
 * keys the last one stays.  In addition to invalid JSON these are refused:
 * invalid UTF-8, a number of 63 characters, what is beyond the limits and,
 * unless the limits are lenient, half surrogate pairs and U+0000.  limits may
 * be NULL for LLM_FLAT_MAX_DEPTH levels, the most in any case, and
 * LLM_JSON_MAX_VALUES.
 */
int llm_json_to_flat(const char *text, size_t len, llm_json_limits_t *limits,
    llm_buf_t *out, llm_err_t *err);
/* the same, but an object with two equal keys is an error */
int llm_json_to_flat_once(const char *text, size_t len,
    llm_json_limits_t *limits, llm_buf_t *out, llm_err_t *err);

/* the bytes of a byte order mark at the text's beginning, 3 or 0.  Lenient
   limits allow it; other readers use this to skip it */
size_t llm_json_mark(const char *text, size_t len);

/* adds a JSON string literal with its quotes; U+0000 and what is not UTF-8
   become U+FFFD */
int llm_json_add_string(llm_buf_t *b, const char *s, size_t len);
/* the same as llm_json_add_string(), without the quotes */
int llm_json_add_text(llm_buf_t *b, const char *s, size_t len);
/* adds a checked flat value; numbers come back as they were */
int llm_json_add_flat(llm_buf_t *b, const llm_flat_t *v);

#endif /* LLM_JSON_H */
