/*
 * Probes: worker 0 sends a request of one token to each model that a
 * llm_health with probe= is about, and tells all workers in shared memory
 * whether it is answered.
 *
 * - While others are answered there is no need for one, nor for a judgement if
 *   one waits among many: a server that is busy is not ill.
 * - It goes the way of any request, in a slot of its own without an nginx
 *   request.  LLM_REQ_PROBE: it neither loads a model nor keeps one loaded.
 * - Only a loaded model is judged; of others health knows by their state.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/observe/ngx_http_llm_health.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/worker/ngx_http_llm_worker.h"


/* how often a model that is not loaded is looked at, at least */
#define NGX_HTTP_LLM_PROBE_IDLE  100

/* what is judged late: the event loop may be busy for a while */
#define NGX_HTTP_LLM_PROBE_LATE  1000


typedef enum {
    NGX_HTTP_LLM_PROBE_GOOD = 0,
    NGX_HTTP_LLM_PROBE_SILENT,
    NGX_HTTP_LLM_PROBE_ERROR
} ngx_http_llm_probe_e;


/* in shared memory; worker 0 writes, any worker reads, in any order */

struct ngx_http_llm_probed_s {
    ngx_atomic_t                 result;        /* ngx_http_llm_probe_e */
    ngx_atomic_t                 checked;       /* at ngx_current_msec; 0:
                                                   never */
};


/* of worker 0, in the cycle's pool */

struct ngx_http_llm_probe_s {
    ngx_event_t                  event;
    ngx_http_llm_ctx_t           ctx;           /* its place among the
                                                   requests */
    ngx_http_llm_probed_t       *probed;
    ngx_uint_t                   model;
    ngx_msec_t                   period;
    uint32_t                     naming;        /* of the model: with another
                                                   name it is another one */
    ngx_uint_t                   form;          /* of ..._probe_forms */
    uint64_t                     seen;          /* what the model had answered
                                                   when it was last looked
                                                   at ... */
    uint64_t                     own;           /* ... and what of the rest is
                                                   this probe's */
};


/* a model generates, or makes vectors, or compares: it is asked in turn until
   it does not say that it cannot */

typedef struct {
    llm_str_t                    path;
    const char                  *rest;          /* of the body, from the model's
                                                   name to the prompt ... */
    const char                  *end;           /* ... and after it */
} ngx_http_llm_probe_form_t;


static void ngx_http_llm_probe_event(ngx_http_llm_ctx_t *ctx,
    const llm_event_t *ev);
static const ngx_http_llm_probe_form_t  ngx_http_llm_probe_forms[] = {
    { { 11, "completions" }, ",\"max_tokens\":1,\"prompt\":\"", "\"}" },
    { { 10, "embeddings" }, ",\"input\":\"", "\"}" },
    { { 6, "rerank" }, ",\"query\":\"a\",\"documents\":[\"", "\"]}" }
};


static void ngx_http_llm_probe_handler(ngx_event_t *ev);
static void ngx_http_llm_probe_check(ngx_http_llm_probe_t *p);
static uint64_t ngx_http_llm_probe_progress(ngx_http_llm_probe_t *p);
static void ngx_http_llm_probe_judge(ngx_http_llm_probe_t *p,
    ngx_http_llm_probe_e result, ngx_str_t *why);
static void ngx_http_llm_probe_send(ngx_http_llm_probe_t *p);
static void ngx_http_llm_probe_words(ngx_http_llm_probe_t *p,
    ngx_http_llm_model_t *model, llm_buf_t *body);
static ngx_int_t ngx_http_llm_probe_message(ngx_http_llm_probe_t *p,
    llm_buf_t *msg);


/* the shortest time that a location wants, and the longest prompt */

