/*
 * $llm_spans: the phases of a request, as a line of OTLP in JSON, for a log
 * that an OpenTelemetry collector reads.  The attributes have the names of
 * OpenTelemetry's conventions for generative AI and HTTP.
 *
 *   request    from its first byte to the log's line
 *     queue      from when its headers were read until it runs, which is
 *                $llm_queue_time
 *       tokenize   template, tokenizer, grammar
 *     prefill    until the first token
 *     decode     until the last
 *
 * A phase that had begun when the request failed or was cut off ends with the
 * request; later phases are left out.  Times come from the engine if it has
 * sent them, else from the worker.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/observe/ngx_http_llm_outcome.h"
#include "http/observe/ngx_http_llm_trace.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"


/* OTLP's numbers */
#define NGX_HTTP_LLM_SPAN_INTERNAL  1
#define NGX_HTTP_LLM_SPAN_SERVER    2
#define NGX_HTTP_LLM_SPAN_ERROR     2


typedef struct {
    ngx_http_request_t          *request;
    ngx_http_llm_ctx_t          *ctx;           /* NULL: refused before it was
                                                   made */
    ngx_http_llm_trace_t        *trace;
    uint64_t                     wall_ns;       /* wall clock time at which
                                                   llm_now_us() was 0 */
    uint64_t                     now_us;
    uint64_t                     span;          /* id of the request's span */
    ngx_uint_t                   some;          /* 1: an attribute was
                                                   written */
    llm_buf_t                    out;
} ngx_http_llm_spans_t;


static ngx_int_t ngx_http_llm_spans_begin(ngx_http_request_t *r,
    ngx_http_llm_spans_t *s);
static void ngx_http_llm_spans_head(ngx_http_llm_spans_t *s);
static void ngx_http_llm_span_request(ngx_http_llm_spans_t *s);
static void ngx_http_llm_span_http(ngx_http_llm_spans_t *s);
static void ngx_http_llm_span_model(ngx_http_llm_spans_t *s);
static void ngx_http_llm_span_usage(ngx_http_llm_spans_t *s);
static void ngx_http_llm_span_status(ngx_http_llm_spans_t *s);
static void ngx_http_llm_span_parts(ngx_http_llm_spans_t *s);
static void ngx_http_llm_span_part(ngx_http_llm_spans_t *s, ngx_uint_t n,
    ngx_uint_t of, const char *name, uint64_t begin, uint64_t end);
static llm_str_t ngx_http_llm_operation(llm_str_t path);
static uint64_t ngx_http_llm_span_id(ngx_http_llm_spans_t *s, ngx_uint_t n);
static uint64_t ngx_http_llm_wall(ngx_http_llm_spans_t *s, uint64_t us);
static uint64_t ngx_http_llm_since(ngx_http_request_t *r, uint64_t ns);
static void ngx_http_llm_attr(ngx_http_llm_spans_t *s, const char *key,
    const void *data, size_t len);
static void ngx_http_llm_attr_int(ngx_http_llm_spans_t *s, const char *key,
    uint64_t n);


ngx_int_t
ngx_http_llm_spans_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_int_t             rc;
    ngx_http_llm_spans_t  s;

    r = r->main;

    rc = ngx_http_llm_spans_begin(r, &s);

    if (rc != NGX_OK) {
        v->not_found = 1;
        return (rc == NGX_DECLINED) ? NGX_OK : NGX_ERROR;
    }

    ngx_http_llm_spans_head(&s);
    ngx_http_llm_span_request(&s);

    if (s.ctx && s.ctx->submitted) {
        ngx_http_llm_span_parts(&s);
    }

    (void) llm_buf_adds(&s.out, "]}]}]}");

    v->len = s.out.len;
    v->data = s.out.failed ? NULL : ngx_pnalloc(r->pool, v->len);

    if (v->data) {
        ngx_memcpy(v->data, s.out.data, v->len);
    }

    llm_buf_free(&s.out);

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return v->data ? NGX_OK : NGX_ERROR;
}


/* NGX_DECLINED: not a request to llm_api, or its trace is not recorded */

