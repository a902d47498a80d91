/*
 * Random traffic for the scheduler of sched_rig.h: prompts that begin alike,
 * choices, priorities, tenants, cancels, slow readers, few pages and seats.
 * Each text must be what it is alone, and all pages must come back.
 */

#ifndef LLM_T_SCHED_STORM_H
#define LLM_T_SCHED_STORM_H

#include "t/unit/sched_rig.h"


/* everything at once: few pages, few seats, cancels, pauses */

static inline void
test_storm(uint32_t n_pages, uint32_t seats, uint32_t chunk, uint32_t flags)
{
    int        good, stuck;
    ask_t     *a;
    int32_t    ids[200];
    uint32_t   i, k, n, gen[MAX_REQS], echo[MAX_REQS], checked, added, steps;
    uint32_t   cancelled;
    uint64_t   preempted;

    open_all(n_pages, 300, seats, chunk, 1 << 17);
    added = 0;
    cancelled = 0;
    stuck = 0;

    for (steps = 0; n_over < MAX_REQS || added < MAX_REQS; steps++) {
        if (steps > 200000) {
            stuck = 1;
            break;
        }

        if (added < MAX_REQS && rnd(3) == 0) {
            n = random_prompt(ids, 180);
            gen[added] = 1 + rnd(100);
            echo[added] = flags & LLM_REQ_ECHO ? rnd(2) : 0;
            gen[added] = echo[added] && rnd(4) == 0 ? 0 : gen[added];
            a = ask(added, ids, n, 1 + rnd(3), gen[added],
                    echo[added] ? flags : flags & ~LLM_REQ_ECHO);
            a->req->msg->priority = (int32_t) rnd(3);
            a->req->msg->tenant = rnd(3);
            add(a);
            added++;
        }

        a = &asks[rnd(MAX_REQS)];

        if (a->req) {
            switch (rnd(12)) {

            case 0:
                if (rnd(4) == 0 && cancelled < MAX_REQS / 4) {
                    cancelled++;
                    llm_sched_remove(sched, a->req);
                    llm_sched_assert(sched);
                    llm_req_free(a->req);
                    a->req = NULL;
                    a->cancelled = 1;
                    a->order = ++n_over;
                }

                break;

            case 1:
                a->req->out.paused = 1;
                break;

            default:
                a->req->out.paused = 0;
            }
        }

        (void) step();

        if (rnd(4)) {
            read_events();
        }
    }

    for (i = 0; i < MAX_REQS; i++) {
        if (asks[i].req) {
            asks[i].req->out.paused = 0;
        }
    }

    (void) run();
    good = 1;
    checked = 0;

    for (i = 0; i < MAX_REQS; i++) {
        for (k = 0; k < asks[i].n && !asks[i].cancelled; k++) {
            good &= is_right(&asks[i], k, gen[i]) && !asks[i].wrong
                    && asks[i].scored[k]
                       == (echo[i] ? asks[i].n_prompt + gen[i] : 0);
            checked++;
        }
    }

    preempted = llm_zone_get(zone->models[0].own.preemptions);

    ok(good && !stuck && checked > 60,
       "%u pages, %u seats, chunks of %u: %u choices as alone, %llu "
       "preemptions", n_pages, seats, chunk, checked,
       (unsigned long long) preempted);
    ok(free_pages() == n_pages && free_windows() == n_windows,
       "all pages came back");

    if (overlapping && !predicting) {
        ok(n_behind > n_steps / 8, "%u of %u steps were launched behind "
           "another", n_behind, n_steps);
    }

    close_all();
}

#endif /* LLM_T_SCHED_STORM_H */
