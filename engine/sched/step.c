/*
 * Composes a step, that is, chooses its rows; see sched.h.  run.c launches it.
 */

#include "engine/sched/sched_internal.h"

#include <assert.h>


/* number of banned ids, which are end tokens before min_tokens, after `ahead`
   tokens that are not known yet */

uint32_t
llm_step_n_banned(const llm_seq_t *q, uint32_t ahead)
{
    return (int32_t) (q->n_gen + ahead) < q->req->msg->min_tokens
           ? q->req->prep.n_banned : 0;
}


void
llm_step_plan(const llm_sched_t *s, const llm_seq_t *q, uint32_t ahead,
    llm_draw_t *draw)
{
    draw->kind = LLM_DRAW_HOST;

    if (s->conf.runner.drawn && q->masked == NULL && !llm_think_is_over(q)) {
        (void) llm_sampler_plan(q->sampler, ahead, q->req->prep.banned,
                                llm_step_n_banned(q, ahead), NULL, draw);
    }
}


/* adds a result of this row to the step; returns its number */

static uint32_t
llm_step_out(llm_sched_t *s, llm_seq_t *q, uint32_t row)
{
    uint32_t     out;
    llm_step_t  *st;

    st = s->next;
    out = st->batch.n_out++;

    st->out_rows[out] = row;
    st->out_seqs[out] = q;
    st->draws[out].kind = LLM_DRAW_HOST;

    return out;
}


/* the same for q's next token, after `ahead` tokens that are not known yet */

static void
llm_step_draws(llm_sched_t *s, llm_seq_t *q, uint32_t row, uint32_t ahead)
{
    uint32_t  out;

    out = llm_step_out(s, q, row);
    llm_step_plan(s, q, ahead, &s->next->draws[out]);
}


/* adds the final state of this row to the step's results */

static void
llm_step_state(llm_sched_t *s, llm_seq_t *q, uint32_t row)
{
    llm_step_t  *st;

    st = s->next;
    st->draws[st->batch.n_out].kind = LLM_DRAW_NONE;
    st->out_seqs[st->batch.n_out] = q;
    st->out_rows[st->batch.n_out++] = row;
    st->n_hidden++;
}


/*
 * Adds the results of the row of the last token.  The sequence's followers draw
 * from the same row: on the device once for each of them, because their random
 * numbers differ, on the host from one copy of the logits.  Their results come
 * first, because they share their leader's pages before it continues.
 */

static void
llm_step_last(llm_sched_t *s, llm_seq_t *q, uint32_t row)
{
    uint32_t     i, out;
    llm_req_t   *r;
    llm_step_t  *st;

    r = q->req;
    st = s->next;
    out = st->batch.n_out;
    llm_step_draws(s, q, row, q->pending);

    if (st->draws[out].kind == LLM_DRAW_HOST || q->n_gen + q->pending) {
        return;
    }

    st->batch.n_out = out;

    for (i = 0; i < r->run.n_seqs; i++) {
        if (r->run.seqs[i].leader == q) {
            llm_step_draws(s, &r->run.seqs[i], row, 0);
        }
    }

    llm_step_draws(s, q, row, 0);
}


/* the token of a position of q, known or drafted, for the step's row; or where
   the device finds it */

static void
llm_step_token_of(llm_step_t *st, const llm_seq_t *q, uint32_t pos,
    uint32_t row)
{
    uint32_t  known;

    known = llm_seq_known(q);
    st->tokens[row] = 0;
    st->follows[row] = LLM_NO_DRAW;

    if (pos < known) {
        st->tokens[row] = llm_seq_token(q, pos);

    } else if (q->draft.n) {
        st->tokens[row] = q->draft.ids[pos - known];

    } else {
        st->follows[row] = q->draw;
    }
}


/* adds the rows of positions [q->n_kv, q->n_kv + n) of a sequence, its drafted
   tokens included */

static void
llm_step_rows(llm_sched_t *s, llm_seq_t *q, uint32_t n)
{
    uint32_t      i, due, pos, row;
    llm_step_t   *st;
    llm_batch_t  *b;

    st = s->next;
    b = &st->batch;
    row = b->n_tokens;

    due = llm_seq_due(q) + q->draft.n;

    assert(q->n_kv + n <= due && (q->pending == 0 || q->draft.n == 0));

    for (i = 0; i < n; i++, row++) {
        pos = q->n_kv + i;
        st->pos[row] = pos;
        llm_step_token_of(st, q, pos, row);
        llm_media_row(s, st, q, pos, row);

        if (llm_sched_wants_score(q, pos)) {
            (void) llm_step_out(s, q, row);
        }

        if (llm_pooled_wants(q, pos)) {
            llm_step_state(s, q, row);
        }
    }

    st->seqs[b->n_seqs] = q;
    st->drafted[b->n_seqs] = q->draft.n;
    st->slots[b->n_seqs] = q->slot;
    st->kv_len[b->n_seqs] = q->n_kv + n;
    st->seq_rows[++b->n_seqs] = row;
    b->n_tokens = row;
    q->in_batch = n;

    if (q->n_kv + n < due || llm_seq_pools(q)) {
        return;
    }

    row -= 1 + q->draft.n;
    llm_step_last(s, q, row);

    for (i = 1; i <= q->draft.n; i++) {
        llm_step_draws(s, q, row + i, i);
    }
}


