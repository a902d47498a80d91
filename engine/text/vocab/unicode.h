/*
 * What WordPiece needs to know of Unicode's characters: classes, the base of
 * an accented letter, simple lower case.  BPE asks PCRE2 instead.
 *
 * Plain functions over tables that gen_unicode.py writes.
 */

#ifndef LLM_UNICODE_H
#define LLM_UNICODE_H

#include "engine/base/base.h"

int llm_unicode_is_mark(uint32_t cp);           /* M */
int llm_unicode_is_punct(uint32_t cp);          /* P */
int llm_unicode_is_word(uint32_t cp);           /* L, M, N */
int llm_unicode_is_control(uint32_t cp);        /* Cc, Cf, Co */
int llm_unicode_is_space(uint32_t cp);          /* White_Space */
int llm_unicode_is_han(uint32_t cp);            /* CJK ideographs, as BERT */

/* what the canonical decomposition of cp begins with */
uint32_t llm_unicode_base(uint32_t cp);
uint32_t llm_unicode_lower(uint32_t cp);

#endif /* LLM_UNICODE_H */
