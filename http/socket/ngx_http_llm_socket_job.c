/*
 * Reading a message, or the last event of an answer, which may be megabytes of
 * JSON: small ones at once, others in a thread (ngx_http_llm_task.c).
 *
 * A job owns its texts, and while a thread runs it, the memory of the
 * conversation (s->api), too: the client may leave and the request end before
 * the thread does.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/socket/ngx_http_llm_socket.h"
#include "http/worker/ngx_http_llm_worker.h"


/* most bytes that are read at once, in about a millisecond */
#define NGX_HTTP_LLM_SOCKET_SMALL  16384


struct ngx_http_llm_socket_job_s {
    ngx_http_llm_task_t          task;
    ngx_http_llm_socket_t       *socket;        /* NULL: it is gone */
    llm_api_socket_t            *api;
    uint32_t                     lane;
    ngx_http_llm_socket_read_pt  read;
    ngx_http_llm_socket_take_pt  take;
    llm_buf_t                    text;
    llm_buf_t                    out;
    llm_err_t                    err;
    int                          rc;
};


static ngx_int_t ngx_http_llm_socket_later(ngx_http_llm_socket_t *s,
    llm_str_t text, uint32_t lane, ngx_http_llm_socket_read_pt read,
    ngx_http_llm_socket_take_pt take);
static void ngx_http_llm_socket_run(void *data);
static void ngx_http_llm_socket_done(void *data);
static void ngx_http_llm_socket_free_job(ngx_http_llm_socket_job_t *job);


void
ngx_http_llm_socket_read_json(ngx_http_llm_socket_t *s, llm_str_t text,
    size_t size, uint32_t lane, ngx_http_llm_socket_read_pt read,
    ngx_http_llm_socket_take_pt take)
{
    int        rc;
    llm_buf_t  out;
    llm_err_t  err;

    if (size > NGX_HTTP_LLM_SOCKET_SMALL
        && ngx_http_llm_socket_later(s, text, lane, read, take) == NGX_OK)
    {
        return;
    }

    llm_buf_init(&out, 0);
    rc = read(s->api, text, &lane, &out, &err);
    take(s, rc, lane, &out, &err);
    llm_buf_free(&out);
}


/* NGX_ERROR: there is no thread */

static ngx_int_t
ngx_http_llm_socket_later(ngx_http_llm_socket_t *s, llm_str_t text,
    uint32_t lane, ngx_http_llm_socket_read_pt read,
    ngx_http_llm_socket_take_pt take)
{
    ngx_log_t                  *log;
    ngx_http_llm_main_conf_t   *mcf;
    ngx_http_llm_socket_job_t  *job;

    log = s->request->connection->log;
    mcf = ngx_http_get_module_main_conf(s->request, ngx_http_llm_module);

    job = ngx_calloc(sizeof(ngx_http_llm_socket_job_t), log);
    if (job == NULL) {
        return NGX_ERROR;
    }

    job->socket = s;
    job->api = s->api;
    job->lane = lane;
    job->read = read;
    job->take = take;
    job->task.run = ngx_http_llm_socket_run;
    job->task.done = ngx_http_llm_socket_done;
    job->task.data = job;
    llm_buf_init(&job->text, 0);
    llm_buf_init(&job->out, 0);

    if ((text.len && llm_buf_add(&job->text, text.data, text.len) != LLM_OK)
        || ngx_http_llm_run_task(&mcf->worker->tasks, &job->task, log)
           != NGX_OK)
    {
        ngx_http_llm_socket_free_job(job);
        return NGX_ERROR;
    }

    s->job = job;

    return NGX_OK;
}


/* in a thread */

static void
ngx_http_llm_socket_run(void *data)
{
    ngx_http_llm_socket_job_t *job = data;

    llm_str_t  text;

    text.data = job->text.data;
    text.len = job->text.len;
    job->rc = job->read(job->api, text, &job->lane, &job->out, &job->err);
}


/* in the event loop, after a thread */

static void
ngx_http_llm_socket_done(void *data)
{
    ngx_http_llm_socket_job_t *job = data;

    ngx_connection_t       *c;
    ngx_http_llm_socket_t  *s;

    s = job->socket;

    if (s == NULL) {
        llm_api_socket_free(job->api);
        ngx_http_llm_socket_free_job(job);
        return;
    }

    c = s->request->connection;
    s->job = NULL;

    ngx_http_set_log_request(c->log, s->request);

    if (!s->closing) {
        job->take(s, job->rc, job->lane, &job->out, &job->err);
    }

    ngx_http_llm_socket_free_job(job);
    s->proceed(s);

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_llm_socket_free_job(ngx_http_llm_socket_job_t *job)
{
    llm_buf_free(&job->text);
    llm_buf_free(&job->out);
    ngx_free(job);
}


void
ngx_http_llm_socket_leave_job(ngx_http_llm_socket_t *s)
{
    if (s->job) {
        s->job->socket = NULL;
        s->api = NULL;
    }
}
