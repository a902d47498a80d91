/*
 * Recurrent state of sequences, for models that have it: a state slot for each
 * sequence that has pages, and snapshots.  The prefix cache needs snapshots,
 * because keys and values of a beginning do not suffice to continue after it.
 *
 * Invariants
 *   - A slot holds the state after position n_kv - 1 of its sequence, once the
 *     steps in flight have ended and drafted tokens were settled
 *     (speculate.c).
 *   - A snapshot can be taken only where a step's rows of the sequence end.
 *     So a step ends a prompt's rows where one is due.
 *
 * Snapshots are due at the end of a page only, and only
 *   - where the next prompt with the same beginning can use them best: at the
 *     last page before the first position whose result is wanted;
 *   - where another prompt leaves this one's path: several prompts have the
 *     tokens before, such as a system prompt;
 *   - at multiples of LLM_STATE_PROMPT, for prompts that leave the path later;
 *   - at multiples of LLM_STATE_ANSWER in generated text, for the next turn of
 *     a conversation; each replaces the one before.
 */

#include "engine/sched/sched_internal.h"

#include <assert.h>

/* the rows of a usual step: ending a step there costs nothing, and at most one
   step has to be computed again */
#define LLM_STATE_PROMPT    512

/* a copy reads and writes as much state as computing a token does, which does
   not matter once in 64 tokens; the next turn computes at most 63 tokens
   again */
#define LLM_STATE_ANSWER    64


static uint32_t
llm_state_page_end(uint32_t pos)
{
    return pos / LLM_KV_PAGE * LLM_KV_PAGE;
}


/*
 * Gives a sequence that has got its pages a slot, with a copy of the snapshot
 * of its last computed page, if it has one.  If there is no other slot, the
 * slot of that same snapshot is taken, which then needs no copy.  LLM_FULL: all
 * slots are held.
 */

int
llm_state_take(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t  snapshot;

    if (s->slots == NULL || q->has_slot) {
        return LLM_OK;
    }

    snapshot = LLM_SLOT_NONE;

    if (q->n_kv) {
        snapshot = llm_state_slots_find(s->slots,
                                        q->pages[q->n_kv / LLM_KV_PAGE - 1]);
        assert(snapshot != LLM_SLOT_NONE);
        llm_state_slots_use(s->slots, snapshot);
    }

    q->slot = llm_state_slots_take(s->slots);

    if (q->slot == LLM_SLOT_NONE) {
        return LLM_FULL;
    }

    q->has_slot = 1;

    if (snapshot != LLM_SLOT_NONE && snapshot != q->slot) {
        s->conf.runner.copy_slot(s->conf.runner.data, snapshot, q->slot);
    }

    return LLM_OK;
}


/* loads the snapshot of the page that ends at position n_kv into the sequence's
   slot */

void
llm_state_load(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t  snapshot;

    snapshot = llm_state_slots_find(s->slots,
                                    q->pages[q->n_kv / LLM_KV_PAGE - 1]);

    llm_state_slots_use(s->slots, snapshot);
    s->conf.runner.copy_slot(s->conf.runner.data, snapshot, q->slot);
}


/* gives a follower a slot with a copy of its leader's state; LLM_FULL: all are
   held */

int
llm_state_fork(llm_sched_t *s, const llm_seq_t *leader, llm_seq_t *q)
{
    if (s->slots == NULL) {
        return LLM_OK;
    }

    q->slot = llm_state_slots_take(s->slots);

    if (q->slot == LLM_SLOT_NONE) {
        return LLM_FULL;
    }

    q->has_slot = 1;
    s->conf.runner.copy_slot(s->conf.runner.data, leader->slot, q->slot);

    return LLM_OK;
}


void
llm_state_drop(llm_sched_t *s, llm_seq_t *q)
{
    llm_state_give_spare(s, q);

    if (q->has_slot) {
        llm_state_slots_give(s->slots, q->slot);
        q->has_slot = 0;
    }

    q->rolling = 0;
}


/* copies the state before a step with drafted rows; LLM_FULL: all slots are
   held */

