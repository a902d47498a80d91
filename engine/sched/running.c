/*
 * The lists of running and of parked sequences.
 */

#include "engine/sched/sched_internal.h"


void
llm_sched_clear_running(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t  i;

    for (i = 0; s->running[i] != q; i++) { /* void */ }

    s->n_running--;
    memmove(s->running + i, s->running + i + 1,
            (s->n_running - i) * sizeof(*s->running));

    llm_seat_give(s, q);
}


void
llm_sched_set_running(llm_sched_t *s, llm_seq_t *q)
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


void
llm_sched_unpark(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t  i;

    for (i = 0; s->parked[i] != q; i++) { /* void */ }

    s->parked[i] = s->parked[--s->n_parked];
}


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

    llm_sched_clear_running(s, q);
    s->parked[s->n_parked++] = q;
    q->state = LLM_SEQ_PARKED;

    return LLM_OK;
}
