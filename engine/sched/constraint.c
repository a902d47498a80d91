/*
 * Masks of constrained sequences.  While it runs, a sequence whose request has
 * a grammar has a mask of the tokens that may follow.  Other threads make it
 * (engine/grammar/masker.h) while the device computes the logits to which it
 * will be applied.  A sequence whose mask is not ready by then keeps its
 * logits, has no rows, and draws later (run.c); other sequences continue.
 */

#include "engine/sched/sched_internal.h"

#include <stdio.h>


/* starts the masker's threads for the first sequence that needs them */

static int
llm_rule_masker(llm_sched_t *s, llm_err_t *err)
{
    uint32_t  n;

    if (s->masker == NULL) {
        n = llm_max(s->conf.runner.n_vocab, llm_vocab_size(s->conf.vocab));
        s->masker = llm_masker_create(n, s->conf.masked, s->conf.data, err);
    }

    return s->masker ? LLM_OK : LLM_ERROR;
}


int
llm_rule_open(llm_sched_t *s, llm_seq_t *q, llm_gram_ref_t *gram,
    llm_str_t begin, uint32_t from, llm_err_t *err)
{
    if (llm_rule_masker(s, err) != LLM_OK) {
        return LLM_ERROR;
    }

    q->masked = llm_masked_create(s->masker, gram, begin,
                                  q->gen ? q->gen + from : NULL,
                                  q->n_gen - from,
                                  s->conf.speculate[0] != LLM_DRAFT_NONE,
                                  err);

    return q->masked ? LLM_OK : LLM_ERROR;
}


int
llm_rule_take(llm_sched_t *s, llm_seq_t *q, llm_err_t *err)
{
    if (q->req->prep.gram == NULL) {
        return LLM_OK;
    }

    return llm_rule_open(s, q, q->req->prep.gram, llm_str(""), 0, err);
}


void
llm_rule_drop_held(llm_sched_t *s, llm_seq_t *q)
{
    s->n_held -= q->held != NULL;
    free(q->held);
    q->held = NULL;
}


void
llm_rule_give(llm_sched_t *s, llm_seq_t *q)
{
    llm_masked_drop(q->masked);
    q->masked = NULL;
    llm_rule_drop_held(s, q);
}


/* adds the client's field to the error of a grammar that is too ambiguous */

static int
llm_rule_named(const llm_seq_t *q, int rc, llm_err_t *err)
{
    llm_str_t             name;
    const llm_request_t  *msg;

    msg = q->req->msg;

    if (rc == LLM_ERROR && err && err->status == 400 && *err->param == '\0') {
        name = llm_str("tools");

        if (msg->rule_name.len) {
            name.data = llm_ref_data(msg, msg->rule_name);
            name.len = msg->rule_name.len;
        }

        snprintf(err->param, sizeof(err->param), "%.*s",
                 (int) llm_min(name.len, sizeof(err->param)), name.data);
    }

    return rc;
}


int
llm_rule_mask(llm_seq_t *q, const uint32_t **mask, llm_err_t *err)
{
    if (q->masked == NULL) {
        *mask = NULL;
        return LLM_OK;
    }

    return llm_rule_named(q, llm_masked_get(q->masked, mask, err), err);
}


int
llm_rule_add(llm_seq_t *q, int32_t id, llm_err_t *err)
{
    return q->masked
           ? llm_rule_named(q, llm_masked_add(q->masked, id, err), err)
           : LLM_OK;
}


int
llm_rule_hold(llm_sched_t *s, llm_seq_t *q, const float *logits,
    llm_err_t *err)
{
    size_t  n;

    if (q->held) {
        return LLM_OK;                  /* logits are q->held itself */
    }

    n = s->conf.runner.n_vocab * sizeof(*logits);

    q->held = malloc(n * (1 + q->draft.n - q->draft.used));
    if (q->held == NULL) {
        return llm_fail(err, "no memory");
    }

    q->n_held = 0;
    q->held_at = 0;
    llm_rule_hold_more(s, q, logits);
    s->n_held++;

    return LLM_OK;
}


void
llm_rule_hold_more(const llm_sched_t *s, llm_seq_t *q, const float *logits)
{
    size_t  n;

    n = s->conf.runner.n_vocab;
    memcpy(q->held + q->n_held++ * n, logits, n * sizeof(*logits));
}


const float *
llm_rule_held(const llm_sched_t *s, const llm_seq_t *q)
{
    return q->held + (size_t) q->held_at * s->conf.runner.n_vocab;
}


/* the mask of a row that is there already: masks of most grammars are made in
   less time than a step of one more row takes */

void
llm_rule_wait(llm_sched_t *s, llm_seq_t *q)
{
    uint64_t  begin;

    if (q->masked && s->drafts.wait_us) {
        begin = llm_now_us();
        llm_masked_wait(q->masked, s->drafts.wait_us);
        s->drafts.wait_us -= (uint32_t) llm_min(llm_now_us() - begin,
                                                s->drafts.wait_us);
    }
}


llm_seq_t *
llm_rule_ready(const llm_sched_t *s)
{
    uint32_t         i;
    llm_seq_t       *q;
    const uint32_t  *mask;

    for (i = 0; s->n_held && i < s->n_running; i++) {
        q = s->running[i];

        if (q->held && q->req->failure == NULL
            && llm_rule_mask(q, &mask, NULL) != LLM_LATER)
        {
            return q;
        }
    }

    return NULL;
}


int
llm_sched_can_draw(const llm_sched_t *s)
{
    return llm_rule_ready(s) != NULL;
}
