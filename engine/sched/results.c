/*
 * Takes the results of a step: the next token of each sequence whose last row
 * was in it, the end of sequences, probabilities of echoed prompts, states to
 * be pooled; see sched.h.
 */

#include "engine/sched/sched_internal.h"


static int
llm_step_is_stop(const llm_seq_t *q, int32_t id)
{
    uint32_t              i;
    const int32_t        *ids;
    const llm_request_t  *msg;

    msg = q->req->msg;
    ids = llm_ref_data(msg, msg->stop_ids);

    for (i = 0; i < msg->stop_ids.len; i++) {
        if (ids[i] == id) {
            return 1;
        }
    }

    return 0;
}


/* adds a time to a histogram of the model and of the request's account */

static void
llm_step_time(llm_sched_t *s, const llm_req_t *r, llm_zone_hist_id_t h,
    uint64_t us)
{
    llm_zone_observe(s->counters, h, us);
    llm_zone_observe_for(s->conf.kept, r->msg->account, h, us);
}


static void
llm_step_observe(llm_sched_t *s, llm_seq_t *q, uint64_t now)
{
    llm_req_t  *r;

    r = q->req;

    if (r->out.first_us == 0) {
        r->out.first_us = now;
        llm_step_time(s, r, LLM_HIST_TTFT,
                      now - llm_min(now, r->msg->arrival_us));
        llm_zone_observe(s->counters, LLM_HIST_PREFILL,
                         now - r->run.start_us);
        llm_speed_first(s, r, now);
    }

    if (q->last_us) {
        llm_step_time(s, r, LLM_HIST_ITL, now - q->last_us);
    }

    q->last_us = now;
    r->out.completion_tokens++;
    llm_zone_add(s->counters->generation_tokens, 1);
    llm_zone_add(s->figures->answered, 1);
    llm_shares_charge(&r->run.tenant->share, 1);
}


/* draws the next token.  LLM_LATER: its mask is not ready; LLM_STOPPED: the
   text is complete */

static int
llm_step_draw(llm_sched_t *s, llm_seq_t *q, const float *logits,
    const llm_drawn_t *drawn, llm_sampled_t *token, llm_err_t *err)
{
    int              rc;
    const uint32_t  *mask;

    if (drawn) {
        return llm_sampler_drawn(q->sampler, drawn, token, err);
    }

    rc = llm_trigger_mask(q, &mask, err);

    if (rc != LLM_OK) {
        return rc;
    }

    return llm_sampler_sample(q->sampler, s->scratch, logits,
                              q->req->prep.banned, llm_step_n_banned(q, 0),
                              mask, token, err);
}


/* adds a token to a sequence, and ends the sequence if this is its last one */

static void
llm_step_add(llm_sched_t *s, llm_seq_t *q, llm_sampled_t *token, uint64_t now)
{
    int                   rc, ends;
    llm_err_t             err;
    llm_req_t            *r;
    const llm_request_t  *msg;

    r = q->req;
    msg = r->msg;

    llm_think_end(q, token);
    llm_sampler_accept(q->sampler, token->id);

    if (llm_seq_append(q, token->id) != LLM_OK) {
        llm_step_no_memory(s, r);
        return;
    }

    llm_step_observe(s, q, now);

    /* a constrained text may end only where it is complete, so its end counts
       even with ignore_eos */

    q->stop_id = llm_step_is_stop(q, token->id) ? token->id : -1;

    if (q->stop_id != -1
        || (llm_vocab_is_eog(s->conf.vocab, token->id)
            && (q->masked || !(msg->flags & LLM_REQ_IGNORE_EOS))))
    {
        if (llm_emit_push_end(&q->emit, token) != LLM_OK) {
            llm_step_no_memory(s, r);
            return;
        }

        llm_sched_end_seq(s, q, LLM_FINISH_STOP);
        return;
    }

    rc = llm_rule_add(q, token->id, &err);

    if (rc == LLM_ERROR) {
        llm_step_fail(s, r, &err);
        return;
    }

    ends = rc == LLM_STOPPED;

    rc = llm_emit_push(&q->emit, token,
                       (int32_t) q->n_gen > msg->min_tokens);

    if (rc == LLM_OK && llm_trigger_token(s, q, &err) != LLM_OK) {
        llm_step_fail(s, r, &err);
        return;
    }

    if (rc == LLM_ERROR) {
        llm_step_no_memory(s, r);

    } else if (rc == LLM_STOPPED || ends) {
        llm_sched_end_seq(s, q, LLM_FINISH_STOP);

    } else if (q->n_gen >= q->max_gen) {
        llm_sched_end_seq(s, q, LLM_FINISH_LENGTH);

    } else {
        llm_sched_queue_events(s, r);
    }
}


