/*
 * From a body to a flat request: the fields that both endpoints share.
 * fields.c reads them; messages are checked by messages.c and written by
 * chat_object.c, prompts and other lists are written by lists.c.
 */

#include "engine/api/api_internal.h"

/* of a completion that names none, as OpenAI's */
#define LLM_API_COMPLETION_TOKENS  16


static void
llm_api_defaults(llm_api_body_t *b)
{
    llm_sampling_t  s;

    llm_sampling_default(&s);
    memset(b, 0, sizeof(llm_api_body_t));

    b->temperature = s.temperature;
    b->top_p = s.top_p;
    b->min_p = s.min_p;
    b->typical_p = s.typical_p;
    b->presence_penalty = s.presence_penalty;
    b->frequency_penalty = s.frequency_penalty;
    b->repetition_penalty = s.repetition_penalty;
    b->top_k = s.top_k;

    b->n = 1;
    b->max_tokens = -1;
    b->max_completion_tokens = -1;
    b->top_logprobs = -1;
    b->skip_special_tokens = 1;
    b->cache_prompt = 1;
    b->enable_thinking = -1;
    b->add_generation_prompt = -1;
    b->continue_final_message = -1;
}


/* what is well formed but cannot be served; never ignored in silence */

static int
llm_api_check_served(const llm_api_body_t *b, llm_err_t *err)
{
    const llm_flat_t    *v;
    const llm_api_at_t  *at;

    if (b->response_format) {
        at = llm_api_top("response_format");

        v = llm_api_need(err, at, b->response_format, "type",
                         LLM_FLAT_STRING);
        if (v == NULL) {
            return LLM_ERROR;
        }

        if (!llm_api_str_is(v, "text")) {
            return llm_api_unsupported(err, at,
                                       "only the type 'text' can be served");
        }
    }

    if (b->modalities) {
        for (v = llm_flat_first(b->modalities); v;
             v = llm_flat_next(b->modalities, v))
        {
            if (!llm_api_str_is(v, "text")) {
                return llm_api_unsupported(err, llm_api_top("modalities"),
                                           "only 'text' can be served");
            }
        }
    }

    if (b->suffix.len) {
        return llm_api_unsupported(err, llm_api_top("suffix"),
                                   "text cannot be inserted, only continued");
    }

    if (b->best_of && b->best_of != b->n) {
        return llm_api_unsupported(err, llm_api_top("best_of"),
                                   "it can only be equal to n");
    }

    return LLM_OK;
}


