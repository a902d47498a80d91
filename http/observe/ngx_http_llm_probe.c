/*
 * Probes: worker 0 sends a request of one token to each model that a llm_health
 * with probe= covers, and writes the result to shared memory, for all workers.
 *
 * - While other requests are answered no probe is sent, and one that still
 *   waits is not judged: a busy server is not ill.
 * - A probe goes the way of any request, in a slot of its own without an nginx
 *   request.  LLM_REQ_PROBE: it neither loads a model nor keeps one loaded.
 * - Only loaded models are judged; the health of others follows from their
 *   state.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/observe/ngx_http_llm_health.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/worker/ngx_http_llm_worker.h"


/* most ms between checks of a model that is not loaded */
#define NGX_HTTP_LLM_PROBE_IDLE  100

/* ms by which a check may be late: the event loop may be busy for a while */
#define NGX_HTTP_LLM_PROBE_LATE  1000


typedef enum {
    NGX_HTTP_LLM_PROBE_GOOD = 0,
    NGX_HTTP_LLM_PROBE_SILENT,
    NGX_HTTP_LLM_PROBE_ERROR
} ngx_http_llm_probe_e;


/* in shared memory; worker 0 writes, any worker reads */

struct ngx_http_llm_probed_s {
    ngx_atomic_t                 result;        /* ngx_http_llm_probe_e */
    ngx_atomic_t                 checked;       /* time of the last check
                                                   (ngx_current_msec); 0:
                                                   none */
};


/* of worker 0, in the cycle's pool */

struct ngx_http_llm_probe_s {
    ngx_event_t                  event;
    ngx_http_llm_ctx_t           ctx;           /* stands for a request of this
                                                   worker */
    ngx_http_llm_probed_t       *probed;
    ngx_uint_t                   model;
    ngx_msec_t                   period;        /* ms between probes; 0: no
                                                   probes */
    uint32_t                     naming;        /* number of the model's name;
                                                   when it changes this is
                                                   another model */
    ngx_uint_t                   form;          /* index of
                                                   ngx_http_llm_probe_forms */
    uint64_t                     seen;          /* the model's count of answers
                                                   at the last check */
    uint64_t                     own;           /* part of the next increase
                                                   that is this probe's */
};


/* requests for models that generate, embed or rerank; when the model refuses a
   form, the next one is tried */

typedef struct {
    llm_str_t                    path;
    const char                  *rest;          /* part of the body between
                                                   the model's name and the
                                                   prompt */
    const char                  *end;           /* part after the prompt */
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


/* uses the shortest time and the longest prompt that any location asks for */

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


/* in worker 0; its timers have the worker's connection for the debug log */

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

    /* a model of speech would need a sound, and the time of a whole window */

    if (st.state == LLM_MODEL_READY && !(m->media & LLM_MEDIUM_SPEECH)) {
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


/* the model's count of generated tokens and of requests that ended without an
   error */

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
                      "model \"%V\" counts as healthy again",
                      &model->name);
        return;
    }

    ngx_log_error(NGX_LOG_ERR, p->event.log, 0,
                  "a probe of the model \"%V\" has failed: %V",
                  &model->name, why);
}


/* a probe that cannot be sent, because there is no room or the engine has just
   ended, is no result */

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
 * Writes as many words of one letter as the prompt has tokens, which is right
 * for most vocabularies; at most half of the context, because a prompt that is
 * too long would be refused.
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


/* handles an event of the probe: only its last one matters */

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

        /* no result: the server is busy, or the model is not loaded any more */

        return;
    }

    why.data = (u_char *) ev + ev->u.error.msg.off;
    why.len = ev->u.error.msg.len;

    ngx_http_llm_probe_judge(p, NGX_HTTP_LLM_PROBE_ERROR, &why);
}


/* runs in any worker */

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

    /* when this worker exits, worker 0 exits, too, and checks no more */

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
