/*
 * One request's answer: the engine's events in, SSE frames out, or kept for
 * a body (body.c).
 *
 * A frame is the head, prepared once for the request, the choice's index,
 * the escaped text, and a constant tail: copies only.
 *
 * An llm_api_t is one block of memory; what a body gathers is beside it in
 * an arena that it owns.
 */

#include "engine/api/api_internal.h"

#include <stdio.h>

/* what an answer may gather where the configuration does not say */
#define LLM_API_MAX_ANSWER  (16 << 20)

#define INDEX_KEY           "{\"index\":"

#define add_lit(out, lit)   (void) llm_buf_add(out, lit, sizeof(lit) - 1)


/*
 * The same model file served again has the same fingerprint, another one
 * has not: FNV-1a over what there is to know of it here.
 */

static uint64_t
llm_api_fingerprint(const llm_api_model_t *m)
{
    size_t    i;
    uint64_t  h;

    h = 0xcbf29ce484222325ull;

    for (i = 0; i < m->name.len; i++) {
        h = (h ^ (unsigned char) m->name.data[i]) * 0x100000001b3ull;
    }

    for (i = 0; i < 64; i += 8) {
        h = (h ^ (((uint64_t) m->created >> i) & 0xff)) * 0x100000001b3ull;
    }

    return h & 0xffffffffffull;
}


static int
llm_api_write_head(const llm_api_conf_t *conf, const llm_request_t *r,
    llm_buf_t *out)
{
    int                     chat, stream;
    const char             *object;
    const llm_api_model_t  *m;

    m = &conf->models[r->model];
    chat = r->kind == LLM_KIND_CHAT;
    stream = (r->flags & LLM_REQ_STREAM) != 0;
    object = !chat ? "text_completion"
             : stream ? "chat.completion.chunk" : "chat.completion";

    if (stream) {
        add_lit(out, "data: ");
    }

    (void) llm_buf_addf(out, "{\"id\":\"%s", chat ? "chatcmpl-" : "cmpl-");
    (void) llm_json_add_text(out, conf->id.data, conf->id.len);
    (void) llm_buf_addf(out, "\",\"object\":\"%s\",\"created\":%lld,"
                        "\"model\":", object, (long long) conf->now);
    (void) llm_json_add_string(out, m->name.data, m->name.len);
    (void) llm_buf_addf(out, ",\"system_fingerprint\":\"fp_%010llx\","
                        "\"choices\":[" INDEX_KEY,
                        (unsigned long long) llm_api_fingerprint(m));

    return out->failed ? LLM_ERROR : LLM_OK;
}


