/*
 * Launches a step and waits for it; with a device that overlaps, the next step
 * is launched before the wait.  See sched.h; results.c takes the results.
 */

#include "engine/sched/sched_internal.h"

/* after a step that takes longer, none is launched ahead: a new request would
   have to wait for both steps, and the gap that is saved is small compared with
   the step */
#define LLM_STEP_AHEAD_US   20000

/* if the wait was shorter, the step was complete before, so the time measured
   is only an upper bound */
#define LLM_STEP_WAITED_US  50


static void
llm_step_sweep(llm_sched_t *s)
{
    uint32_t    i;
    llm_req_t  *r;

    for (i = 0; s->failed && i < s->n_running; /* void */ ) {
        r = s->running[i]->req;

        if (r->failure) {
            llm_sched_fail(s, r, &r->failure->err, 0);
            i = 0;

        } else {
            i++;
        }
    }

    s->failed = 0;
}


/* n prompt rows alone took us: the first step with some beside streams has no
   more than have time then.  Of few rows most of it is the model's weights; n
   is 0 if what generates takes all of that time. */

static void
llm_step_guess(llm_sched_t *s, uint32_t n, uint64_t us)
{
    double  rows;

    rows = LLM_STEP_AIM * LLM_STEP_SHARED_US * n / (double) llm_max(us, (uint64_t) 1);
    rows = llm_max(rows, (double) LLM_STEP_LEAST);

    if (rows < s->rows[1]) {
        s->rows[1] = (uint32_t) rows;
    }
}


/*
 * Adapts the number of prompt rows of the next step to the time that this one
 * took.  exact 0: `us` is only an upper bound of that time.
 */

static void
llm_step_learn(llm_sched_t *s, const llm_step_t *st, uint64_t us, int exact)
{
    int       shared;
    double    target, f, row_us;
    uint32_t  n;

    if (st->n_prefill == 0) {
        if (!s->shared && exact && us > LLM_STEP_AIM * LLM_STEP_SHARED_US) {
            llm_step_guess(s, 0, us);
        }

        return;
    }

    shared = st->n_prefill != st->batch.n_tokens;
    n = st->n_prefill;
    row_us = (double) us / llm_max(n, (uint32_t) LLM_STEP_ROWS);
    s->row_us = exact ? row_us : llm_min(row_us, s->row_us);
    target = shared ? LLM_STEP_SHARED_US : LLM_STEP_ALONE_US;
    s->shared |= shared;

    if (!s->shared && exact && n >= LLM_KV_PAGE) {
        llm_step_guess(s, n, us);
    }

    f = LLM_STEP_AIM * target / (double) llm_max(us, (uint64_t) 1);

    if (f < 1.0) {
        if (!exact) {
            return;
        }

        n = (uint32_t) (f * n);

    } else if (n >= s->rows[shared] / 2) {
        n = (uint32_t) (llm_min(f, 2.0) * n);
        n = llm_max(n, s->rows[shared]);

    } else {
        return;
    }

    s->rows[shared] = llm_min(llm_max(n, (uint32_t) LLM_STEP_LEAST),
                              s->conf.runner.chunk);
}


/* rows that were launched count as computed, their draws as pending tokens,
   those of drafted tokens aside */

static void
llm_step_launched(llm_sched_t *s, llm_step_t *st)
{
    uint32_t    i, out;
    llm_seq_t  *q;

    out = 0;

    for (i = 0; i < st->batch.n_seqs; i++) {
        q = st->seqs[i];
        q->n_kv += q->in_batch - st->drafted[i];
        q->in_batch = 0;
        q->draft.redo = 0;
        llm_draft_count(s, q);

        for ( /* void */ ;
             out < st->batch.n_out
             && st->out_rows[out] < st->seq_rows[i + 1];
             out++)
        {
            if (st->out_seqs[out] == q
                && st->out_rows[out] < st->seq_rows[i + 1] - st->drafted[i]
                && st->draws[out].kind == LLM_DRAW_TOKEN)
            {
                q->pending++;
                q->draw = out;
            }
        }
    }
}


/* fails the requests of a step because the device failed */

static void
llm_step_lost(llm_sched_t *s, llm_step_t *st, const llm_err_t *err)
{
    uint32_t  i;

    for (i = 0; i < st->batch.n_seqs; i++) {
        if (st->seqs[i]) {
            llm_sched_fail(s, st->seqs[i]->req, err, 0);
        }
    }

    llm_state_release(s, st);
}


/* composes the next step and launches it; 0: it has no rows */

static int
llm_step_launch(llm_sched_t *s, llm_err_t *err)
{
    llm_step_t  *st;

    if (!llm_step_compose(s)) {
        return 0;
    }

    llm_sched_send_starts(s);

    st = s->next;
    st->start_us = llm_now_us();

    if (s->conf.runner.submit(s->conf.runner.data, &st->batch, err)
        != LLM_OK)
    {
        llm_step_lost(s, st, err);
        return LLM_ERROR;
    }

    llm_step_launched(s, st);
    llm_state_launched(s, st);
    llm_zone_add(s->counters->steps, 1);
    llm_zone_observe(s->counters, LLM_HIST_ROWS, st->batch.n_tokens);

    if (s->in_flight) {
        llm_zone_add(s->counters->steps_behind, 1);
    }

    return 1;
}


