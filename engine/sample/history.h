/*
 * The tokens of a sequence, for the stages that look at their order: the
 * window of the penalties, DRY, words that may not be written.  Kept only
 * where one of these is on.
 *
 * Invariant: `broken` says where the last sequence breaker of DRY ended,
 * however its text was cut into tokens.
 *
 * The sampler that a history is part of owns it; ids grow as needed and are
 * kept for the next sequence, so their bound is the longest sequence.
 */

#ifndef LLM_SAMPLE_HISTORY_H
#define LLM_SAMPLE_HISTORY_H

#include "engine/sample/sampler.h"

typedef struct {
    int32_t             *ids;           /* owned: the prompt's if the stages
                                           need them, then those generated */
    uint32_t             n;
    uint32_t             cap;
    uint32_t             n_prompt;      /* of the prompt among these */
    uint32_t             broken;        /* tokens up to the last breaker's end,
                                           0: there was none */
    char                 tail[LLM_MAX_BREAKER_LEN];     /* the text's end */
    uint32_t             tail_len;
    uint32_t            *same;          /* [cap] owned; llm_stage_dry()
                                           works in it */
    int                  failed;        /* no memory: tokens are missing */
} llm_history_t;

/* forgets the tokens, not the memory */
void llm_history_clear(llm_history_t *h);
void llm_history_free(llm_history_t *h);

/* adds a token; filter may be NULL */
void llm_history_add(llm_history_t *h, const llm_filter_t *filter, int32_t id);

/* do the tokens generated end with these? */
int llm_history_ends(const llm_history_t *h, const int32_t *ids, uint32_t n);

#endif /* LLM_SAMPLE_HISTORY_H */
