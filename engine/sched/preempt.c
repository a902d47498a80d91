/*
 * Preemption.  A running sequence loses its pages when a running sequence that
 * goes before it needs them, and its place or its pages when a waiting sequence
 * has a higher priority.  It returns to the queue with the tokens that it has
 * and continues from there, with the same text.
 *
 * To prevent thrashing, a waiting sequence takes nothing from sequences of the
 * same priority, whatever the tenants' shares; and a sequence is not preempted
 * for pages if preempting all candidates would not free enough pages, or if the
 * others free enough.
 */

#include "engine/sched/sched_internal.h"


/*
 * Frees the pages of a sequence and returns it to the queue with its tokens;
 * its followers return with it.
 */

void
llm_sched_preempt(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t    i;
    llm_seq_t  *other;

    for (i = 0; i < q->req->run.n_seqs; i++) {
        other = &q->req->run.seqs[i];

        if (other->leader == q) {
            other->leader = NULL;
            llm_sched_clear_running(s, other);
            llm_queue_add(&s->queue, other);
        }
    }

    if (q->state == LLM_SEQ_RUNNING) {
        llm_sched_clear_running(s, q);
    }

    llm_sched_drop(s, q);
    q->leader = NULL;
    llm_queue_add(&s->queue, q);
}


/*
 * Frees the pages of one sequence that is not running: of the parked ones, the
 * last in order, which stays parked; if none of them has pages, of one in the
 * queue that has kept its pages.
 */

int
llm_sched_reclaim(llm_sched_t *s, const llm_seq_t *but)
{
    uint32_t       i;
    llm_seq_t     *q, *victim;
    llm_tenant_t  *t;

    victim = NULL;

    for (i = 0; i < s->n_parked; i++) {
        q = s->parked[i];

        if (q->n_pages[0] && (victim == NULL || llm_seq_before(victim, q))) {
            victim = q;
        }
    }

    for (t = s->queue.waiting; t && victim == NULL; t = t->next) {
        for (q = t->last; q; q = q->prev) {
            if (q->n_pages[0] && q != but) {
                victim = q;
                break;
            }
        }
    }

    if (victim == NULL) {
        return LLM_FULL;
    }

    llm_sched_drop(s, victim);
    llm_zone_add(s->counters->preemptions, 1);

    return LLM_OK;
}


/* the last running sequence that has pages and no rows in this step yet; NULL:
   none */

llm_seq_t *
llm_sched_last(const llm_sched_t *s)
{
    uint32_t    i;
    llm_seq_t  *q;

    for (i = s->n_running; i-- > 0; /* void */ ) {
        q = s->running[i];

        if (q->n_pages[0] && q->in_batch == 0) {
            return q;
        }
    }

    return NULL;
}


/* does a running sequence give way to one of this priority?  With llm_queue
   ttft= not before its first token, whose time was promised on admission */

int
llm_preempt_yields(const llm_sched_t *s, const llm_seq_t *q, int32_t priority)
{
    return q->req->msg->priority < priority
           && (s->conf.zone->bounds.ttft_us == 0 || q->req->out.first_us);
}


/* the last running sequence that gives way to the waiting sequence q, or
   NULL */

static llm_seq_t *
llm_preempt_victim(const llm_sched_t *s, const llm_seq_t *q)
{
    uint32_t  i;

    for (i = s->n_running; i-- > 0; /* void */ ) {
        if (llm_preempt_yields(s, s->running[i], q->req->msg->priority)) {
            return s->running[i];
        }
    }

    return NULL;
}


/* is there a place for the waiting sequence q, free or by preemption? */

int
llm_preempt_has_place(const llm_sched_t *s, const llm_seq_t *q)
{
    return s->n_running < s->conf.runner.max_seqs
           || llm_preempt_victim(s, q) != NULL;
}


/* must the sequence return to the queue without its pages?  True if it has
   none, waits for a leader or a mask, is a leader, or has rows in flight, whose
   results would be missing */