/*
 * May the next step be launched before this one has ended?  Only if the device
 * draws all tokens of this step, and not if this step computes the first tokens
 * of several choices, whose pages are shared when the results are known.  Nor
 * if its results may make later rows invalid, and the state with them
 * (llm_state_is_unsure()).
 */

static int
llm_step_may_overlap(const llm_sched_t *s, const llm_step_t *st)
{
    uint32_t          i;
    const llm_seq_t  *q;

    if (!s->conf.runner.overlaps || llm_media_waits(s)
        || st->n_prefill * s->row_us > LLM_STEP_AHEAD_US)
    {
        return 0;
    }

    for (i = 0; i < st->batch.n_out; i++) {
        q = st->out_seqs[i];

        if (st->draws[i].kind != LLM_DRAW_TOKEN
            || (q && q->n_gen == 0 && q->req->run.n_seqs > 1)
            || (q && llm_state_is_unsure(s, q)))
        {
            return 0;
        }
    }

    return 1;
}


/* waits for the step in flight and takes its results; afterwards the next step,
   if launched, is the one in flight */

static int
llm_step_wait(llm_sched_t *s, llm_step_t *st, int launched, llm_err_t *err)
{
    uint64_t  now, begin;

    begin = llm_now_us();

    if (s->conf.runner.wait(s->conf.runner.data, err) != LLM_OK) {
        if (launched) {
            llm_step_lost(s, s->next, err);
        }

        return LLM_ERROR;
    }

    now = llm_now_us();
    llm_step_learn(s, st, now - llm_max(st->start_us, s->taken_us),
                   !s->conf.runner.overlaps
                   || now - begin > LLM_STEP_WAITED_US);
    llm_speed_step(s, st, now);
    s->taken_us = now;

    s->in_flight = launched ? s->next : NULL;
    s->next = launched ? st : s->next;

    llm_step_take(s, st, now);
    llm_state_release(s, st);
    st->batch.n_seqs = 0;
    st->batch.n_out = 0;
    s->speed.busy = s->n_running + s->queue.n_waiting != 0;

    return LLM_OK;
}


/* after a sequence has drawn from logits that it kept: if the token was the
   drafted one, the next kept logits are those of the token after it */

static void
llm_step_held_next(llm_sched_t *s, llm_seq_t *q)
{
    if (q->held == NULL) {
        return;                         /* it has ended */
    }

    q->held_at++;

    if (q->held_at < q->n_held && q->req->failure == NULL
        && llm_draft_accept(s, q))
    {
        llm_rule_wait(s, q);
        return;
    }

    llm_rule_drop_held(s, q);

    if (q->draft.n) {
        llm_draft_settle(s, q);
    }
}


/* draws the next tokens of sequences that have waited for their masks.  Their
   text is sent at once, because text that is not sent when a step is composed
   means that the client reads slowly */

static void
llm_step_held(llm_sched_t *s)
{
    uint32_t    n;
    llm_seq_t  *q;

    s->drafts.wait_us = LLM_DRAFT_WAIT_US;

    for (n = 0; (q = llm_rule_ready(s)) != NULL; n++) {
        llm_step_next(s, q, llm_rule_held(s, q), NULL, llm_now_us());
        llm_step_held_next(s, q);
    }

    if (n) {
        llm_sched_gauges(s);
        (void) llm_sched_send_events(s);
    }
}


int
llm_sched_step(llm_sched_t *s, llm_err_t *err)
{
    int          rc, encoded, launched;
    llm_step_t  *st;

    llm_step_held(s);

    if (s->in_flight == NULL) {

        if (s->n_running + s->n_parked + s->queue.n_waiting == 0) {
            return 0;
        }

        encoded = llm_media_encode(s, err);
        rc = encoded == LLM_ERROR ? LLM_ERROR : llm_step_launch(s, err);

        if (rc != 1) {
            llm_step_sweep(s);
            llm_sched_gauges(s);
            return rc == 0 ? encoded : rc;
        }

        s->in_flight = s->next;
        s->next = s->next == &s->steps[0] && s->conf.runner.overlaps
                  ? &s->steps[1] : &s->steps[0];
    }

    st = s->in_flight;
    launched = llm_step_may_overlap(s, st) ? llm_step_launch(s, err) : 0;

    if (launched == LLM_ERROR
        || llm_step_wait(s, st, launched, err) != LLM_OK)
    {
        s->in_flight = NULL;
        llm_step_lost(s, st, err);
        llm_step_sweep(s);
        llm_sched_gauges(s);
        return LLM_ERROR;
    }

    llm_step_sweep(s);
    llm_sched_gauges(s);

    return 1;
}
