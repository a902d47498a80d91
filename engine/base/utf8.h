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
 * The character at p, n bytes long at most: its length, 1 to 4, and *cp
 * (may be NULL); 0 when the bytes begin no whole character.
 */
size_t llm_utf8_decode(const char *p, size_t n, uint32_t *cp);

/*
 * Where decode() gives 0 and n > 0: how many bytes form the longest start
 * of a character, at least 1.  This is what one U+FFFD stands for.  *partial
 * (may be NULL) is set when all n bytes are such a start, so that more bytes
 * may make it whole.
 */
size_t llm_utf8_bad(const char *p, size_t n, int *partial);

/* 1 to 4 bytes to out; cp is a scalar value */
size_t llm_utf8_encode(char *out, uint32_t cp);

/* how many bytes from p on are whole characters; n when all of them are */
size_t llm_utf8_valid(const char *p, size_t n);

#endif /* LLM_UTF8_H */