static ngx_int_t
ngx_http_llm_spans_begin(ngx_http_request_t *r, ngx_http_llm_spans_t *s)
{
    struct timespec           now;
    ngx_http_llm_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    ngx_memzero(s, sizeof(ngx_http_llm_spans_t));

    s->request = r;
    s->ctx = ngx_http_llm_find_ctx(r);

    if (s->ctx == NULL && !ngx_http_llm_is_api(llcf)) {
        return NGX_DECLINED;
    }

    s->trace = ngx_http_llm_trace(r);

    if (s->trace == NULL) {
        return NGX_ERROR;
    }

    if (!(s->trace->flags & NGX_HTTP_LLM_TRACE_SAMPLED)) {
        return NGX_DECLINED;
    }

    if (s->ctx && s->ctx->api) {
        llm_api_usage(s->ctx->api, &s->ctx->usage);
    }

    (void) clock_gettime(CLOCK_REALTIME, &now);

    s->now_us = llm_now_us();
    s->wall_ns = (uint64_t) now.tv_sec * 1000000000 + now.tv_nsec
                 - s->now_us * 1000;
    s->span = ngx_http_llm_span_id(s, 0);

    llm_buf_init(&s->out, 0);

    return NGX_OK;
}


static void
ngx_http_llm_spans_head(ngx_http_llm_spans_t *s)
{
    (void) llm_buf_adds(&s->out, "{\"resourceSpans\":[{\"resource\":"
                                 "{\"attributes\":[");

    ngx_http_llm_attr(s, "service.name", "nginx-llm", 9);
    ngx_http_llm_attr(s, "service.version", LLM_VERSION,
                      sizeof(LLM_VERSION) - 1);
    ngx_http_llm_attr(s, "host.name", ngx_cycle->hostname.data,
                      ngx_cycle->hostname.len);
    ngx_http_llm_attr_int(s, "process.pid", ngx_pid);

    (void) llm_buf_adds(&s->out, "]},\"scopeSpans\":[{\"scope\":{\"name\":"
                                 "\"ngx_http_llm_module\",\"version\":\""
                                 LLM_VERSION "\"},\"spans\":[");
}


static void
ngx_http_llm_span_open(ngx_http_llm_spans_t *s, uint64_t id)
{
    (void) llm_buf_addf(&s->out, "{\"traceId\":\"%.32s\",\"spanId\":"
                        "\"%016llx\",\"flags\":%u", s->trace->trace,
                        (unsigned long long) id, (unsigned) s->trace->flags);
}


static void
ngx_http_llm_span_times(ngx_http_llm_spans_t *s, uint64_t begin,
    uint64_t end)
{
    (void) llm_buf_addf(&s->out, ",\"startTimeUnixNano\":\"%llu\","
                        "\"endTimeUnixNano\":\"%llu\"",
                        (unsigned long long) begin,
                        (unsigned long long) ngx_max(begin, end));
}


static void
ngx_http_llm_span_request(ngx_http_llm_spans_t *s)
{
    uint64_t             begin;
    llm_buf_t           *out;
    llm_str_t            operation;
    ngx_http_llm_ctx_t  *ctx;

    out = &s->out;
    ctx = s->ctx;

    ngx_http_llm_span_open(s, s->span);

    if (s->trace->parent[0]) {
        (void) llm_buf_addf(out, ",\"parentSpanId\":\"%.16s\"",
                            s->trace->parent);
    }

    if (s->trace->state.len) {
        (void) llm_buf_adds(out, ",\"traceState\":");
        (void) llm_json_add_string(out, (char *) s->trace->state.data,
                                   s->trace->state.len);
    }

    operation = ngx_http_llm_operation(ctx ? ctx->path : llm_str(""));

    (void) llm_buf_adds(out, ",\"name\":\"");
    (void) llm_buf_add(out, operation.data, operation.len);

    if (ctx && ctx->model >= 0) {
        (void) llm_buf_addc(out, ' ');
        (void) llm_json_add_text(out, (char *) ctx->name.data,
                                 ctx->name.len);
    }

    (void) llm_buf_addf(out, "\",\"kind\":%d", NGX_HTTP_LLM_SPAN_SERVER);

    begin = ngx_http_llm_wall(s, ctx ? ctx->arrival_us : s->now_us);

    ngx_http_llm_span_times(s, ngx_http_llm_since(s->request, begin),
                            ngx_http_llm_wall(s, s->now_us));

    (void) llm_buf_adds(out, ",\"attributes\":[");
    s->some = 0;

    ngx_http_llm_attr(s, "gen_ai.operation.name", operation.data,
                      operation.len);
    ngx_http_llm_attr(s, "gen_ai.provider.name", "nginx-llm", 9);
    ngx_http_llm_span_model(s);
    ngx_http_llm_span_http(s);
    ngx_http_llm_span_status(s);

    (void) llm_buf_addc(out, '}');
}


