/*
 * Requests to llm_admin that wait for a timer, or for a thread that reads or
 * writes a file (ngx_http_llm_task.c).
 *
 * A thread uses no memory of the request, because the client may leave, and the
 * request end, before the thread does.  The job is then completed without an
 * answer.
 */

#include "http/admin/ngx_http_llm_admin.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/worker/ngx_http_llm_worker.h"


#define NGX_HTTP_LLM_ADMIN_HOLD  60000


static void ngx_http_llm_admin_job_run(void *data);
static void ngx_http_llm_admin_job_done(void *data);


void
ngx_http_llm_admin_wait(ngx_http_llm_admin_request_t *a,
    ngx_event_handler_pt handler, ngx_msec_t time)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = a->request;
    c = r->connection;

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    /* a FIN may have come before the handler was set */

    if (c->read->ready) {
        ngx_post_event(c->read, &ngx_posted_events);
    }

    c->log->action = "waiting for an action of llm_admin";

    a->timer.handler = handler;
    a->timer.data = a;
    a->timer.log = c->log;

    ngx_add_timer(&a->timer, time);
}


/* a worker that shuts down waits for timers: this one keeps it until the job is
   done */

static void
ngx_http_llm_admin_hold(ngx_event_t *ev)
{
    ngx_add_timer(ev, NGX_HTTP_LLM_ADMIN_HOLD);
}


ngx_http_llm_admin_job_t *
ngx_http_llm_admin_job(ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_admin_request_t *a, ngx_log_t *log)
{
    ngx_http_llm_admin_job_t  *job;

    job = ngx_calloc(sizeof(ngx_http_llm_admin_job_t), log);
    if (job == NULL) {
        return NULL;
    }

    job->main = mcf;
    job->request = a;

    job->task.run = ngx_http_llm_admin_job_run;
    job->task.done = ngx_http_llm_admin_job_done;
    job->task.data = job;

    return job;
}


ngx_int_t
ngx_http_llm_admin_run(ngx_http_llm_admin_job_t *job, ngx_log_t *log)
{
    ngx_http_llm_admin_request_t  *a;

    if (ngx_http_llm_run_task(&job->main->worker->tasks, &job->task, log)
        != NGX_OK)
    {
        ngx_free(job);
        return NGX_ERROR;
    }

    a = job->request;

    if (a) {
        a->job = job;
        ngx_http_llm_admin_wait(a, ngx_http_llm_admin_hold,
                                NGX_HTTP_LLM_ADMIN_HOLD);
    }

    return NGX_OK;
}


/* in a thread */

static void
ngx_http_llm_admin_job_run(void *data)
{
    ngx_http_llm_admin_job_t *job = data;

    job->rc = job->run(job);
}


/* in the event loop */

static void
ngx_http_llm_admin_job_done(void *data)
{
    ngx_http_llm_admin_job_t *job = data;

    ngx_connection_t              *c;
    ngx_http_llm_admin_request_t  *a;

    a = job->request;

    if (a == NULL) {
        job->done(job);
        ngx_free(job);
        return;
    }

    c = a->request->connection;
    a->job = NULL;

    if (a->timer.timer_set) {
        ngx_del_timer(&a->timer);
    }

    ngx_http_set_log_request(c->log, a->request);

    job->done(job);
    ngx_free(job);

    ngx_http_run_posted_requests(c);
}
