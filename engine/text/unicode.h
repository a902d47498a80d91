/*
 * What WordPiece needs to know of Unicode's characters: classes, canonical
 * decomposition without marks, simple lower case.  BPE asks PCRE2 instead.
 *
 * Plain functions over tables that gen_unicode.py writes.
 */

#ifndef LLM_UNICODE_H
#define LLM_UNICODE_H

#include "engine/base/base.h"

#define LLM_UNICODE_BASES  3

int llm_unicode_is_mark(uint32_t cp);           /* Mn */
int llm_unicode_is_punct(uint32_t cp);          /* P */
int llm_unicode_is_control(uint32_t cp);        /* Cc, Cf, Co */
int llm_unicode_is_space(uint32_t cp);          /* White_Space */
int llm_unicode_is_han(uint32_t cp);            /* CJK ideographs, as BERT */

/*
 * The canonical decomposition of cp without its marks: 0 to 3 characters to
 * out, and how many; cp itself where it has none.
 */
size_t llm_unicode_base(uint32_t cp, uint32_t out[LLM_UNICODE_BASES]);

uint32_t llm_unicode_lower(uint32_t cp);

#endif /* LLM_UNICODE_H */
