/*
 * A head that drafts tokens from the model's own states (model/head.h).
 *
 * Each sequence that may draft has a seat.  After each step the head gets the
 * states of the sequence's rows, and computes its own rows of them: those of a
 * prompt soon, as they are many, those of an answer when tokens are drafted.  A
 * seat without its sequence keeps its rows: the next turn of a conversation,
 * whose beginning is in the prefix cache, goes on from there.  Where states are
 * missing, as the prefix cache had the keys and values of other sequences, the
 * seat begins where the states do.
 *
 * Invariants
 *   - Row i of a seat was made of the state at position base + i and of the
 *     token after it.  The tokens that the seat has for these positions, and
 *     for all before, are those of its sequence, or the seat has none.
 *   - The states that wait are those of the positions after these rows.  Their
 *     tokens may have been drafted and not drawn: then they are dropped, once
 *     they are looked at.
 *   - Nothing but speed depends on any of it.
 *
 * One thread uses it.  It owns its seats, not the head.
 */

#ifndef LLM_DRAFT_HEAD_H
#define LLM_DRAFT_HEAD_H

#include "engine/sched/sched.h"

typedef struct llm_draft_head_s  llm_draft_head_t;

/* rows of a step of the model: positions from `pos` on */
typedef struct {
    uint32_t             pos;
    uint32_t             n;
    uint32_t             row;           /* number of the first in the step */
    const int32_t       *tokens;        /* of these rows */
} llm_draft_rows_t;

/* ctx: tokens of a sequence; NULL: no memory */
llm_draft_head_t *llm_draft_head_create(const llm_head_runner_t *run,
    uint32_t ctx, llm_err_t *err);
void llm_draft_head_free(llm_draft_head_t *h);
/* frees a sequence's seat, if it has one; h may be NULL */
void llm_draft_head_leave(llm_draft_head_t *h, const llm_seq_t *q);

/* takes the states of q's rows in the step of the model that ended last */
void llm_draft_head_take(llm_draft_head_t *h, const llm_seq_t *q,
    const llm_draft_rows_t *rows);

/* as llm_draft_model_guess(); pages: for a head that reads those of the model,
   its tables for q, n_pages long */
uint32_t llm_draft_head_guess(llm_draft_head_t *h, const llm_seq_t *q,
    const uint32_t *const *pages, uint32_t n_pages, int32_t *ids, uint32_t n,
    double least, double trust, double step_us, double *expected);

#endif /* LLM_DRAFT_HEAD_H */
