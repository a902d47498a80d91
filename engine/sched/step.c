/*
 * One step: its rows, the forward pass, a token for each sequence that got
 * to its end; see sched.h.
 */

#include "engine/sched/sched_internal.h"

/*
 * How long a step may take.  Beside running streams a chunk of a prompt must
 * not make them wait; alone it still has to end soon, for a cancel or a new
 * request takes effect between steps.
 */
#define LLM_STEP_ALONE_US   120000
#define LLM_STEP_SHARED_US  70000

/* beside streams no step does more than this share of a prompt */
#define LLM_STEP_SHARE      24


/* ids that are not to be drawn yet */

static uint32_t
llm_step_n_banned(const llm_seq_t *q)
{
    return (int32_t) q->n_gen < q->req->msg->min_tokens ? q->req->n_banned
                                                        : 0;
}


/* the step's next result is of this row: q's next token, or all logits */

static void
llm_step_out(llm_sched_t *s, llm_seq_t *q, uint32_t row, int draws)
{
    uint32_t  out;

    out = s->batch.n_out++;

    s->out_rows[out] = row;
    s->out_seqs[out] = q;
    s->draws[out].kind = LLM_DRAW_HOST;

    if (draws && s->conf.runner.drawn) {
        (void) llm_sampler_plan(q->sampler, q->req->banned,
                                llm_step_n_banned(q), NULL, &s->draws[out]);
    }
}


/*
 * The row of the last token.  The choices that wait for this prompt draw
 * from the same one: the device once for each of them, for their numbers
 * differ, the host from one copy; they are first, for they take over what
 * their leader has.
 */

static void
llm_step_last(llm_sched_t *s, llm_seq_t *q, uint32_t row)
{
    uint32_t    i, out;
    llm_req_t  *r;

    r = q->req;
    out = s->batch.n_out;
    llm_step_out(s, q, row, 1);

    if (s->draws[out].kind == LLM_DRAW_HOST || q->n_gen) {
        return;
    }

    s->batch.n_out = out;

    for (i = 0; i < r->n_seqs; i++) {
        if (r->seqs[i].leader == q) {
            llm_step_out(s, &r->seqs[i], row, 1);
        }
    }

    llm_step_out(s, q, row, 1);
}


/* rows [q->n_kv, q->n_kv + n) of a sequence */

static void
llm_step_rows(llm_sched_t *s, llm_seq_t *q, uint32_t n)
{
    uint32_t      i, row;
    llm_batch_t  *b;

    b = &s->batch;
    row = b->n_tokens;

    for (i = 0; i < n; i++, row++) {
        s->tokens[row] = llm_seq_token(q, q->n_kv + i);
        s->pos[row] = q->n_kv + i;

        if (llm_sched_wants(q, q->n_kv + i)) {
            llm_step_out(s, q, row, 0);
        }
    }

    s->seqs[b->n_seqs] = q;
    s->kv_len[b->n_seqs] = q->n_kv + n;
    s->seq_rows[++b->n_seqs] = row;
    b->n_tokens = row;
    q->in_batch = n;

    if (q->n_kv + n == llm_seq_known(q)) {
        llm_step_last(s, q, row - 1);
    }
}


/*
 * Inside a step a request that fails is only marked, for its sequences may
 * have rows already; sweep() ends those that are marked.
 */

static void
llm_step_fail(llm_sched_t *s, llm_req_t *r, const llm_err_t *err)
{
    llm_req_fail(r, err, 0);
    s->failed = 1;
}


static void
llm_step_no_memory(llm_sched_t *s, llm_req_t *r)
{
    llm_err_t  err;

    (void) llm_fail(&err, "no memory");
    llm_step_fail(s, r, &err);
}


static void
llm_step_sweep(llm_sched_t *s)
{
    uint32_t    i;
    llm_req_t  *r;

    for (i = 0; s->failed && i < s->n_running; /* void */ ) {
        r = s->running[i]->req;

        if (r->err.status) {
            llm_sched_fail(s, r, &r->err, 0);
            i = 0;

        } else {
            i++;
        }
    }

    s->failed = 0;
}


/* one row for each sequence whose last token alone is to be computed */

