/*
 * The answer of one request: what all endpoints do with the engine's events.
 * In a stream the endpoint's event writer makes frames of them; otherwise they
 * are kept for its body writer (body.c).
 *
 * An llm_api_t is one block of memory; events that are kept for a body are in
 * an arena that it owns.
 */

#include "engine/api/endpoint.h"

#include <stdio.h>

/* most bytes of an answer, if the configuration sets none */
#define LLM_API_MAX_ANSWER  (16 << 20)


/* copies data to *p and moves *p past the copy */

static llm_str_t
llm_api_put(char **p, const char *data, size_t len)
{
    llm_str_t  s = { len, *p };

    if (len) {
        memcpy(*p, data, len);
        *p += len;
    }

    return s;
}


llm_api_t *
llm_api_create(const llm_api_reader_t *rd)
{
    char                  *p;
    llm_api_t             *a;
    const llm_request_t   *r;
    const llm_api_conf_t  *conf;

    r = &rd->r;
    conf = rd->conf;

    if (rd->head.failed || rd->user.failed || rd->metadata.failed
        || rd->own.failed || rd->schemas.failed)
    {
        return NULL;
    }

    a = calloc(1, sizeof(llm_api_t)
                  + rd->n_choices * sizeof(llm_api_choice_t)
                  + rd->own.len + rd->schemas.len + conf->id.len
                  + rd->user.len + rd->metadata.len + rd->head.len);
    if (a == NULL) {
        return NULL;
    }

    a->endpoint = rd->endpoint;
    a->model = r->model;
    a->n = llm_max(r->n, 1u);
    a->n_choices = rd->n_choices;
    a->n_best = rd->n_best;
    a->options = rd->options;
    a->n_logprobs = rd->hide_logprobs ? -1 : r->sampling.n_logprobs;
    a->stream = (r->flags & LLM_REQ_STREAM) != 0;
    a->show_usage = rd->usage;
    a->token_ids = (r->flags & LLM_REQ_TOKEN_IDS) != 0;
    a->shown = (r->flags & LLM_REQ_SHOW) != 0;
    a->as_ids = rd->as_ids != 0;
    a->choices = (llm_api_choice_t *) (a + 1);

    a->max_answer = conf->max_answer ? conf->max_answer : LLM_API_MAX_ANSWER;

    /* the arena's blocks may be larger than the events in them */

    llm_arena_init(&a->kept, a->max_answer * LLM_API_VECTORS * 2 + (4 << 20));

    p = (char *) (a->choices + a->n_choices);

    /* own comes first, because it must be aligned */

    a->own = p;
    (void) llm_api_put(&p, rd->own.data, rd->own.len);

    a->schemas = llm_api_put(&p, rd->schemas.data, rd->schemas.len);
    a->id = llm_api_put(&p, conf->id.data, conf->id.len);
    a->user = llm_api_put(&p, rd->user.data, rd->user.len);
    a->metadata = llm_api_put(&p, rd->metadata.data, rd->metadata.len);
    a->head = llm_api_put(&p, rd->head.data, rd->head.len);

    return a;
}


llm_str_t
llm_api_user(const llm_api_t *a)
{
    return a->user;
}


llm_str_t
llm_api_metadata(const llm_api_t *a)
{
    return a->metadata;
}


void
llm_api_free(llm_api_t *a)
{
    if (a == NULL) {
        return;
    }

    llm_arena_free(&a->kept);
    free(a);
}


int
llm_api_is_stream(const llm_api_t *a)
{
    return a->stream;
}


int
llm_api_is_shown(const llm_api_t *a, const llm_event_t *ev)
{
    return a->shown && ev->u.text.echo && !llm_api_is_prompt(ev);
}


uint32_t
llm_api_model(const llm_api_t *a)
{
    return a->model;
}


void
llm_api_usage(const llm_api_t *a, llm_api_usage_t *u)
{
    *u = a->usage;
}


void
llm_api_ahead(const llm_api_t *a, int deep)
{
    size_t  i;

    if (a == NULL) {
        return;
    }

    if (!deep) {
        __builtin_prefetch(a);
        __builtin_prefetch(&a->head);
        __builtin_prefetch(&a->usage);
        __builtin_prefetch(&a->choices);
        return;
    }

    __builtin_prefetch(a->choices);

    for (i = 0; i < a->head.len; i += 64) {
        __builtin_prefetch(a->head.data + i);
    }
}


static void
llm_api_done(llm_api_t *a, const llm_event_t *ev)
{
    a->usage.prompt_tokens = ev->u.done.prompt_tokens;
    a->usage.cached_tokens = ev->u.done.cached_tokens;
    a->usage.completion_tokens = ev->u.done.completion_tokens;
    a->usage.queue_us = ev->u.done.queue_us;
    a->usage.ttft_us = ev->u.done.ttft_us;
    a->usage.total_us = ev->u.done.total_us;
    a->usage.reasoning_tokens = ev->u.done.reasoning_tokens;
    a->usage.accepted_tokens = ev->u.done.accepted_tokens;
    a->usage.rejected_tokens = ev->u.done.rejected_tokens;
}


