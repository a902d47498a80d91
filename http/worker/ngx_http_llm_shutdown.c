/*
 * The end of a worker: how long worker 0, which has the engine, waits for the
 * others, and the last error to clients at worker_shutdown_timeout.
 *
 * Worker 0 stays alive by a timer as long as any worker of its cycle has a
 * request for the engine, even if the request's body is still arriving, or
 * limit_req delays it: requests are counted as soon as they are in a llm_api
 * location.  Other workers stay alive by the timers of their own requests.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/worker/ngx_http_llm_worker.h"


/* milliseconds between worker 0's checks for live requests at shutdown */
#define NGX_HTTP_LLM_HOLD    50

/* milliseconds after QUIT in which a connection that was accepted before may
   send its first request and still find the engine */
#define NGX_HTTP_LLM_LATE    5000


static void ngx_http_llm_hold_handler(ngx_event_t *ev);
static ngx_uint_t ngx_http_llm_needed(ngx_http_llm_main_conf_t *mcf);
static void ngx_http_llm_cutoff_handler(ngx_event_t *ev);


void
ngx_http_llm_init_shutdown(ngx_http_llm_worker_t *w)
{
    w->hold.handler = ngx_http_llm_hold_handler;
    w->cutoff.handler = ngx_http_llm_cutoff_handler;
    w->cutoff.cancelable = 1;
}


/* this worker got QUIT; its requests go on until worker_shutdown_timeout */

void
ngx_http_llm_begin_shutdown(ngx_http_llm_main_conf_t *mcf)
{
    ngx_msec_t              timeout;
    ngx_core_conf_t        *ccf;
    ngx_http_llm_worker_t  *w;

    w = mcf->worker;

    w->counters->quit = ngx_current_msec;
    ngx_memory_barrier();
    w->counters->quitting = 1;

    ngx_http_llm_on_quit(mcf);

    if (ngx_http_llm_needed(mcf)) {
        ngx_add_timer(&w->hold, NGX_HTTP_LLM_HOLD);
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(mcf->cycle->conf_ctx,
                                           ngx_core_module);
    timeout = ccf->shutdown_timeout;

    if (timeout) {

        /* at the timeout nginx marks connections as failed; the last error is
           sent shortly before */

        ngx_add_timer(&w->cutoff, timeout - ngx_min(timeout / 4, 100));
    }
}


static void
ngx_http_llm_hold_handler(ngx_event_t *ev)
{
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_llm_event_conf(ev);

    if (ngx_http_llm_needed(mcf)) {
        ngx_add_timer(ev, NGX_HTTP_LLM_HOLD);
    }
}


/*
 * May another worker of this cycle still have a request for the engine?  A
 * worker that has not got its QUIT yet may accept new requests.  After QUIT it
 * has its open requests, and for NGX_HTTP_LLM_LATE may get more from
 * connections that it has accepted.
 */

static ngx_uint_t
ngx_http_llm_needed(ngx_http_llm_main_conf_t *mcf)
{
    ngx_uint_t                i;
    ngx_http_llm_worker_t    *w;
    ngx_http_llm_counters_t  *c;

    w = mcf->worker;

    if (w->engine == NULL) {
        return 0;
    }

    if (llm_engine_live(w->engine)) {
        return 1;
    }

    for (i = 0; i < mcf->nworkers; i++) {
        c = &ngx_http_llm_counters(mcf)[i];

        if (c == w->counters
            || !llm_process_lives((ngx_pid_t) c->pid, c->born))
        {
            continue;
        }

        if (c->open || !c->quitting
            || (ngx_msec_int_t) (ngx_current_msec - (ngx_msec_t) c->quit)
               < NGX_HTTP_LLM_LATE)
        {
            return 1;
        }
    }

    return 0;
}


static void
ngx_http_llm_cutoff_handler(ngx_event_t *ev)
{
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_llm_event_conf(ev);

    ngx_http_llm_on_quit(mcf);
    mcf->requests->end(mcf->worker);
}