static void
llm_step_decode(llm_sched_t *s)
{
    int         rc;
    uint32_t    i;
    llm_seq_t  *q;

    for (i = 0; i < s->n_running; /* void */ ) {
        q = s->running[i];

        if (q->leader || llm_seq_known(q) - q->n_kv != 1) {
            i++;
            continue;
        }

        /* not before the first token: others may follow this one */

        if (q->n_gen
            && (q->req->paused || llm_emit_pending(&q->emit, 0)))
        {
            if (llm_sched_park(s, q) != LLM_OK) {
                i++;
            }

            continue;
        }

        rc = llm_sched_next_page(s, q);

        if (rc == LLM_AGAIN) {
            continue;                   /* preempted, no longer here */
        }

        if (rc == LLM_OK) {
            llm_step_rows(s, q, 1);

        } else {
            llm_step_no_memory(s, q->req);
        }

        i++;
    }
}


static llm_seq_t *
llm_step_best_prompt(const llm_sched_t *s)
{
    uint32_t    i;
    llm_seq_t  *q, *best;

    best = NULL;

    for (i = 0; i < s->n_running; i++) {
        q = s->running[i];

        if (q->in_batch == 0 && q->leader == NULL && q->waits != s->n_steps
            && llm_seq_known(q) - q->n_kv > 1
            && (best == NULL || llm_queue_before(q, best)))
        {
            best = q;
        }
    }

    return best;
}


/*
 * Does a sequence of this step compute the very page that q wants next?  It
 * does when both have the same page of the tree before it and the same
 * tokens in it; q waits a step then and finds it in the tree.
 */

static int
llm_step_is_shared(const llm_sched_t *s, const llm_seq_t *q)
{
    uint32_t          i, k, from;
    const llm_seq_t  *other;

    if ((q->req->msg->flags & LLM_REQ_NO_CACHE)
        || q->n_kv != q->n_tree * LLM_KV_PAGE || llm_seq_unscored(q))
    {
        return 0;
    }

    from = q->n_kv;

    if (llm_seq_known(q) <= from + LLM_KV_PAGE) {
        return 0;
    }

    for (i = 0; i < s->batch.n_seqs; i++) {
        other = s->seqs[i];

        if ((other->req->msg->flags & LLM_REQ_NO_CACHE)
            || other->n_tree != q->n_tree
            || other->n_kv + other->in_batch < from + LLM_KV_PAGE
            || other->req->salt.tenant != q->req->salt.tenant
            || other->req->salt.salt != q->req->salt.salt
            || (q->n_tree
                && other->pages[q->n_tree - 1] != q->pages[q->n_tree - 1]))
        {
            continue;
        }

        for (k = from;
             k < from + LLM_KV_PAGE
             && llm_seq_token(other, k) == llm_seq_token(q, k);
             k++)
        { /* void */ }

        if (k == from + LLM_KV_PAGE) {
            return 1;
        }
    }

    return 0;
}


static void
llm_step_prefill(llm_sched_t *s)
{
    uint32_t    n, budget, n_decode, scores;
    llm_seq_t  *q;

    n_decode = s->batch.n_tokens;
    budget = llm_min(s->rows[n_decode != 0],
                     s->conf.runner.batch - n_decode);

    while (budget && (q = llm_step_best_prompt(s)) != NULL) {
        llm_sched_extend(s, q);

        if (llm_step_is_shared(s, q)) {
            q->waits = s->n_steps;
            continue;
        }

        n = llm_min(llm_seq_known(q) - q->n_kv, budget);

        if (n_decode) {
            n = llm_min(n, llm_max(llm_seq_known(q) / LLM_STEP_SHARE,
                                   2u * LLM_KV_PAGE));
        }

        if (llm_seq_unscored(q)) {
            scores = s->conf.runner.max_out - s->conf.runner.max_seqs
                     - s->n_scores;

            if (scores == 0) {
                q->waits = s->n_steps;
                continue;
            }

            n = llm_min(n, scores);
            s->n_scores += n;
        }

        llm_step_rows(s, q, n);
        s->n_prefill += n;
        budget -= n;
    }
}


/* the page tables of the step, as wide as its longest sequence */