static void
llm_api_finish(llm_api_t *a, const llm_event_t *ev)
{
    llm_api_choice_t  *c;

    c = &a->choices[ev->index];
    c->finish = ev->u.finish.reason;
    c->hit = ev->u.finish.stop.len != 0;
    a->usage.completion_tokens += ev->u.finish.completion_tokens - c->n_tokens;
    c->n_tokens = ev->u.finish.completion_tokens;
    a->usage.reasoning_tokens += ev->u.finish.reasoning_tokens
                                 - c->n_reasoning;
    c->n_reasoning = ev->u.finish.reasoning_tokens;

    if (ev->index == 0) {
        a->usage.finish_reason = llm_api_finish_name(ev->u.finish.reason);
    }
}


static int
llm_api_event_error(const llm_api_t *a, const llm_event_t *ev, llm_err_t *err)
{
    char  code[sizeof(err->code)], param[sizeof(err->param)];

    snprintf(code, sizeof(code), "%.*s", (int) ev->u.error.code.len,
             (const char *) llm_ref_data(ev, ev->u.error.code));
    snprintf(param, sizeof(param), "%.*s", (int) ev->u.error.param.len,
             (const char *) llm_ref_data(ev, ev->u.error.param));

    (void) llm_fail_with(err, (int) ev->u.error.status, code, param, "%.*s",
                         (int) ev->u.error.msg.len,
                         (const char *) llm_ref_data(ev, ev->u.error.msg));
    err->n_prompt = ev->u.error.n_prompt;
    err->n_ctx = ev->u.error.n_ctx;
    llm_api_own_names(a->endpoint, err);
    llm_api_own_schema(a->schemas, err);

    return LLM_ERROR;
}


/* the request has failed: an answer that has not begun becomes an error, a
   stream gets an error frame */

static int
llm_api_fail(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out,
    llm_err_t *err)
{
    llm_err_t  what;

    a->usage.completion_tokens = llm_max(a->usage.completion_tokens,
                                         ev->u.error.completion_tokens);

    if (!a->stream || !a->started) {
        return llm_api_event_error(a, ev, err);
    }

    (void) llm_api_event_error(a, ev, &what);
    (void) llm_api_error_frame(a, &what, out);

    return LLM_OK;
}


/* a TEXT event of a metered request may have no text yet */

static int
llm_api_only_counts(const llm_event_t *ev)
{
    return ev->u.text.text.len == 0 && ev->u.text.logprobs.len == 0
           && ev->u.text.ids.len == 0 && !ev->u.text.echo;
}


int
llm_api_event(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out,
    llm_err_t *err)
{
    switch (ev->type) {

    case LLM_EV_START:
        a->started = 1;
        a->start_us = ev->u.start.start_us;
        a->usage.prompt_tokens = ev->u.start.prompt_tokens;
        a->usage.cached_tokens = ev->u.start.cached_tokens;
        a->usage.audio_tokens = ev->u.start.audio_tokens;
        a->usage.queue_us = ev->u.start.queue_us;
        a->ctx = ev->u.start.ctx;
        break;

    case LLM_EV_TEXT:
        if (a->first_us == 0 && !llm_api_is_prompt(ev)) {
            a->first_us = llm_now_us();
        }

        a->choices[ev->index].n_tokens += ev->u.text.n_tokens;
        a->choices[ev->index].n_reasoning += ev->u.text.n_reasoning;
        a->usage.completion_tokens += ev->u.text.n_tokens;
        a->usage.reasoning_tokens += ev->u.text.n_reasoning;

        if (llm_api_only_counts(ev)) {
            return LLM_OK;
        }

        if (llm_api_is_shown(a, ev)) {
            return llm_api_gather_shown(a, ev, err);
        }

        /* the ids of a prompt are reported as soon as they come, in a stream,
           too */

        if (llm_api_is_prompt(ev) && a->endpoint->keep == NULL) {
            if (llm_api_gather(a, ev, err) != LLM_OK) {
                return LLM_ERROR;
            }

            if (ev->u.text.call) {
                return LLM_OK;
            }
        }

        if (!a->stream && a->endpoint->keep == NULL) {
            return llm_api_is_prompt(ev) ? LLM_OK
                                         : llm_api_gather(a, ev, err);
        }

        break;

    case LLM_EV_PROGRESS:
        break;

    case LLM_EV_VECTOR:
        return llm_api_gather_vector(a, ev, err);

    case LLM_EV_FINISH:
        llm_api_finish(a, ev);
        break;

    case LLM_EV_DONE:
        llm_api_done(a, ev);

        if (a->n_best) {
            llm_api_keep_best(a);
        }

        break;

    default:
        if (llm_api_fail(a, ev, out, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    if (a->endpoint->keep && ev->type != LLM_EV_ERROR
        && a->endpoint->keep(a, ev, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (a->stream && ev->type != LLM_EV_ERROR) {
        a->endpoint->event(a, ev, out);
    }

    return out->failed ? llm_fail(err, "no memory for the answer") : LLM_OK;
}


int
llm_api_body_next(llm_api_t *a, size_t max, llm_buf_t *out)
{
    return a->endpoint->body(a, max, out);
}
