/*
 * Decides whether a prepared request may wait in the queue.  Its prompt is
 * tokenised by now, so what must be computed for it, and before it, is known.
 * A request with nothing before it is never refused, however long its prompt
 * is: a retry would not be served sooner.
 */

#include "engine/serve/requests.h"

/* microseconds between two forecasts that are written to the zone */
#define LLM_JUDGE_SHOW_US   10000

/* longest Retry-After, in seconds */
#define LLM_JUDGE_RETRY_S   600


static uint32_t
llm_judge_seconds(uint64_t us)
{
    return (uint32_t) llm_max(llm_min((us + 999999) / 1000000,
                                      (uint64_t) LLM_JUDGE_RETRY_S),
                              (uint64_t) 1);
}


/* prompt tokens to be computed, over all models */

static uint64_t
llm_judge_todo(const llm_engine_t *e)
{
    uint64_t               n;
    const llm_instance_t  *m;

    n = 0;

    for (m = e->instances; m; m = m->next) {
        n += m->sched ? llm_sched_todo(m->sched) : 0;
    }

    return n;
}


static int
llm_judge_tokens(llm_engine_t *e, const llm_req_t *r,
    const llm_forecast_t *f, uint64_t most, uint32_t *retry_after,
    llm_err_t *err)
{
    uint64_t  todo, us;

    todo = llm_judge_todo(e);

    if (todo == 0 || todo + f->tokens <= most) {
        return LLM_OK;
    }

    us = llm_sched_compute_us(r->instance->sched,
                              llm_min(todo + f->tokens - most, todo));
    *retry_after = llm_judge_seconds(us);

    return llm_fail_with(err, 429, "queue_full", NULL,
                         "too many requests: %llu prompt tokens wait to be "
                         "computed, and the %u of this request would make it "
                         "more than %llu (llm_queue tokens=)",
                         (unsigned long long) todo, f->tokens,
                         (unsigned long long) most);
}


/* the time to the first token counts from when the request came to the engine,
   or from when its model was ready, if that was later */

static int
llm_judge_ttft(const llm_instance_t *m, llm_req_t *r, const llm_forecast_t *f,
    uint64_t most, uint32_t *retry_after, llm_err_t *err)
{
    uint64_t  now, since;

    now = llm_now_us();
    since = llm_max(r->entered_us, m->ready_us);

    r->run.judged_us = now;
    r->run.wait_us = f->wait_us;
    r->run.predicted_us = f->known ? (uint64_t) f->us + 1
                                     + now - llm_min(now, since) : 0;

    if (most == 0 || !f->waits || r->run.predicted_us <= most) {
        return LLM_OK;
    }

    *retry_after = llm_judge_seconds(r->run.predicted_us - most);

    return llm_fail_with(err, 429, "overloaded", NULL,
                         "too many requests: the first token would come "
                         "after %.1f seconds, and no more than %.1f are "
                         "allowed (llm_queue ttft=)",
                         (double) r->run.predicted_us * 1e-6,
                         (double) most * 1e-6);
}


int
llm_engine_may_wait(llm_engine_t *e, llm_req_t *r, uint32_t *retry_after,
    llm_err_t *err)
{
    uint64_t                  tokens, ttft;
    llm_instance_t           *m;
    llm_forecast_t            f;
    const llm_zone_bounds_t  *b;

    b = &e->zone->bounds;

    if (!llm_zone_forecasts(e->zone) || r->own || r->heard
        || (r->msg->flags & LLM_REQ_PROBE))
    {
        return LLM_OK;
    }

    m = r->instance;
    tokens = b->tokens;
    ttft = b->ttft_us;

    if (r->msg->priority < 0) {
        tokens = (tokens + 1) / 2;
        ttft = (ttft + 1) / 2;
    }

    llm_sched_forecast(m->sched, r, &f);

    if (tokens
        && llm_judge_tokens(e, r, &f, tokens, retry_after, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_judge_ttft(m, r, &f, ttft, retry_after, err);
}


/* writes what a request that comes now may expect into the zone, for
   $llm_predicted_ttft */

void
llm_engine_show_forecast(llm_instance_t *m, uint64_t now)
{
    llm_zone_t      *z;
    llm_forecast_t   f;

    z = m->engine->zone;

    if (!llm_zone_forecasts(z) || m->role != LLM_INSTANCE_MODEL
        || (m->n_reqs && now < m->shown_us + LLM_JUDGE_SHOW_US))
    {
        return;
    }

    m->shown_us = now;
    f.known = 0;

    if (m->sched && m->state == LLM_MODEL_READY) {
        llm_sched_forecast(m->sched, NULL, &f);
    }

    llm_zone_set(z->models[m->index].ttft_us,
                 f.known ? (uint64_t) f.us + 1 : 0);
}