/* start of the request, at most ns; nginx's start time is rounded to the
   milliseconds of its cached clock */

static uint64_t
ngx_http_llm_since(ngx_http_request_t *r, uint64_t ns)
{
    uint64_t  ms;

    ms = (uint64_t) r->start_sec * 1000 + r->start_msec;

    return ngx_min(ms * 1000000, ns);
}


static void
ngx_http_llm_span_model(ngx_http_llm_spans_t *s)
{
    ngx_str_t           *asked;
    const char          *reason;
    ngx_http_llm_ctx_t  *ctx;

    ctx = s->ctx;

    if (ctx == NULL) {
        return;
    }

    if (ctx->model >= 0) {
        asked = ctx->alias.len ? &ctx->alias : &ctx->name;

        ngx_http_llm_attr(s, "gen_ai.request.model", asked->data, asked->len);

        if (ctx->started) {
            ngx_http_llm_attr(s, "gen_ai.response.model", ctx->name.data,
                              ctx->name.len);
        }

        (void) llm_buf_addf(&s->out, ",{\"key\":\"nginx_llm.stream\","
                            "\"value\":{\"boolValue\":%s}}",
                            ctx->stream ? "true" : "false");
    }

    if (ctx->started) {
        ngx_http_llm_span_usage(s);
    }

    reason = ngx_http_llm_finish_reason(ctx);

    if (reason) {
        (void) llm_buf_addf(&s->out, ",{\"key\":\"gen_ai.response."
                            "finish_reasons\",\"value\":{\"arrayValue\":"
                            "{\"values\":[{\"stringValue\":\"%s\"}]}}}",
                            reason);
    }

    ngx_http_llm_attr(s, "nginx_llm.request_id", ctx->request_id.data,
                      ctx->request_id.len);

    if (ctx->tenant.len) {
        ngx_http_llm_attr(s, "nginx_llm.tenant", ctx->tenant.data,
                          ctx->tenant.len);
    }
}


static void
ngx_http_llm_span_usage(ngx_http_llm_spans_t *s)
{
    llm_api_usage_t  *u;

    u = &s->ctx->usage;

    ngx_http_llm_attr_int(s, "gen_ai.usage.input_tokens", u->prompt_tokens);
    ngx_http_llm_attr_int(s, "gen_ai.usage.cache_read.input_tokens",
                          u->cached_tokens);
    ngx_http_llm_attr_int(s, "gen_ai.usage.output_tokens",
                          u->completion_tokens);
    ngx_http_llm_attr_int(s, "gen_ai.usage.reasoning.output_tokens",
                          u->reasoning_tokens);
}


static void
ngx_http_llm_span_http(ngx_http_llm_spans_t *s)
{
    ngx_str_t            scheme;
    ngx_http_request_t  *r;

    r = s->request;
    ngx_str_set(&scheme, "http");

#if (NGX_HTTP_SSL)
    if (r->connection->ssl) {
        ngx_str_set(&scheme, "https");
    }
#endif

    ngx_http_llm_attr(s, "http.request.method", r->method_name.data,
                      r->method_name.len);
    ngx_http_llm_attr(s, "url.scheme", scheme.data, scheme.len);
    ngx_http_llm_attr(s, "url.path", r->uri.data, r->uri.len);
}


/* ends the attributes; the status is an error for 5xx and for streams that were
   cut off */

static void
ngx_http_llm_span_status(ngx_http_llm_spans_t *s)
{
    u_char               code[NGX_INT_T_LEN];
    ngx_str_t            type;
    ngx_uint_t           status;
    ngx_http_request_t  *r;

    r = s->request;
    status = r->err_status ? r->err_status : r->headers_out.status;
    type = ngx_http_llm_cause(r);

    if (status) {
        ngx_http_llm_attr_int(s, "http.response.status_code", status);
    }

    if (type.len == 0 && status >= NGX_HTTP_INTERNAL_SERVER_ERROR) {
        type.data = code;
        type.len = ngx_sprintf(code, "%ui", status) - code;
    }

    if (type.len) {
        ngx_http_llm_attr(s, "error.type", type.data, type.len);
    }

    (void) llm_buf_adds(&s->out, "]");

    if (type.len && (status >= NGX_HTTP_INTERNAL_SERVER_ERROR
                     || status < NGX_HTTP_BAD_REQUEST))
    {
        (void) llm_buf_addf(&s->out, ",\"status\":{\"code\":%d}",
                            NGX_HTTP_LLM_SPAN_ERROR);
    }
}