char *
ngx_http_llm_want_probes(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_loc_conf_t *llcf)
{
    ngx_uint_t                   i;
    ngx_http_llm_model_t        *model;
    ngx_http_llm_health_conf_t  *hlcf;

    hlcf = ngx_http_llm_get_loc_conf(llcf, ngx_http_llm_health_module);
    model = mcf->models.elts;

    for (i = 0; hlcf->probe && i < mcf->models.nelts; i++) {

        if ((llcf->allowed & ((uint64_t) 1 << i))
            && (model[i].probe == 0 || hlcf->probe < model[i].probe))
        {
            model[i].probe = hlcf->probe;
        }

        if (llcf->allowed & ((uint64_t) 1 << i)) {
            model[i].probe_prompt = ngx_max(model[i].probe_prompt,
                                            hlcf->prompt);
        }
    }

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_llm_create_probed(ngx_http_llm_main_conf_t *mcf,
    ngx_slab_pool_t *shpool, ngx_log_t *log)
{
    ngx_http_llm_health_main_conf_t  *hmcf;

    hmcf = ngx_http_llm_get_main_conf(mcf, ngx_http_llm_health_module);

    hmcf->probed = ngx_slab_calloc(shpool, mcf->models.nelts
                                           * sizeof(ngx_http_llm_probed_t));
    if (hmcf->probed == NULL) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "no shared memory for probes of models");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* in worker 0, whose connection its timers show in the debug log */

ngx_int_t
ngx_http_llm_init_probes(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log)
{
    ngx_uint_t                        i;
    ngx_http_llm_model_t             *model;
    ngx_http_llm_probe_t             *p;
    ngx_http_llm_health_main_conf_t  *hmcf;

    hmcf = ngx_http_llm_get_main_conf(mcf, ngx_http_llm_health_module);
    model = mcf->models.elts;

    p = ngx_pcalloc(mcf->cycle->pool,
                    mcf->models.nelts * sizeof(ngx_http_llm_probe_t));
    if (p == NULL) {
        return NGX_ERROR;
    }

    hmcf->probes = p;

    for (i = 0; i < mcf->models.nelts; i++) {
        p[i].probed = &hmcf->probed[i];
        p[i].probed->result = NGX_HTTP_LLM_PROBE_GOOD;
        p[i].probed->checked = 0;

        p[i].model = i;
        p[i].period = model[i].probe;

        p[i].ctx.main = mcf;
        p[i].ctx.slot = NGX_HTTP_LLM_NO_SLOT;
        p[i].ctx.event = ngx_http_llm_probe_event;

        p[i].event.handler = ngx_http_llm_probe_handler;
        p[i].event.data = mcf->worker->conn;
        p[i].event.log = log;
        p[i].event.cancelable = 1;

        if (p[i].period) {
            ngx_add_timer(&p[i].event, ngx_min(p[i].period,
                                               NGX_HTTP_LLM_PROBE_IDLE));
        }
    }

    return NGX_OK;
}


void
ngx_http_llm_stop_probes(ngx_http_llm_main_conf_t *mcf)
{
    ngx_uint_t                        i;
    ngx_http_llm_ctx_t               *ctx;
    ngx_http_llm_probe_t             *p;
    ngx_http_llm_health_main_conf_t  *hmcf;

    hmcf = ngx_http_llm_get_main_conf(mcf, ngx_http_llm_health_module);
    p = hmcf->probes;

    for (i = 0; p && i < mcf->models.nelts; i++) {
        ctx = &p[i].ctx;

        if (p[i].event.timer_set) {
            ngx_del_timer(&p[i].event);
        }

        if (ctx->slot != NGX_HTTP_LLM_NO_SLOT) {
            llm_client_signal(mcf->worker->client, LLM_MSG_CANCEL, ctx->slot,
                              ctx->ticket);
            ngx_http_llm_free_slot(ctx);
        }
    }
}


static void
ngx_http_llm_probe_handler(ngx_event_t *ev)
{
    ngx_msec_t             next;
    llm_api_model_t       *m;
    llm_model_status_t     st;
    ngx_http_llm_probe_t  *p;

    p = ngx_queue_data(ev, ngx_http_llm_probe_t, event);
    next = p->period;

    ngx_http_llm_refresh_models(p->ctx.main);

    m = &p->ctx.main->api_models[p->model];

    if (m->naming != p->naming) {
        p->naming = m->naming;
        p->form = 0;
    }

    llm_zone_status(p->ctx.main->zone, p->model, &st);

    if (st.state == LLM_MODEL_READY) {
        ngx_http_llm_probe_check(p);

    } else {
        ngx_http_llm_probe_judge(p, NGX_HTTP_LLM_PROBE_GOOD, NULL);
        next = ngx_min(next, NGX_HTTP_LLM_PROBE_IDLE);
    }

    p->probed->checked = ngx_current_msec;

    ngx_add_timer(ev, next);
}


static void
ngx_http_llm_probe_check(ngx_http_llm_probe_t *p)
{
    int64_t    others;
    uint64_t   now;
    ngx_str_t  why = ngx_string("there is no answer");

    now = ngx_http_llm_probe_progress(p);
    others = (int64_t) (now - p->seen - p->own);

    p->seen = now;
    p->own = 0;

    if (others > 0) {
        ngx_http_llm_probe_judge(p, NGX_HTTP_LLM_PROBE_GOOD, NULL);

    } else if (p->ctx.slot != NGX_HTTP_LLM_NO_SLOT) {
        ngx_http_llm_probe_judge(p, NGX_HTTP_LLM_PROBE_SILENT, &why);

    } else {
        ngx_http_llm_probe_send(p);
    }
}


/* tokens that were generated, and requests that ended as they should */

static uint64_t
ngx_http_llm_probe_progress(ngx_http_llm_probe_t *p)
{
    llm_model_stats_t  st;

    llm_zone_model_stats(p->ctx.main->zone, &p->ctx.main->kept, p->model,
                         &st);

    return st.answered;
}


static void
ngx_http_llm_probe_judge(ngx_http_llm_probe_t *p, ngx_http_llm_probe_e result,
    ngx_str_t *why)
{
    ngx_http_llm_model_t  *model;

    if (p->probed->result == (ngx_atomic_uint_t) result) {
        return;
    }

    p->probed->result = result;

    model = p->ctx.main->models.elts;
    model += p->model;

    if (result == NGX_HTTP_LLM_PROBE_GOOD) {
        ngx_log_error(NGX_LOG_NOTICE, p->event.log, 0,
                      "model \"%V\" is not held to be ill any more",
                      &model->name);
        return;
    }

    ngx_log_error(NGX_LOG_ERR, p->event.log, 0,
                  "a probe of the model \"%V\" has failed: %V",
                  &model->name, why);
}


/* one that is not sent, because there is no room or the engine has just ended,
   says nothing */

static void
ngx_http_llm_probe_send(ngx_http_llm_probe_t *p)
{
    uint32_t        retry_after;
    llm_buf_t       buf;
    llm_err_t       err;
    llm_request_t  *msg;

    llm_buf_init(&buf, 0);

    if (ngx_http_llm_probe_message(p, &buf) != NGX_OK
        || ngx_http_llm_take_slot(&p->ctx) != NGX_OK)
    {
        llm_buf_free(&buf);
        return;
    }

    msg = (llm_request_t *) buf.data;

    msg->head.slot = p->ctx.slot;
    msg->flags |= LLM_REQ_PROBE | LLM_REQ_NO_CACHE;
    msg->weight = 1000;
    msg->priority = LLM_MAX_PRIORITY;
    msg->arrival_us = llm_now_us();

    if (llm_client_submit(p->ctx.main->worker->client, msg, &retry_after,
                          &err)
        == LLM_OK)
    {
        p->ctx.ticket = msg->head.ticket;

    } else {
        ngx_http_llm_free_slot(&p->ctx);
    }

    llm_buf_free(&buf);
}


/*
 * As many words of one letter as the prompt has tokens, in most vocabularies;
 * half of the context at most, as a probe that is too long would find nothing.
 */

static void
ngx_http_llm_probe_words(ngx_http_llm_probe_t *p, ngx_http_llm_model_t *model,
    llm_buf_t *body)
{
    ngx_uint_t          i, n;
    llm_model_status_t  st;

    llm_zone_status(p->ctx.main->zone, p->model, &st);

    n = ngx_min(model->probe_prompt, st.ctx / 2);

    llm_buf_addc(body, 'a');

    for (i = 1; i < n; i++) {
        llm_buf_adds(body, " a");
    }
}


static ngx_int_t
ngx_http_llm_probe_message(ngx_http_llm_probe_t *p, llm_buf_t *msg)
{
    llm_api_t                        *api;
    llm_buf_t                         body;
    llm_err_t                         err;
    llm_str_t                         method;
    llm_api_conf_t                    conf;
    llm_api_route_t                   to;
    ngx_http_llm_model_t             *model;
    const ngx_http_llm_probe_form_t  *form;

    form = &ngx_http_llm_probe_forms[p->form];
    method = llm_str("POST");

    model = p->ctx.main->models.elts;
    model += p->model;

    ngx_memzero(&conf, sizeof(llm_api_conf_t));

    conf.models = p->ctx.main->api_models;
    conf.n_models = p->ctx.main->models.nelts;
    conf.allowed = (uint64_t) 1 << p->model;
    conf.fallback = -1;
    conf.cap = -1;
    conf.id = llm_str("probe");
    conf.zone = p->ctx.main->zone;
    conf.now = ngx_time();

    llm_buf_init(&body, 0);
    llm_buf_adds(&body, "{\"model\":");
    llm_json_add_string(&body, (char *) model->name.data, model->name.len);
    llm_buf_adds(&body, form->rest);
    ngx_http_llm_probe_words(p, model, &body);
    llm_buf_adds(&body, form->end);

    api = NULL;

    if (!body.failed && llm_api_route(form->path, method, &to) == LLM_OK) {
        api = llm_api_parse(to.endpoint, &conf, body.data, body.len, msg,
                            &err);
    }

    llm_buf_free(&body);

    if (api == NULL) {
        return NGX_ERROR;
    }

    llm_api_free(api);

    return NGX_OK;
}


/* an event of the probe: only its last one matters */

static void
ngx_http_llm_probe_event(ngx_http_llm_ctx_t *ctx, const llm_event_t *ev)
{
    ngx_str_t              why;
    ngx_http_llm_probe_t  *p;

    p = (ngx_http_llm_probe_t *)
            ((u_char *) ctx - offsetof(ngx_http_llm_probe_t, ctx));

    if (ev->type == LLM_EV_DONE) {
        ngx_http_llm_free_slot(&p->ctx);
        p->own = ev->u.done.completion_tokens + 1;
        ngx_http_llm_probe_judge(p, NGX_HTTP_LLM_PROBE_GOOD, NULL);
        return;
    }

    if (ev->type != LLM_EV_ERROR) {
        return;
    }

    ngx_http_llm_free_slot(&p->ctx);

    switch (ev->u.error.status) {

    case 400:
        if (p->form + 1 < llm_nelems(ngx_http_llm_probe_forms)) {
            p->form++;
            ngx_add_timer(&p->event, 1);
            return;
        }

        break;

    case 429:
    case 503:

        /* too much to do, or the model is not loaded any more */

        return;
    }

    why.data = (u_char *) ev + ev->u.error.msg.off;
    why.len = ev->u.error.msg.len;

    ngx_http_llm_probe_judge(p, NGX_HTTP_LLM_PROBE_ERROR, &why);
}


/* why the model is ill, or NULL; in any worker */

const char *
ngx_http_llm_probe_result(ngx_http_llm_main_conf_t *mcf, ngx_uint_t i)
{
    ngx_msec_t                        age, max;
    ngx_http_llm_model_t             *model;
    ngx_http_llm_probed_t            *p;
    ngx_http_llm_health_main_conf_t  *hmcf;

    hmcf = ngx_http_llm_get_main_conf(mcf, ngx_http_llm_health_module);
    p = &hmcf->probed[i];
    model = mcf->models.elts;

    /* worker 0 ends with this one and has stopped to look */

    age = ngx_current_msec - (ngx_msec_t) p->checked;
    max = 2 * model[i].probe + NGX_HTTP_LLM_PROBE_LATE;

    if (p->checked && !ngx_exiting && (ngx_msec_int_t) age > 0 && age > max) {
        return "no probe is sent";
    }

    switch (p->result) {

    case NGX_HTTP_LLM_PROBE_SILENT:
        return "a probe gets no answer";

    case NGX_HTTP_LLM_PROBE_ERROR:
        return "a probe got an error";

    default:
        return NULL;
    }
}
