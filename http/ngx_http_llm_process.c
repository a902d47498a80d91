/*
 * Processes: the shared zone and the eventfds of a configuration cycle, the
 * engine in worker 0, the client that every worker is of it, and how both
 * end.
 *
 * - What can fail (zone, eventfds) is done while the configuration can
 *   still be rolled back: in init_conf and in the zone's init.  The master
 *   never runs a thread.
 * - The eventfd's connection is marked idle.  So nginx calls its handler at
 *   the start of a graceful shutdown, and worker 0 can hold itself alive
 *   with a timer as long as any worker of its cycle has a request for the
 *   engine, be it still uploading its body or delayed by limit_req.  All
 *   other workers live by the timers of their own requests.
 * - Without a master process a reload would build a new cycle in the process
 *   that serves, and unmap the zone under the engine's threads (nginx itself
 *   does not serve well after it): it is refused, the old cycle goes on.
 */

#include "http/ngx_http_llm_module.h"

#include <sched.h>
#include <sys/eventfd.h>


/* events handed out before requests are served and the loop goes round */
#define NGX_HTTP_LLM_EVENTS  2048

/* how often a worker with live requests looks whether its engine lives */
#define NGX_HTTP_LLM_WATCH   500

/* how often a draining worker 0 looks whether anything is live */
#define NGX_HTTP_LLM_HOLD    50

/* for how long a connection that a draining worker has accepted may still
   come with its first request, and find the engine */
#define NGX_HTTP_LLM_LATE    5000

/* what other workers have to read the last events of a worker 0 that ends */
#define NGX_HTTP_LLM_LOST    200

/* pauses between tries to start an engine whose threads do not start */
#define NGX_HTTP_LLM_START      1000
#define NGX_HTTP_LLM_START_MAX  60000


static ngx_int_t ngx_http_llm_init_zone(ngx_shm_zone_t *shm_zone, void *data);
static ngx_int_t ngx_http_llm_init_engines(ngx_shm_zone_t *shm_zone,
    void *data);
static ngx_int_t ngx_http_llm_open_fds(ngx_http_llm_main_conf_t *mcf);
static void ngx_http_llm_close_fds(void *data);
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
static void ngx_http_llm_begin_shutdown(ngx_http_llm_main_conf_t *mcf);
static void ngx_http_llm_hold_handler(ngx_event_t *ev);
static ngx_uint_t ngx_http_llm_needed(ngx_http_llm_main_conf_t *mcf);
static ngx_int_t ngx_http_llm_count_handler(ngx_http_request_t *r);
static void ngx_http_llm_uncount(void *data);
static void ngx_http_llm_cutoff_handler(ngx_event_t *ev);
static void ngx_http_llm_lost_handler(ngx_event_t *ev);
static void ngx_http_llm_end_requests(ngx_http_llm_worker_t *w);


/* the configuration whose engine or client runs in this process */
static ngx_http_llm_main_conf_t  *ngx_http_llm_current;


/* the zone, but for its size: see ngx_http_llm_size_zone() */

