/*
 * The arrays of a step, allocated once per scheduler; see sched_internal.h.
 */

#include "engine/sched/sched_internal.h"


int
llm_step_create(const llm_sched_t *s, llm_step_t *st)
{
    size_t               i, k, rows, seqs, outs;
    const llm_runner_t  *run;

    run = &s->conf.runner;
    rows = run->batch;
    seqs = run->max_seqs;
    outs = run->max_out;

    st->tokens = calloc(rows, sizeof(*st->tokens));
    st->follows = calloc(rows, sizeof(*st->follows));
    st->pos = calloc(rows, sizeof(*st->pos));
    st->seq_rows = calloc(seqs + 1, sizeof(*st->seq_rows));
    st->kv_len = calloc(seqs, sizeof(*st->kv_len));
    st->out_rows = calloc(outs, sizeof(*st->out_rows));
    st->draws = calloc(outs, sizeof(*st->draws));
    st->out_seqs = calloc(outs, sizeof(*st->out_seqs));
    st->seqs = calloc(seqs, sizeof(*st->seqs));
    st->drafted = calloc(seqs, sizeof(*st->drafted));
    st->slots = calloc(seqs, sizeof(*st->slots));
    st->snapshots = calloc(seqs, sizeof(*st->snapshots));

    if (run->n_given) {
        st->given = calloc(rows, sizeof(*st->given));
        st->turns = calloc(rows, LLM_TURNS * sizeof(*st->turns));
        st->sees = calloc(rows, 2 * sizeof(*st->sees));
        st->rows = calloc(rows, run->n_given * sizeof(*st->rows));

        if (st->given == NULL || st->turns == NULL || st->sees == NULL
            || st->rows == NULL)
        {
            return LLM_ERROR;
        }
    }

    if (st->tokens == NULL || st->follows == NULL || st->pos == NULL
        || st->seq_rows == NULL || st->kv_len == NULL
        || st->out_rows == NULL || st->draws == NULL || st->out_seqs == NULL
        || st->seqs == NULL || st->drafted == NULL || st->slots == NULL
        || st->snapshots == NULL)
    {
        return LLM_ERROR;
    }

    for (k = 0; k < s->n_kinds; k++) {
        st->tables[k] = malloc(seqs * s->max_pages * sizeof(uint32_t));

        if (st->tables[k] == NULL) {
            return LLM_ERROR;
        }

        st->batch.pages[k] = st->tables[k];
    }

    for (i = 0; i < seqs; i++) {
        st->snapshots[i] = LLM_SLOT_NONE;
    }

    st->batch.tokens = st->tokens;
    st->batch.follows = run->overlaps ? st->follows : NULL;
    st->batch.pos = st->pos;
    st->batch.seq_rows = st->seq_rows;
    st->batch.kv_len = st->kv_len;
    st->batch.out_rows = st->out_rows;
    st->batch.draws = run->drawn ? st->draws : NULL;
    st->batch.slots = run->n_slots ? st->slots : NULL;

    return LLM_OK;
}


void
llm_step_free(llm_step_t *st)
{
    uint32_t  k;

    for (k = 0; k < LLM_KV_KINDS; k++) {
        free(st->tables[k]);
    }

    free(st->tokens);
    free(st->follows);
    free(st->pos);
    free(st->seq_rows);
    free(st->kv_len);
    free(st->out_rows);
    free(st->draws);
    free(st->out_seqs);
    free(st->seqs);
    free(st->drafted);
    free(st->slots);
    free(st->snapshots);
    free(st->given);
    free(st->turns);
    free(st->sees);
    free(st->rows);
}


/* drops the results of a sequence in all steps in flight */

void
llm_step_forget(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t     i, k;
    llm_step_t  *st;

    q->pending = 0;
    q->draft.n = 0;
    q->draft.used = 0;
    q->draft.redo = 0;

    for (k = 0; k < 2; k++) {
        st = &s->steps[k];

        for (i = 0; i < st->batch.n_seqs; i++) {
            st->seqs[i] = st->seqs[i] == q ? NULL : st->seqs[i];
        }

        for (i = 0; i < st->batch.n_out; i++) {
            st->out_seqs[i] = st->out_seqs[i] == q ? NULL : st->out_seqs[i];
        }
    }
}
