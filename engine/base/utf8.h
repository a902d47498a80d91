/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above
 * U+10FFFF.  Plain functions over bytes, without state.
 */

#ifndef LLM_UTF8_H
#define LLM_UTF8_H

#include "engine/base/base.h"

#define LLM_UTF8_MAX          4
#define LLM_UTF8_REPLACEMENT  "\xef\xbf\xbd"    /* U+FFFD */

/*
 * The character at p, where n bytes are: its length, 1 to 4, and *cp (may be
 * NULL); 0 if the bytes do not begin with a whole character.
 */
size_t llm_utf8_decode(const char *p, size_t n, uint32_t *cp);

/*
 * If decode() gives 0 and n > 0: how many bytes are the longest beginning of
 * a character, at least 1; one U+FFFD replaces them.  *partial (may be NULL)
 * is set if all n bytes are such a beginning, so that more bytes may complete
 * it.
 */
size_t llm_utf8_bad(const char *p, size_t n, int *partial);

/* 1 to 4 bytes to out; cp is a scalar value */
size_t llm_utf8_encode(char *out, uint32_t cp);

/* how many bytes from p on are whole characters; n when all of them are */
size_t llm_utf8_valid(const char *p, size_t n);

#endif /* LLM_UTF8_H */
