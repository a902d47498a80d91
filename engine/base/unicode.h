/*
 * Unicode's characters: general categories, the base of an accented letter,
 * simple lower case.  WordPiece and regular expressions ask here; BPE's
 * patterns ask PCRE2, which has tables of its own.
 *
 * Plain functions over tables that gen_unicode.py writes.  Surrogates have a
 * category (Cs) that no name includes.
 */

#ifndef LLM_UNICODE_H
#define LLM_UNICODE_H

#include "engine/base/base.h"

/* general categories; sets of them are bits, see LLM_UC() */
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

/* the set that \p{NAME} names, as "Lu", "L" or "Uppercase_Letter"; 0: there is
   no such name */
uint32_t llm_unicode_named(const char *name, size_t len);

/* the first range of characters of these categories that ends at *from or
   behind it, whole; 0: there is none */
int llm_unicode_range(uint32_t categories, uint32_t *from, uint32_t *to);

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
