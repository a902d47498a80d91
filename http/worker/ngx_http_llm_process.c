/*
 * The engine in worker 0, its client in every worker, the eventfds by which
 * they wake each other, and the start and end of workers.
 *
 * The eventfd's connection is marked idle, so nginx calls its handler when a
 * graceful shutdown begins (ngx_http_llm_shutdown.c).
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/worker/ngx_http_llm_worker.h"

#include <sched.h>


/* most events taken before the event loop continues; what is new waits for two
   or three such turns, of about 6 ms with 20,000 streams */
#define NGX_HTTP_LLM_EVENTS  (2 * NGX_HTTP_LLM_SENDS)

/* milliseconds for other workers to read the last events before worker 0 ends
   because of a lost GPU context */
#define NGX_HTTP_LLM_LOST    200

/* first and longest pause, in milliseconds, before the engine is started again
   if its threads could not be started */
#define NGX_HTTP_LLM_START      1000
#define NGX_HTTP_LLM_START_MAX  60000


static ngx_int_t ngx_http_llm_start(ngx_http_llm_main_conf_t *mcf,
    ngx_log_t *log);
static void ngx_http_llm_stop(ngx_http_llm_main_conf_t *mcf);
static ngx_int_t ngx_http_llm_start_engine(ngx_http_llm_main_conf_t *mcf,
    ngx_log_t *log);
static void ngx_http_llm_start_handler(ngx_event_t *ev);
static llm_engine_model_t *ngx_http_llm_engine_models(
    ngx_http_llm_main_conf_t *mcf);
static void ngx_http_llm_log(void *data, int level, const char *msg);
static ngx_int_t ngx_http_llm_add_event(ngx_http_llm_main_conf_t *mcf,
    int fd, ngx_log_t *log);
static void ngx_http_llm_event_handler(ngx_event_t *ev);
static void ngx_http_llm_drain(ngx_http_llm_main_conf_t *mcf);
static void ngx_http_llm_watch_handler(ngx_event_t *ev);
static void ngx_http_llm_lost_handler(ngx_event_t *ev);


/* the configuration whose engine or client runs in this process */
static ngx_http_llm_main_conf_t  *ngx_http_llm_current;


ngx_uint_t
ngx_http_llm_serves(void)
{
    return ngx_http_llm_current != NULL;
}


/* cached; a forked process computes its own */

uint64_t
ngx_http_llm_born(void)
{
    static uint64_t   born;
    static ngx_pid_t  pid;

    if (pid != ngx_pid) {
        born = llm_process_born(ngx_pid);
        pid = ngx_pid;
    }

    return born;
}


ngx_int_t
ngx_http_llm_init_module(ngx_cycle_t *cycle)
{
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_llm_module);

    if (mcf && mcf->shm_zone && mcf->affinity == NULL) {
        mcf->affinity = ngx_pcalloc(cycle->pool, sizeof(cpu_set_t));

        if (mcf->affinity
            && sched_getaffinity(0, sizeof(cpu_set_t), mcf->affinity) == -1)
        {
            mcf->affinity = NULL;
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_llm_init_process(ngx_cycle_t *cycle)
{
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_llm_module);

    if (!ngx_http_llm_is_worker() || mcf == NULL || mcf->shm_zone == NULL) {
        return NGX_OK;
    }

    return ngx_http_llm_start(mcf, cycle->log);
}


ngx_int_t
ngx_http_llm_init_engine(ngx_cycle_t *cycle)
{
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_llm_current;

    if (mcf == NULL || mcf->worker->n != 0) {
        return NGX_OK;
    }

    return ngx_http_llm_start_engine(mcf, cycle->log);
}


void
ngx_http_llm_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_llm_current;

    if (mcf == NULL) {
        return;
    }

    /* requests are still live if nginx was told to stop at once */

    ngx_http_llm_on_quit(mcf);
    mcf->requests->end(mcf->worker);

    ngx_http_llm_stop_tasks(&mcf->worker->tasks);
}


