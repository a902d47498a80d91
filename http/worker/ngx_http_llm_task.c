/*
 * Threads of a worker, for work that would block its event loop, such as
 * parsing megabytes of JSON.  There are up to two, each started when there is
 * work and the others are busy, so a worker without large requests has none.
 *
 * - nginx's thread pools are not used: a pool starts all its threads with the
 *   worker (32 by default), and nginx does not restart a worker whose pool
 *   cannot start.  Here only the request that needs the thread fails.
 * - A task is in its owner's memory; the threads use it from ..._run_task()
 *   until the event loop has called its done().  Tasks begin in order.
 * - When a task is done, its thread writes the worker's eventfd, as the engine
 *   does when there are events.
 */

#include "http/worker/ngx_http_llm_worker.h"

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
        ngx_log_error(NGX_LOG_EMERG, log, err,
                      "cannot create the lock of the parsing threads");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* NGX_ERROR: there is no thread, and none can be started; the reason is
   logged */

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
                      "cannot start a thread to parse large requests");
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

        /* it fails only when 2^64 - 2 wake-ups are pending */

        (void) eventfd_write(t->fd, 1);
    }

    (void) pthread_mutex_unlock(&t->lock);

    return NULL;
}


/* called in the event loop after each wake-up, whatever its reason */

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


/* when the process ends: running tasks are completed, waiting ones are not
   begun */

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