int
llm_state_spare(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t  spare;

    if (s->slots == NULL) {
        return LLM_OK;
    }

    spare = llm_state_slots_take(s->slots);

    if (spare == LLM_SLOT_NONE) {
        return LLM_FULL;
    }

    q->draft.spare = spare;
    q->draft.has_spare = 1;
    s->conf.runner.copy_slot(s->conf.runner.data, q->slot, spare);

    return LLM_OK;
}


void
llm_state_give_spare(llm_sched_t *s, llm_seq_t *q)
{
    if (q->draft.has_spare) {
        llm_state_slots_give(s->slots, q->draft.spare);
        q->draft.has_spare = 0;
    }
}


/* returns to the state before the step: the copy takes the slot's place */

void
llm_state_return(llm_sched_t *s, llm_seq_t *q)
{
    llm_state_slots_give(s->slots, q->slot);
    q->slot = q->draft.spare;
    q->draft.has_spare = 0;
}


/* is a snapshot due after the first n positions? */

static int
llm_state_is_due(const llm_seq_t *q, uint32_t n)
{
    if (n == 0 || n % LLM_KV_PAGE || !llm_seq_caches(q)) {
        return 0;
    }

    return n % LLM_STATE_PROMPT == 0 || n == q->branch
           || n == llm_state_page_end(llm_seq_sharable(q))
           || (n > q->prompt->n && n % LLM_STATE_ANSWER == 0);
}


static int
llm_state_same_page(const llm_seq_t *a, const llm_seq_t *b, uint32_t from)
{
    uint32_t  i, end;

    end = from + LLM_KV_PAGE;

    if (end <= llm_min(a->prompt->n, b->prompt->n)
        && a->prompt->n_media + b->prompt->n_media == 0)
    {
        return memcmp(a->prompt->ids + from, b->prompt->ids + from,
                      LLM_KV_PAGE * sizeof(*a->prompt->ids))
               == 0;
    }

    for (i = from; i < end && llm_seq_key(a, i) == llm_seq_key(b, i); i++)
    { /* void */ }

    return i == end;
}


/*
 * Returns the position up to which q has the same tokens as `other`, whose path
 * in the tree must begin with q's: the end of a page after q->n_kv; 0: they do
 * not share even the next page.  Positions from `most` on are not compared,
 * because this is called for all pairs in each step.
 */

static uint32_t
llm_state_common(const llm_seq_t *q, const llm_seq_t *other, uint32_t most)
{
    uint32_t  n;

    if (!llm_seq_caches(q) || !llm_seq_caches(other)
        || q->n_kv != q->n_tree * LLM_KV_PAGE || other->n_tree < q->n_tree
        || !llm_salt_same(&other->req->prep.salt, &q->req->prep.salt)
        || (q->n_tree
            && other->pages[q->n_tree - 1] != q->pages[q->n_tree - 1]))
    {
        return 0;
    }

    most = llm_min(most, llm_min(llm_seq_sharable(q), llm_seq_known(other)));

    for (n = q->n_kv;
         n + LLM_KV_PAGE <= most && llm_state_same_page(q, other, n);
         n += LLM_KV_PAGE)
    { /* void */ }

    return n > q->n_kv ? n : 0;
}


/*
 * Will a sequence of this step leave a snapshot from which q can continue?
 * Then q waits for it.  A sequence that has not got to the shared position yet
 * will leave one, because llm_state_rows() ends its rows there for q.
 */

int
llm_state_is_shared(const llm_step_t *st, const llm_seq_t *q)
{
    uint32_t          i, n;
    const llm_seq_t  *other;

    for (i = 0; i < st->batch.n_seqs; i++) {
        other = st->seqs[i];

        if (other == NULL) {
            continue;
        }

        n = llm_state_common(q, other, st->kv_len[i] + LLM_KV_PAGE);

        if (n > st->kv_len[i]
            || (n && n == st->kv_len[i] && llm_state_is_due(other, n)))
        {
            return 1;
        }
    }

    return 0;
}


/* sets q->branch to the first position, at `end` or before, where another
   prompt that waits to be computed leaves q's path */

