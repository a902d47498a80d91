/*
 * UTF-8 of RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
 * Pure functions over bytes.
 */

#ifndef LLM_UTF8_H
#define LLM_UTF8_H

#include "engine/base/base.h"

#define LLM_UTF8_MAX          4
#define LLM_UTF8_REPLACEMENT  "\xef\xbf\xbd"    /* U+FFFD */

/*
 * Decodes the first character of n bytes: returns its length, 1 to 4, and sets
 * *cp (cp may be NULL); 0: the bytes do not begin with a complete character.
 */
size_t llm_utf8_decode(const char *p, size_t n, uint32_t *cp);

/*
 * For bytes of which llm_utf8_decode() returned 0, n > 0: returns the number
 * of bytes, at least 1, that one U+FFFD replaces: the longest valid beginning
 * of a character.  *partial (partial may be NULL) is set if this is all n
 * bytes, so that more bytes may complete the character.
 */
size_t llm_utf8_bad(const char *p, size_t n, int *partial);

/* writes 1 to 4 bytes, returns their number; cp must be a scalar value */
size_t llm_utf8_encode(char *out, uint32_t cp);

/* bytes from p on that are complete characters; n: all are */
size_t llm_utf8_valid(const char *p, size_t n);

#endif /* LLM_UTF8_H */