void
llm_step_next(llm_sched_t *s, llm_seq_t *q, const float *logits,
    const llm_drawn_t *drawn, uint64_t now)
{
    int            rc;
    llm_err_t      err;
    llm_sampled_t  token;

    llm_sched_echo(q);

    if (q->max_gen == 0) {
        llm_sched_end_seq(s, q, LLM_FINISH_LENGTH);
        return;
    }

    rc = llm_step_draw(s, q, logits, drawn, &token, &err);

    if (rc == LLM_LATER) {
        rc = llm_rule_hold(s, q, logits, &err);

        if (rc == LLM_OK) {
            return;
        }
    }

    if (rc == LLM_STOPPED) {
        llm_sched_end_seq(s, q, LLM_FINISH_STOP);

    } else if (rc != LLM_OK) {
        llm_step_fail(s, q->req, &err);

    } else {
        llm_step_add(s, q, &token, now);
    }
}


/* adds the next token, from result `out` of the step */

static void
llm_step_token(llm_sched_t *s, const llm_step_t *st, llm_seq_t *q,
    uint32_t out, uint64_t now)
{
    llm_drawn_t    drawn;
    llm_runner_t  *run;

    run = &s->conf.runner;

    if (st->draws[out].kind == LLM_DRAW_HOST) {
        llm_step_next(s, q, run->logits(run->data, out), NULL, now);
        return;
    }

    run->drawn(run->data, out, &drawn);
    llm_step_next(s, q, NULL, &drawn, now);
}


/* the followers of a sequence draw from the same logits */

static void
llm_step_followers(llm_sched_t *s, const llm_step_t *st, llm_seq_t *leader,
    uint32_t out, uint64_t now)
{
    uint32_t    i;
    llm_req_t  *r;
    llm_seq_t  *q;

    r = leader->req;

    for (i = 0; i < r->run.n_seqs && r->failure == NULL; i++) {
        q = &r->run.seqs[i];

        if (q->leader == leader
            && llm_sched_fork(s, leader, q) == LLM_OK)
        {
            llm_step_token(s, st, q, out, now);
        }
    }
}


/*
 * Takes result `out`, which comes from a row of `owner`: a state, the
 * probability of a prompt token, or the next token, of `owner` or of one of its
 * followers.
 */

static void
llm_step_result(llm_sched_t *s, const llm_step_t *st, llm_seq_t *owner,
    uint32_t out, uint64_t now)
{
    uint32_t       pos;
    llm_err_t      err;
    llm_seq_t     *q;
    llm_runner_t  *run;

    q = st->out_seqs[out];

    if (owner == NULL || q == NULL) {
        return;                         /* dropped by llm_step_forget() */
    }

    pos = st->pos[st->out_rows[out]];
    run = &s->conf.runner;

    if (q == owner && st->draws[out].kind == LLM_DRAW_TOKEN) {
        q->pending--;
    }

    if (q->req->failure) {
        return;
    }

    if (llm_seq_pools(q)) {
        if (llm_pooled_take(s, q, run->hidden(run->data, out), &err)
            != LLM_OK)
        {
            llm_step_fail(s, q->req, &err);
        }

        return;
    }

    if (q != owner && llm_sched_fork(s, owner, q) != LLM_OK) {
        return;
    }

    if (pos + 1 < llm_seq_known(q)) {

        if (llm_sched_score(s, q, pos, run->logits(run->data, out), &err)
            != LLM_OK)
        {
            llm_step_fail(s, q->req, &err);
        }

        return;
    }

    if (q->n_gen == 0 && st->draws[out].kind == LLM_DRAW_HOST) {
        llm_step_followers(s, st, q, out, now);
    }

    llm_step_token(s, st, q, out, now);
}


