/*
 * Slots of recurrent state against a naive model: who holds which, which page
 * has which snapshot, and which of these gives way.
 */

#include "engine/sched/state_slots.h"

#include "t/unit/random.h"
#include "t/unit/tap.h"

#define N_SLOTS  9
#define N_PAGES  40

typedef enum { FREE, HELD, SNAPSHOT } kind_t;

static kind_t    kind[N_SLOTS];
static uint32_t  page_of[N_SLOTS];
static uint32_t  used[N_SLOTS];         /* when, of snapshots */
static uint32_t  now;


static uint32_t
count(kind_t k)
{
    uint32_t  i, n;

    for (i = 0, n = 0; i < N_SLOTS; i++) {
        n += kind[i] == k;
    }

    return n;
}


static uint32_t
snapshot_of(uint32_t page)
{
    uint32_t  i;

    for (i = 0; i < N_SLOTS; i++) {
        if (kind[i] == SNAPSHOT && page_of[i] == page) {
            return i;
        }
    }

    return LLM_SLOT_NONE;
}


static uint32_t
oldest(void)
{
    uint32_t  i, old;

    for (i = 0, old = LLM_SLOT_NONE; i < N_SLOTS; i++) {
        if (kind[i] == SNAPSHOT
            && (old == LLM_SLOT_NONE || used[i] < used[old]))
        {
            old = i;
        }
    }

    return old;
}


static int
take(llm_state_slots_t *s)
{
    uint32_t  i, n_free, want;

    n_free = count(FREE);
    want = oldest();
    i = llm_state_slots_take(s);

    if (i == LLM_SLOT_NONE) {
        return n_free == 0 && want == LLM_SLOT_NONE;
    }

    if (n_free ? kind[i] != FREE : i != want) {
        return 0;
    }

    kind[i] = HELD;

    return 1;
}


/* what becomes of a slot that is held */

static void
let_go(llm_state_slots_t *s, uint32_t i, uint32_t page)
{
    uint32_t  other;

    if (rnd(2)) {
        llm_state_slots_give(s, i);
        kind[i] = FREE;
        return;
    }

    other = snapshot_of(page);
    llm_state_slots_keep(s, i, page);

    if (other != LLM_SLOT_NONE) {
        kind[i] = FREE;
        used[other] = ++now;

    } else {
        kind[i] = SNAPSHOT;
        page_of[i] = page;
        used[i] = ++now;
    }
}


int
main(void)
{
    int                 taken, found, counted;
    uint32_t            i, step, page;
    llm_state_slots_t  *s;

    s = llm_state_slots_create(N_SLOTS, N_PAGES);
    taken = found = counted = 1;

    for (step = 0; step < 200000; step++) {
        i = rnd(N_SLOTS);
        page = rnd(N_PAGES);

        switch (rnd(4)) {

        case 0:
            taken &= take(s);
            break;

        case 1:
            if (kind[i] == HELD) {
                let_go(s, i, page);
            }

            break;

        case 2:
            if (kind[i] == SNAPSHOT) {
                llm_state_slots_use(s, i);
                used[i] = ++now;
            }

            break;

        default:
            i = snapshot_of(page);
            llm_state_slots_forget(s, page);

            if (i != LLM_SLOT_NONE) {
                kind[i] = FREE;
            }
        }

        page = rnd(N_PAGES);
        found &= llm_state_slots_find(s, page) == snapshot_of(page);
        counted &= llm_state_slots_n_snapshots(s) == count(SNAPSHOT)
                   && llm_state_slots_assert(s) == count(HELD);
    }

    ok(taken, "free slots are taken, then the snapshot used least recently");
    ok(found, "each page has the snapshot that it was given");
    ok(counted, "held slots and snapshots add up");

    llm_state_slots_free(s);

    return done_testing();
}
