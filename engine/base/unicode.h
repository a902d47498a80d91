/*
 * Properties of Unicode characters: general category, base of an accented
 * letter, simple lower case.  Used by WordPiece and by regular expressions of
 * grammars; the patterns of BPE use PCRE2, which has its own tables.
 *
 * Pure functions over tables that gen_unicode.py writes.  The category of
 * surrogates (Cs) is in no named set, so that no pattern matches them.
 */

#ifndef LLM_UNICODE_H
#define LLM_UNICODE_H

#include "engine/base/base.h"

/* general categories; a set of categories has a bit for each, see LLM_UC() */
typedef enum {
    LLM_UC_LU = 0, LLM_UC_LL, LLM_UC_LT, LLM_UC_LM, LLM_UC_LO,
    LLM_UC_MN, LLM_UC_MC, LLM_UC_ME,
    LLM_UC_ND, LLM_UC_NL, LLM_UC_NO,
    LLM_UC_PC, LLM_UC_PD, LLM_UC_PS, LLM_UC_PE, LLM_UC_PI, LLM_UC_PF,
    LLM_UC_PO,
    LLM_UC_SM, LLM_UC_SC, LLM_UC_SK, LLM_UC_SO,
    LLM_UC_ZS, LLM_UC_ZL, LLM_UC_ZP,
    LLM_UC_CC, LLM_UC_CF, LLM_UC_CO, LLM_UC_CN,
    LLM_UC_CS
} llm_unicode_category_t;

#define LLM_UC(category)  (1u << (category))

/* the set that \p{NAME} stands for, such as "Lu", "L" or "Uppercase_Letter";
   0: unknown name */
uint32_t llm_unicode_named(const char *name, size_t len);

/* finds the first maximal range of characters in these categories that ends at
   *from or after it; *from becomes its first character, which may be lower, *to
   its last one; 0: there is none */
int llm_unicode_range(uint32_t categories, uint32_t *from, uint32_t *to);

int llm_unicode_is_mark(uint32_t cp);           /* M */
int llm_unicode_is_punct(uint32_t cp);          /* P */
int llm_unicode_is_word(uint32_t cp);           /* L, M, N */
int llm_unicode_is_control(uint32_t cp);        /* Cc, Cf, Co */
int llm_unicode_is_space(uint32_t cp);          /* White_Space */
int llm_unicode_is_han(uint32_t cp);            /* CJK ideographs of BERT */

/* the first character of the canonical decomposition of cp; cp if it has
   none */
uint32_t llm_unicode_base(uint32_t cp);
/* the simple lower case of cp; cp if it has none */
uint32_t llm_unicode_lower(uint32_t cp);

#endif /* LLM_UNICODE_H */
