/*
 * What a configuration cycle creates before it has processes: the shared zone
 * and the eventfds.
 *
 * - All that can fail is done while the configuration can still be rolled
 *   back: in init_conf and in the zone's init.  The master never starts a
 *   thread.
 * - Without a master process a reload would build a new cycle in the process
 *   that serves, and unmap the zone that the engine's threads use (nginx
 *   itself hardly supports this case).  The reload is refused, and the old
 *   cycle continues.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/worker/ngx_http_llm_worker.h"

#include <sys/eventfd.h>


static ngx_int_t ngx_http_llm_init_zone(ngx_shm_zone_t *shm_zone, void *data);
static size_t ngx_http_llm_media_size(ngx_http_llm_main_conf_t *mcf);
static ngx_int_t ngx_http_llm_init_engines(ngx_shm_zone_t *shm_zone,
    void *data);
static llm_engines_t *ngx_http_llm_map_engines(ngx_http_llm_main_conf_t *mcf,
    ngx_log_t *log);
static ngx_int_t ngx_http_llm_open_fds(ngx_http_llm_main_conf_t *mcf);
static void ngx_http_llm_close_fds(void *data);


/* the zone's size is set later, by ngx_http_llm_size_zone() */

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
    mcf->engines->data = mcf;

    return NGX_CONF_OK;
}


/*
 * This zone is kept over reloads, and so is the mapping of a file in the folder
 * of the pid file, which the masters before and after a binary upgrade share.
 * If the file cannot be used, the table of engines is in the zone, and a new
 * binary does not see the engine of the old one.
 */

static ngx_int_t
ngx_http_llm_init_engines(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_slab_pool_t           *shpool;
    ngx_http_llm_main_conf_t  *mcf;

    if (data) {
        shm_zone->data = data;
        return NGX_OK;
    }

    mcf = shm_zone->data;
    shm_zone->data = ngx_http_llm_map_engines(mcf, shm_zone->shm.log);

    if (shm_zone->data == NULL) {
        shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
        shm_zone->data = ngx_slab_calloc(shpool, llm_engines_size());
    }

    return shm_zone->data ? NGX_OK : NGX_ERROR;
}


static llm_engines_t *
ngx_http_llm_map_engines(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log)
{
    u_char            path[NGX_MAX_PATH];
    llm_err_t         err;
    llm_engines_t    *engines;
    ngx_core_conf_t  *ccf;

    /* "nginx -t" starts no engine */

    if (ngx_test_config) {
        return NULL;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(mcf->cycle->conf_ctx,
                                           ngx_core_module);

    (void) ngx_snprintf(path, sizeof(path), "%V.llm%Z", &ccf->pid);
    path[sizeof(path) - 1] = '\0';

    ngx_memzero(&err, sizeof(llm_err_t));

    engines = llm_engines_map((char *) path, &err);

    if (engines == NULL) {
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "a binary upgrade will not wait until the old engine "
                      "has freed its memory, because \"%s\" cannot be used: "
                      "%s", path, err.msg);
    }

    return engines;
}


/* called when the number of workers is known, and the memory is not allocated
   yet */

char *
ngx_http_llm_size_zone(ngx_cycle_t *cycle)
{
    size_t                     size;
    ngx_core_conf_t           *ccf;
    ngx_http_llm_main_conf_t  *mcf;

    if (ngx_process == NGX_PROCESS_SINGLE && ngx_http_llm_serves()) {
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

    size += mcf->models.nelts * ngx_http_llm_lives_each(mcf);
    size += ngx_http_llm_media_size(mcf);

    /* the slab allocator itself needs an entry for each page, and a header */

    mcf->shm_zone->shm.size = ngx_align(size + size / 64 + 16 * ngx_pagesize,
                                        ngx_pagesize);

    return NGX_CONF_OK;
}


/* bytes for the media of requests; 0: no model takes any, and none that does
   may be added.  Pages of them are used from their first media on */

static size_t
ngx_http_llm_media_size(ngx_http_llm_main_conf_t *mcf)
{
    ngx_uint_t  i;

    if (mcf->nadded) {
        return llm_media_size(mcf->media_memory);
    }

    for (i = 0; i < mcf->models.nelts; i++) {
        if (mcf->api_models[i].media) {
            return llm_media_size(mcf->media_memory);
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_llm_init_zone(ngx_shm_zone_t *shm_zone, void *data)
{
    void                      *mem;
    size_t                     size;
    ngx_uint_t                 i, speech;
    ngx_slab_pool_t           *shpool;
    llm_zone_model_t           zone_models[LLM_MAX_MODELS];
    ngx_http_llm_model_t      *model;
    ngx_http_llm_main_conf_t  *mcf;

    mcf = shm_zone->data;
    model = mcf->models.elts;

    for (i = 0; i < mcf->models.nelts; i++) {
        speech = (mcf->api_models[i].media & LLM_MEDIUM_SPEECH) != 0;
        zone_models[i].speech = speech;
        zone_models[i].parallel = llm_parallel(&model[i].engine, speech);
        zone_models[i].other = llm_parallel(&model[i].engine, !speech);
        zone_models[i].places = model[i].queue == -1
                                ? 0 : zone_models[i].parallel + model[i].queue;
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

    llm_zone_set_bounds(mcf->zone, &mcf->bounds);

    size = ngx_http_llm_media_size(mcf);

    if (size) {
        mem = ngx_slab_alloc(shpool, size);

        if (mem == NULL) {
            ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                          "no %uz bytes of shared memory for "
                          "\"llm_media_memory\"", size);
            return NGX_ERROR;
        }

        llm_zone_set_media(mcf->zone, mem, mcf->media_memory);
    }

    if (ngx_http_llm_on_zone(mcf, shpool, shm_zone->shm.log) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_llm_open_fds(mcf);
}


/* opens the eventfds in the master, so that workers started later have the same
   ones */

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


/* errors are not logged, because the cycle's log is already closed */

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
