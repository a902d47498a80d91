/*
 * Asserts what must hold for a scheduler between two calls; tests call it after
 * each step.  It walks over all sequences and pages, so the engine itself does
 * not call it.
 */

#include "engine/sched/sched_internal.h"

#include <assert.h>


/* checks a sequence; returns how many pages it holds */

static uint64_t
llm_check_seq(const llm_sched_t *s, const llm_seq_t *q,
    llm_seq_state_t state)
{
    uint32_t  k;
    uint64_t  held;

    assert(q->state == state);
    assert(q->req->run.tenant != NULL);

    assert(q->n_pages[0] <= s->max_pages);
    assert(q->n_tree <= q->n_pages[0]);
    assert(q->n_pages[1] <= q->n_pages[0]);
    held = 0;

    for (k = 0; k < s->n_kinds; k++) {
        assert(q->n_gone[k] == 0
               || (llm_sched_window(s, k) && q->n_gone[k] < q->n_pages[k]));
        assert(q->n_kv <= q->n_pages[k] * LLM_KV_PAGE);
        held += q->n_pages[k] - q->n_gone[k];
    }

    assert(q->n_kv <= llm_seq_due(q));
    assert(q->n_gen <= q->max_gen);

    assert(q->has_slot == (s->slots && q->n_pages[0]));

    /* drafted rows are in flight, or their logits are kept */

    assert(q->draft.used <= q->draft.n);
    assert(q->draft.n == 0 || s->in_flight || q->held);
    assert(q->draft.has_spare == (s->slots && q->draft.n));
    assert(q->draft.redo == 0
           || (s->slots && q->n_kv + q->draft.redo + 1 == llm_seq_due(q)));

    /* only running sequences have a sampler, if they generate */

    assert((q->sampler != NULL)
           == (state == LLM_SEQ_RUNNING && !llm_seq_pools(q)));
    assert(q->pool.next <= q->pool.end && q->pool.end <= q->prompt->n);
    assert(q->pending == 0 || state == LLM_SEQ_RUNNING);

    /* a sequence that waits for its mask has nothing to compute */

    assert(q->held == NULL
           || (q->masked && state == LLM_SEQ_RUNNING && q->leader == NULL
               && q->n_kv == llm_seq_due(q) && q->in_batch == 0));

    return held;
}


static uint64_t
llm_check_running(const llm_sched_t *s)
{
    uint32_t          i, seats, n_held;
    uint64_t          held;
    const llm_seq_t  *q;

    held = 0;
    seats = s->n_samplers;
    n_held = 0;

    for (i = 0; i < s->n_running; i++) {
        q = s->running[i];

        assert(i == 0 || llm_seq_before(s->running[i - 1], q));
        held += llm_check_seq(s, q, LLM_SEQ_RUNNING);
        seats += q->sampler != NULL;
        n_held += q->held != NULL;

        if (q->leader) {
            assert(q->leader->req == q->req && q->leader->leader == NULL);
            assert(q->leader->state == LLM_SEQ_RUNNING);
            assert(q->n_pages[0] == 0 && q->n_gen == 0);
        }
    }

    assert(seats <= s->conf.runner.max_seqs);
    assert(n_held == s->n_held);

    return held;
}


static uint64_t
llm_check_waiting(const llm_sched_t *s)
{
    uint32_t             n;
    uint64_t             held;
    const llm_seq_t     *q;
    const llm_tenant_t  *t;

    n = 0;
    held = 0;

    for (t = s->queue.waiting; t; t = t->next) {
        assert(t->first != NULL && t->share.n_reqs != 0);

        for (q = t->first; q; q = q->next) {
            assert(q->req->run.tenant == t);
            assert(q->next == NULL ? t->last == q
                                   : llm_seq_before(q, q->next));
            held += llm_check_seq(s, q, LLM_SEQ_WAITING);
            n++;
        }
    }

    assert(n == s->queue.n_waiting);

    return held;
}


static uint32_t
llm_check_seq_slots(const llm_sched_t *s)
{
    uint32_t             i, n;
    const llm_seq_t     *q;
    const llm_tenant_t  *t;

    n = 0;

    for (i = 0; i < s->n_running; i++) {
        n += s->running[i]->has_slot + s->running[i]->draft.has_spare;
    }

    for (i = 0; i < s->n_parked; i++) {
        n += s->parked[i]->has_slot;
    }

    for (t = s->queue.waiting; t; t = t->next) {
        for (q = t->first; q; q = q->next) {
            n += q->has_slot;
        }
    }

    return n;
}


/* each held slot belongs to a sequence or a step; snapshots belong to pages of
   the tree */

static void
llm_check_slots(const llm_sched_t *s)
{
    uint32_t           i, k, n;
    const llm_step_t  *st;

    n = llm_check_seq_slots(s);

    for (k = 0; k < 2; k++) {
        st = &s->steps[k];

        for (i = 0; i < st->batch.n_seqs; i++) {
            n += st->snapshots[i] != LLM_SLOT_NONE;
        }
    }

    assert(llm_state_slots_assert(s->slots) == n);

    for (i = 0; i < llm_pages_n_nodes(s->pages); i++) {
        assert(llm_state_slots_find(s->slots, i) == LLM_SLOT_NONE
               || (llm_pages_in_tree(s->pages, i)
                   && llm_pages_number(s->pages, i, 0) != LLM_PAGE_NONE));
    }
}


/* the scheduler's todo is the sum of the sequences' */

static void
llm_check_todo(const llm_sched_t *s)
{
    uint32_t             i;
    uint64_t             n;
    const llm_seq_t     *q;
    const llm_tenant_t  *t;

    n = 0;

    for (i = 0; i < s->n_running; i++) {
        n += s->running[i]->todo;
    }

    for (i = 0; i < s->n_parked; i++) {
        n += s->parked[i]->todo;
    }

    for (t = s->queue.waiting; t; t = t->next) {
        for (q = t->first; q; q = q->next) {
            n += q->todo;
        }
    }

    assert(n == s->todo);
}


void
llm_sched_assert(const llm_sched_t *s)
{
    uint32_t          i;
    uint64_t          held;
    const llm_req_t  *r;

    held = llm_check_running(s) + llm_check_waiting(s);

    for (i = 0; i < s->n_parked; i++) {
        held += llm_check_seq(s, s->parked[i], LLM_SEQ_PARKED);
    }

    /* each page has as many holders as sequences that list it */

    assert(held == llm_pages_assert(s->pages));
    llm_check_todo(s);

    if (s->slots) {
        llm_check_slots(s);
    }

    for (r = s->out; r; r = r->out.next) {
        assert(r->out.in_list);
        assert(s->starts || !llm_req_wants_start(r));
    }
}
