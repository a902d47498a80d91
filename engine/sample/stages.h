/*
 * The data that stages of the chain work on, and functions for stages.  The
 * rows of engine/base/sampling.def name the stages; edits.c has those that
 * change logits, dry.c those that depend on the order of the tokens so far,
 * cuts.c those that reduce the tokens; chain.c runs them.
 *
 * A stage that edits writes scratch->row, to which c->row then points.  A
 * stage that cuts works on the tokens that the previous one left; they are not
 * gathered as long as a bound describes them.
 */

#ifndef LLM_SAMPLE_STAGES_H
#define LLM_SAMPLE_STAGES_H

#include "engine/sample/history.h"
#include "engine/sample/picks.h"

/* below this temperature the largest logit is taken */
#define LLM_GREEDY_BELOW  1e-5f

typedef enum {
    LLM_LEFT_ALL = 0,                   /* every token of the row */
    LLM_LEFT_BOUND,                     /* tokens whose logits reach a bound */
    LLM_LEFT_PICKS                      /* tokens in scratch->picks */
} llm_left_t;

/* a row of logits on its way through the chain */
typedef struct {
    const llm_sampling_t   *params;
    uint32_t                on;         /* bits of llm_stage_t */
    llm_edit_t             *edits;
    uint32_t                n_edits;
    const uint32_t         *place;      /* [n] index of an id's edit + 1; 0: it
                                           has none */
    const llm_filter_t     *filter;     /* or NULL */
    const llm_history_t    *history;
    llm_sampler_scratch_t  *scratch;    /* for cuts, block_max is of this row */
    const float            *row;
    uint32_t                n;          /* logits of the row */

    /* for cuts */

    float                   max;        /* the largest logit */
    double                  chance;     /* random number for XTC, not that of
                                           the draw */
    float                   scale;      /* 1 / temperature */
    llm_left_t              left;
    float                   bound;
    uint32_t                count;      /* number of scratch->picks */
    int                     weighed;    /* the picks have their weights */
} llm_chain_t;

/* the stages in the order of the chain */
typedef enum {
#define LLM_STAGE(name, kind, when, where, parameters)  LLM_STAGE_##name,
#include "engine/base/sampling.def"
    LLM_STAGE_N
} llm_stage_t;

_Static_assert(LLM_STAGE_N <= 32, "a chain's stages are bits of 32");

#define LLM_STAGE(name, kind, when, where, parameters)                       \
    void llm_stage_##name(llm_chain_t *c);
#include "engine/base/sampling.def"

/* gathers the remaining tokens into picks, with logits as keys */
void llm_chain_gather(llm_chain_t *c);
/* gathers them and sets their weights, 1 for c->max; returns their sum */
double llm_chain_weigh(llm_chain_t *c);

/* how far below the largest logit a token may be for min-p */
float llm_stage_min_gap(const llm_sampling_t *p, float scale);

#endif /* LLM_SAMPLE_STAGES_H */
