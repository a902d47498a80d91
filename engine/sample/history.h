/*
 * The tokens of a sequence, for what depends on their order: the window of the
 * penalties, DRY, bad words.  Kept only if one of these is on.
 *
 * Invariant: `broken` is the end of DRY's last sequence breaker, however the
 * breaker's text is divided into tokens.
 *
 * A history is part of a sampler, which owns it; its memory grows as needed and
 * is kept for the next sequence, so it is bounded by the longest sequence.
 */

#ifndef LLM_SAMPLE_HISTORY_H
#define LLM_SAMPLE_HISTORY_H

#include "engine/sample/sampler.h"

typedef struct {
    int32_t             *ids;           /* owned: tokens of the prompt, if the
                                           stages need them, then generated
                                           tokens */
    uint32_t             n;
    uint32_t             cap;
    uint32_t             n_prompt;      /* tokens of the prompt in ids */
    uint32_t             broken;        /* number of tokens up to the end of the
                                           last breaker; 0: there was none */
    char                 tail[LLM_MAX_BREAKER_LEN];     /* last bytes of the
                                                           text */
    uint32_t             tail_len;
    uint32_t            *same;          /* [cap] owned: scratch of
                                           llm_stage_dry() */
    int                  failed;        /* no memory: tokens are missing */
} llm_history_t;

/* forgets the tokens, not the memory */
void llm_history_clear(llm_history_t *h);
void llm_history_free(llm_history_t *h);

/* adds a token; filter may be NULL; sets `failed` if there is no memory */
void llm_history_add(llm_history_t *h, const llm_filter_t *filter, int32_t id);

/* whether the generated tokens end with these n */
int llm_history_ends(const llm_history_t *h, const int32_t *ids, uint32_t n);

#endif /* LLM_SAMPLE_HISTORY_H */