static void
ngx_http_llm_span_parts(ngx_http_llm_spans_t *s)
{
    uint64_t             arrival, run, first, end, begin;
    llm_period_t        *p;
    ngx_http_llm_ctx_t  *ctx;

    ctx = s->ctx;
    p = &ctx->prepared;

    arrival = ctx->arrival_us;
    end = ctx->ended_us ? ctx->ended_us : s->now_us;
    run = end;

    if (ctx->started) {
        run = ngx_min(arrival + ctx->usage.queue_us, end);
    }

    ngx_http_llm_span_part(s, 1, 0, "queue", arrival, run);

    if (p->us) {
        begin = arrival + p->at_us;
        ngx_http_llm_span_part(s, 2, 1, "tokenize", ngx_min(begin, run),
                               ngx_min(begin + p->us, run));
    }

    if (!ctx->started || !ctx->computed) {
        return;
    }

    first = ctx->first_us;

    if (ctx->done) {
        first = ctx->usage.ttft_us ? arrival + ctx->usage.ttft_us : 0;
        end = ngx_min(arrival + ctx->usage.total_us, end);
    }

    ngx_http_llm_span_part(s, 3, 0, "prefill", run, first ? first : end);

    if (first) {
        ngx_http_llm_span_part(s, 4, 0, "decode", first, end);
    }
}


/* writes the span of part n, whose parent is part `of`; 0 is the request */

static void
ngx_http_llm_span_part(ngx_http_llm_spans_t *s, ngx_uint_t n, ngx_uint_t of,
    const char *name, uint64_t begin, uint64_t end)
{
    (void) llm_buf_addc(&s->out, ',');

    ngx_http_llm_span_open(s, ngx_http_llm_span_id(s, n));

    (void) llm_buf_addf(&s->out, ",\"parentSpanId\":\"%016llx\","
                        "\"name\":\"%s\",\"kind\":%d",
                        (unsigned long long) ngx_http_llm_span_id(s, of),
                        name, NGX_HTTP_LLM_SPAN_INTERNAL);

    ngx_http_llm_span_times(s, ngx_http_llm_wall(s, begin),
                            ngx_http_llm_wall(s, end));

    (void) llm_buf_addc(&s->out, '}');
}


/* id of part n: derived from the request's id, so it is always the same; never
   0 */

static uint64_t
ngx_http_llm_span_id(ngx_http_llm_spans_t *s, ngx_uint_t n)
{
    size_t    i;
    u_char    c;
    uint64_t  id;

    if (s->span == 0) {

        for (i = 0; i < sizeof(s->trace->span); i++) {
            c = s->trace->span[i];
            s->span = s->span << 4 | (c <= '9' ? c - '0' : c - 'a' + 10);
        }
    }

    id = s->span + n;

    return id < s->span ? id + 1 : id;
}


static uint64_t
ngx_http_llm_wall(ngx_http_llm_spans_t *s, uint64_t us)
{
    return s->wall_ns + us * 1000;
}


/* the conventions' name of an operation, or else our path */

static llm_str_t
ngx_http_llm_operation(llm_str_t path)
{
    size_t     i;
    llm_str_t  name;

    static const struct {
        const char  *path;
        const char  *name;
    } names[] = {
        { "chat/completions", "chat" },
        { "messages", "chat" },
        { "responses", "chat" },
        { "completions", "text_completion" },
        { "infill", "text_completion" },
        { NULL, NULL }
    };

    for (i = 0; names[i].path; i++) {
        if (path.len == ngx_strlen(names[i].path)
            && ngx_strncmp(path.data, names[i].path, path.len) == 0)
        {
            name.data = names[i].name;
            name.len = ngx_strlen(name.data);
            return name;
        }
    }

    return path.len ? path : llm_str("request");
}


static void
ngx_http_llm_attr(ngx_http_llm_spans_t *s, const char *key, const void *data,
    size_t len)
{
    (void) llm_buf_addf(&s->out, "%s{\"key\":\"%s\",\"value\":"
                        "{\"stringValue\":", s->some ? "," : "", key);
    (void) llm_json_add_string(&s->out, data, len);
    (void) llm_buf_adds(&s->out, "}}");

    s->some = 1;
}


static void
ngx_http_llm_attr_int(ngx_http_llm_spans_t *s, const char *key, uint64_t n)
{
    (void) llm_buf_addf(&s->out, "%s{\"key\":\"%s\",\"value\":{\"intValue\":"
                        "\"%llu\"}}", s->some ? "," : "", key,
                        (unsigned long long) n);

    s->some = 1;
}
