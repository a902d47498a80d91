/*
 * Tool calls that the model may begin: its text is free until a call begins,
 * and constrained from there on.
 *
 * Invariant: until a call begins the sequence has no masks, and its tokens are
 * drawn like those of any other sequence.  The token that begins a call may
 * already have a part of the call in it.  If the grammar does not allow that
 * part, this is text that only looks like a call, and it stays free.  That is
 * known when the first mask is ready.
 *
 * The bytes with which the grammar begins (q->begun) are kept: if the sequence
 * gives its sampler and masks back, it gets the same masks again from these
 * bytes and the tokens after them.
 */

#include "engine/sched/sched_internal.h"


/* constrains a call that has begun, with the tokens after its beginning */

static int
llm_trigger_open(llm_sched_t *s, llm_seq_t *q, llm_err_t *err)
{
    llm_str_t  begun;

    begun = (llm_str_t) { q->begun.len, q->begun.data };

    return llm_rule_open(s, q, q->req->prep.call_gram, begun, q->begun_at,
                         err);
}


int
llm_trigger_take(llm_sched_t *s, llm_seq_t *q, llm_err_t *err)
{
    return q->begun.len ? llm_trigger_open(s, q, err) : LLM_OK;
}


int
llm_trigger_mask(llm_seq_t *q, const uint32_t **mask, llm_err_t *err)
{
    int  rc;

    rc = llm_rule_mask(q, mask, err);

    if (rc == LLM_ABSENT) {
        llm_masked_drop(q->masked);
        q->masked = NULL;
        llm_buf_free(&q->begun);
        *mask = NULL;

        return LLM_OK;
    }

    if (rc == LLM_OK && q->begun.len) {
        llm_emit_sure(&q->emit);
    }

    return rc;
}


/* drops a token that the step in flight draws for the sequence without a
   constraint; the row of its last known token is then computed again */

static void
llm_trigger_discard(llm_sched_t *s, llm_seq_t *q)
{
    if (q->pending) {
        llm_step_forget(s, q);
        q->n_kv = llm_seq_known(q) - 1;
    }
}


int
llm_trigger_token(llm_sched_t *s, llm_seq_t *q, llm_err_t *err)
{
    char         byte;
    llm_str_t    rest;
    llm_begun_t  how;

    if (q->masked || q->req->prep.call_gram == NULL) {
        return LLM_OK;
    }

    how = llm_emit_begun(&q->emit, &rest);

    if (how == LLM_BEGUN_NOT) {
        return LLM_OK;
    }

    /* how the call has begun, its text so far, and the first bytes of a
       character that is not complete yet */

    byte = (char) ('0' + how);
    llm_buf_free(&q->begun);
    llm_buf_init(&q->begun, 0);
    (void) llm_buf_addc(&q->begun, byte);
    (void) llm_buf_add(&q->begun, rest.data, rest.len);
    (void) llm_buf_add(&q->begun, q->emit.detok.tail, q->emit.detok.len);

    if (q->begun.failed) {
        return llm_fail(err, "no memory for a grammar");
    }

    q->begun_at = q->n_gen;
    llm_trigger_discard(s, q);

    return llm_trigger_open(s, q, err);
}
