/*
 * Steps from a body to a flat request that the endpoints' readers share.
 * fields.c reads the fields, lists.c writes lists.
 */

#include "engine/api/media.h"


void
llm_api_defaults(llm_api_body_t *b)
{
    memset(b, 0, sizeof(llm_api_body_t));
    llm_sampling_default(&b->sampling);

    b->n = 1;
    b->max_tokens = LLM_API_UNSET;
    b->skip_special_tokens = 1;
    b->cache_prompt = 1;
}


static int
llm_api_stream_options(llm_api_reader_t *rd, const llm_api_body_t *b,
    llm_err_t *err)
{
    size_t               i;
    const llm_flat_t    *v;
    const llm_api_at_t  *at;

    /* obfuscation hides the length of tokens from observers of the network;
       this server does not pad */

    static const struct {
        const char  *name;
        unsigned     sets;
    } members[] = {
        { "include_usage", LLM_API_USAGE_LAST },
        { "continuous_usage_stats", LLM_API_USAGE_EACH },
        { "include_obfuscation", 0 }
    };

    if (b->stream_options == NULL) {
        return LLM_OK;
    }

    at = llm_api_top("stream_options");

    if (!b->stream) {
        return llm_api_bad_value(err, at,
                                 "The 'stream_options' parameter is only "
                                 "allowed when 'stream' is enabled.");
    }

    for (i = 0; i < llm_nelems(members); i++) {
        v = llm_api_member(b->stream_options, members[i].name);

        if (v == NULL) {
            continue;
        }

        if (llm_api_check_type(err, llm_api_key(at, members[i].name), v,
                               LLM_FLAT_BOOL)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        if (llm_flat_int(v)) {
            rd->usage |= members[i].sets;
        }
    }

    if (!(rd->usage & LLM_API_USAGE_LAST)) {
        rd->usage = 0;
    }

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
    flags |= b->ignore_eos ? LLM_REQ_IGNORE_EOS : 0;
    flags |= b->return_token_ids ? LLM_REQ_TOKEN_IDS : 0;
    flags |= b->cache_prompt ? 0 : LLM_REQ_NO_CACHE;
    flags |= b->skip_special_tokens ? 0 : LLM_REQ_SPECIAL;

    return flags;
}


/* copies what the log may show of the client's own words */

static void
llm_api_read_log(llm_api_reader_t *rd, const llm_api_body_t *b)
{
    char       clean[LLM_API_LOG_USER];
    size_t     len;
    llm_str_t  user;

    user = b->user.len ? b->user : b->safety_identifier;

    if (user.len) {
        len = llm_clean(clean, sizeof(clean), user.data, user.len);
        (void) llm_buf_add(&rd->user, clean, len);
    }

    if (b->metadata && b->metadata->count) {
        llm_json_add_flat(&rd->metadata, b->metadata);

        if (rd->metadata.len > LLM_API_LOG_METADATA) {
            rd->metadata.len = 0;
            (void) llm_buf_adds(&rd->metadata, "{}");
        }
    }
}


int
llm_api_read_body(llm_api_reader_t *rd, llm_api_body_t *b, llm_err_t *err)
{
    int32_t         model;
    llm_request_t  *r;

    if (llm_api_read_fields(rd, b, err) != LLM_OK
        || llm_api_stream_options(rd, b, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    model = llm_api_resolve(rd->conf, b->model, err);
    if (model < 0) {
        return LLM_ERROR;
    }

    r = &rd->r;
    r->model = (uint32_t) model;
    r->naming = rd->conf->models[model].naming;
    r->flags = llm_api_flags(b);
    r->n = (uint32_t) b->n;
    r->salt = llm_api_salt(b->cache_salt);
    rd->as_ids = b->tokens_as_ids;

    llm_api_read_log(rd, b);

    return LLM_OK;
}


int
llm_api_read_plain(llm_api_reader_t *rd, void *to, const llm_str_t *model,
    llm_err_t *err)
{
    int32_t  i;

    if (llm_api_read_fields(rd, to, err) != LLM_OK) {
        return LLM_ERROR;
    }

    i = llm_api_resolve(rd->conf, *model, err);
    if (i < 0) {
        return LLM_ERROR;
    }

    rd->r.model = (uint32_t) i;
    rd->r.naming = rd->conf->models[i].naming;
    rd->r.sampling.n_logprobs = -1;

    return LLM_OK;
}


/* a bit for each sampling parameter that the body has a value for */

static uint32_t
llm_api_said(const llm_flat_t *root)
{
    size_t             i;
    uint32_t           said;
    const llm_flat_t  *v;

    static const struct {
        const char  *name;
        uint32_t     bit;
    } params[] = {
#define LLM_PARAM(name, type, otherwise, least, most)                        \
        { #name, 1u << LLM_PARAM_ID_##name },
#define LLM_ALIAS(name, of, type, least, most)                               \
        { #name, 1u << LLM_PARAM_ID_##of },
#include "engine/base/sampling.def"
    };

    said = 0;

    for (i = 0; i < llm_nelems(params); i++) {
        v = llm_api_member(root, params[i].name);
        said |= v && v->type != LLM_FLAT_NULL ? params[i].bit : 0;
    }

    return said;
}


int
llm_api_read_sampling(llm_api_reader_t *rd, const llm_api_body_t *b,
    llm_err_t *err)
{
    llm_sampling_t  *s;

    s = &rd->r.sampling;

    *s = b->sampling;
    s->said = llm_api_said(rd->root);
    s->top_k = llm_max(s->top_k, 0);

    if (llm_api_read_samplers(s, b->samplers, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (b->mirostat) {
        return llm_api_unsupported(err, llm_api_top("mirostat"),
                                   "0 turns it off");
    }

    if (b->min_keep > 1) {
        return llm_api_unsupported(err, llm_api_top("min_keep"),
                                   "one token is kept");
    }

    if (b->seed == NULL) {
        return LLM_OK;
    }

    if (llm_api_check_int(err, llm_api_top("seed"), b->seed, INT64_MIN,
                          INT64_MAX)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    /* -1 is a random one in the dialects of llama-server and Ollama */

    s->has_seed = llm_flat_int(b->seed) != -1;
    s->seed = s->has_seed ? (uint64_t) llm_flat_int(b->seed) : 0;

    return LLM_OK;
}


/* the request's limit, or the model's, or the endpoint's; never above the
   cap */

int
llm_api_read_limits(llm_api_reader_t *rd, const llm_api_body_t *b,
    const char *param, int64_t max, int64_t usual, llm_err_t *err)
{
    llm_request_t  *r;

    r = &rd->r;

    if (max >= 0 && b->min_tokens > max) {
        return llm_api_bad_value(err, llm_api_top("min_tokens"),
                                 "Invalid 'min_tokens': %lld is more than "
                                 "'%s', which is %lld.",
                                 (long long) b->min_tokens, param,
                                 (long long) max);
    }

    if (max == LLM_API_UNSET) {
        max = rd->conf->models[r->model].max_tokens;

        if (max == -1) {
            max = usual;
        }
    }

    if (rd->conf->cap != -1 && (max == -1 || max > rd->conf->cap)) {
        max = rd->conf->cap;
    }

    r->max_tokens = (int32_t) max;
    r->min_tokens = (int32_t) (max == -1 ? b->min_tokens
                                         : llm_min(b->min_tokens, max));

    return LLM_OK;
}


int
llm_api_read_priority(llm_api_reader_t *rd, const llm_api_body_t *b,
    llm_err_t *err)
{
    llm_request_t     *r;
    const llm_flat_t  *v;

    r = &rd->r;
    r->priority = 0;

    if (b->priority) {
        if (llm_api_check_int(err, llm_api_top("priority"), b->priority,
                              -LLM_MAX_PRIORITY, LLM_MAX_PRIORITY)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        r->priority = (int32_t) llm_flat_int(b->priority);
        r->flags |= LLM_REQ_PRIORITY;

        return LLM_OK;
    }

    /* metadata is the client's own; only these values of "priority" have a
       meaning */

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


/* reads the body, an object, into a message */

static int
llm_api_read(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_buf_t      *msg;
    llm_request_t  *r;

    r = &rd->r;
    msg = rd->msg;

    r->head.type = LLM_MSG_REQUEST;
    r->task = rd->endpoint->task;
    r->n = 1;
    r->weight = 1000;
    r->arrival_us = llm_now_us();

    (void) llm_buf_add(msg, r, sizeof(llm_request_t));
    (void) llm_buf_pad(msg);

    llm_api_media_begin(rd);

    if (rd->endpoint->read(rd, err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_api_media_end(rd);

    if (msg->failed || msg->len > UINT32_MAX) {
        return llm_fail_with(err, 413, NULL, NULL,
                             "The request is too large for this server.");
    }

    r->head.size = (uint32_t) msg->len;
    memcpy(msg->data, r, sizeof(llm_request_t));

    return LLM_OK;
}


/* the endpoint that a body is for, at a path of several dialects */

static const llm_api_endpoint_t *
llm_api_meant(const llm_api_endpoint_t *ep, const llm_flat_t *root)
{
    const llm_api_other_t  *other;

    for (other = ep->others; other && other->member; other++) {
        if (llm_api_member(root, other->member)) {
            return other->endpoint;
        }
    }

    return ep;
}


void
llm_api_reader_init(llm_api_reader_t *rd, const llm_api_endpoint_t *ep,
    const llm_api_conf_t *conf, llm_buf_t *msg)
{
    memset(rd, 0, sizeof(llm_api_reader_t));
    msg->len = 0;
    rd->endpoint = ep;
    rd->conf = conf;
    rd->msg = msg;
    llm_buf_init(&rd->head, 0);
    llm_buf_init(&rd->user, 0);
    llm_buf_init(&rd->metadata, 0);
    llm_buf_init(&rd->own, 0);
    llm_buf_init(&rd->schemas, 0);
    llm_buf_init(&rd->media, 0);
    llm_buf_init(&rd->media_texts, 0);
}


void
llm_api_reader_free(llm_api_reader_t *rd, int refused)
{
    if (refused) {
        llm_api_media_drop(rd);
    }

    llm_buf_free(&rd->head);
    llm_buf_free(&rd->user);
    llm_buf_free(&rd->metadata);
    llm_buf_free(&rd->own);
    llm_buf_free(&rd->schemas);
    llm_buf_free(&rd->media);
    llm_buf_free(&rd->media_texts);
}


llm_api_t *
llm_api_parse(const llm_api_endpoint_t *ep, const llm_api_conf_t *conf,
    const char *body, size_t len, llm_buf_t *msg, llm_err_t *err)
{
    return llm_api_parse_for(&ep, conf, body, len, msg, err);
}


llm_api_t *
llm_api_parse_for(const llm_api_endpoint_t **meant,
    const llm_api_conf_t *conf, const char *body, size_t len, llm_buf_t *msg,
    llm_err_t *err)
{
    llm_api_t         *a;
    llm_buf_t          flat;
    llm_api_reader_t   rd;

    const llm_api_endpoint_t  *ep = *meant;

    a = NULL;
    llm_buf_init(&flat, 0);
    llm_api_reader_init(&rd, ep, conf, msg);

    rd.limits.depth = LLM_FLAT_MAX_DEPTH;
    rd.limits.values = LLM_JSON_MAX_VALUES;
    rd.limits.lenient = 1;

    if (ep->bodiless) {
        llm_flat_close(&flat, llm_flat_open(&flat, LLM_FLAT_OBJECT), 0);

        if (flat.failed) {
            (void) llm_fail(err, "no memory for the request");
            goto done;
        }

    } else if (ep->form) {
        (void) llm_fail_with(err, 415, NULL, NULL, "This endpoint takes a "
                             "form: multipart/form-data.");
        goto done;

    } else if (llm_json_to_flat(body, len, &rd.limits, &flat, err) != LLM_OK)
    {
        goto done;
    }

    rd.root = (const llm_flat_t *) flat.data;

    if (rd.root->type != LLM_FLAT_OBJECT) {
        (void) llm_fail_with(err, 400, NULL, NULL,
                             "We could not parse the JSON body of your "
                             "request: expected an object.");
        goto done;
    }

    rd.endpoint = *meant = ep = llm_api_meant(ep, rd.root);

    if (conf->preset && !ep->bodiless) {
        llm_api_preset_apply(conf->preset, ep, &flat);

        if (flat.failed) {
            (void) llm_fail(err, "no memory for the request");
            goto done;
        }

        rd.root = (const llm_flat_t *) flat.data;
    }

    if (llm_api_read(&rd, err) != LLM_OK) {
        goto done;
    }

    if (conf->guard && rd.r.task < LLM_TASK_TOKENIZE) {
        llm_api_guard_rest(rd.root, conf->guard);

        if (conf->guard->failed) {
            (void) llm_fail(err, "no memory for the request");
            goto done;
        }
    }

    a = llm_api_create(&rd);
    if (a == NULL) {
        (void) llm_fail(err, "no memory for the request");
    }

done:

    llm_buf_free(&flat);
    llm_api_reader_free(&rd, a == NULL);

    return a;
}
