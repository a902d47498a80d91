/*
 * Admission: sequences from the queue run as long as there are places and
 * pages for them, free or held by sequences of a lower priority; see preempt.c.
 */

#include "engine/sched/sched_internal.h"


/* adds a page of a kind at the end of a sequence's table; LLM_FULL: all pages
   are held; LLM_ERROR: no memory */

static int
llm_sched_new_page(llm_sched_t *s, llm_seq_t *q, uint32_t kind)
{
    int       rc;
    uint32_t  page, evicted;

    if (kind == LLM_KV_WINDOW) {
        rc = llm_pages_attach(s->pages, q->pages[q->n_pages[kind]]);
        q->n_pages[kind] += rc == LLM_OK;

        return rc;
    }

    page = llm_pages_alloc(s->pages, &evicted);

    if (page == LLM_PAGE_NONE) {
        return LLM_FULL;
    }

    if (s->slots && evicted != LLM_PAGE_NONE) {
        llm_state_slots_forget(s->slots, evicted);
    }

    if (llm_sched_add_page(s, q, page) != LLM_OK) {
        llm_pages_drop(s->pages, page, kind);
        return LLM_ERROR;
    }

    return LLM_OK;
}


static int
llm_sched_next_page_of(llm_sched_t *s, llm_seq_t *q, uint32_t kind)
{
    int         rc;
    llm_seq_t  *victim;

    while (q->n_kv / LLM_KV_PAGE >= q->n_pages[kind]) {
        rc = llm_sched_new_page(s, q, kind);

        if (rc == LLM_OK) {
            break;
        }

        if (rc == LLM_ERROR) {
            return LLM_ERROR;
        }

        if (llm_sched_reclaim(s, NULL) == LLM_OK) {
            continue;
        }

        victim = llm_sched_last(s);     /* not NULL: q has pages */

        /* pages that its window leaves are freed when the results of its rows
           in flight are taken */

        if (victim == q && s->in_flight && llm_sched_window(s, kind)) {
            return LLM_LATER;
        }

        llm_sched_preempt(s, victim);
        llm_zone_add(s->counters->preemptions, 1);

        if (victim == q) {
            return LLM_PREEMPTED;
        }
    }

    return LLM_OK;
}


/*
 * Ensures that a running sequence has a page of each kind for its next token.
 * If no page is free, the last sequence of running[] is preempted, which may be
 * this one: LLM_PREEMPTED.  LLM_LATER: it must wait for the step in flight.
 * LLM_ERROR: no memory.
 */

int
llm_sched_next_page(llm_sched_t *s, llm_seq_t *q)
{
    int       rc;
    uint32_t  k;

    for (k = 0, rc = LLM_OK; k < s->n_kinds && rc == LLM_OK; k++) {
        rc = llm_sched_next_page_of(s, q, k);
    }

    return rc;
}


/*
 * Gets pages for the next *n rows of a prompt, and reduces *n to the rows that
 * there are pages for.  For the first row a sequence that comes after this one
 * is preempted if necessary.  *n 0: it must wait until others have given pages
 * back.  LLM_ERROR: no memory.
 */

int
llm_sched_room(llm_sched_t *s, llm_seq_t *q, uint32_t *n)
{
    int         rc;
    uint32_t    kind;
    llm_seq_t  *victim;

    /* it got all pages of the other kind, if there is one, on admission */
    kind = llm_sched_leaving(s);

    while (q->n_pages[kind] * LLM_KV_PAGE < q->n_kv + *n) {
        rc = llm_sched_new_page(s, q, kind);

        if (rc == LLM_OK) {
            continue;
        }

        if (rc == LLM_ERROR) {
            return LLM_ERROR;
        }

        if (llm_sched_reclaim(s, NULL) == LLM_OK) {
            continue;
        }

        victim = llm_sched_last(s);

        if (q->n_pages[kind] * LLM_KV_PAGE > q->n_kv || victim == NULL
            || !llm_seq_before(q, victim))
        {
            break;
        }

        llm_sched_preempt(s, victim);
        llm_zone_add(s->counters->preemptions, 1);
    }

    *n = llm_min(*n, q->n_pages[kind] * LLM_KV_PAGE - q->n_kv);

    return LLM_OK;
}