static void
llm_state_branches(const llm_sched_t *s, llm_seq_t *q, uint32_t end)
{
    uint32_t          i, n;
    const llm_seq_t  *other;

    for (i = 0; i < s->n_running; i++) {
        other = s->running[i];

        if (other == q || other->leader || other->in_batch
            || llm_seq_due(other) - other->n_kv < 2 + other->draft.redo)
        {
            continue;
        }

        n = llm_state_common(other, q, end + LLM_KV_PAGE);

        if (n > q->n_kv && n <= end
            && (q->branch <= q->n_kv || n < q->branch))
        {
            q->branch = n;
        }
    }
}


/* how many of the next n rows of a prompt come before the next snapshot */

uint32_t
llm_state_rows(const llm_sched_t *s, llm_seq_t *q, uint32_t n)
{
    uint32_t  end, due;

    if (s->slots == NULL || !llm_seq_caches(q)) {
        return n;
    }

    end = q->n_kv + n;
    llm_state_branches(s, q, end);
    due = (q->n_kv / LLM_STATE_PROMPT + 1) * LLM_STATE_PROMPT;
    end = llm_min(end, due);
    due = llm_state_page_end(llm_seq_sharable(q));
    end = due > q->n_kv ? llm_min(end, due) : end;
    end = q->branch > q->n_kv ? llm_min(end, q->branch) : end;

    return end - q->n_kv;
}


/* how many of n drafted rows after the first `known` positions come before the
   next snapshot of an answer */

uint32_t
llm_state_room(const llm_sched_t *s, const llm_seq_t *q, uint32_t known,
    uint32_t n)
{
    if (s->slots == NULL || !llm_seq_caches(q)) {
        return n;
    }

    return llm_min(n, (LLM_STATE_ANSWER - known % LLM_STATE_ANSWER)
                      % LLM_STATE_ANSWER);
}


/* after a step was launched: copies the states that its rows end with, where
   snapshots are due.  The step holds the copies until its results are taken */

void
llm_state_launched(llm_sched_t *s, llm_step_t *st)
{
    uint32_t    i;
    llm_seq_t  *q;

    for (i = 0; s->slots && i < st->batch.n_seqs; i++) {
        q = st->seqs[i];
        st->snapshots[i] = LLM_SLOT_NONE;

        if (llm_state_is_due(q, st->kv_len[i])) {
            st->snapshots[i] = llm_state_slots_take(s->slots);
        }

        if (st->snapshots[i] != LLM_SLOT_NONE) {
            s->conf.runner.copy_slot(s->conf.runner.data, q->slot,
                                     st->snapshots[i]);
        }
    }
}


/* frees the copies that a step still holds */

void
llm_state_release(llm_sched_t *s, llm_step_t *st)
{
    uint32_t  i;

    for (i = 0; s->slots && i < st->batch.n_seqs; i++) {
        if (st->snapshots[i] != LLM_SLOT_NONE) {
            llm_state_slots_give(s->slots, st->snapshots[i]);
            st->snapshots[i] = LLM_SLOT_NONE;
        }
    }
}


/* after sequence i of the step has put its pages into the tree: the copy of its
   state becomes the snapshot of the last page */

void
llm_state_taken(llm_sched_t *s, llm_step_t *st, uint32_t i)
{
    uint32_t    n;
    llm_seq_t  *q;

    if (s->slots == NULL || st->snapshots[i] == LLM_SLOT_NONE) {
        return;
    }

    q = st->seqs[i];
    n = st->kv_len[i];

    llm_state_slots_keep(s->slots, st->snapshots[i],
                         q->pages[n / LLM_KV_PAGE - 1]);
    st->snapshots[i] = LLM_SLOT_NONE;

    if (n <= q->prompt->n) {
        return;
    }

    if (q->rolling > q->n_gone[LLM_KV_FULL] * LLM_KV_PAGE) {
        llm_state_slots_forget(s->slots,
                               q->pages[q->rolling / LLM_KV_PAGE - 1]);
    }

    q->rolling = n;
}


/*
 * May a row of this sequence be computed again (trigger.c)?  It would then be
 * in the state twice, so no step is launched ahead after one that draws for the
 * sequence.
 */

int
llm_state_is_unsure(const llm_sched_t *s, const llm_seq_t *q)
{
    return s->slots && q->req->prep.call_gram && q->masked == NULL;
}
