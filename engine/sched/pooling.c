/*
 * Prompts that become a vector or a score: the final states of their positions
 * are pooled as steps compute them, and the result is sent as VECTOR events.
 *
 * Invariant: the states of positions [next, end) are still to come, each once
 * and in order, in whatever steps they are computed.  So a preemption does not
 * lose the sum, and the sum has the same bits in any batch.
 *
 * A sequence owns the sum until the result is known, and the result until it
 * has been sent.  Where states are not pooled, the result is all of them, from
 * the first on.
 */

#include "engine/sched/sched_internal.h"

#include <math.h>

/* most values of an event */
#define LLM_POOL_PART  ((LLM_EVENT_MAX - sizeof(llm_event_t)) / sizeof(float))


/* is the state of this position still to be pooled? */

int
llm_pooled_wants(const llm_seq_t *q, uint32_t pos)
{
    return pos >= q->pool.next && pos < q->pool.end;
}


static int
llm_pooled_add(llm_sched_t *s, llm_pooled_t *p, const float *state)
{
    uint32_t  i, n;

    n = s->conf.runner.n_embd;

    if (p->sum == NULL) {
        p->sum = calloc(n, sizeof(*p->sum));
        if (p->sum == NULL) {
            return LLM_ERROR;
        }

        p->sum_bytes = n * sizeof(*p->sum);
    }

    for (i = 0; i < n; i++) {
        p->sum[i] += state[i];
    }

    p->next++;

    return LLM_OK;
}


/* the number that the vector is divided by; 1 if all its values are 0 */

static double
llm_pooled_norm(const double *v, uint32_t n, int32_t p)
{
    double    norm;
    uint32_t  i;

    if (p == LLM_NORMALIZE_NONE) {
        return 1;
    }

    norm = 0;

    for (i = 0; i < n; i++) {
        if (p == LLM_NORMALIZE_MAX) {
            norm = llm_max(norm, fabs(v[i]) / 32760);

        } else if (p == LLM_NORMALIZE_L2) {
            norm += v[i] * v[i];

        } else {
            norm += pow(fabs(v[i]), p);
        }
    }

    if (p == LLM_NORMALIZE_L2) {
        norm = sqrt(norm);

    } else if (p != LLM_NORMALIZE_MAX) {
        norm = pow(norm, 1.0 / p);
    }

    return norm > 0 ? norm : 1;
}


/* computes the vector, or the score, from the sum of all states */

static int
llm_pooled_finish(llm_sched_t *s, llm_seq_t *q)
{
    double                norm;
    uint32_t              i, n;
    llm_pooled_t         *p;
    const llm_request_t  *msg;

    p = &q->pool;
    msg = q->req->msg;
    n = s->conf.runner.n_embd;

    p->vector = malloc(n * sizeof(*p->vector));
    if (p->vector == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < n; i++) {
        p->sum[i] /= p->count;
        p->vector[i] = (float) p->sum[i];
    }

    if (msg->task == LLM_TASK_SCORE) {
        p->vector[0] = (float) s->conf.runner.rank(s->conf.runner.data,
                                                   p->vector,
                                                   msg->flags & LLM_REQ_RAW);
        p->n = 1;

    } else {
        if (s->conf.runner.project
            && s->conf.runner.project(s->conf.runner.data, p->vector))
        {
            for (i = 0; i < n; i++) {
                p->sum[i] = p->vector[i];
            }
        }

        p->n = msg->dimensions ? msg->dimensions : n;
        norm = llm_pooled_norm(p->sum, p->n, msg->normalize);

        for (i = 0; i < p->n; i++) {
            p->vector[i] = (float) (p->sum[i] / norm);
        }
    }

    free(p->sum);
    p->sum = NULL;
    p->sum_bytes = 0;

    return LLM_OK;
}


/* keeps the state of the next position, as it is */

static int
llm_pooled_keep(llm_sched_t *s, llm_pooled_t *p, const float *state)
{
    size_t  n;

    n = s->conf.runner.n_embd;

    if (p->vector == NULL) {
        p->vector = malloc(p->end * n * sizeof(*p->vector));
        if (p->vector == NULL) {
            return LLM_ERROR;
        }

        p->n = (uint32_t) (p->end * n);
    }

    memcpy(p->vector + p->next * n, state, n * sizeof(*state));
    p->next++;

    return LLM_OK;
}


/* are all numbers finite?  JSON has no others */

static int
llm_pooled_is_finite(const llm_pooled_t *p)
{
    uint32_t  i;

    for (i = 0; i < p->n; i++) {
        if (!isfinite(p->vector[i])) {
            return 0;
        }
    }

    return 1;
}


/* takes the state of the next position that is pooled; ends the sequence after
   the last one */

int
llm_pooled_take(llm_sched_t *s, llm_seq_t *q, const float *state,
    llm_err_t *err)
{
    llm_pooled_t  *p;

    p = &q->pool;

    if (p->count == 0 ? llm_pooled_keep(s, p, state) != LLM_OK
        : (llm_pooled_add(s, p, state) != LLM_OK
           || (p->next == p->end && llm_pooled_finish(s, q) != LLM_OK)))
    {
        return llm_fail(err, "no memory");
    }

    if (p->next < p->end) {
        return LLM_OK;
    }

    if (!llm_pooled_is_finite(p)) {
        return llm_fail(err, "the model's result is not a number");
    }

    llm_sched_end_seq(s, q, LLM_FINISH_STOP);

    return LLM_OK;
}


/* sends the part of the result that is not sent yet; LLM_FULL: there is no
   room */

int
llm_pooled_write(llm_seq_t *q, llm_to_t *to)
{
    uint32_t       n;
    llm_pooled_t  *p;
    llm_event_t   *ev;

    p = &q->pool;

    if (p->next < p->end) {
        return LLM_OK;                  /* there is no result yet */
    }

    for ( /* void */ ; p->sent < p->n; p->sent += n) {
        n = llm_min(p->n - p->sent, (uint32_t) LLM_POOL_PART);

        ev = llm_event_open(to, LLM_EV_VECTOR, q->index, n * sizeof(float));
        if (ev == NULL) {
            return LLM_FULL;
        }

        ev->u.vector.first = p->sent;
        ev->u.vector.total = p->n;
        ev->u.vector.width = p->count ? p->n : p->n / p->end;
        ev->u.vector.values.off = sizeof(*ev);
        ev->u.vector.values.len = n;
        memcpy(ev + 1, p->vector + p->sent, n * sizeof(float));

        llm_event_close(to, ev);
    }

    free(p->vector);
    p->vector = NULL;

    return LLM_OK;
}
