/*
 * llm_capture: a request's input and output for logs, as $llm_input and
 * $llm_output, each bounded.  Without the directive no text is kept here.
 *
 * - The input is the body as the client has sent it: everything that the prompt
 *   is made from; it can be sent again, and "apply-template" turns it into the
 *   prompt.
 * - The output is made of the model's events, so it is the same with and
 *   without streaming.  Each choice has its own text, because events of choices
 *   alternate.
 * - All texts are in r->pool until the log was written.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_param.h"
#include "http/observe/ngx_http_llm_outcome.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"


/* first bytes of memory for a choice; later doubled */
#define NGX_HTTP_LLM_CAPTURE_MIN  256

/* room for "...[N bytes more]", "[N] " and a line feed */
#define NGX_HTTP_LLM_CAPTURE_MARK  (2 * NGX_INT64_LEN + 32)


typedef struct {
    size_t                       size;          /* 0: off */
} ngx_http_llm_capture_conf_t;


typedef struct {
    u_char                      *data;
    size_t                       len;
    size_t                       size;
    size_t                       more;          /* bytes that were cut off */
    ngx_uint_t                   part;          /* of the last event */
    ngx_uint_t                   call;          /* of the last event */
} ngx_http_llm_text_t;


typedef struct {
    size_t                       size;          /* most bytes of each text */
    ngx_http_llm_text_t          input;
    ngx_array_t                  choices;       /* ngx_http_llm_text_t */
    size_t                       used;          /* bytes of all choices */
    ngx_uint_t                   full;          /* 1: nothing more is kept */
} ngx_http_llm_capture_t;


