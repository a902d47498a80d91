/*
 * A request's allowed tokens and bad words, applied to a row of logits: a logit
 * of minus infinity is never drawn.  Nothing is owned here.
 */

#ifndef LLM_SAMPLE_FILTER_H
#define LLM_SAMPLE_FILTER_H

#include "engine/sample/history.h"

/* whether a bad word has several tokens, so that the history is needed; filter
   may be NULL, here and below */
int llm_filter_has_words(const llm_filter_t *filter);
/* removes tokens from the row of n: those that are not allowed, and the last
   token of each bad word whose other tokens were the last generated ones */
void llm_filter_apply(const llm_filter_t *filter, const llm_history_t *h,
    float *row, uint32_t n);

/* removes the tokens whose bit in the mask is 0 */
void llm_filter_mask(const uint32_t *mask, uint32_t n, float *row);

#endif /* LLM_SAMPLE_FILTER_H */
