/*
 * What a request says of tokens and words, applied to a row of logits.
 */

#ifndef LLM_SAMPLE_FILTER_H
#define LLM_SAMPLE_FILTER_H

#include "engine/sample/history.h"

/* has a bad word several tokens, so that the history decides?  filter may be
   NULL, here and below */
int llm_filter_has_words(const llm_filter_t *filter);
/* takes tokens out of the row of n: those that are not allowed, and the last
   ones of bad words whose other tokens are there */
void llm_filter_apply(const llm_filter_t *filter, const llm_history_t *h,
    float *row, uint32_t n);

/* takes out the tokens whose bit in the mask is 0 */
void llm_filter_mask(const uint32_t *mask, uint32_t n, float *row);

#endif /* LLM_SAMPLE_FILTER_H */
