/*
 * Threads of a worker, for what would hold up its event loop: megabytes of
 * JSON.  Two of them, each started when there is work that the others have
 * no time for, so a worker that gets no large request has none.
 *
 * - They are not a pool of nginx's: that starts all its threads with the
 *   worker (32 by default), and a worker whose pool cannot start is not
 *   started again.  Here the one request fails that wanted the thread.
 * - A task is its owner's memory, and the threads' from ..._run_task() until
 *   its done() was called by the event loop.  Tasks begin in order.
 * - A thread says that it is done by the worker's eventfd, as the engine
 *   says that there are events.
 */

#include "http/ngx_http_llm_module.h"

#include <sys/eventfd.h>


static ngx_int_t ngx_http_llm_start_thread(ngx_http_llm_tasks_t *t,
    ngx_log_t *log);
static void *ngx_http_llm_thread(void *data);


ngx_int_t
ngx_http_llm_init_tasks(ngx_http_llm_tasks_t *t, int fd, ngx_log_t *log)
{
    int  err;

    ngx_queue_init(&t->waiting);
    ngx_queue_init(&t->done);

    t->fd = fd;

    err = pthread_mutex_init(&t->lock, NULL);

    if (err == 0) {
        err = pthread_cond_init(&t->work, NULL);
    }

    if (err) {
        ngx_log_error(NGX_LOG_EMERG, log, err, "no lock for threads");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* NGX_ERROR: there is no thread, and none can be started; log says why */

ngx_int_t
ngx_http_llm_run_task(ngx_http_llm_tasks_t *t, ngx_http_llm_task_t *task,
    ngx_log_t *log)
{
    ngx_uint_t  busy;

    (void) pthread_mutex_lock(&t->lock);
    busy = t->nidle == 0 || !ngx_queue_empty(&t->waiting);
    (void) pthread_mutex_unlock(&t->lock);

    if (busy && t->nthreads < NGX_HTTP_LLM_THREADS
        && ngx_http_llm_start_thread(t, log) != NGX_OK
        && t->nthreads == 0)
    {
        return NGX_ERROR;
    }

    (void) pthread_mutex_lock(&t->lock);
    ngx_queue_insert_tail(&t->waiting, &task->queue);
    (void) pthread_cond_signal(&t->work);
    (void) pthread_mutex_unlock(&t->lock);

    return NGX_OK;
}


static ngx_int_t
ngx_http_llm_start_thread(ngx_http_llm_tasks_t *t, ngx_log_t *log)
{
    int       err;
    sigset_t  all, old;

    sigfillset(&all);
    (void) pthread_sigmask(SIG_BLOCK, &all, &old);

    err = pthread_create(&t->threads[t->nthreads], NULL, ngx_http_llm_thread,
                         t);

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    if (err) {
        ngx_log_error(NGX_LOG_ERR, log, err,
                      "no thread that parses large requests");
        return NGX_ERROR;
    }

    t->nthreads++;

    return NGX_OK;
}


static void *
ngx_http_llm_thread(void *data)
{
    ngx_http_llm_tasks_t *t = data;

    ngx_queue_t          *q;
    ngx_http_llm_task_t  *task;

    (void) pthread_setname_np(pthread_self(), "llm-parse");

    (void) pthread_mutex_lock(&t->lock);

    while (!t->stop) {

        if (ngx_queue_empty(&t->waiting)) {
            t->nidle++;
            (void) pthread_cond_wait(&t->work, &t->lock);
            t->nidle--;
            continue;
        }

        q = ngx_queue_head(&t->waiting);
        ngx_queue_remove(q);

        (void) pthread_mutex_unlock(&t->lock);

        task = ngx_queue_data(q, ngx_http_llm_task_t, queue);
        task->run(task->data);

        (void) pthread_mutex_lock(&t->lock);

        ngx_queue_insert_tail(&t->done, &task->queue);

        /* it fails only when a wake-up of 2^64 - 2 others is pending */

        (void) eventfd_write(t->fd, 1);
    }

    (void) pthread_mutex_unlock(&t->lock);

    return NULL;
}


/* in the event loop, woken by a thread or something else */

void
ngx_http_llm_finish_tasks(ngx_http_llm_tasks_t *t)
{
    ngx_queue_t           done, *q;
    ngx_http_llm_task_t  *task;

    ngx_queue_init(&done);

    (void) pthread_mutex_lock(&t->lock);

    if (!ngx_queue_empty(&t->done)) {
        ngx_queue_add(&done, &t->done);
        ngx_queue_init(&t->done);
    }

    (void) pthread_mutex_unlock(&t->lock);

    while (!ngx_queue_empty(&done)) {
        q = ngx_queue_head(&done);
        ngx_queue_remove(q);

        task = ngx_queue_data(q, ngx_http_llm_task_t, queue);
        task->done(task->data);
    }
}


/* the process ends: what a thread has is ended, what waits is not begun */

void
ngx_http_llm_stop_tasks(ngx_http_llm_tasks_t *t)
{
    ngx_uint_t  i;

    (void) pthread_mutex_lock(&t->lock);
    t->stop = 1;
    (void) pthread_cond_broadcast(&t->work);
    (void) pthread_mutex_unlock(&t->lock);

    for (i = 0; i < t->nthreads; i++) {
        (void) pthread_join(t->threads[i], NULL);
    }

    (void) pthread_cond_destroy(&t->work);
    (void) pthread_mutex_destroy(&t->lock);
}