/*
 * A request that fails while a step is composed, or while its results are
 * taken, is only marked, because its sequences may have rows in the step;
 * llm_step_sweep() ends marked requests.  It looks at running sequences only,
 * because others have no rows.
 */

void
llm_step_fail(llm_sched_t *s, llm_req_t *r, const llm_err_t *err)
{
    llm_req_fail(r, err, 0);
    s->failed = 1;
}


void
llm_step_no_memory(llm_sched_t *s, llm_req_t *r)
{
    llm_err_t  err;

    (void) llm_fail(&err, "no memory");
    llm_step_fail(s, r, &err);
}


/* does the sequence decode, and is there a row for its next token?  A sequence
   with drafted rows in flight waits for their results */

static int
llm_step_decodes(const llm_sched_t *s, const llm_seq_t *q)
{
    return q->leader == NULL && q->draft.n == 0
           && llm_seq_due(q) - q->n_kv == 1 + q->draft.redo
           && !(q->pending && q->n_gen + q->pending >= q->max_gen)
           && s->next->batch.n_tokens + 1 + q->draft.redo
              <= s->conf.runner.batch;
}


/* adds the row of the last token of each sequence of which only that one is not
   computed yet, and rows of drafted tokens */

static void
llm_step_decode(llm_sched_t *s)
{
    int         rc;
    uint32_t    i;
    llm_seq_t  *q;

    llm_draft_begin(s);

    for (i = 0; i < s->n_running; /* void */ ) {
        q = s->running[i];

        if (!llm_step_decodes(s, q) || llm_draft_waits(s, q)) {
            i++;
            continue;
        }

        /* not parked before its first token: other choices may wait for it */

        if (q->n_gen
            && (q->req->out.paused || llm_emit_pending(&q->emit, 0)))
        {
            if (q->pending || llm_sched_park(s, q) != LLM_OK) {
                i++;
            }

            continue;
        }

        rc = llm_sched_next_page(s, q);

        if (rc == LLM_PREEMPTED) {
            continue;                   /* preempted: no longer in running[] */
        }

        if (rc == LLM_OK) {
            llm_step_rows(s, q, 1 + q->draft.redo + llm_draft_make(s, q));

        } else if (rc == LLM_ERROR) {
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
            && llm_seq_due(q) - q->n_kv > 1 + q->draft.redo
            && (best == NULL || llm_queue_before(&s->queue, q, best)))
        {
            best = q;
        }
    }

    return best;
}


/*
 * Does a sequence of this step compute the page that q needs next?  It does if
 * both have the same page of the tree before it and the same tokens in it; q
 * then waits for a step and finds the page in the tree.
 */

static int
llm_step_is_page_shared(const llm_step_t *st, const llm_seq_t *q)
{
    uint32_t          i, k, from;
    const llm_seq_t  *other;

    if (!llm_seq_caches(q)
        || q->n_kv != q->n_tree * LLM_KV_PAGE)
    {
        return 0;
    }

    from = q->n_kv;

    if (llm_seq_sharable(q) < from + LLM_KV_PAGE) {
        return 0;
    }

    for (i = 0; i < st->batch.n_seqs; i++) {
        other = st->seqs[i];

        if (other == NULL || !llm_seq_caches(other)
            || other->n_tree != q->n_tree
            || llm_min(other->n_kv + other->in_batch, llm_seq_known(other))
               < from + LLM_KV_PAGE
            || !llm_salt_same(&other->req->prep.salt, &q->req->prep.salt)
            || (q->n_tree
                && other->pages[q->n_tree - 1] != q->pages[q->n_tree - 1]))
        {
            continue;
        }

        for (k = from;
             k < from + LLM_KV_PAGE
             && llm_seq_key(other, k) == llm_seq_key(q, k);
             k++)
        { /* void */ }

        if (k == from + LLM_KV_PAGE) {
            return 1;
        }
    }

    return 0;
}