/*
 * Gets pages for n drafted rows after the first `known` positions, while more
 * pages are available than running sequences may need next; returns how many
 * rows there are pages for.
 */

uint32_t
llm_sched_spare_room(llm_sched_t *s, llm_seq_t *q, uint32_t known, uint32_t n)
{
    uint32_t  k;

    for (k = 0; k < s->n_kinds; k++) {
        while (q->n_pages[k] * LLM_KV_PAGE < known + n
               && llm_pages_available(s->pages, k) > s->n_running
               && llm_sched_new_page(s, q, k) == LLM_OK)
        { /* void */ }

        n = llm_min(n, q->n_pages[k] * LLM_KV_PAGE - known);
    }

    return n;
}


/* pages of a kind that a sequence needs before it runs: for all its tokens or,
   with a window, for its first rows */

uint32_t
llm_sched_first_pages(const llm_sched_t *s, const llm_seq_t *q, uint32_t kind)
{
    uint32_t  n, rows;

    n = llm_seq_known(q);

    if (llm_sched_window(s, kind)) {
        rows = llm_min(s->conf.runner.chunk, s->conf.runner.window);
        n = q->n_kv + llm_min(n - q->n_kv, rows);
    }

    return (n + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
}


/* gets new pages of a kind for a sequence that is not running yet; LLM_FULL:
   others hold too many */

static int
llm_sched_fill_kind(llm_sched_t *s, llm_seq_t *q, uint32_t kind)
{
    uint32_t  need, spare, available;

    for ( ;; ) {
        need = llm_sched_first_pages(s, q, kind) - q->n_pages[kind];
        available = llm_pages_available(s->pages, kind);

        /* a sequence that is alone can run with pages that its window leaves */

        if (s->n_running == 0 && llm_sched_window(s, kind)) {
            need = llm_min(need, llm_max(available, 1u));
        }

        /* running sequences will need more pages: leave some for them, or this
           sequence would be preempted at once */

        spare = llm_min(s->n_running, llm_pages_total(s->pages, kind) / 16);

        if (available >= need + spare) {
            break;
        }

        if (llm_sched_reclaim(s, q) != LLM_OK
            && llm_preempt_for_pages(s, q, kind, need + spare - available)
               != LLM_OK)
        {
            return LLM_FULL;
        }
    }

    while (need--) {
        if (llm_sched_new_page(s, q, kind) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* gets a sequence's first pages, from the prefix tree, then new ones, and a
   state slot */

static int
llm_sched_fill(llm_sched_t *s, llm_seq_t *q)
{
    int       rc;
    uint32_t  k;

    if (q->n_pages[0]) {
        return LLM_OK;                  /* it has kept its pages */
    }

    rc = llm_sched_lookup(s, q);

    for (k = 0; k < s->n_kinds && rc == LLM_OK; k++) {
        rc = llm_sched_fill_kind(s, q, k);
    }

    if (rc != LLM_OK) {
        llm_sched_drop(s, q);
        return rc;
    }

    while (llm_state_take(s, q) != LLM_OK) {
        if (llm_sched_reclaim(s, q) != LLM_OK) {
            llm_sched_drop(s, q);
            return LLM_FULL;
        }
    }

    return LLM_OK;
}


/* a running choice of the same prompt that has no token yet, or NULL */

static llm_seq_t *
llm_sched_leader(const llm_seq_t *q)
{
    uint32_t    i, n;
    llm_seq_t  *other;

    if (q->n_gen || q->n_pages[0]) {
        return NULL;
    }

    n = q->req->msg->n;

    for (i = q->index / n * n; i < q->index; i++) {
        other = &q->req->run.seqs[i];

        if (other->state == LLM_SEQ_RUNNING && other->leader == NULL
            && other->n_gen == 0 && other->held == NULL)
        {
            return other;
        }
    }

    return NULL;
}


/* counts and charges a sequence that runs for the first time */

static void
llm_sched_started(llm_sched_t *s, llm_seq_t *q)
{
    uint64_t    now;
    llm_req_t  *r;

    r = q->req;
    q->admitted = 1;

    if (r->run.start_us == 0) {
        now = llm_now_us();
        r->run.start_us = now;
        llm_zone_observe(s->counters, LLM_HIST_QUEUE,
                         now - llm_min(now, r->msg->arrival_us));
        llm_sched_queue_events(s, r);
        s->starts |= llm_req_wants_start(r);
    }

    if (q->index % r->msg->n == 0) {
        llm_zone_add(s->counters->prompt_tokens, q->prompt->n);
    }

    llm_sched_set_todo(s, q, 0);

    if (q->leader) {
        return;
    }

    if (q->index % r->msg->n == 0) {
        r->out.cached_tokens += q->n_kv;
    }

    if (llm_seq_caches(q)) {
        llm_zone_add(s->counters->prefix_queries, q->prompt->n);
        llm_zone_add(s->counters->prefix_hits, q->n_kv);
    }

    q->advance = q->prompt->n - q->n_kv;
    llm_sched_set_todo(s, q, q->advance);
    llm_shares_charge(&r->run.tenant->share, q->advance);
}


/* returns parked sequences whose client has caught up to the queue */

static void
llm_sched_return(llm_sched_t *s)
{
    uint32_t    i;
    llm_seq_t  *q;

    for (i = s->n_parked; i-- > 0; /* void */ ) {
        q = s->parked[i];

        if (!q->req->out.paused && !llm_emit_pending(&q->emit, 0)) {
            s->parked[i] = s->parked[--s->n_parked];
            llm_queue_add(&s->queue, q);
        }
    }
}


void
llm_sched_admit(llm_sched_t *s)
{
    int         rc;
    llm_err_t   err;
    llm_seq_t  *q;

    llm_sched_return(s);

    for ( ;; ) {
        q = llm_queue_best(&s->queue);

        if (q == NULL || !llm_preempt_has_place(s, q)) {
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

            if (rc == LLM_FULL) {
                break;
            }
        }

        llm_preempt_for_place(s, q);

        if (llm_seat_take(s, q, &err) != LLM_OK) {
            llm_sched_fail(s, q->req, &err, 0);
            continue;
        }

        llm_queue_remove(&s->queue, q);
        llm_sched_set_running(s, q);

        if (!q->admitted) {
            llm_sched_started(s, q);
        }
    }
}


/*
 * The leader has computed the whole prompt: a follower shares its full pages,
 * and gets copies of the last page, if that is not full, and of the state.
 * LLM_PREEMPTED: there was no page or no state slot for the copies, or no
 * memory, and the follower is in the queue again.
 */

int
llm_sched_fork(llm_sched_t *s, llm_seq_t *leader, llm_seq_t *q)
{
    int       rc;
    uint32_t  i, k, full;

    q->leader = NULL;
    full = leader->n_kv / LLM_KV_PAGE;
    rc = llm_sched_reserve(s, q, full + 1);

    for (k = 0; k < s->n_kinds && rc == LLM_OK; k++) {
        q->n_pages[k] = full;
        q->n_gone[k] = leader->n_gone[k];

        for (i = q->n_gone[k]; i < full; i++) {
            llm_pages_hold(s->pages, leader->pages[i], k);
        }
    }

    for (i = 0; i < full && rc == LLM_OK; i++) {
        q->pages[i] = leader->pages[i];
    }

    for (k = 0; k < s->n_kinds && rc == LLM_OK && leader->n_kv % LLM_KV_PAGE;
         k++)
    {
        rc = llm_sched_new_page(s, q, k);

        if (rc == LLM_OK) {
            s->conf.runner.copy_page(s->conf.runner.data, k,
                llm_pages_number(s->pages, leader->pages[full], k),
                llm_pages_number(s->pages, q->pages[full], k));
        }
    }

    rc = rc == LLM_OK ? llm_state_fork(s, leader, q) : rc;

    if (rc != LLM_OK) {
        llm_sched_preempt(s, q);
        return LLM_PREEMPTED;
    }

    q->n_kv = leader->n_kv;
    q->n_tree = leader->n_tree;

    return LLM_OK;
}
