/*
 * A small model that drafts tokens for another one with the same vocabulary.
 *
 * It has seats, each with pages of its own, so it knows nothing of the other
 * model's pages, prefix tree and preemptions.  A sequence that drafts takes a
 * seat, best of all one whose tokens begin like its own; the small model
 * computes what the seat lacks, a part in each step if that is much, and then
 * the most likely tokens one after another.  A sequence with a token that the
 * small model does not have drafts nothing: the large one may have more.
 *
 * Invariant: the seat's first n tokens are computed, and `sure` of them are
 * known to be those of its sequence.  Nothing but speed depends on it.
 *
 * One thread uses it.  It owns its seats, not the model.
 */

#ifndef LLM_DRAFT_MODEL_H
#define LLM_DRAFT_MODEL_H

#include "engine/sched/sched.h"

typedef struct llm_draft_model_s  llm_draft_model_t;

/* NULL: no memory, or a model that cannot draft; err says why */
llm_draft_model_t *llm_draft_model_create(const llm_runner_t *run,
    llm_err_t *err);
void llm_draft_model_free(llm_draft_model_t *m);
/* frees a sequence's seat, if it has one; m may be NULL */
void llm_draft_model_leave(llm_draft_model_t *m, const llm_seq_t *q);

/* before a step of the large model: limits what seats catch up with in it; m may
   be NULL */
void llm_draft_model_begin(llm_draft_model_t *m);

/*
 * Drafts tokens after the known ones of q, at most n, while each comes true
 * with a probability of at least `least` and what a step of the small model
 * costs; `trust` is the share of its tokens that came true before, *expected
 * how many of these do on average.  step_us: time of a step of the large model.
 * Returns their number.
 */
uint32_t llm_draft_model_guess(llm_draft_model_t *m, const llm_seq_t *q,
    int32_t *ids, uint32_t n, double least, double trust, double step_us,
    double *expected);

#endif /* LLM_DRAFT_MODEL_H */