char *
ngx_http_llm_add_zone(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf)
{
    ngx_str_t  name = ngx_string("llm");
    ngx_str_t  engines = ngx_string("llm_engines");

    mcf->shm_zone = ngx_shared_memory_add(cf, &name, 0, &ngx_http_llm_module);
    if (mcf->shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    mcf->shm_zone->init = ngx_http_llm_init_zone;
    mcf->shm_zone->data = mcf;
    mcf->shm_zone->noreuse = 1;

    mcf->engines = ngx_shared_memory_add(cf, &engines,
                                         ngx_align(llm_engines_size(),
                                                   ngx_pagesize)
                                         + 8 * ngx_pagesize,
                                         &ngx_http_llm_module);
    if (mcf->engines == NULL) {
        return NGX_CONF_ERROR;
    }

    mcf->engines->init = ngx_http_llm_init_engines;

    return NGX_CONF_OK;
}


/* this one stays over reloads */

static ngx_int_t
ngx_http_llm_init_engines(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_slab_pool_t  *shpool;

    if (data) {
        shm_zone->data = data;
        return NGX_OK;
    }

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    shm_zone->data = ngx_slab_calloc(shpool, llm_engines_size());

    return shm_zone->data ? NGX_OK : NGX_ERROR;
}


/* the number of workers is known now, and memory not allocated yet */

char *
ngx_http_llm_size_zone(ngx_cycle_t *cycle)
{
    size_t                     size;
    ngx_core_conf_t           *ccf;
    ngx_http_llm_main_conf_t  *mcf;

    if (ngx_process == NGX_PROCESS_SINGLE && ngx_http_llm_current) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, 0,
                      "\"llm_model\" cannot be reloaded without a master "
                      "process: restart nginx to change its configuration");
        return NGX_CONF_ERROR;
    }

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_llm_module);

    if (mcf == NULL || mcf->shm_zone == NULL) {
        return NGX_CONF_OK;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    mcf->nworkers = ccf->master ? ccf->worker_processes : 1;

    if (mcf->nworkers > LLM_MAX_WORKERS) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "\"llm_model\" works with up to %d worker processes",
                      LLM_MAX_WORKERS);
        return NGX_CONF_ERROR;
    }

    size = llm_zone_size(mcf->nworkers, mcf->models.nelts,
                         mcf->shared_memory);

    /* the slab allocator's own needs: an entry a page, its header */

    mcf->shm_zone->shm.size = ngx_align(size + size / 64 + 16 * ngx_pagesize,
                                        ngx_pagesize);

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_llm_init_zone(ngx_shm_zone_t *shm_zone, void *data)
{
    void                      *mem;
    size_t                     size;
    ngx_uint_t                 i;
    ngx_slab_pool_t           *shpool;
    llm_zone_model_t           zone_models[LLM_MAX_MODELS];
    ngx_http_llm_model_t      *model;
    ngx_http_llm_main_conf_t  *mcf;

    mcf = shm_zone->data;
    model = mcf->models.elts;

    for (i = 0; i < mcf->models.nelts; i++) {
        zone_models[i].parallel = model[i].parallel;
    }

    size = llm_zone_size(mcf->nworkers, mcf->models.nelts,
                         mcf->shared_memory);

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    mem = ngx_slab_alloc(shpool, size);
    mcf->counters = ngx_slab_calloc(shpool, mcf->nworkers
                                            * sizeof(ngx_http_llm_counters_t));

    if (mem == NULL || mcf->counters == NULL) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                      "no %uz bytes of shared memory for \"llm_model\"", size);
        return NGX_ERROR;
    }

    mcf->zone = llm_zone_init(mem, mcf->nworkers, zone_models,
                              mcf->models.nelts, mcf->shared_memory,
                              mcf->queue);
    if (mcf->zone == NULL) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                      "\"llm_shared_memory\" is too small");
        return NGX_ERROR;
    }

    return ngx_http_llm_open_fds(mcf);
}


/* made in the master, so that a worker born later has the same ones */

