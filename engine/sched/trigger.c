/*
 * Calls of tools that the model may begin: its text is free until it begins
 * one, and constrained from there on.
 *
 * Invariant: until then the sequence has no masks, and its
 * tokens are drawn like any other's.  The token that begins a call may have
 * some of the call in it, which the grammar must allow: if it does not, this
 * is text that only looks like a call, and stays free.  That is known when the
 * first mask has come.
 *
 * What its grammar begins with (q->begun) is kept: a sequence that loses its
 * seat gets the same masks again from it and from the tokens behind it.
 */

#include "engine/sched/sched_internal.h"


/* masks for what has begun and the tokens behind it */

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


/* the step in flight, if any, has drawn a token for it that is not
   constrained: only the row before that counts, and is computed again */

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

    /* how it has begun, what has come of it, and the bytes of a character that
       is not whole yet */

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