void
ngx_http_llm_exit_engine(ngx_cycle_t *cycle)
{
    if (ngx_http_llm_current) {
        ngx_http_llm_stop(ngx_http_llm_current);
    }
}


/* fails only for lack of memory or connections: nginx does not restart a worker
   that failed in init_process */

static ngx_int_t
ngx_http_llm_start(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log)
{
    uint32_t                n;
    llm_client_conf_t       conf;
    ngx_http_llm_worker_t  *w;

    n = (ngx_process == NGX_PROCESS_SINGLE) ? 0 : ngx_worker;

    w = ngx_pcalloc(mcf->cycle->pool, sizeof(ngx_http_llm_worker_t));
    if (w == NULL) {
        return NGX_ERROR;
    }

    w->n = n;
    w->counters = &ngx_http_llm_counters(mcf)[n];
    w->counters->unsent = 0;            /* a crashed predecessor may have
                                           left it */

    llm_buf_init(&w->scratch, 0);

    w->counters->open = 0;
    w->counters->streams = 0;
    w->counters->quitting = 0;
    w->counters->born = ngx_http_llm_born();
    ngx_memory_barrier();
    w->counters->pid = ngx_pid;

    mcf->worker = w;
    ngx_http_llm_current = mcf;

    mcf->requests->init();
    ngx_queue_init(&w->live);
    ngx_queue_init(&w->dirty);

    w->free = NGX_HTTP_LLM_NO_SLOT;

    w->watch.handler = ngx_http_llm_watch_handler;
    w->watch.cancelable = 1;
    ngx_http_llm_init_shutdown(w);
    w->lost.handler = ngx_http_llm_lost_handler;
    w->lost.cancelable = 1;
    w->start.handler = ngx_http_llm_start_handler;
    w->start.cancelable = 1;
    w->start.log = log;
    w->start_pause = NGX_HTTP_LLM_START;

    conf.zone = mcf->zone;
    conf.worker = n;
    conf.engine_fd = mcf->fds[mcf->nworkers];

    w->client = llm_client_attach(&conf);
    if (w->client == NULL) {
        return NGX_ERROR;
    }

    llm_client_look_ahead(w->client, mcf->requests->ahead);

    if (ngx_http_llm_init_tasks(&w->tasks, mcf->fds[n], log) != NGX_OK
        || ngx_http_llm_add_event(mcf, mcf->fds[n], log) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void
ngx_http_llm_stop(ngx_http_llm_main_conf_t *mcf)
{
    ngx_http_llm_worker_t  *w;

    w = mcf->worker;

    if (w->engine) {
        llm_engine_stop(w->engine);
    }

    if (w->client) {
        llm_client_detach(w->client);
    }

    if (w->conn) {
        (void) ngx_del_event(w->conn->read, NGX_READ_EVENT, 0);
        ngx_free_connection(w->conn);
        w->conn->fd = (ngx_socket_t) -1;
    }

    if (w->watch.timer_set) {
        ngx_del_timer(&w->watch);
    }

    if (w->hold.timer_set) {
        ngx_del_timer(&w->hold);
    }

    if (w->cutoff.timer_set) {
        ngx_del_timer(&w->cutoff);
    }

    if (w->lost.timer_set) {
        ngx_del_timer(&w->lost);
    }

    if (w->start.timer_set) {
        ngx_del_timer(&w->start);
    }

    ngx_free(w->slots);
    llm_buf_free(&w->scratch);

    while (w->nspare) {
        ngx_free(w->spare[--w->nspare]);
    }

    w->counters->pid = 0;

    mcf->worker = NULL;
    ngx_http_llm_current = NULL;
}


/*
 * The engine's threads inherit this thread's settings: all signals are
 * blocked except SIGBUS, which mapped files may raise, and
 * worker_cpu_affinity does not apply to them.
 */

static ngx_int_t
ngx_http_llm_start_engine(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log)
{
    sigset_t                all, old;
    cpu_set_t               cpus;
    llm_err_t               err;
    ngx_int_t               affinity;
    llm_engine_conf_t       conf;
    llm_engine_model_t     *models;
    ngx_http_llm_worker_t  *w;

    w = mcf->worker;

    models = ngx_http_llm_engine_models(mcf);
    if (models == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(&conf, sizeof(llm_engine_conf_t));

    conf.zone = mcf->zone;
    conf.kept = &mcf->kept;
    conf.engines = mcf->engines->data;
    conf.models = models;
    conf.n_models = mcf->models.nelts;
    conf.engine_fd = mcf->fds[mcf->nworkers];
    conf.worker_fds = mcf->fds;
    conf.n_workers = mcf->nworkers;
    conf.max_bytes = mcf->queue_memory;
    conf.log = ngx_http_llm_log;
    conf.log_data = mcf->cycle->log;

    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    (void) pthread_sigmask(SIG_BLOCK, &all, &old);

    affinity = mcf->affinity
               && sched_getaffinity(0, sizeof(cpu_set_t), &cpus) == 0
               && sched_setaffinity(0, sizeof(cpu_set_t), mcf->affinity) == 0;

    ngx_memzero(&err, sizeof(llm_err_t));
    w->engine = llm_engine_start(&conf, &err);

    if (affinity) {
        (void) sched_setaffinity(0, sizeof(cpu_set_t), &cpus);
    }

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    ngx_free(models);

    if (w->engine == NULL) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "the engine does not start: %s, trying again in %M ms",
                      err.msg, w->start_pause);

        ngx_add_timer(&w->start, w->start_pause);
        w->start_pause = ngx_min(w->start_pause * 2, NGX_HTTP_LLM_START_MAX);
    }

    return NGX_OK;
}


static void
ngx_http_llm_start_handler(ngx_event_t *ev)
{
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_llm_event_conf(ev);

    if (ngx_exiting) {
        return;
    }

    if (ngx_http_llm_start_engine(mcf, ev->log) != NGX_OK) {
        ngx_add_timer(ev, mcf->worker->start_pause);
    }
}


/* from malloc(); the caller frees it, because the engine makes a copy */

static llm_engine_model_t *
ngx_http_llm_engine_models(ngx_http_llm_main_conf_t *mcf)
{
    ngx_uint_t             i;
    llm_engine_model_t    *em;
    ngx_http_llm_model_t  *model;

    em = ngx_calloc(mcf->models.nelts * sizeof(llm_engine_model_t),
                    mcf->cycle->log);
    if (em == NULL) {
        return NULL;
    }

    model = mcf->models.elts;

    for (i = 0; i < mcf->models.nelts; i++) {
        em[i] = model[i].engine;
    }

    return em;
}


/*
 * Called by the engine's threads; nginx's thread pools log in the same way.  A
 * line has the time of the event loop's last iteration, which may be long ago,
 * so the time is updated here; nginx allows that in any thread.
 */

static void
ngx_http_llm_log(void *data, int level, const char *msg)
{
    ngx_log_t *log = data;

    if (log->log_level >= (ngx_uint_t) level) {
        ngx_time_update();
    }

    ngx_log_error((ngx_uint_t) level, log, 0, "llm: %s", msg);
}


/*
 * Does the same as ngx_add_channel_event(), which does not return its
 * connection.  With "channel" nginx does not report the connection as left open
 * at shutdown; with "idle" nginx calls its handler when a graceful shutdown
 * begins.
 */

static ngx_int_t
ngx_http_llm_add_event(ngx_http_llm_main_conf_t *mcf, int fd, ngx_log_t *log)
{
    ngx_int_t               rc;
    ngx_connection_t       *c;
    ngx_http_llm_worker_t  *w;

    w = mcf->worker;

    c = ngx_get_connection(fd, log);
    if (c == NULL) {
        return NGX_ERROR;
    }

    c->pool = mcf->cycle->pool;
    c->data = mcf;
    c->idle = 1;

    c->read->log = log;
    c->write->log = log;
    c->read->channel = 1;
    c->write->channel = 1;
    c->read->handler = ngx_http_llm_event_handler;

    w->conn = c;

    /* the debug log shows the fd of a timer's connection */

    w->watch.data = c;
    w->watch.log = log;
    w->hold.data = c;
    w->hold.log = log;
    w->cutoff.data = c;
    w->cutoff.log = log;
    w->lost.data = c;
    w->lost.log = log;
    w->start.data = c;

    if (ngx_add_conn && (ngx_event_flags & NGX_USE_EPOLL_EVENT) == 0) {
        rc = ngx_add_conn(c);

    } else {
        rc = ngx_add_event(c->read, NGX_READ_EVENT, 0);
    }

    if (rc == NGX_ERROR) {
        ngx_free_connection(c);
        w->conn = NULL;
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void
ngx_http_llm_event_handler(ngx_event_t *ev)
{
    ssize_t                    n;
    uint64_t                   count;
    ngx_connection_t          *c;
    ngx_http_llm_main_conf_t  *mcf;

    c = ev->data;
    mcf = c->data;

    if (c->close) {
        c->close = 0;
        c->idle = 0;
        ngx_http_llm_begin_shutdown(mcf);
    }

    /* EAGAIN: the handler was posted to continue a large drain */

    n = ngx_read_fd(c->fd, &count, sizeof(uint64_t));

    if (n == -1 && ngx_errno != NGX_EAGAIN) {
        ngx_log_error(NGX_LOG_ALERT, ev->log, ngx_errno,
                      "read() of an eventfd failed");
    }

    ngx_http_llm_finish_tasks(&mcf->worker->tasks);
    ngx_http_llm_drain(mcf);
}


static void
ngx_http_llm_drain(ngx_http_llm_main_conf_t *mcf)
{
    uint32_t                n, taken;
    ngx_event_t            *rev;
    ngx_http_llm_worker_t  *w;

    w = mcf->worker;
    taken = 0;

    do {
        n = llm_client_drain(w->client, mcf->requests->event, mcf,
                             NGX_HTTP_LLM_SENDS);
        taken += n;

        mcf->requests->send(w);

    } while (n == NGX_HTTP_LLM_SENDS && taken < NGX_HTTP_LLM_EVENTS);

    if (n == NGX_HTTP_LLM_SENDS) {
        rev = w->conn->read;
        ngx_post_event(rev, &ngx_posted_next_events);
    }

    if (w->engine && llm_engine_lost(w->engine)
        && !w->lost.timer_set && !w->lost.timedout)
    {
        ngx_add_timer(&w->lost, NGX_HTTP_LLM_LOST);
    }
}


/*
 * The GPU's context is lost, and by now other workers, too, have read the
 * errors of the requests that used it.  This process ends; the master starts
 * another one, which can use the GPU again.
 */

static void
ngx_http_llm_lost_handler(ngx_event_t *ev)
{
    if (ngx_process == NGX_PROCESS_SINGLE) {
        ngx_log_error(NGX_LOG_ERR, ev->log, 0,
                      "the GPU's context is lost, and there is no master "
                      "process to restart this one");
        return;
    }

    ngx_log_error(NGX_LOG_ERR, ev->log, 0,
                  "the GPU's context is lost, this worker is started again");

    ngx_terminate = 1;
}


/* a dead engine does not write the eventfd, so this timer drains the ring;
   llm_client_drain() notices that the engine is dead or replaced */

static void
ngx_http_llm_watch_handler(ngx_event_t *ev)
{
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_llm_event_conf(ev);

    ngx_http_llm_drain(mcf);

    if (mcf->worker->nlive && !ev->timer_set) {
        ngx_add_timer(ev, NGX_HTTP_LLM_WATCH);
    }
}
