/*
 * The best tokens of a row without sorting it.
 *
 * The k-th largest of the blocks' maxima is a bound that at least k tokens
 * reach and few more: only what reaches it is gathered, and a partition
 * around pivots finds the cut among those.
 *
 * Invariant: everything is decided by keys and ids, so the same row gives
 * the same picks in the same order everywhere.
 */

#ifndef LLM_SAMPLE_PICKS_H
#define LLM_SAMPLE_PICKS_H

#include "engine/sample/rows.h"
#include "engine/sample/sampler.h"

typedef struct {
    float          key;                 /* the larger the better; of equal
                                           ones the lower id */
    float          weight;              /* the best logit's is 1 */
    int32_t        id;
} llm_pick_t;

/* owns its arrays; made for rows of n_vocab */
struct llm_sampler_scratch_s {
    uint32_t                 n_vocab;
    const llm_row_passes_t  *pass;      /* this machine's fastest */

    float                   *row;       /* a copy where logits change */
    float                   *block_max; /* of the row that is looked at */
    double                  *block_sum;
    llm_pick_t              *picks;
    llm_pick_t              *blocks;    /* blocks as picks */
    uint64_t                *chosen;    /* a bit for each id: clear between
                                           draws */
};

/*
 * Brings the best of n >= 1 to the front and returns how many are kept: the
 * fewest, one at least, whose weights (each 1 if by_count) reach need.
 */
uint32_t llm_pick_cut(llm_pick_t *p, uint32_t n, double need, int by_count);

/* a logit that at least k >= 1 tokens reach, where there are k */
float llm_pick_bound(llm_sampler_scratch_t *s, uint32_t n, uint32_t k);

/* picks become the tokens that reach bound, keys their logits; returns n */
uint32_t llm_pick_gather(llm_sampler_scratch_t *s, const float *row,
    uint32_t n, float bound);

/* weights exp((key - max) * scale) of n picks; returns their sum */
double llm_pick_weigh(llm_pick_t *p, uint32_t n, float max, float scale);

/*
 * The id at u, 0 <= u < 1, of the mass of n picks in the order of their ids;
 * of row, max and scale are their weights.
 */
int32_t llm_pick_draw(llm_sampler_scratch_t *s, uint32_t n,
    const float *row, float max, float scale, double u);

/* the best first; for few */
void llm_pick_sort(llm_pick_t *p, uint32_t n);

#endif /* LLM_SAMPLE_PICKS_H */