static void
llm_step_table(llm_sched_t *s)
{
    uint32_t    i, width;
    llm_seq_t  *q;

    width = 1;

    for (i = 0; i < s->batch.n_seqs; i++) {
        width = llm_max(width, s->seqs[i]->n_pages);
    }

    for (i = 0; i < s->batch.n_seqs; i++) {
        q = s->seqs[i];
        memcpy(s->table + (size_t) i * width, q->pages,
               q->n_pages * sizeof(*q->pages));
        memset(s->table + (size_t) i * width + q->n_pages, 0,
               (width - q->n_pages) * sizeof(*q->pages));
    }

    s->batch.max_pages = width;
}


/* how many prompt rows the next step may have, from what this one took */

static void
llm_step_learn(llm_sched_t *s, uint64_t us)
{
    int       shared;
    double    target, f;
    uint32_t  n;

    shared = s->n_prefill != s->batch.n_tokens;
    n = s->n_prefill;
    target = shared ? LLM_STEP_SHARED_US : LLM_STEP_ALONE_US;
    f = 0.85 * target / (double) llm_max(us, (uint64_t) 1);

    if (f < 1.0) {
        n = (uint32_t) (f * n);

    } else if (n >= s->rows[shared] / 2) {
        n = (uint32_t) (llm_min(f, 2.0) * n);
        n = llm_max(n, s->rows[shared]);

    } else {
        return;
    }

    s->rows[shared] = llm_min(llm_max(n, (uint32_t) LLM_KV_PAGE),
                              s->conf.runner.chunk);
}


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


static void
llm_step_observe(llm_sched_t *s, llm_seq_t *q, uint64_t now)
{
    llm_req_t  *r;

    r = q->req;

    if (r->first_us == 0) {
        r->first_us = now;
        llm_zone_observe(s->conf.zone, s->conf.model, LLM_HIST_TTFT,
                         now - llm_min(now, r->msg->arrival_us));
        llm_zone_observe(s->conf.zone, s->conf.model, LLM_HIST_PREFILL,
                         now - r->start_us);
    }

    if (q->last_us) {
        llm_zone_observe(s->conf.zone, s->conf.model, LLM_HIST_ITL,
                         now - q->last_us);
    }

    q->last_us = now;
    r->completion_tokens++;
    llm_zone_add(s->figures->generation_tokens, 1);
    llm_queue_charge(r->tenant, 1);
}


/* the next token, of result `out` of the step */

static int
llm_step_draw(llm_sched_t *s, llm_seq_t *q, uint32_t out,
    llm_sampled_t *token, llm_err_t *err)
{
    llm_drawn_t    drawn;
    llm_runner_t  *run;

    run = &s->conf.runner;

    if (s->draws[out].kind == LLM_DRAW_HOST) {
        return llm_sampler_sample(q->sampler, s->scratch,
                                  run->logits(run->data, out),
                                  q->req->banned, llm_step_n_banned(q), NULL,
                                  token, err);
    }

    run->drawn(run->data, out, &drawn);

    return llm_sampler_drawn(q->sampler, &drawn, token, err);
}


/* adds the next token to a sequence and ends it where it ends */

static void
llm_step_token(llm_sched_t *s, llm_seq_t *q, uint32_t out, uint64_t now)
{
    int                   rc;
    llm_err_t             err;
    llm_req_t            *r;
    llm_sampled_t         token;
    const llm_request_t  *msg;

    r = q->req;
    msg = r->msg;

    if (llm_sched_echo(q) != LLM_OK) {
        llm_step_no_memory(s, r);
        return;
    }

    if (q->max_gen == 0) {
        llm_sched_end_seq(s, q, LLM_FINISH_LENGTH);
        return;
    }

    if (llm_step_draw(s, q, out, &token, &err) != LLM_OK) {
        llm_step_fail(s, r, &err);
        return;
    }

    llm_sampler_accept(q->sampler, token.id);

    if (llm_seq_append(q, token.id) != LLM_OK) {
        llm_step_no_memory(s, r);
        return;
    }

    llm_step_observe(s, q, now);

    if (llm_step_is_stop(q, token.id)) {
        q->stop_id = token.id;
        llm_sched_end_seq(s, q, LLM_FINISH_STOP);
        return;
    }

    if (llm_vocab_is_eog(s->conf.vocab, token.id)
        && !(msg->flags & LLM_REQ_IGNORE_EOS))
    {
        llm_sched_end_seq(s, q, LLM_FINISH_STOP);
        return;
    }

    rc = llm_emit_push(&q->emit, &token,
                       (int32_t) q->n_gen > msg->min_tokens);

    if (rc == LLM_ERROR) {
        llm_step_no_memory(s, r);

    } else if (rc == LLM_AGAIN) {
        llm_sched_end_seq(s, q, LLM_FINISH_STOP);

    } else if (q->n_gen >= q->max_gen) {
        llm_sched_end_seq(s, q, LLM_FINISH_LENGTH);

    } else {
        llm_sched_say(s, r);
    }
}


