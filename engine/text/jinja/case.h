/*
 * Letters as Python's str sees them: case mappings that may give several
 * characters, and the classes behind isalpha() and its kin.  Internal to
 * engine/text/jinja/; the tables in case_tables.h are written by
 * gen_case.py.
 */

#ifndef LLM_JINJA_CASE_H
#define LLM_JINJA_CASE_H

#include "engine/text/jinja/value.h"

typedef enum {
    LLM_JC_ALPHA,
    LLM_JC_DECIMAL,
    LLM_JC_DIGIT,
    LLM_JC_NUMERIC,
    LLM_JC_UPPER,
    LLM_JC_LOWER,
    LLM_JC_TITLE,
    LLM_JC_CASED,
    LLM_JC_HIDDEN                       /* what repr() escapes */
} llm_jc_class_t;

int llm_jc_is(uint32_t c, llm_jc_class_t class);

/* up to three characters to out; returns how many */
size_t llm_jc_upper(uint32_t c, uint32_t *out);
size_t llm_jc_title(uint32_t c, uint32_t *out);
size_t llm_jc_lower(uint32_t c, uint32_t *out);

/* what to make of the characters of a string */
typedef enum {
    LLM_JC_TO_UPPER,
    LLM_JC_TO_LOWER,
    LLM_JC_TO_CAPITAL,                  /* the first title, the rest lower */
    LLM_JC_TO_TITLE,                    /* every word so */
    LLM_JC_TO_SWAPPED
} llm_jc_mapping_t;

/* s from byte start to end, mapped, behind b; trust goes along */
int llm_jb_add_mapped(llm_jb_t *b, const llm_js_t *s, size_t start,
    size_t end, llm_jc_mapping_t mapping);

#endif /* LLM_JINJA_CASE_H */