llm_api_t *
llm_api_create(const llm_api_conf_t *conf, const llm_request_t *r,
    uint32_t n_choices, int include_usage)
{
    char              *p;
    size_t             size;
    llm_api_t         *a;
    llm_buf_t          head;

    llm_buf_init(&head, 0);

    if (llm_api_write_head(conf, r, &head) != LLM_OK) {
        llm_buf_free(&head);
        return NULL;
    }

    size = sizeof(llm_api_t) + n_choices * sizeof(llm_api_choice_t)
           + conf->id.len + head.len;

    a = calloc(1, size);
    if (a == NULL) {
        llm_buf_free(&head);
        return NULL;
    }

    a->is_chat = r->kind == LLM_KIND_CHAT;
    a->model = r->model;
    a->n = llm_max(r->n, 1u);
    a->n_choices = n_choices;
    a->n_logprobs = r->sampling.n_logprobs;
    a->stream = (r->flags & LLM_REQ_STREAM) != 0;
    a->include_usage = include_usage != 0;
    a->token_ids = (r->flags & LLM_REQ_TOKEN_IDS) != 0;
    a->choices = (llm_api_choice_t *) (a + 1);

    a->max_answer = conf->max_answer ? conf->max_answer : LLM_API_MAX_ANSWER;

    /* a block of it may be larger than what is gathered in it */

    llm_arena_init(&a->kept, a->max_answer * 2 + (4 << 20));

    p = (char *) (a->choices + n_choices);

    a->id.data = p;
    a->id.len = conf->id.len;
    memcpy(p, conf->id.data, conf->id.len);
    p += conf->id.len;

    a->head.data = p;
    a->head.len = head.len;
    memcpy(p, head.data, head.len);

    llm_buf_free(&head);

    return a;
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


static void
llm_api_open_frame(const llm_api_t *a, uint32_t index, llm_buf_t *out)
{
    (void) llm_buf_add(out, a->head.data, a->head.len);
    llm_api_add_uint(out, index);
}


static void
llm_api_close_frame(const llm_api_t *a, llm_buf_t *out)
{
    if (a->include_usage) {
        add_lit(out, "}],\"usage\":null}\n\n");

    } else {
        add_lit(out, "}]}\n\n");
    }
}


/* the role of every choice, as soon as the request is known to be good */

static void
llm_api_role_frames(const llm_api_t *a, llm_buf_t *out)
{
    uint32_t  i;

    for (i = 0; i < a->n_choices; i++) {
        llm_api_open_frame(a, i, out);
        add_lit(out, ",\"delta\":{\"role\":\"assistant\",\"content\":\"\","
                "\"refusal\":null},\"logprobs\":null,"
                "\"finish_reason\":null");
        llm_api_close_frame(a, out);
    }
}


static void
llm_api_delta(const llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    switch (ev->u.text.part) {

    case LLM_PART_CONTENT:
        add_lit(out, ",\"delta\":{\"content\":\"");
        llm_api_add_event_text(out, ev);
        add_lit(out, "\"}");
        break;

    case LLM_PART_REASONING:
        add_lit(out, ",\"delta\":{\"reasoning_content\":\"");
        llm_api_add_event_text(out, ev);
        add_lit(out, "\"}");
        break;

    case LLM_PART_TOOL_NAME:
        add_lit(out, ",\"delta\":{\"tool_calls\":[" INDEX_KEY);
        llm_api_add_uint(out, ev->u.text.call);
        add_lit(out, ",");
        llm_api_add_call(out, a, ev);
        add_lit(out, "\"}}]}");
        break;

    default:
        add_lit(out, ",\"delta\":{\"tool_calls\":[" INDEX_KEY);
        llm_api_add_uint(out, ev->u.text.call);
        add_lit(out, ",\"function\":{\"arguments\":\"");
        llm_api_add_event_text(out, ev);
        add_lit(out, "\"}}]}");
    }
}


static void
llm_api_text_frame(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    int                ids;
    llm_api_choice_t  *c;

    c = &a->choices[ev->index];
    ids = a->token_ids && ev->u.text.ids.len;

    if (ev->u.text.text.len == 0 && !ids
        && (a->n_logprobs < 0 || ev->u.text.logprobs.len == 0))
    {
        return;
    }

    llm_api_open_frame(a, ev->index, out);

    if (a->is_chat) {
        llm_api_delta(a, ev, out);

    } else {
        add_lit(out, ",\"text\":\"");
        llm_api_add_event_text(out, ev);
        add_lit(out, "\"");
    }

    if (a->n_logprobs < 0) {
        add_lit(out, ",\"logprobs\":null,\"finish_reason\":null");

    } else {
        add_lit(out, ",\"logprobs\":");
        llm_api_add_logprobs(out, a, &c->place, ev);
        add_lit(out, ",\"finish_reason\":null");
        llm_api_count_text(&c->place, ev);
    }

    if (ids) {
        add_lit(out, ",\"token_ids\":[");
        llm_api_add_ids(out, ev);
        add_lit(out, "]");
    }

    llm_api_close_frame(a, out);
}


static void
llm_api_finish_frame(const llm_api_t *a, const llm_event_t *ev,
    llm_buf_t *out)
{
    llm_api_open_frame(a, ev->index, out);

    if (a->is_chat) {
        add_lit(out, ",\"delta\":{},\"logprobs\":null,\"finish_reason\":\"");

    } else {
        add_lit(out, ",\"text\":\"\",\"logprobs\":null,"
                "\"finish_reason\":\"");
    }

    (void) llm_buf_adds(out, llm_api_finish_name(ev->u.finish.reason));
    add_lit(out, "\"");
    llm_api_close_frame(a, out);
}


static void
llm_api_last_frames(const llm_api_t *a, llm_buf_t *out)
{
    if (a->include_usage) {
        (void) llm_buf_add(out, a->head.data,
                           a->head.len - (sizeof(INDEX_KEY) - 1));
        add_lit(out, "],\"usage\":");
        llm_api_add_usage(out, a);
        add_lit(out, "}\n\n");
    }

    add_lit(out, "data: [DONE]\n\n");
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
    a->reasoning_tokens = ev->u.done.reasoning_tokens;
}


static void
llm_api_finish(llm_api_t *a, const llm_event_t *ev)
{
    llm_api_choice_t  *c;

    c = &a->choices[ev->index];
    c->finish = ev->u.finish.reason;
    a->usage.completion_tokens += ev->u.finish.completion_tokens - c->n_tokens;
    c->n_tokens = ev->u.finish.completion_tokens;

    if (ev->index == 0) {
        a->usage.finish_reason = llm_api_finish_name(ev->u.finish.reason);
    }
}


static int
llm_api_event_error(const llm_event_t *ev, llm_err_t *err)
{
    char  code[sizeof(err->code)], param[sizeof(err->param)];

    snprintf(code, sizeof(code), "%.*s", (int) ev->u.error.code.len,
             (const char *) llm_ref_data(ev, ev->u.error.code));
    snprintf(param, sizeof(param), "%.*s", (int) ev->u.error.param.len,
             (const char *) llm_ref_data(ev, ev->u.error.param));

    return llm_fail_with(err, (int) ev->u.error.status, code, param, "%.*s",
                         (int) ev->u.error.msg.len,
                         (const char *) llm_ref_data(ev, ev->u.error.msg));
}


int
llm_api_event(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out,
    llm_err_t *err)
{
    llm_err_t  what;

    switch (ev->type) {

    case LLM_EV_START:
        a->started = 1;
        a->usage.prompt_tokens = ev->u.start.prompt_tokens;
        a->usage.cached_tokens = ev->u.start.cached_tokens;
        a->usage.queue_us = ev->u.start.queue_us;

        if (a->stream && a->is_chat) {
            llm_api_role_frames(a, out);
        }

        break;

    case LLM_EV_TEXT:
        a->choices[ev->index].n_tokens += ev->u.text.n_tokens;
        a->usage.completion_tokens += ev->u.text.n_tokens;

        if (!a->stream) {
            return llm_api_gather(a, ev, err);
        }

        llm_api_text_frame(a, ev, out);
        break;

    case LLM_EV_FINISH:
        llm_api_finish(a, ev);

        if (a->stream) {
            llm_api_finish_frame(a, ev, out);
        }

        break;

    case LLM_EV_DONE:
        llm_api_done(a, ev);

        if (a->stream) {
            llm_api_last_frames(a, out);
        }

        break;

    default:
        a->usage.completion_tokens = llm_max(a->usage.completion_tokens,
                                             ev->u.error.completion_tokens);

        if (!a->stream || !a->started) {
            return llm_api_event_error(ev, err);
        }

        (void) llm_api_event_error(ev, &what);
        (void) llm_api_error_frame(&what, out);
    }

    return out->failed ? llm_fail(err, "no memory for the answer") : LLM_OK;
}