static int
llm_preempt_is_busy(const llm_sched_t *s, const llm_seq_t *q)
{
    uint32_t  i;

    if (q->leader || q->held || q->n_pages[0] == 0) {
        return 1;
    }

    for (i = 0; i < q->req->run.n_seqs; i++) {
        if (q->req->run.seqs[i].leader == q) {
            return 1;
        }
    }

    for (i = 0; s->in_flight && i < s->in_flight->batch.n_seqs; i++) {
        if (s->in_flight->seqs[i] == q) {
            return 1;
        }
    }

    return 0;
}


/*
 * Makes a place for a sequence that is about to run.  The sequence that gives
 * way keeps its pages if it can, as a parked sequence does, so that nothing is
 * computed again unless other sequences need the pages meanwhile.
 */

void
llm_preempt_for_place(llm_sched_t *s, const llm_seq_t *q)
{
    llm_seq_t  *victim;

    if (s->n_running < s->conf.runner.max_seqs) {
        return;
    }

    victim = llm_preempt_victim(s, q);

    if (llm_preempt_is_busy(s, victim)) {
        llm_sched_preempt(s, victim);

    } else {
        llm_sched_clear_running(s, victim);
        llm_queue_add(&s->queue, victim);
    }

    llm_zone_add(s->counters->preemptions, 1);
}


/* how many more pages become free if q leaves, too; or no longer become free if
   it stays */

static uint32_t
llm_preempt_leave(llm_sched_t *s, const llm_seq_t *q, uint32_t kind)
{
    uint32_t  i, n;

    for (n = 0, i = q->n_gone[kind]; i < q->n_pages[kind]; i++) {
        n += llm_pages_leave(s->pages, q->pages[i], kind) != 0;
    }

    return n;
}


static uint32_t
llm_preempt_stay(llm_sched_t *s, const llm_seq_t *q, uint32_t kind)
{
    uint32_t  i, n;

    for (n = 0, i = q->n_gone[kind]; i < q->n_pages[kind]; i++) {
        n += llm_pages_stay(s->pages, q->pages[i], kind) != 0;
    }

    return n;
}


/*
 * Chooses the sequences that give their pages to one of this priority: the last
 * running ones, except those without which the others free enough pages.  A
 * page that several sequences share becomes free when all of them are chosen.
 * Returns how many are in s->victims, the last in order first; 0: all of them
 * would not free enough.
 */

static uint32_t
llm_preempt_choose(llm_sched_t *s, int32_t priority, uint32_t kind,
    uint32_t missing)
{
    uint32_t    i, n, kept, freed, without;
    llm_seq_t  *q;

    n = 0;
    freed = 0;

    for (i = s->n_running; i-- > 0 && freed < missing; /* void */ ) {
        q = s->running[i];

        if (llm_preempt_yields(s, q, priority)) {
            s->victims[n++] = q;
            freed += llm_preempt_leave(s, q, kind);
        }
    }

    for (i = n; i-- > 0; /* void */ ) {
        q = s->victims[i];
        without = freed - llm_preempt_stay(s, q, kind);

        if (without < missing) {
            (void) llm_preempt_leave(s, q, kind);

        } else {
            freed = without;
            s->victims[i] = NULL;
        }
    }

    for (i = 0, kept = 0; i < n; i++) {
        q = s->victims[i];

        if (q) {
            (void) llm_preempt_stay(s, q, kind);
            s->victims[kept++] = q;
        }
    }

    return freed < missing ? 0 : kept;
}


/*
 * For a waiting sequence that lacks `missing` pages of a kind: preempts the
 * last of the sequences that would free them.  The caller then checks again
 * what is missing.  LLM_FULL: preemption would not free enough.
 */

int
llm_preempt_for_pages(llm_sched_t *s, const llm_seq_t *q, uint32_t kind,
    uint32_t missing)
{
    if (llm_preempt_choose(s, q->req->msg->priority, kind, missing) == 0) {
        return LLM_FULL;
    }

    llm_sched_preempt(s, s->victims[0]);
    llm_zone_add(s->counters->preemptions, 1);

    return LLM_OK;
}