/* does a sequence of this step, or of the one in flight, compute what q needs
   next, so that q will find it in the tree? */

static int
llm_step_is_shared(const llm_sched_t *s, const llm_seq_t *q)
{
    if (s->slots) {
        return llm_state_is_shared(s->next, q)
               || (s->in_flight && llm_state_is_shared(s->in_flight, q));
    }

    return llm_step_is_page_shared(s->next, q)
           || (s->in_flight && llm_step_is_page_shared(s->in_flight, q));
}


/* do more rows of this prompt than the last one give results? */

static int
llm_step_gives_more(const llm_seq_t *q)
{
    return llm_seq_unscored(q)
           || (llm_seq_pools(q) && q->pool.end - q->pool.next > 1);
}


/*
 * How many rows of a prompt the step takes; 0: the prompt waits for the next
 * step.  A prompt that must be computed in a single step gets one without other
 * prompts if it does not fit the time of a step.
 */

static uint32_t
llm_step_chunk(llm_sched_t *s, llm_seq_t *q, uint32_t n_decode,
    uint32_t budget)
{
    uint32_t           n, scores;
    const llm_step_t  *st;

    st = s->next;
    n = llm_seq_known(q) - q->n_kv;
    scores = UINT32_MAX;

    if (llm_step_gives_more(q)) {
        scores = s->conf.runner.max_out - s->conf.runner.max_seqs
                 - st->n_scores;
    }

    if (q->req->prep.whole) {
        budget = st->n_prefill ? budget : s->conf.runner.batch - n_decode;

        return n <= budget && n <= scores ? n : 0;
    }

    n = llm_min(n, budget);

    if (n_decode) {
        n = llm_min(n, llm_step_share(llm_seq_known(q)));
    }

    n = llm_min(llm_state_rows(s, q, n), scores);

    return llm_media_fit(s, q, n, s->conf.runner.batch - st->batch.n_tokens);
}


static void
llm_step_prefill(llm_sched_t *s)
{
    uint32_t     n, budget, n_decode;
    llm_seq_t   *q;
    llm_step_t  *st;

    st = s->next;
    n_decode = st->batch.n_tokens;
    budget = llm_min(s->rows[n_decode != 0],
                     s->conf.runner.batch - n_decode);

    while (budget && (q = llm_step_best_prompt(s)) != NULL) {
        llm_sched_extend(s, q);

        if (llm_step_is_shared(s, q)) {
            q->waits = s->n_steps;
            continue;
        }

        n = llm_step_chunk(s, q, n_decode, budget);

        if (s->conf.runner.window
            && llm_sched_room(s, q, &n) != LLM_OK)
        {
            llm_step_no_memory(s, q->req);
            n = 0;
        }

        n = llm_media_fit(s, q, n, n);

        if (n == 0) {
            q->waits = s->n_steps;
            continue;
        }

        st->n_scores += llm_step_gives_more(q) ? n : 0;
        llm_step_rows(s, q, n);
        st->n_prefill += n;
        budget -= llm_min(n, budget);
    }
}


/* fills the page tables of the step, as wide as that of its longest sequence;
   kernels do not read entries that are in no row's window */

static void
llm_step_tables(const llm_sched_t *s, llm_step_t *st)
{
    uint32_t    i, k, width;
    llm_seq_t  *q;

    width = 1;

    for (i = 0; i < st->batch.n_seqs; i++) {
        width = llm_max(width, st->seqs[i]->n_pages[LLM_KV_FULL]);
    }

    for (i = 0; i < st->batch.n_seqs; i++) {
        q = st->seqs[i];

        for (k = 0; k < s->n_kinds; k++) {
            llm_sched_table(s, q, k, st->tables[k] + (size_t) i * width, width);
        }
    }

    st->batch.max_pages = width;
}


/* composes the next step; 0: it has no rows */

int
llm_step_compose(llm_sched_t *s)
{
    llm_step_t  *st;

    llm_sched_age(s);
    llm_sched_admit(s);

    st = s->next;
    st->batch.n_tokens = 0;
    st->batch.n_seqs = 0;
    st->batch.n_out = 0;
    st->batch.n_given = 0;
    st->turned = 0;
    st->n_prefill = 0;
    st->n_scores = 0;
    st->n_hidden = 0;
    s->n_steps++;

    llm_step_decode(s);
    llm_step_prefill(s);
    llm_step_tables(s, st);
    llm_media_batch(s, st);

    st->batch.gives = st->n_hidden == 0 ? LLM_GIVES_LOGITS
                      : st->n_hidden == st->batch.n_out ? LLM_GIVES_HIDDEN
                      : LLM_GIVES_BOTH;

    return st->batch.n_tokens != 0;
}