static ngx_int_t
ngx_http_llm_open_fds(ngx_http_llm_main_conf_t *mcf)
{
    ngx_uint_t           i;
    ngx_pool_cleanup_t  *cln;

    mcf->fds = ngx_palloc(mcf->cycle->pool,
                          (mcf->nworkers + 1) * sizeof(int));
    if (mcf->fds == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i <= mcf->nworkers; i++) {
        mcf->fds[i] = -1;
    }

    cln = ngx_pool_cleanup_add(mcf->cycle->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_llm_close_fds;
    cln->data = mcf;

    for (i = 0; i <= mcf->nworkers; i++) {
        mcf->fds[i] = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

        if (mcf->fds[i] == -1) {
            ngx_log_error(NGX_LOG_EMERG, mcf->cycle->log, ngx_errno,
                          "eventfd() failed");
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* the cycle dies and its log is closed already */

static void
ngx_http_llm_close_fds(void *data)
{
    ngx_http_llm_main_conf_t *mcf = data;

    ngx_uint_t  i;

    for (i = 0; i <= mcf->nworkers; i++) {
        if (mcf->fds[i] != -1) {
            (void) close(mcf->fds[i]);
        }
    }
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

    if (ngx_process != NGX_PROCESS_SINGLE && ngx_process != NGX_PROCESS_WORKER)
    {
        return NGX_OK;
    }

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_llm_module);

    if (mcf == NULL || mcf->shm_zone == NULL) {
        return NGX_OK;
    }

    return ngx_http_llm_start(mcf, cycle->log);
}


void
ngx_http_llm_exit_process(ngx_cycle_t *cycle)
{
    if (ngx_http_llm_current) {
        ngx_http_llm_stop(ngx_http_llm_current);
    }
}


/* only want of memory fails here: nginx does not start a worker again that
   failed in its init_process */

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

    w->counters = &mcf->counters[n];
    w->counters->unsent = 0;            /* a dead predecessor's */

    llm_buf_init(&w->scratch, 0);

    w->counters->open = 0;
    w->counters->quitting = 0;
    w->counters->pid = ngx_pid;

    mcf->worker = w;
    ngx_http_llm_current = mcf;

    ngx_http_llm_init_bodies();
    ngx_queue_init(&w->live);
    ngx_queue_init(&w->dirty);

    w->free = NGX_HTTP_LLM_NO_SLOT;

    w->watch.handler = ngx_http_llm_watch_handler;
    w->watch.cancelable = 1;
    w->hold.handler = ngx_http_llm_hold_handler;
    w->cutoff.handler = ngx_http_llm_cutoff_handler;
    w->cutoff.cancelable = 1;
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

    if (ngx_http_llm_init_tasks(&w->tasks, mcf->fds[n], log) != NGX_OK
        || ngx_http_llm_add_event(mcf, mcf->fds[n], log) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return n == 0 ? ngx_http_llm_start_engine(mcf, log) : NGX_OK;
}


static void
ngx_http_llm_stop(ngx_http_llm_main_conf_t *mcf)
{
    ngx_http_llm_worker_t  *w;

    w = mcf->worker;

    /* requests are live here when nginx was told to end at once */

    ngx_http_llm_end_requests(w);

    ngx_http_llm_stop_tasks(&w->tasks);

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

    w->counters->pid = 0;

    mcf->worker = NULL;
    ngx_http_llm_current = NULL;
}


/*
 * The engine's threads inherit what this thread has: all signals are blocked
 * in them but SIGBUS, which the engine's mapped files raise, and
 * worker_cpu_affinity does not hold for them.
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
    ngx_connection_t          *c;
    ngx_http_llm_main_conf_t  *mcf;

    c = ev->data;
    mcf = c->data;

    if (ngx_exiting) {
        return;
    }

    if (ngx_http_llm_start_engine(mcf, ev->log) != NGX_OK) {
        ngx_add_timer(ev, mcf->worker->start_pause);
    }
}


/* malloc(): the engine copies it */

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
        em[i].name = (char *) model[i].name.data;
        em[i].path = (char *) model[i].path.data;
        em[i].device = (char *) model[i].device.data;
        em[i].ctx = model[i].ctx;
        em[i].parallel = model[i].parallel;
        em[i].threads = model[i].threads;
        em[i].batch = model[i].batch;
        em[i].kv_cache = model[i].kv_cache;
        em[i].weights_fp8 = model[i].weights_fp8;
        em[i].kv_fp8 = model[i].kv_fp8;
        em[i].idle_s = model[i].idle;
        em[i].lazy = model[i].lazy;

        if (model[i].template_path.len) {
            em[i].template_path = (char *) model[i].template_path.data;
        }
    }

    return em;
}


/*
 * Called by engine threads, as nginx's own thread pools log.  The time of a
 * line is that of the event loop's last turn, which may be long ago where
 * nothing happens: it is updated here, as nginx allows several threads to.
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
 * As ngx_add_channel_event() does it, whose connection could not be found
 * again: "channel" spares it the sweep at shutdown, "idle" lets nginx call
 * us when a graceful shutdown begins.
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

    /* timers show their connection in the debug log */

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

    /* EAGAIN: posted for the rest of a large drain */

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
    uint32_t                n;
    ngx_event_t            *rev;
    ngx_http_llm_worker_t  *w;

    w = mcf->worker;

    n = llm_client_drain(w->client, ngx_http_llm_event, mcf,
                         NGX_HTTP_LLM_EVENTS);

    ngx_http_llm_send_dirty(w);

    if (n == NGX_HTTP_LLM_EVENTS) {
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
 * Whose requests were lost with the GPU's context has been told by now, in
 * other workers, too.  nginx's master starts another process, which has the
 * GPU again.
 */

static void
ngx_http_llm_lost_handler(ngx_event_t *ev)
{
    if (ngx_process == NGX_PROCESS_SINGLE) {
        ngx_log_error(NGX_LOG_ERR, ev->log, 0,
                      "the GPU's context is lost, and there is no master "
                      "that starts this process again");
        return;
    }

    ngx_log_error(NGX_LOG_ERR, ev->log, 0,
                  "the GPU's context is lost, this worker is started again");

    ngx_terminate = 1;
}


/* a dead engine writes no eventfd; a new one is noticed by drain() */

static void
ngx_http_llm_watch_handler(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_http_llm_main_conf_t  *mcf;

    c = ev->data;
    mcf = c->data;

    ngx_http_llm_drain(mcf);

    if (mcf->worker->nlive && !ev->timer_set) {
        ngx_add_timer(ev, NGX_HTTP_LLM_WATCH);
    }
}


/* this worker got QUIT; its requests go on until worker_shutdown_timeout */

static void
ngx_http_llm_begin_shutdown(ngx_http_llm_main_conf_t *mcf)
{
    ngx_msec_t              timeout;
    ngx_core_conf_t        *ccf;
    ngx_http_llm_worker_t  *w;

    w = mcf->worker;

    w->counters->quit = ngx_current_msec;
    ngx_memory_barrier();
    w->counters->quitting = 1;

    if (ngx_http_llm_needed(mcf)) {
        ngx_add_timer(&w->hold, NGX_HTTP_LLM_HOLD);
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(mcf->cycle->conf_ctx,
                                           ngx_core_module);
    timeout = ccf->shutdown_timeout;

    if (timeout) {

        /* nginx marks the connections as failed then, too late for a last
           word; ours goes out shortly before */

        ngx_add_timer(&w->cutoff, timeout - ngx_min(timeout / 4, 100));
    }
}


static void
ngx_http_llm_hold_handler(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_http_llm_main_conf_t  *mcf;

    c = ev->data;
    mcf = c->data;

    if (ngx_http_llm_needed(mcf)) {
        ngx_add_timer(ev, NGX_HTTP_LLM_HOLD);
    }
}


/*
 * Will another worker of this cycle still come with a request?  One that has
 * not got its QUIT yet may accept any; later those count that are open, and
 * for a while the connections that it has accepted.
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
        c = &mcf->counters[i];

        if (c == w->counters || c->pid == 0
            || (kill((ngx_pid_t) c->pid, 0) == -1 && ngx_errno == NGX_ESRCH))
        {
            continue;
        }

        if (c->open || !c->quitting
            || ngx_current_msec - (ngx_msec_t) c->quit < NGX_HTTP_LLM_LATE)
        {
            return 1;
        }
    }

    return 0;
}


/*
 * In the rewrite phase the location is known, but for those of "if"; in the
 * preaccess phase, where limit_req delays requests, it is known for sure.
 * Handlers of modules that are loaded last are called first.
 */

ngx_int_t
ngx_http_llm_add_phases(ngx_conf_t *cf)
{
    ngx_uint_t                  i;
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;
    static ngx_uint_t           phases[] = { NGX_HTTP_REWRITE_PHASE,
                                             NGX_HTTP_PREACCESS_PHASE };

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    for (i = 0; i < 2; i++) {
        h = ngx_array_push(&cmcf->phases[phases[i]].handlers);
        if (h == NULL) {
            return NGX_ERROR;
        }

        *h = ngx_http_llm_count_handler;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_llm_count_handler(ngx_http_request_t *r)
{
    ngx_http_cleanup_t        *cln;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_llm_main_conf_t  *mcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (clcf->handler != ngx_http_llm_api_handler || r != r->main) {
        return NGX_DECLINED;
    }

    for (cln = r->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_llm_uncount) {
            return NGX_DECLINED;
        }
    }

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);

    cln->handler = ngx_http_llm_uncount;
    cln->data = mcf->worker->counters;

    mcf->worker->counters->open++;

    return NGX_DECLINED;
}


static void
ngx_http_llm_uncount(void *data)
{
    ngx_http_llm_counters_t *counters = data;

    counters->open--;
}


static void
ngx_http_llm_cutoff_handler(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_http_llm_main_conf_t  *mcf;

    c = ev->data;
    mcf = c->data;

    ngx_http_llm_end_requests(mcf->worker);
}


static void
ngx_http_llm_end_requests(ngx_http_llm_worker_t *w)
{
    ngx_queue_t         *q;
    ngx_http_llm_ctx_t  *ctx;

    while (!ngx_queue_empty(&w->live)) {
        q = ngx_queue_head(&w->live);
        ctx = ngx_queue_data(q, ngx_http_llm_ctx_t, live);

        ngx_http_llm_fail(ctx, 503, "server_shutdown",
                          "The server is shutting down.");
    }

    ngx_http_llm_send_dirty(w);
}


/* the engine knows a request by its slot here and its ticket */

ngx_int_t
ngx_http_llm_take_slot(ngx_http_llm_ctx_t *ctx)
{
    uint32_t                i, n;
    ngx_http_llm_slot_t    *slots;
    ngx_http_llm_worker_t  *w;

    w = ctx->main->worker;

    if (w->free == NGX_HTTP_LLM_NO_SLOT) {

        n = w->nslots ? w->nslots * 2 : 64;

        if (n > LLM_MAX_SLOTS) {
            return NGX_ERROR;
        }

        slots = ngx_alloc(n * sizeof(ngx_http_llm_slot_t),
                          ctx->request->connection->log);
        if (slots == NULL) {
            return NGX_ERROR;
        }

        if (w->nslots) {
            ngx_memcpy(slots, w->slots,
                       w->nslots * sizeof(ngx_http_llm_slot_t));
            ngx_free(w->slots);
        }

        for (i = n; i > w->nslots; i--) {
            slots[i - 1].ctx = NULL;
            slots[i - 1].next = w->free;
            w->free = i - 1;
        }

        w->slots = slots;
        w->nslots = n;
    }

    ctx->slot = w->free;
    w->free = w->slots[ctx->slot].next;
    w->slots[ctx->slot].ctx = ctx;

    ngx_queue_insert_tail(&w->live, &ctx->live);
    w->nlive++;

    if (!w->watch.timer_set) {
        ngx_add_timer(&w->watch, NGX_HTTP_LLM_WATCH);
    }

    return NGX_OK;
}


void
ngx_http_llm_free_slot(ngx_http_llm_ctx_t *ctx)
{
    ngx_http_llm_worker_t  *w;

    w = ctx->main->worker;

    w->slots[ctx->slot].ctx = NULL;
    w->slots[ctx->slot].next = w->free;
    w->free = ctx->slot;

    ctx->slot = NGX_HTTP_LLM_NO_SLOT;

    ngx_queue_remove(&ctx->live);
    w->nlive--;
}