static int
llm_api_stream_options(const llm_api_body_t *b, int *include_usage,
    llm_err_t *err)
{
    const llm_flat_t    *v;
    const llm_api_at_t  *at;

    *include_usage = 0;

    if (b->stream_options == NULL) {
        return LLM_OK;
    }

    at = llm_api_top("stream_options");

    if (!b->stream) {
        return llm_api_bad_value(err, at,
                                 "The 'stream_options' parameter is only "
                                 "allowed when 'stream' is enabled.");
    }

    v = llm_api_member(b->stream_options, "include_usage");

    if (v == NULL) {
        return LLM_OK;
    }

    if (llm_api_check_type(err, llm_api_key(at, "include_usage"), v,
                           LLM_FLAT_BOOL)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    *include_usage = (int) llm_flat_int(v);

    return LLM_OK;
}


static int
llm_api_logprobs(const llm_api_body_t *b, llm_api_endpoint_t ep, int32_t *n,
    llm_err_t *err)
{
    int                  on;
    const llm_api_at_t  *at;

    *n = -1;
    at = llm_api_top("logprobs");

    if (ep == LLM_API_COMPLETIONS) {
        if (b->logprobs == NULL) {
            return LLM_OK;
        }

        if (llm_api_check_int(err, at, b->logprobs, 0, 5) != LLM_OK) {
            return LLM_ERROR;
        }

        *n = (int32_t) llm_flat_int(b->logprobs);

        return LLM_OK;
    }

    if (b->logprobs
        && llm_api_check_type(err, at, b->logprobs, LLM_FLAT_BOOL) != LLM_OK)
    {
        return LLM_ERROR;
    }

    on = b->logprobs && llm_flat_int(b->logprobs);

    /* none at all is what some clients send without logprobs */

    if (!on && b->top_logprobs > 0) {
        return llm_api_bad_value(err, llm_api_top("top_logprobs"),
                                 "The 'top_logprobs' parameter is only "
                                 "allowed when 'logprobs' is enabled.");
    }

    if (on) {
        *n = (int32_t) llm_max(b->top_logprobs, 0);
    }

    return LLM_OK;
}


static int
llm_api_sampling(const llm_api_body_t *b, llm_api_endpoint_t ep,
    llm_sampling_t *s, llm_err_t *err)
{
    llm_sampling_default(s);

    s->temperature = (float) b->temperature;
    s->top_p = (float) b->top_p;
    s->min_p = (float) b->min_p;
    s->typical_p = (float) b->typical_p;
    s->presence_penalty = (float) b->presence_penalty;
    s->frequency_penalty = (float) b->frequency_penalty;
    s->repetition_penalty = (float) b->repetition_penalty;
    s->top_k = (int32_t) llm_max(b->top_k, 0);

    if (b->seed) {
        if (llm_api_check_int(err, llm_api_top("seed"), b->seed, INT64_MIN,
                              INT64_MAX)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        s->has_seed = 1;
        s->seed = (uint64_t) llm_flat_int(b->seed);
    }

    return llm_api_logprobs(b, ep, &s->n_logprobs, err);
}


/* the request's word, the model's, or the endpoint's; never above the cap */

static int
llm_api_limits(const llm_api_body_t *b, llm_api_endpoint_t ep,
    const llm_api_conf_t *conf, llm_request_t *r, llm_err_t *err)
{
    int64_t      max;
    const char  *param;

    param = "max_tokens";
    max = b->max_tokens;

    if (b->max_completion_tokens != -1) {
        param = "max_completion_tokens";
        max = b->max_completion_tokens;
    }

    if (ep == LLM_API_CHAT && max == 0) {
        return llm_fail_with(err, 400, "integer_below_min_value", param,
                             "Invalid '%s': integer below minimum value. "
                             "Expected a value >= 1, but got 0 instead.",
                             param);
    }

    if (max != -1 && b->min_tokens > max) {
        return llm_api_bad_value(err, llm_api_top("min_tokens"),
                                 "Invalid 'min_tokens': %lld is more than "
                                 "'%s', which is %lld.",
                                 (long long) b->min_tokens, param,
                                 (long long) max);
    }

    if (max == -1) {
        r->flags |= LLM_REQ_MAX_SOFT;
        max = conf->models[r->model].max_tokens;

        if (max == -1 && ep == LLM_API_COMPLETIONS) {
            max = LLM_API_COMPLETION_TOKENS;
        }
    }

    if (conf->cap != -1 && (max == -1 || max > conf->cap)) {
        max = conf->cap;
    }

    r->max_tokens = (int32_t) max;
    r->min_tokens = (int32_t) (max == -1 ? b->min_tokens
                                         : llm_min(b->min_tokens, max));

    return LLM_OK;
}


static int
llm_api_priority(const llm_api_body_t *b, llm_request_t *r, llm_err_t *err)
{
    const llm_flat_t  *v;

    r->priority = 0;

    if (b->priority) {
        if (llm_api_check_int(err, llm_api_top("priority"), b->priority,
                              -100, 100)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        r->priority = (int32_t) llm_flat_int(b->priority);
        r->flags |= LLM_REQ_PRIORITY;

        return LLM_OK;
    }

    /* metadata is the client's own; only these words mean something */

    v = llm_flat_get(b->metadata, "priority");

    if (llm_api_str_is(v, "low")) {
        r->priority = -10;

    } else if (llm_api_str_is(v, "high")) {
        r->priority = 10;

    } else if (!llm_api_str_is(v, "normal")) {
        return LLM_OK;
    }

    r->flags |= LLM_REQ_PRIORITY;

    return LLM_OK;
}


/* FNV-1a; never 0, which stands for no salt */

static uint64_t
llm_api_salt(llm_str_t s)
{
    size_t    i;
    uint64_t  h;

    if (s.len == 0) {
        return 0;
    }

    h = 0xcbf29ce484222325ull;

    for (i = 0; i < s.len; i++) {
        h = (h ^ (unsigned char) s.data[i]) * 0x100000001b3ull;
    }

    return h ? h : 1;
}


static uint32_t
llm_api_flags(const llm_api_body_t *b)
{
    uint32_t  flags;

    flags = 0;
    flags |= b->stream ? LLM_REQ_STREAM : 0;
    flags |= b->echo ? LLM_REQ_ECHO : 0;
    flags |= b->ignore_eos ? LLM_REQ_IGNORE_EOS : 0;
    flags |= b->return_token_ids ? LLM_REQ_TOKEN_IDS : 0;
    flags |= b->cache_prompt ? 0 : LLM_REQ_NO_CACHE;
    flags |= b->skip_special_tokens ? 0 : LLM_REQ_SPECIAL;

    return flags;
}


/* all of the message behind llm_request_t, and what it says itself */

static int
llm_api_write_request(const llm_api_body_t *b, llm_api_endpoint_t ep,
    const llm_api_conf_t *conf, llm_request_t *r, llm_buf_t *msg,
    llm_err_t *err)
{
    size_t  start;

    r->kind = (ep == LLM_API_CHAT) ? LLM_KIND_CHAT : LLM_KIND_COMPLETION;
    r->flags = llm_api_flags(b);
    r->n = (uint32_t) b->n;
    r->weight = 1000;
    r->salt = llm_api_salt(b->cache_salt);
    r->arrival_us = llm_now_us();

    if (llm_api_check_served(b, err) != LLM_OK
        || llm_api_sampling(b, ep, &r->sampling, err) != LLM_OK
        || llm_api_limits(b, ep, conf, r, err) != LLM_OK
        || llm_api_priority(b, r, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    (void) llm_buf_add(msg, r, sizeof(llm_request_t));
    (void) llm_buf_pad(msg);
    start = msg->len;

    if (ep == LLM_API_CHAT) {
        if (llm_api_check_messages(b->messages, err) != LLM_OK
            || llm_api_check_tools(b, err) != LLM_OK
            || llm_api_write_chat(b, msg, err) != LLM_OK)
        {
            return LLM_ERROR;
        }

        r->chat.off = (uint32_t) start;
        r->chat.len = (uint32_t) (msg->len - start);

    } else if (llm_api_write_prompts(b, msg, &r->prompts, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_api_write_stops(b, msg, &r->stops, err) != LLM_OK
        || llm_api_write_stop_ids(b, msg, &r->stop_ids, err) != LLM_OK
        || llm_api_write_bias(b, msg, &r->logit_bias, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (msg->failed || msg->len > UINT32_MAX) {
        return llm_fail_with(err, 413, NULL, NULL,
                             "The request is too large for this server.");
    }

    r->head.size = (uint32_t) msg->len;
    r->head.type = LLM_MSG_REQUEST;

    memcpy(msg->data, r, sizeof(llm_request_t));

    return LLM_OK;
}


llm_api_t *
llm_api_parse(llm_api_endpoint_t ep, const llm_api_conf_t *conf,
    const char *body, size_t len, llm_buf_t *msg, llm_err_t *err)
{
    int                include_usage;
    int32_t            model;
    uint32_t           n;
    llm_api_t         *a;
    llm_buf_t          flat;
    llm_request_t      r;
    llm_api_body_t     b;
    const llm_flat_t  *root;

    a = NULL;
    msg->len = 0;

    llm_buf_init(&flat, 0);

    if (llm_json_to_flat(body, len, &flat, err) != LLM_OK) {
        goto done;
    }

    root = (const llm_flat_t *) flat.data;

    if (root->type != LLM_FLAT_OBJECT) {
        (void) llm_fail_with(err, 400, NULL, NULL,
                             "We could not parse the JSON body of your "
                             "request: expected an object.");
        goto done;
    }

    llm_api_defaults(&b);

    if (llm_api_read_fields(root, ep, &b, err) != LLM_OK
        || llm_api_stream_options(&b, &include_usage, err) != LLM_OK)
    {
        goto done;
    }

    model = llm_api_resolve(conf, b.model, err);
    if (model < 0) {
        goto done;
    }

    memset(&r, 0, sizeof(llm_request_t));
    r.model = (uint32_t) model;

    if (llm_api_write_request(&b, ep, conf, &r, msg, err) != LLM_OK) {
        goto done;
    }

    n = r.n * (ep == LLM_API_CHAT ? 1 : r.prompts.len);

    a = llm_api_create(conf, &r, n, include_usage);
    if (a == NULL) {
        (void) llm_fail(err, "no memory for the request");
    }

done:

    llm_buf_free(&flat);

    return a;
}
