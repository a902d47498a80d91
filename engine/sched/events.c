/*
 * Sends the events of requests: START, PROGRESS, TEXT or VECTOR, FINISH and
 * DONE, in this order, or ERROR, as far as there is room; see sched.h.
 */

#include "engine/sched/sched_internal.h"


/* how much of the prompts is computed: first what the cache had, and then what
   is more than was said before; all, once there is a token */

static int
llm_send_progress(llm_req_t *r)
{
    uint32_t      processed, total;
    llm_event_t  *ev;

    total = r->prep.prompt_tokens;
    processed = llm_min(r->out.cached_tokens, total);

    if (r->out.progress_sent) {
        processed = r->out.first_us ? total
                    : llm_min(processed + r->out.computed, total);

        if (processed <= r->out.processed) {
            return LLM_OK;
        }
    }

    ev = llm_event_open(&r->out.to, LLM_EV_PROGRESS, 0, 0);
    if (ev == NULL) {
        return LLM_FULL;
    }

    ev->u.progress.processed = processed;
    llm_event_close(&r->out.to, ev);
    r->out.progress_sent = 1;
    r->out.processed = processed;

    return LLM_OK;
}


static int
llm_send_finish(llm_req_t *r, llm_seq_t *q)
{
    llm_event_t       *ev;
    const llm_stop_t  *stop;

    stop = q->emit.hit >= 0 ? &r->prep.stops.stop[q->emit.hit] : NULL;

    ev = llm_event_open(&r->out.to, LLM_EV_FINISH, q->index,
                        stop ? stop->len : 0);
    if (ev == NULL) {
        return LLM_FULL;
    }

    ev->u.finish.reason = q->reason;
    ev->u.finish.completion_tokens = q->n_gen;
    ev->u.finish.reasoning_tokens = q->emit.n_reasoning;
    ev->u.finish.stop_id = q->stop_id;

    if (stop) {
        ev->u.finish.stop.off = sizeof(*ev);
        ev->u.finish.stop.len = stop->len;
        memcpy(ev + 1, stop->data, stop->len);
    }

    llm_event_close(&r->out.to, ev);
    q->finish_sent = 1;

    return LLM_OK;
}


static int
llm_send_done(llm_sched_t *s, llm_req_t *r)
{
    uint64_t  now;

    now = llm_now_us();

    if (llm_req_send_done(r, now) != LLM_OK) {
        return LLM_FULL;
    }

    llm_zone_add(s->figures->answered, 1);
    llm_zone_observe(s->counters, LLM_HIST_E2E,
                     now - llm_min(r->msg->arrival_us, r->run.start_us));

    if (r->out.first_us) {
        llm_zone_observe(s->counters, LLM_HIST_DECODE,
                         now - r->out.first_us);
    }

    return LLM_OK;
}


static int
llm_send_start(llm_sched_t *s, llm_req_t *r)
{
    int  first;

    first = !r->out.start_sent;

    if (llm_req_send_start(r, s->conf.runner.ctx) != LLM_OK) {
        return LLM_FULL;
    }

    if (first) {
        llm_zone_add(s->counters->audio_ms, (uint64_t) r->prep.audio_s * 1000);
    }

    return LLM_OK;
}


/* sends the events of a request.  LLM_OK: all were sent, *over: with the last
   one; LLM_FULL: there is no room, or the client reads slowly */

static int
llm_send_events_of(llm_sched_t *s, llm_req_t *r, int *over)
{
    int         ended;
    uint32_t    i;
    llm_seq_t  *q;

    *over = 0;

    if (r->failure) {
        llm_sched_clear(s, r);

        if (llm_event_failure(&r->out.to, &r->failure->err,
                              r->failure->retry_after,
                              r->out.completion_tokens, &r->prepared)
            != LLM_OK)
        {
            return LLM_FULL;
        }

        if (!r->own) {
            llm_zone_count_error(s->counters, r->failure->err.status);
        }

        *over = 1;

        return LLM_OK;
    }

    if (llm_send_start(s, r) != LLM_OK) {
        return LLM_FULL;
    }

    /* a client that reads slowly gets the rest when it has caught up */

    if (r->out.paused) {
        return LLM_FULL;
    }

    if ((r->msg->flags & LLM_REQ_PROGRESS)
        && ((!r->out.progress_sent && llm_send_progress(r) != LLM_OK)
            || llm_send_progress(r) != LLM_OK))
    {
        return LLM_FULL;
    }

    for (i = 0; i < r->run.n_seqs; i++) {
        q = &r->run.seqs[i];

        if (q->finish_sent) {
            continue;
        }

        ended = q->state == LLM_SEQ_ENDED;

        if (llm_emit_write(&q->emit, &r->out.to, q->index, ended) != LLM_OK
            || llm_pooled_write(q, &r->out.to) != LLM_OK)
        {
            return LLM_FULL;
        }

        if (ended && llm_send_finish(r, q) != LLM_OK) {
            return LLM_FULL;
        }
    }

    if (r->run.n_ended == r->run.n_seqs) {
        *over = 1;
        return llm_send_done(s, r);
    }

    return LLM_OK;
}


int
llm_sched_send_events(llm_sched_t *s)
{
    int         over, left;
    llm_req_t  *r, *next;

    left = 0;
    r = s->out;
    s->out = NULL;

    for ( /* void */ ; r; r = next) {
        next = r->out.next;
        r->out.in_list = 0;

        if (llm_send_events_of(s, r, &over) != LLM_OK) {
            llm_sched_queue_events(s, r);
            left |= !r->out.paused;

        } else if (over) {
            if (r->run.tenant) {
                llm_queue_leave(&s->queue, r);
            }

            s->conf.ended(s->conf.data, r);
        }
    }

    return left;
}


/* are all prompts in the step that was composed?  Of one that waits, for its
   turn or for another request that computes its beginning, it is not known what
   the cache will have */

static int
llm_is_begun(const llm_req_t *r)
{
    uint32_t  i;

    for (i = 0; i < r->run.n_seqs; i += r->msg->n) {
        if (r->run.seqs[i].in_batch == 0) {
            return 0;
        }
    }

    return 1;
}


int
llm_req_wants_start(const llm_req_t *r)
{
    return (r->msg->flags & LLM_REQ_PROGRESS) && !r->out.progress_sent
           && r->failure == NULL;
}


void
llm_sched_send_starts(llm_sched_t *s)
{
    llm_req_t  *r;

    if (!s->starts) {
        return;
    }

    s->starts = 0;

    for (r = s->out; r; r = r->out.next) {
        if (!llm_req_wants_start(r)) {
            continue;
        }

        if (llm_is_begun(r) && llm_send_start(s, r) == LLM_OK) {
            (void) llm_send_progress(r);
            llm_port_show(r->out.to.port);
        }

        s->starts |= llm_req_wants_start(r);
    }
}
