/*
 * The words of products= of a model: how a device multiplies activations by
 * weights, where this is the user's choice.  A device refuses a word that it
 * cannot do.
 */

#ifndef LLM_PRODUCTS_H
#define LLM_PRODUCTS_H

#include <stddef.h>

/* activations and weights in e4m3 */
#define LLM_PRODUCTS_FP8    "fp8"

/* in bfloat16, of weights that are floats */
#define LLM_PRODUCTS_BF16   "bf16"

/* of quantised weights, too */
#define LLM_PRODUCTS_BF16_ALL  "bf16-all"

/* all of them, for messages */
#define LLM_PRODUCTS_WORDS                                                   \
    "\"" LLM_PRODUCTS_FP8 "\", \"" LLM_PRODUCTS_BF16 "\" or \""                \
    LLM_PRODUCTS_BF16_ALL "\""

/* the word, in static memory; NULL: there is none such */
const char *llm_products_word(const char *text, size_t len);
/* is `word`, which may be NULL, this one? */
int llm_products_is(const char *word, const char *which);

#endif /* LLM_PRODUCTS_H */