static ngx_int_t ngx_http_llm_add_capture(ngx_conf_t *cf);
static void *ngx_http_llm_create_capture_conf(ngx_conf_t *cf);
static char *ngx_http_llm_merge_capture_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_llm_capture(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_http_llm_capture_init(ngx_http_llm_body_t *body);
static void ngx_http_llm_capture_input(ngx_http_llm_body_t *body, u_char *p,
    size_t len);
static void ngx_http_llm_capture_output(ngx_http_llm_ctx_t *ctx,
    const llm_event_t *ev);
static void ngx_http_llm_capture_end(ngx_http_llm_ctx_t *ctx,
    const llm_event_t *ev);
static ngx_http_llm_text_t *ngx_http_llm_capture_choice(ngx_http_request_t *r,
    ngx_http_llm_capture_t *c, ngx_uint_t index);
static void ngx_http_llm_capture_part(ngx_http_request_t *r,
    ngx_http_llm_capture_t *c, ngx_http_llm_text_t *t, const llm_event_t *ev);
static void ngx_http_llm_capture_add(ngx_http_request_t *r,
    ngx_http_llm_capture_t *c, ngx_http_llm_text_t *t, const char *data,
    size_t len);
static ngx_int_t ngx_http_llm_capture_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static size_t ngx_http_llm_char(u_char *p, size_t len);
static u_char *ngx_http_llm_capture_put(u_char *p, ngx_http_llm_text_t *t);


static ngx_http_llm_stage_t  ngx_http_llm_capture_stage = {
    .body = ngx_http_llm_capture_init,
    .input = ngx_http_llm_capture_input,
    .text = ngx_http_llm_capture_output,
    .end = ngx_http_llm_capture_end
};


/* data: 0: the input; 1: the output */

static ngx_http_variable_t  ngx_http_llm_capture_vars[] = {

    { ngx_string("llm_input"), NULL, ngx_http_llm_capture_variable,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_output"), NULL, ngx_http_llm_capture_variable,
      1, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


static ngx_command_t  ngx_http_llm_capture_commands[] = {

    { ngx_string("llm_capture"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_llm_capture,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_llm_capture_module_ctx = {
    ngx_http_llm_add_capture,              /* preconfiguration */
    NULL,                                  /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_llm_create_capture_conf,      /* create location configuration */
    ngx_http_llm_merge_capture_conf        /* merge location configuration */
};


ngx_module_t  ngx_http_llm_capture_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_capture_module_ctx,      /* module context */
    ngx_http_llm_capture_commands,         /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_llm_add_capture(ngx_conf_t *cf)
{
    if (ngx_http_llm_add_variables(cf, ngx_http_llm_capture_vars) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_llm_add_stage(cf, &ngx_http_llm_capture_stage);
}


static void *
ngx_http_llm_create_capture_conf(ngx_conf_t *cf)
{
    ngx_http_llm_capture_conf_t  *conf;

    conf = ngx_palloc(cf->pool, sizeof(ngx_http_llm_capture_conf_t));

    if (conf) {
        conf->size = NGX_CONF_UNSET_SIZE;
    }

    return conf;
}


static char *
ngx_http_llm_merge_capture_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_llm_capture_conf_t *prev = parent;
    ngx_http_llm_capture_conf_t *conf = child;

    ngx_conf_merge_size_value(conf->size, prev->size, 0);

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_capture(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_capture_conf_t *clcf = conf;

    ngx_str_t  *value;

    if (clcf->size != NGX_CONF_UNSET_SIZE) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        clcf->size = 0;
        return NGX_CONF_OK;
    }

    return ngx_http_llm_param_size(cf, &value[1], 0, 1, NGX_HTTP_LLM_MOST_SIZE,
                                   &clcf->size);
}


/* allocates the input's memory before the body is parsed, because a thread may
   parse it, which must not use the pool */

static ngx_int_t
ngx_http_llm_capture_init(ngx_http_llm_body_t *body)
{
    size_t                        size;
    ngx_http_request_t           *r;
    ngx_http_llm_ctx_t           *ctx;
    ngx_http_llm_capture_t       *c;
    ngx_http_llm_capture_conf_t  *clcf;

    ctx = body->ctx;
    clcf = ngx_http_llm_get_loc_conf(ctx->conf, ngx_http_llm_capture_module);
    size = body->unpacked ? body->unpacked : body->size;

    if (clcf->size == 0) {
        return NGX_OK;
    }

    r = ctx->request;

    c = ngx_pcalloc(r->pool, sizeof(ngx_http_llm_capture_t));
    if (c == NULL) {
        return NGX_ERROR;
    }

    c->size = clcf->size;
    c->input.size = ngx_min(size, c->size);

    if (ngx_array_init(&c->choices, r->pool, 1, sizeof(ngx_http_llm_text_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (c->input.size) {
        c->input.data = ngx_pnalloc(r->pool, c->input.size);
        if (c->input.data == NULL) {
            return NGX_ERROR;
        }
    }

    ngx_http_llm_set_data(ctx, c, ngx_http_llm_capture_stage);

    return NGX_OK;
}


/* bytes that are not UTF-8 become question marks, so a log in JSON stays valid;
   runs in any thread */

static void
ngx_http_llm_capture_input(ngx_http_llm_body_t *body, u_char *p, size_t len)
{
    size_t                   n;
    u_char                  *last;
    ngx_http_llm_text_t     *t;
    ngx_http_llm_capture_t  *c;

    c = ngx_http_llm_get_data(body->ctx, ngx_http_llm_capture_stage);

    if (c == NULL) {
        return;
    }

    t = &c->input;

    for (last = p + len; p < last; p += n) {
        n = ngx_http_llm_char(p, last - p);

        if (t->more || ngx_max(n, 1) > t->size - t->len) {
            t->more += last - p;        /* a form comes in pieces */
            return;
        }

        if (n == 0) {
            n = 1;
            t->data[t->len++] = '?';
            continue;
        }

        ngx_memcpy(t->data + t->len, p, n);
        t->len += n;
    }
}


/* bytes of the character at p, or 0 if it is not UTF-8 */

static size_t
ngx_http_llm_char(u_char *p, size_t len)
{
    size_t     i, n;
    u_char    *q;
    uint32_t   cp;

    if (*p < 0x80) {
        return 1;
    }

    q = p;
    cp = ngx_utf8_decode(&q, len);
    n = q - p;

    if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000)) {
        return 0;
    }

    for (i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }

    return n;
}


static void
ngx_http_llm_capture_output(ngx_http_llm_ctx_t *ctx, const llm_event_t *ev)
{
    ngx_http_request_t      *r;
    ngx_http_llm_text_t     *t;
    ngx_http_llm_capture_t  *c;

    c = ngx_http_llm_get_data(ctx, ngx_http_llm_capture_stage);

    if (c == NULL || ev->u.text.text.len == 0
        || llm_api_takes_form(ctx->reply->endpoint)
        || (ctx->api && llm_api_is_shown(ctx->api, ev)))
    {
        return;
    }

    r = ctx->request;

    t = ngx_http_llm_capture_choice(r, c, ev->index);
    if (t == NULL) {
        return;
    }

    ngx_http_llm_capture_part(r, c, t, ev);
    ngx_http_llm_capture_add(r, c, t, llm_ref_data(ev, ev->u.text.text),
                             ev->u.text.text.len);
}


/* a transcript's text, which comes in records */

static void
ngx_http_llm_capture_end(ngx_http_llm_ctx_t *ctx, const llm_event_t *ev)
{
    llm_buf_t                text;
    ngx_http_llm_text_t     *t;
    ngx_http_llm_capture_t  *c;

    c = ngx_http_llm_get_data(ctx, ngx_http_llm_capture_stage);

    if (c == NULL || ctx->api == NULL || c->choices.nelts) {
        return;
    }

    llm_buf_init(&text, 0);
    llm_api_text(ctx->api, &text);

    t = text.len && !text.failed
        ? ngx_http_llm_capture_choice(ctx->request, c, 0) : NULL;

    if (t) {
        ngx_http_llm_capture_add(ctx->request, c, t, text.data, text.len);
    }

    llm_buf_free(&text);
}


static ngx_http_llm_text_t *
ngx_http_llm_capture_choice(ngx_http_request_t *r, ngx_http_llm_capture_t *c,
    ngx_uint_t index)
{
    ngx_http_llm_text_t  *t;

    while (c->choices.nelts <= index) {
        t = ngx_array_push(&c->choices);
        if (t == NULL) {
            return NULL;
        }

        ngx_memzero(t, sizeof(ngx_http_llm_text_t));
    }

    t = c->choices.elts;

    return &t[index];
}


/* reasoning and calls begin on a new line, and so does content after them */

static void
ngx_http_llm_capture_part(ngx_http_request_t *r, ngx_http_llm_capture_t *c,
    ngx_http_llm_text_t *t, const llm_event_t *ev)
{
    const char  *sign;

    if (ev->u.text.part == t->part && ev->u.text.call == t->call) {
        return;
    }

    switch (ev->u.text.part) {

    case LLM_PART_CONTENT:
        sign = "\n[content] ";
        break;

    case LLM_PART_REASONING:
        sign = "\n[reasoning] ";
        break;

    case LLM_PART_TOOL_NAME:
        sign = "\n[call] ";
        break;

    default: /* LLM_PART_TOOL_ARGS */
        sign = " ";
    }

    if (t->len == 0) {
        sign++;
    }

    t->part = ev->u.text.part;
    t->call = ev->u.text.call;

    if (!c->full) {
        ngx_http_llm_capture_add(r, c, t, sign, ngx_strlen(sign));
    }
}


static void
ngx_http_llm_capture_add(ngx_http_request_t *r, ngx_http_llm_capture_t *c,
    ngx_http_llm_text_t *t, const char *data, size_t len)
{
    size_t   n, size;
    u_char  *p;

    n = c->full ? 0 : ngx_min(len, c->size - c->used);

    while (n && n < len && (data[n] & 0xc0) == 0x80) {
        n--;
    }

    if (n > t->size - t->len) {
        size = ngx_max(2 * t->size, NGX_HTTP_LLM_CAPTURE_MIN);
        size = ngx_min(ngx_max(size, t->len + n), c->size);

        p = ngx_pnalloc(r->pool, size);

        if (p == NULL) {
            n = 0;

        } else {
            if (t->data) {
                ngx_memcpy(p, t->data, t->len);
                (void) ngx_pfree(r->pool, t->data);
            }

            t->data = p;
            t->size = size;
        }
    }

    if (n) {
        ngx_memcpy(t->data + t->len, data, n);
        t->len += n;
        c->used += n;
    }

    if (n < len) {
        t->more += len - n;
        c->full = 1;
    }
}


static ngx_int_t
ngx_http_llm_capture_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    size_t                   len;
    u_char                  *p;
    ngx_uint_t               i, n;
    ngx_http_llm_ctx_t      *ctx;
    ngx_http_llm_text_t     *t;
    ngx_http_llm_capture_t  *c;

    ctx = ngx_http_llm_find_ctx(r->main);
    c = ctx ? ngx_http_llm_get_data(ctx, ngx_http_llm_capture_stage) : NULL;

    if (c == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    t = data ? c->choices.elts : &c->input;
    n = data ? c->choices.nelts : 1;

    if (n == 1 && t->more == 0) {
        v->data = t->data;
        v->len = t->len;
        return NGX_OK;
    }

    len = 0;

    for (i = 0; i < n; i++) {
        len += t[i].len + NGX_HTTP_LLM_CAPTURE_MARK;
    }

    p = ngx_pnalloc(r->pool, len + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    v->data = p;

    for (i = 0; i < n; i++) {

        if (n > 1) {
            p = ngx_sprintf(p, i ? "\n[%ui] " : "[%ui] ", i);
        }

        p = ngx_http_llm_capture_put(p, &t[i]);
    }

    v->len = p - v->data;

    return NGX_OK;
}


static u_char *
ngx_http_llm_capture_put(u_char *p, ngx_http_llm_text_t *t)
{
    if (t->len) {
        p = ngx_cpymem(p, t->data, t->len);
    }

    return t->more ? ngx_sprintf(p, "...[%uz bytes more]", t->more) : p;
}
