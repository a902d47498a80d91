/*
 * Samples a token from a row of logits.  The chain, in vLLM's order, with
 * llama.cpp's stages where they fit: bias, repetition penalty (Keskar et al.,
 * 2019), frequency and presence penalty, DRY, filter, mask and bans,
 * temperature, top-n-sigma, min-p, top-k, typical, top-p, XTC, dynamic
 * temperature, and a draw; the stages are the rows of
 * engine/base/sampling.def.  Each cut works on the tokens that the previous
 * one left, renormalised; of equal logits, the lower id is kept first; the draw
 * goes through the rest in the order of ids.  Below a temperature of 1e-5 the
 * largest logit is taken; of equal ones, the lowest id.
 *
 * Invariant: a token depends on the logits, the request (parameters, filter,
 * mask, bans), its tokens so far, the seed and the choice, on nothing else.
 * The random number is a hash of the seed, the choice and the number of tokens
 * generated so far (counter-based), so batches, restarts and preemption do not
 * change a text.
 *
 * A sampler belongs to one sequence at a time; the scratch may be shared by the
 * sequences that one thread samples.
 */

#ifndef LLM_SAMPLER_H
#define LLM_SAMPLER_H

#include "engine/base/base.h"
#include "engine/base/sampling.h"
#include "kernels/draw.h"

typedef struct llm_sampler_s          llm_sampler_t;
typedef struct llm_sampler_scratch_s  llm_sampler_scratch_t;

/* a word that may not be generated, as n > 0 tokens: the last one is never
   drawn after the others */
typedef struct {
    const int32_t          *ids;
    uint32_t                n;
} llm_bad_word_t;

/* a request's settings for tokens and words; nothing is owned */
typedef struct {
    const uint32_t         *allowed;    /* a bit for each token; NULL: all may
                                           be drawn */
    const llm_bad_word_t   *bad;
    uint32_t                n_bad;
    const llm_logit_bias_t *bias;       /* beside those of the request */
    uint32_t                n_bias;
    const llm_str_t        *breakers;   /* DRY's sequence breakers, at most
                                           LLM_MAX_BREAKER_LEN bytes each */
    uint32_t                n_breakers;
    llm_str_t             (*bytes)(const void *vocab, int32_t id);
                                        /* a token's text; for breakers */
    const void             *vocab;
} llm_filter_t;

typedef struct {
    int32_t                 id;
    float                   logprob;    /* in the unchanged row: before bias,
                                           penalties, temperature and cuts; or,
                                           with of_draw, in the draw; 0 if not
                                           asked for */
    uint32_t                n_top;      /* entries of top */
    const llm_candidate_t  *top;        /* the n_logprobs most likely tokens,
                                           best first, then the sampled one if
                                           it is not among them; empty if
                                           n_logprobs is 0.  In a draw, those
                                           that could be drawn.  Valid until
                                           the next call */
} llm_sampled_t;

llm_sampler_scratch_t *llm_sampler_scratch_create(uint32_t n_vocab);
void llm_sampler_scratch_free(llm_sampler_scratch_t *s);

/*
 * choice is the index of the choice: each has its own random numbers.  bias
 * is copied, entries with the same id are added up; ids outside the vocabulary
 * have no effect, the caller may refuse them.  If has_seed is 0 the caller
 * must set a random seed before.  NULL: no memory.
 */
llm_sampler_t *llm_sampler_create(const llm_sampling_t *params,
    uint32_t choice, const llm_logit_bias_t *bias, uint32_t n_bias,
    uint32_t n_vocab);
/* makes the sampler like new, for another sequence; LLM_ERROR: no memory, but
   it may be restarted again */
int llm_sampler_restart(llm_sampler_t *s, const llm_sampling_t *params,
    uint32_t choice, const llm_logit_bias_t *bias, uint32_t n_bias);
/*
 * Sets the filter of a sampler that is new or was restarted, before any token.
 * The filter is not copied and must stay until the sampler is restarted or
 * freed.  LLM_ERROR: no memory.
 */
int llm_sampler_set_filter(llm_sampler_t *s, const llm_filter_t *filter);
void llm_sampler_free(llm_sampler_t *s);

/* whether penalties depend on the prompt */
int llm_sampler_wants_prompt(const llm_sampler_t *s);
/* whether logits depend on how often tokens were generated */
int llm_sampler_penalises(const llm_sampler_t *s);
/* adds a token of the prompt, if penalties depend on it */
void llm_sampler_see_prompt(llm_sampler_t *s, int32_t id);
/* adds a generated token: counts it for penalties and for the random numbers;
   called again for all tokens after a preemption */
void llm_sampler_accept(llm_sampler_t *s, int32_t id);

/*
 * Draws a token from a row of n_vocab logits, which are not changed.  banned
 * ids (may be NULL) are never drawn (EOS before min_tokens).  mask (may be
 * NULL) has a bit for each token: 1 if it is allowed.  LLM_ERROR with a reason:
 * a logit is NaN or plus infinity, in the row or after bias and penalties; or
 * no token is allowed.
 */
int llm_sampler_sample(llm_sampler_t *s, llm_sampler_scratch_t *scratch,
    const float *logits, const int32_t *banned, uint32_t n_banned,
    const uint32_t *mask, llm_sampled_t *out, llm_err_t *err);

/*
 * The same for a device that draws (kernels.h).  plan() describes the draw
 * after `ahead` tokens that are not accepted yet, with pointers into
 * the sampler that are valid until accept().  It returns 0, and a plan that
 * asks for the row of logits, if a device cannot do this draw.  drawn()
 * turns the device's result into what sample() would have returned.
 */
int llm_sampler_plan(const llm_sampler_t *s, uint32_t ahead,
    const int32_t *banned, uint32_t n_banned, const uint32_t *mask,
    llm_draw_t *draw);
int llm_sampler_drawn(llm_sampler_t *s, const llm_drawn_t *drawn,
    llm_sampled_t *out, llm_err_t *err);

/* the probability of a known token, without a draw; a token outside the
   vocabulary has probability 0 */
int llm_sampler_score(llm_sampler_t *s, llm_sampler_scratch_t *scratch,
    const float *logits, int32_t id, llm_sampled_t *out, llm_err_t *err);

#endif /* LLM_SAMPLER_H */
