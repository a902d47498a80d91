/*
 * Who runs and who holds pages; see sched.h.
 */

#include "engine/sched/sched_internal.h"

#include <assert.h>
#include <stdio.h>


static int
llm_sched_arrays(llm_sched_t *s)
{
    s->running = calloc(s->conf.runner.max_seqs, sizeof(*s->running));
    s->samplers = calloc(s->conf.runner.max_seqs, sizeof(*s->samplers));
    s->next = &s->steps[0];

    if (s->running == NULL || s->samplers == NULL
        || llm_step_create(s, &s->steps[0]) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (s->conf.runner.overlaps) {
        return llm_step_create(s, &s->steps[1]);
    }

    return LLM_OK;
}


static int
llm_sched_find_eog(llm_sched_t *s)
{
    int32_t   id, n;
    uint32_t  count;

    n = (int32_t) llm_vocab_size(s->conf.vocab);
    count = 0;

    for (id = 0; id < n; id++) {
        count += llm_vocab_is_eog(s->conf.vocab, id) != 0;
    }

    s->eog = malloc(llm_max(count, 1u) * sizeof(*s->eog));
    if (s->eog == NULL) {
        return LLM_ERROR;
    }

    for (id = 0; id < n; id++) {
        if (llm_vocab_is_eog(s->conf.vocab, id)) {
            s->eog[s->n_eog++] = id;
        }
    }

    return LLM_OK;
}


llm_sched_t *
llm_sched_create(const llm_sched_conf_t *conf, llm_err_t *err)
{
    llm_sched_t  *s;

    if (conf->runner.ctx > (uint64_t) conf->runner.n_pages * LLM_KV_PAGE
        || conf->runner.max_seqs == 0 || conf->runner.chunk == 0
        || conf->runner.batch <= conf->runner.max_seqs
        || conf->runner.max_out <= conf->runner.max_seqs)
    {
        (void) llm_fail(err, "no room for a sequence of %u tokens: %u pages, "
                        "%u sequences, %u rows", conf->runner.ctx,
                        conf->runner.n_pages, conf->runner.max_seqs,
                        conf->runner.batch);
        return NULL;
    }

    s = calloc(1, sizeof(*s));
    if (s == NULL) {
        (void) llm_fail(err, "no memory for the scheduler");
        return NULL;
    }

    s->conf = *conf;
    s->figures = &conf->zone->models[conf->model].figures;
    s->max_pages = (conf->runner.ctx + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
    s->rows[0] = llm_min(2u * LLM_KV_PAGE, conf->runner.chunk);
    s->rows[1] = s->rows[0];
    s->row_us = 1e6;                    /* not known yet */

    llm_queue_init(&s->queue);

    s->pages = llm_pages_create(conf->runner.n_pages);
    s->scratch = llm_sampler_scratch_create(conf->runner.n_vocab);

    if (s->pages == NULL || s->scratch == NULL
        || llm_sched_arrays(s) != LLM_OK || llm_sched_find_eog(s) != LLM_OK)
    {
        (void) llm_fail(err, "no memory for the scheduler");
        llm_sched_free(s);
        return NULL;
    }

    llm_zone_set(s->figures->kv_pages, conf->runner.n_pages);

    return s;
}


void
llm_sched_free(llm_sched_t *s)
{
    llm_err_t  err;

    if (s == NULL) {
        return;
    }

    if (s->under_way) {
        (void) s->conf.runner.wait(s->conf.runner.data, &err);
    }

    llm_queue_free(&s->queue);
    llm_pages_free(s->pages);

    if (s->scratch) {
        llm_sampler_scratch_free(s->scratch);
    }

    llm_seat_free(s);
    free(s->running);
    free(s->parked);
    llm_step_free(&s->steps[0]);
    llm_step_free(&s->steps[1]);
    free(s->eog);
    free(s);
}


uint32_t
llm_sched_running(const llm_sched_t *s)
{
    return s->n_running;
}


uint32_t
llm_sched_waiting(const llm_sched_t *s)
{
    return s->queue.n_waiting;
}


const int32_t *
llm_sched_eog(const llm_sched_t *s, uint32_t *n)
{
    *n = s->n_eog;

    return s->eog;
}


/*
 * Gives its pages back, the leaf of the tree first; what steps under way find
 * out for it is nobody's.
 */

static void
llm_sched_drop(llm_sched_t *s, llm_seq_t *q)
{
    llm_step_forget(s, q);

    while (q->n_pages) {
        llm_pages_drop(s->pages, q->pages[--q->n_pages]);
    }

    q->n_tree = 0;
    q->n_kv = 0;
}


/* takes a sequence out of running[]; its sampler is the next one's */

void
llm_sched_unseat(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t  i;

    for (i = 0; s->running[i] != q; i++) { /* void */ }

    s->n_running--;
    memmove(s->running + i, s->running + i + 1,
            (s->n_running - i) * sizeof(*s->running));

    llm_seat_give(s, q);
}


static void
llm_sched_sit(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t  i;

    for (i = s->n_running;
         i > 0 && llm_seq_before(q, s->running[i - 1]);
         i--)
    {
        s->running[i] = s->running[i - 1];
    }

    s->running[i] = q;
    s->n_running++;

    q->state = LLM_SEQ_RUNNING;
    q->in_batch = 0;
}


static void
llm_sched_unpark(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t  i;

    for (i = 0; s->parked[i] != q; i++) { /* void */ }

    s->parked[i] = s->parked[--s->n_parked];
}


/*
 * A sequence whose reader is slow leaves running[] and keeps its pages until
 * somebody needs them.  LLM_ERROR: no memory, it stays where it is.
 */

int
llm_sched_park(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t     cap;
    llm_seq_t  **parked;

    if (s->n_parked == s->cap_parked) {
        cap = llm_max(s->cap_parked * 2, 16u);

        parked = realloc(s->parked, cap * sizeof(*parked));
        if (parked == NULL) {
            return LLM_ERROR;
        }

        s->parked = parked;
        s->cap_parked = cap;
    }

    llm_sched_unseat(s, q);
    s->parked[s->n_parked++] = q;
    q->state = LLM_SEQ_PARKED;

    return LLM_OK;
}


/*
 * Preemption: the sequence gives its pages back and goes to the queue with
 * the tokens it has; those that wait for its prompt go with it.
 */

void
llm_sched_requeue(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t    i;
    llm_seq_t  *other;

    for (i = 0; i < q->req->n_seqs; i++) {
        other = &q->req->seqs[i];

        if (other->leader == q) {
            other->leader = NULL;
            llm_sched_unseat(s, other);
            llm_queue_add(&s->queue, other);
        }
    }

    if (q->state == LLM_SEQ_RUNNING) {
        llm_sched_unseat(s, q);
    }

    llm_sched_drop(s, q);
    q->leader = NULL;
    llm_queue_add(&s->queue, q);
}


/*
 * Frees the pages of somebody who computes nothing now: the last of the
 * parked ones, which stay parked, and of those that wait for a seat again.
 */

static int
llm_sched_reclaim(llm_sched_t *s, const llm_seq_t *but)
{
    uint32_t       i;
    llm_seq_t     *q, *victim;
    llm_tenant_t  *t;

    victim = NULL;

    for (i = 0; i < s->n_parked; i++) {
        q = s->parked[i];

        if (q->n_pages && (victim == NULL || llm_seq_before(victim, q))) {
            victim = q;
        }
    }

    for (t = s->queue.waiting; t && victim == NULL; t = t->next) {
        for (q = t->last; q; q = q->prev) {
            if (q->n_pages && q != but) {
                victim = q;
                break;
            }
        }
    }

    if (victim == NULL) {
        return LLM_AGAIN;
    }

    llm_sched_drop(s, victim);
    llm_zone_add(s->figures->preemptions, 1);

    return LLM_OK;
}


/* one more page at the end of a sequence's table */

int
llm_sched_add_page(llm_sched_t *s, llm_seq_t *q, uint32_t page)
{
    uint32_t  cap, *pages;

    if (q->n_pages == q->cap_pages) {
        cap = llm_min(llm_max(q->cap_pages * 2, 4u), s->max_pages);

        pages = realloc(q->pages, cap * sizeof(*pages));
        if (pages == NULL) {
            return LLM_ERROR;
        }

        q->pages = pages;
        q->cap_pages = cap;
    }

    q->pages[q->n_pages++] = page;

    return LLM_OK;
}


static int
llm_sched_new_page(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t  page;

    page = llm_pages_alloc(s->pages);

    if (page == LLM_PAGE_NONE) {
        return LLM_AGAIN;
    }

    if (llm_sched_add_page(s, q, page) != LLM_OK) {
        llm_pages_drop(s->pages, page);
        return LLM_ERROR;
    }

    return LLM_OK;
}


/*
 * Makes sure of a page for the next token of a running sequence.  When there
 * is none, the last of running[] is preempted, which may be this one:
 * LLM_AGAIN.  LLM_ERROR: no memory.
 */

int
llm_sched_next_page(llm_sched_t *s, llm_seq_t *q)
{
    int         rc;
    uint32_t    i;
    llm_seq_t  *victim;

    while (q->n_kv / LLM_KV_PAGE >= q->n_pages) {
        rc = llm_sched_new_page(s, q);

        if (rc == LLM_OK) {
            break;
        }

        if (rc == LLM_ERROR) {
            return LLM_ERROR;
        }

        if (llm_sched_reclaim(s, NULL) == LLM_OK) {
            continue;
        }

        for (i = s->n_running - 1; s->running[i]->n_pages == 0; i--) {
            /* void */
        }

        victim = s->running[i];
        llm_sched_requeue(s, victim);
        llm_zone_add(s->figures->preemptions, 1);

        if (victim == q) {
            return LLM_AGAIN;
        }
    }

    return LLM_OK;
}


/* pages for all that a sequence knows: of the tree, then new ones */

static int
llm_sched_fill(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t  need, spare;

    if (q->n_pages) {
        return LLM_OK;                  /* was parked, kept them */
    }

    if (llm_sched_lookup(s, q) != LLM_OK) {
        llm_sched_drop(s, q);
        return LLM_ERROR;
    }

    need = (llm_seq_known(q) + LLM_KV_PAGE - 1) / LLM_KV_PAGE - q->n_pages;

    /* those that run will want pages too: not to be preempted at once */

    spare = llm_min(s->n_running, llm_pages_total(s->pages) / 16);

    while (llm_pages_available(s->pages) < need + spare) {
        if (llm_sched_reclaim(s, q) != LLM_OK) {
            llm_sched_drop(s, q);
            return LLM_AGAIN;
        }
    }

    while (need--) {
        if (llm_sched_new_page(s, q) != LLM_OK) {
            llm_sched_drop(s, q);
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* a running choice of the same prompt that has not sampled yet */

static llm_seq_t *
llm_sched_leader(const llm_seq_t *q)
{
    uint32_t    i, n;
    llm_seq_t  *other;

    if (q->n_gen || q->n_pages) {
        return NULL;
    }

    n = q->req->msg->n;

    for (i = q->index / n * n; i < q->index; i++) {
        other = &q->req->seqs[i];

        if (other->state == LLM_SEQ_RUNNING && other->leader == NULL
            && other->n_gen == 0)
        {
            return other;
        }
    }

    return NULL;
}


/* the first time that a sequence runs */

static void
llm_sched_started(llm_sched_t *s, llm_seq_t *q)
{
    uint64_t    now;
    llm_req_t  *r;

    r = q->req;
    q->seated = 1;

    if (r->start_us == 0) {
        now = llm_now_us();
        r->start_us = now;
        llm_zone_observe(s->conf.zone, s->conf.model, LLM_HIST_QUEUE,
                         now - llm_min(now, r->msg->arrival_us));
        llm_sched_say(s, r);
    }

    if (q->index % r->msg->n == 0) {
        llm_zone_add(s->figures->prompt_tokens, q->prompt->n);
    }

    if (q->leader) {
        return;
    }

    if (q->index % r->msg->n == 0) {
        r->cached_tokens += q->n_kv;
    }

    if (!(r->msg->flags & LLM_REQ_NO_CACHE)) {
        llm_zone_add(s->figures->prefix_queries, q->prompt->n);
        llm_zone_add(s->figures->prefix_hits, q->n_kv);
    }

    q->advance = q->prompt->n - q->n_kv;
    llm_queue_charge(r->tenant, q->advance);
}


/* those whose reader has caught up want a seat again */

static void
llm_sched_return(llm_sched_t *s)
{
    uint32_t    i;
    llm_seq_t  *q;

    for (i = s->n_parked; i-- > 0; /* void */ ) {
        q = s->parked[i];

        if (!q->req->paused && !llm_emit_pending(&q->emit, 0)) {
            s->parked[i] = s->parked[--s->n_parked];
            llm_queue_add(&s->queue, q);
        }
    }
}


void
llm_sched_seat(llm_sched_t *s)
{
    int         rc;
    llm_err_t   err;
    llm_seq_t  *q;

    llm_sched_return(s);

    while (s->n_running < s->conf.runner.max_seqs) {
        q = llm_queue_best(&s->queue);
        if (q == NULL) {
            break;
        }

        q->leader = llm_sched_leader(q);

        if (q->leader == NULL) {
            rc = llm_sched_fill(s, q);

            if (rc == LLM_ERROR) {
                (void) llm_fail(&err, "no memory");
                llm_sched_fail(s, q->req, &err, 0);
                continue;
            }

            if (rc == LLM_AGAIN) {
                break;
            }
        }

        if (llm_seat_take(s, q) != LLM_OK) {
            (void) llm_fail(&err, "no memory");
            llm_sched_fail(s, q->req, &err, 0);
            continue;
        }

        llm_queue_remove(&s->queue, q);
        llm_sched_sit(s, q);

        if (!q->seated) {
            llm_sched_started(s, q);
        }
    }
}


/*
 * The leader has computed the whole prompt: a follower shares its full pages
 * and gets a copy of the last one if that is not full.  LLM_AGAIN: no page
 * for that, it went back to the queue.
 */

int
llm_sched_fork(llm_sched_t *s, llm_seq_t *leader, llm_seq_t *q)
{
    int       rc;
    uint32_t  i, full;

    q->leader = NULL;
    full = leader->n_kv / LLM_KV_PAGE;
    rc = LLM_OK;

    for (i = 0; i < full && rc == LLM_OK; i++) {
        llm_pages_hold(s->pages, leader->pages[i]);

        rc = llm_sched_add_page(s, q, leader->pages[i]);
        if (rc != LLM_OK) {
            llm_pages_drop(s->pages, leader->pages[i]);
        }
    }

    if (rc == LLM_OK && leader->n_kv % LLM_KV_PAGE) {
        rc = llm_sched_new_page(s, q);

        if (rc == LLM_OK) {
            s->conf.runner.copy_page(s->conf.runner.data,
                                     leader->pages[full], q->pages[full]);
        }
    }

    if (rc != LLM_OK) {
        llm_sched_requeue(s, q);
        return LLM_AGAIN;
    }

    q->n_kv = leader->n_kv;
    q->n_tree = leader->n_tree;

    return LLM_OK;
}


/* at its end: what of the prompt was never computed for it */

static void
llm_sched_settle(llm_seq_t *q)
{
    llm_queue_refund(q->req->tenant, q->advance);
    q->advance = 0;
}


void
llm_sched_end_seq(llm_sched_t *s, llm_seq_t *q, llm_finish_t reason)
{
    llm_err_t  err;

    llm_sched_settle(q);

    if (q->state == LLM_SEQ_RUNNING) {
        llm_sched_unseat(s, q);
    }

    llm_sched_drop(s, q);
    q->state = LLM_SEQ_ENDED;
    q->reason = reason;
    q->req->n_ended++;

    llm_zone_add(s->figures->finished[reason], 1);

    if (llm_emit_end(&q->emit) != LLM_OK) {
        (void) llm_fail(&err, "no memory");
        llm_req_fail(q->req, &err, 0);
    }

    llm_sched_say(s, q->req);
}


void
llm_sched_add(llm_sched_t *s, llm_req_t *r)
{
    uint32_t    i;
    llm_err_t   err;
    llm_seq_t  *q;

    if (llm_queue_enter(&s->queue, r) != LLM_OK) {
        (void) llm_fail(&err, "no memory");
        llm_req_fail(r, &err, 0);
        llm_sched_say(s, r);
        return;
    }

    for (i = 0; i < r->n_seqs; i++) {
        q = &r->seqs[i];
        assert(q->prompt->n > 0);

        if (q->max_gen || llm_seq_unscored(q)) {
            llm_queue_add(&s->queue, q);
            continue;
        }

        llm_sched_echo(q);

        if (r->start_us == 0) {
            r->start_us = llm_now_us();
        }

        llm_sched_end_seq(s, q, LLM_FINISH_LENGTH);
    }
}


/* the sequences of a request give up all they hold */

void
llm_sched_clear(llm_sched_t *s, llm_req_t *r)
{
    uint32_t    i;
    llm_seq_t  *q;

    if (r->tenant == NULL) {
        return;                         /* cleared before, or never added */
    }

    for (i = 0; i < r->n_seqs; i++) {
        q = &r->seqs[i];

        switch (q->state) {

        case LLM_SEQ_WAITING:
            llm_queue_remove(&s->queue, q);
            break;

        case LLM_SEQ_RUNNING:
            llm_sched_unseat(s, q);
            break;

        case LLM_SEQ_PARKED:
            llm_sched_unpark(s, q);
            break;

        default:
            break;
        }

        llm_sched_settle(q);
        llm_sched_drop(s, q);
        q->state = LLM_SEQ_ENDED;
    }

    llm_queue_leave(&s->queue, r);
}


void
llm_sched_remove(llm_sched_t *s, llm_req_t *r)
{
    llm_sched_clear(s, r);
    llm_sched_unsay(s, r);
    llm_sched_gauges(s);
}


void
llm_sched_fail(llm_sched_t *s, llm_req_t *r, const llm_err_t *err,
    uint32_t retry_after)
{
    llm_sched_clear(s, r);
    llm_req_fail(r, err, retry_after);
    llm_sched_say(s, r);
}


void
llm_sched_pause(llm_sched_t *s, llm_req_t *r, int paused)
{
    (void) s;

    r->paused = (uint32_t) paused;
}


void
llm_sched_gauges(llm_sched_t *s)
{
    uint32_t  available;

    available = llm_pages_available(s->pages);

    llm_zone_set(s->figures->running, s->n_running);
    llm_zone_set(s->figures->parked, s->n_parked);
    llm_zone_set(s->figures->kv_used, llm_pages_total(s->pages) - available);
    llm_zone_set(s->figures->kv_cached, llm_pages_cached(s->pages));
}