/* the choices that waited for this prompt go on from the same logits */

static void
llm_step_followers(llm_sched_t *s, llm_seq_t *leader, uint32_t out,
    uint64_t now)
{
    uint32_t    i;
    llm_req_t  *r;
    llm_seq_t  *q;

    r = leader->req;

    for (i = 0; i < r->n_seqs && r->err.status == 0; i++) {
        q = &r->seqs[i];

        if (q->leader == leader
            && llm_sched_fork(s, leader, q) == LLM_OK)
        {
            llm_step_token(s, q, out, now);
        }
    }
}


/*
 * Result `out`, of a row of `owner`: of a token in the prompt, or the next
 * token's, its own or of a choice that waited for it.
 */

static void
llm_step_result(llm_sched_t *s, llm_seq_t *owner, uint32_t out, uint64_t now)
{
    uint32_t    pos;
    llm_err_t   err;
    llm_seq_t  *q;

    q = s->out_seqs[out];
    pos = s->pos[s->out_rows[out]];

    if (q->req->err.status) {
        return;
    }

    if (q != owner && llm_sched_fork(s, owner, q) != LLM_OK) {
        return;
    }

    if (pos + 1 < llm_seq_known(q)) {

        if (llm_sched_score(s, q, pos,
                            s->conf.runner.logits(s->conf.runner.data, out),
                            &err)
            != LLM_OK)
        {
            llm_step_fail(s, q->req, &err);
        }

        return;
    }

    if (q->n_gen == 0 && s->draws[out].kind == LLM_DRAW_HOST) {
        llm_step_followers(s, q, out, now);
    }

    llm_step_token(s, q, out, now);
}


/* the results of a forward pass */

static void
llm_step_take(llm_sched_t *s, uint64_t now)
{
    uint32_t    i, n, out;
    llm_seq_t  *q;

    out = 0;

    for (i = 0; i < s->batch.n_seqs; i++) {
        q = s->seqs[i];

        if (q->n_kv < q->prompt->n) {
            n = llm_min(q->in_batch, q->prompt->n - q->n_kv);
            q->advance -= llm_min(q->advance, n);
            llm_zone_add(s->figures->prompt_computed, n);
        }

        q->n_kv += q->in_batch;
        q->in_batch = 0;
        llm_sched_commit(s, q);

        while (out < s->batch.n_out
               && s->out_rows[out] < s->seq_rows[i + 1])
        {
            llm_step_result(s, q, out++, now);
        }
    }
}


int
llm_sched_step(llm_sched_t *s, llm_err_t *err)
{
    int       rc;
    uint32_t  i;
    uint64_t  start, now;

    if (s->n_running + s->n_parked + s->queue.n_waiting == 0) {
        return 0;
    }

    llm_sched_seat(s);

    s->batch.n_tokens = 0;
    s->batch.n_seqs = 0;
    s->batch.n_out = 0;
    s->n_prefill = 0;
    s->n_scores = 0;
    s->n_steps++;

    llm_step_decode(s);
    llm_step_prefill(s);

    if (s->batch.n_tokens == 0) {
        llm_step_sweep(s);
        llm_sched_gauges(s);
        return 0;
    }

    llm_step_table(s);

    start = llm_now_us();
    rc = s->conf.runner.forward(s->conf.runner.data, &s->batch, err);
    now = llm_now_us();

    llm_zone_add(s->figures->steps, 1);

    if (rc != LLM_OK) {
        for (i = 0; i < s->batch.n_seqs; i++) {
            s->seqs[i]->in_batch = 0;
            llm_step_fail(s, s->seqs[i]->req, err);
        }

        llm_step_sweep(s);
        return LLM_ERROR;
    }

    if (s->n_prefill) {
        llm_step_learn(s, now - start);
    }

    llm_step_take(s, now);
    llm_step_sweep(s);
    llm_sched_gauges(s);

    return 1;
}