/* after positions [from, to) were computed: counts prompt tokens, shares full
   pages */

static void
llm_step_computed(llm_sched_t *s, llm_seq_t *q, uint32_t from, uint32_t to)
{
    uint32_t  n;

    if (from < q->prompt->n) {
        n = llm_min(to, q->prompt->n) - from;
        q->advance -= llm_min(q->advance, n);
        llm_sched_set_todo(s, q, q->advance);
        llm_zone_add(s->counters->prompt_computed, n);

        if (q->req->msg->flags & LLM_REQ_PROGRESS) {
            q->req->out.computed += n;
            llm_sched_queue_events(s, q->req);
        }
    }

    llm_sched_commit(s, q, to);
}


/*
 * Takes the result of a drafted row.  LLM_STOPPED: the token before it is not
 * the drafted one; or without drafts this draw would be made elsewhere, on the
 * device or on the host, whose sums differ by rounding, so that the row is
 * computed again.
 */

static int
llm_step_drafted(llm_sched_t *s, const llm_step_t *st, llm_seq_t *q,
    uint32_t out, uint64_t now)
{
    llm_draw_t     draw;
    llm_runner_t  *run;

    run = &s->conf.runner;

    if (q->held) {
        llm_rule_hold_more(s, q, run->logits(run->data, out));
        return LLM_OK;
    }

    llm_step_plan(s, q, 0, &draw);

    if (q->req->failure || draw.kind != st->draws[out].kind
        || !llm_draft_accept(s, q))
    {
        return LLM_STOPPED;
    }

    llm_rule_wait(s, q);
    llm_step_token(s, st, q, out, now);

    return LLM_OK;
}


/* takes the results of the drafted rows of the step's sequence i, from result
   `out` on; returns the number of the next result */

static uint32_t
llm_step_drafts(llm_sched_t *s, llm_step_t *st, uint32_t i, uint32_t out,
    uint64_t now)
{
    int         rc;
    uint32_t    end;
    llm_seq_t  *q;

    q = st->seqs[i];
    end = out + st->drafted[i];

    for (rc = LLM_OK; rc == LLM_OK && q && out < end; q = st->seqs[i]) {
        rc = llm_step_drafted(s, st, q, out++, now);
    }

    if (q && q->held == NULL) {
        llm_draft_settle(s, q);

        if (q->n_kv == st->kv_len[i]) {
            llm_state_taken(s, st, i);
        }
    }

    return end;
}


/* the rows of known tokens of the step's sequence i are computed */

static void
llm_step_known(llm_sched_t *s, llm_step_t *st, uint32_t i)
{
    uint32_t    n, to;
    llm_seq_t  *q;

    q = st->seqs[i];
    n = st->seq_rows[i + 1] - st->seq_rows[i];
    to = st->kv_len[i] - st->drafted[i];
    llm_media_done(s, q);

    if (st->drafted[i] && s->slots) {
        return;                         /* see llm_draft_settle() */
    }

    llm_step_computed(s, q, st->kv_len[i] - n, to);

    if (st->drafted[i] == 0) {
        llm_state_taken(s, st, i);
        llm_sched_leave(s, q, to);
    }
}


/* takes all results of a step, which ended at time `now` */

void
llm_step_take(llm_sched_t *s, llm_step_t *st, uint64_t now)
{
    uint32_t    i, out;
    llm_seq_t  *q;

    out = 0;
    s->drafts.wait_us = LLM_DRAFT_WAIT_US;

    for (i = 0; i < st->batch.n_seqs; i++) {
        q = st->seqs[i];

        if (q) {
            llm_step_known(s, st, i);
        }

        while (out < st->batch.n_out
               && st->out_rows[out] < st->seq_rows[i + 1] - st->drafted[i])
        {
            llm_step_result(s, st, q, out++, now);
            q = st->seqs[i];            /* NULL if this result ended it */
        }

        if (st->drafted[i]) {
            out = llm_step_drafts(s, st, i, out, now);
        }
    }

    llm_draft_states(s, st);
}
