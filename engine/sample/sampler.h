/*
 * From a row of logits to a token: bias and penalties, temperature, top-k,
 * typical, top-p, min-p, and a draw.  In the order of vLLM's chain:
 * bias, penalties, temperature, min-p, top-k, top-p; greedy when the
 * temperature is 0.
 *
 * Invariant: the token depends on the logits, the parameters, the seed, the
 * choice and the number of tokens generated so far, on nothing else: the
 * random number is a hash of those (counter-based), so batches, restarts
 * and preemption do not change a text.
 *
 * A sampler belongs to one sequence; scratch may be shared by the sequences
 * that one thread samples.
 */

#ifndef LLM_SAMPLER_H
#define LLM_SAMPLER_H

#include "engine/llm.h"

typedef struct llm_sampler_s          llm_sampler_t;
typedef struct llm_sampler_scratch_s  llm_sampler_scratch_t;

typedef struct {
    int32_t      id;
    float        logprob;
} llm_candidate_t;

typedef struct {
    int32_t                 id;
    float                   logprob;    /* before temperature and cuts */
    uint32_t                n_top;      /* most likely first; the sampled
                                           token is always among them */
    const llm_candidate_t  *top;        /* valid until the next call */
} llm_sampled_t;

/* temperature 1, top_p 1, everything else off, no seed */
void llm_sampling_default(llm_sampling_t *s);

llm_sampler_scratch_t *llm_sampler_scratch_create(uint32_t n_vocab);
void llm_sampler_scratch_free(llm_sampler_scratch_t *s);

/*
 * choice is the index of the choice: each has its own random numbers.  bias
 * is copied.  With has_seed == 0 the caller puts a random seed first.
 */
llm_sampler_t *llm_sampler_create(const llm_sampling_t *params,
    uint32_t choice, const llm_logit_bias_t *bias, uint32_t n_bias,
    uint32_t n_vocab);
void llm_sampler_free(llm_sampler_t *s);

/* a token of the prompt (repetition penalty counts those) */
void llm_sampler_see_prompt(llm_sampler_t *s, int32_t id);
/* a token generated: counts for penalties and moves the random numbers on;
   replayed after preemption */
void llm_sampler_accept(llm_sampler_t *s, int32_t id);

/*
 * Draws from one row; logits are not changed.  banned ids (may be NULL) are
 * never drawn (EOS before min_tokens).  mask (may be NULL) is a bit for each
 * token that is allowed.  NaN or no allowed token: LLM_ERROR with a reason.
 */
int llm_sampler_sample(llm_sampler_t *s, llm_sampler_scratch_t *scratch,
    const float *logits, const int32_t *banned, uint32_t n_banned,
    const uint32_t *mask, llm_sampled_t *out, llm_err_t *err);

#endif /* LLM_SAMPLER_H */
