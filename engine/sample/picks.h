/*
 * Finds the best tokens of a row without sorting it.
 *
 * At least k tokens, and few more, reach the k-th largest of the blocks'
 * maxima: only those are gathered, and quickselect finds the cut among them.
 *
 * Invariant: keys and ids alone decide, so the same row gives the same picks in
 * the same order on every machine.
 */

#ifndef LLM_SAMPLE_PICKS_H
#define LLM_SAMPLE_PICKS_H

#include "engine/sample/rows.h"
#include "engine/sample/sampler.h"

typedef struct {
    float          key;                 /* larger is better; of equal keys, the
                                           lower id */
    float          weight;              /* probability relative to the best
                                           logit, whose weight is 1 */
    int32_t        id;
} llm_pick_t;

/* owns its arrays; created for rows of n_vocab */
struct llm_sampler_scratch_s {
    uint32_t                 n_vocab;
    const llm_row_passes_t  *pass;      /* the fastest of this machine */

    float                   *row;       /* [n_vocab] copy of the row, for
                                           edits */
    float                   *block_max; /* [blocks] of the current row */
    double                  *block_sum; /* [blocks] */
    llm_pick_t              *picks;     /* [n_vocab] */
    llm_pick_t              *blocks;    /* [blocks] the maxima as picks */
    uint64_t                *chosen;    /* a bit for each id; all 0 between
                                           draws */
    uint32_t                *repeats;   /* [n_vocab] of llm_stage_dry(); all 0
                                           between draws */
};

/*
 * Moves the best of n >= 1 picks to the front and returns their number: the
 * fewest, at least one, whose weights (each 1 if by_count) add up to need.
 */
uint32_t llm_pick_cut(llm_pick_t *p, uint32_t n, double need, int by_count);

/* a logit that at least k >= 1 tokens reach, if k tokens are above minus
   infinity */
float llm_pick_bound(llm_sampler_scratch_t *s, uint32_t n, uint32_t k);

/* fills the picks with the tokens that reach bound, keys with their logits;
   returns their number */
uint32_t llm_pick_gather(llm_sampler_scratch_t *s, const float *row,
    uint32_t n, float bound);

/* sets the weights of n picks, exp((key - max) * scale); returns their sum */
double llm_pick_weigh(llm_pick_t *p, uint32_t n, float max, float scale);

/*
 * The id at the share u, 0 <= u < 1, of the mass of n picks, which have their
 * weights, in the order of their ids; the weights are computed again from row,
 * max and scale.
 */
int32_t llm_pick_draw(llm_sampler_scratch_t *s, uint32_t n,
    const float *row, float max, float scale, double u);

/* sorts few picks, the best first */
void llm_pick_sort(llm_pick_t *p, uint32_t n);

#endif /* LLM_SAMPLE_PICKS_H */
