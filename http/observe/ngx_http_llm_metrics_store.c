/*
 * Shared memory of metrics, which survives reloads: the zone "llm_figures",
 * whose size never changes, and, if llm_metrics has tenants=, a zone
 * "llm_tenants_N".  A binary upgrade begins with zeros, as any start does.
 *
 * - Models are identified by their names: a model of the new configuration goes
 *   on with the counters of its name.  A model that is gone keeps its place
 *   until a new one finds no free place.  One that llm_admin adds begins with
 *   zeros.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/observe/ngx_http_llm_metrics.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"


/* cells of a tally for each model and each tenant: its endpoints times their
   statuses, and its errors */
#define NGX_HTTP_LLM_MODEL_CELLS   48
#define NGX_HTTP_LLM_TENANT_CELLS  48


static ngx_int_t ngx_http_llm_init_figures(ngx_shm_zone_t *shm_zone,
    void *data);
static ngx_int_t ngx_http_llm_init_tenants(ngx_shm_zone_t *shm_zone,
    void *data);
static size_t ngx_http_llm_figures_size(void);
static size_t ngx_http_llm_tenants_size(ngx_uint_t n);
static ngx_uint_t ngx_http_llm_tenants_cells(ngx_uint_t n);
static void *ngx_http_llm_find_place(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t model);
static ngx_http_llm_score_t *ngx_http_llm_find_score(
    ngx_http_llm_main_conf_t *mcf, ngx_str_t *name);


char *
ngx_http_llm_add_figures(ngx_conf_t *cf, ngx_http_llm_stats_t *f)
{
    ngx_str_t  name = ngx_string("llm_figures");
    ngx_str_t  tenants;

    f->shm_zone = ngx_shared_memory_add(cf, &name,
                                        ngx_http_llm_figures_size(),
                                        &ngx_http_llm_metrics_module);
    if (f->shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    f->shm_zone->init = ngx_http_llm_init_figures;

    if (f->ntenants == 0) {
        return NGX_CONF_OK;
    }

    /* the zone's name has the number, because the size is whole pages, and may
       be the same for another number; another number begins with zeros */

    tenants.data = ngx_pnalloc(cf->pool, sizeof("llm_tenants_") - 1
                                         + NGX_INT_T_LEN);
    if (tenants.data == NULL) {
        return NGX_CONF_ERROR;
    }

    tenants.len = ngx_sprintf(tenants.data, "llm_tenants_%ui", f->ntenants)
                  - tenants.data;

    f->tenants_zone = ngx_shared_memory_add(cf, &tenants,
                                            ngx_http_llm_tenants_size(
                                                                f->ntenants),
                                            &ngx_http_llm_metrics_module);
    if (f->tenants_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    f->tenants_zone->init = ngx_http_llm_init_tenants;

    /* replaced by init() */
    f->tenants_zone->data = f;

    return NGX_CONF_OK;
}


/* adds what the slab allocator itself needs */

static size_t
ngx_http_llm_slab_size(size_t size)
{
    return ngx_align(size + size / 32 + 24 * ngx_pagesize, ngx_pagesize);
}


static size_t
ngx_http_llm_figures_size(void)
{
    size_t  counters;

    for (counters = 64; counters < llm_counters_size(); counters *= 2) {
        /* void */
    }

    return ngx_http_llm_slab_size(sizeof(ngx_http_llm_kept_t)
                                  + NGX_HTTP_LLM_PLACES * counters
                                  + LLM_MAX_WORKERS * llm_sent_size()
                                  + ngx_http_llm_tally_size(
                                                1 + NGX_HTTP_LLM_PLACES,
                                                NGX_HTTP_LLM_MODEL_CELLS));
}


/* cells of the index, at most half of which are used */

static ngx_uint_t
ngx_http_llm_tenants_cells(ngx_uint_t n)
{
    ngx_uint_t  cells;

    for (cells = 64; cells < 2 * n; cells *= 2) { /* void */ }

    return cells;
}


static size_t
ngx_http_llm_tenants_size(ngx_uint_t n)
{
    ngx_uint_t  owners;

    owners = n + NGX_HTTP_LLM_FIRST_TENANT;

    return ngx_http_llm_slab_size(sizeof(ngx_http_llm_tenants_t)
                                  + n * sizeof(ngx_http_llm_label_t)
                                  + ngx_http_llm_tenants_cells(n)
                                    * sizeof(ngx_atomic_t)
                                  + owners * llm_times_size()
                                  + ngx_http_llm_tally_size(owners,
                                                NGX_HTTP_LLM_TENANT_CELLS));
}


static ngx_int_t
ngx_http_llm_init_figures(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_slab_pool_t      *shpool;
    ngx_http_llm_kept_t  *k;

    if (data) {
        shm_zone->data = data;
        return NGX_OK;
    }

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    k = ngx_slab_calloc(shpool, sizeof(ngx_http_llm_kept_t));
    if (k == NULL) {
        return NGX_ERROR;
    }

    k->workers = ngx_slab_calloc(shpool, LLM_MAX_WORKERS * llm_sent_size());

    if (k->workers == NULL
        || ngx_http_llm_tally_init(&k->tally, shpool,
                                   1 + NGX_HTTP_LLM_PLACES,
                                   NGX_HTTP_LLM_MODEL_CELLS)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    shm_zone->data = k;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llm_init_tenants(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_uint_t               owners;
    ngx_slab_pool_t         *shpool;
    ngx_http_llm_stats_t    *f;
    ngx_http_llm_tenants_t  *t;

    if (data) {
        shm_zone->data = data;
        return NGX_OK;
    }

    f = shm_zone->data;
    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    owners = f->ntenants + NGX_HTTP_LLM_FIRST_TENANT;

    t = ngx_slab_calloc(shpool, sizeof(ngx_http_llm_tenants_t));
    if (t == NULL) {
        return NGX_ERROR;
    }

    t->max = f->ntenants;
    t->mask = ngx_http_llm_tenants_cells(t->max) - 1;
    t->names = ngx_slab_calloc(shpool,
                               t->max * sizeof(ngx_http_llm_label_t));
    t->index = ngx_slab_calloc(shpool, (t->mask + 1) * sizeof(ngx_atomic_t));
    t->times = ngx_slab_calloc(shpool, owners * llm_times_size());

    if (t->names == NULL || t->index == NULL || t->times == NULL
        || ngx_http_llm_tally_init(&t->tally, shpool, owners,
                                   NGX_HTTP_LLM_TENANT_CELLS)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    shm_zone->data = t;

    return NGX_OK;
}


ngx_int_t
ngx_http_llm_keep_figures(ngx_http_llm_main_conf_t *mcf,
    ngx_slab_pool_t *zone, ngx_log_t *log)
{
    ngx_uint_t               i, n;
    llm_kept_t              *kept;
    ngx_slab_pool_t         *shpool;
    ngx_http_llm_slo_t     **slo;
    ngx_http_llm_kept_t     *k;
    ngx_http_llm_tenants_t  *t;

    k = ngx_http_llm_stats(mcf)->shm_zone->data;
    shpool = (ngx_slab_pool_t *) ngx_http_llm_stats(mcf)->shm_zone->shm.addr;

    kept = &mcf->kept;
    ngx_memzero(kept, sizeof(llm_kept_t));
    kept->workers = k->workers;

    ngx_shmtx_lock(&shpool->mutex);

    /* the counters of models that llm_admin adds are in the engine's zone */

    for (i = 0; i < mcf->models.nelts - mcf->nadded; i++) {
        kept->models[i] = ngx_http_llm_find_place(mcf, i);

        if (kept->models[i] == NULL) {
            break;
        }
    }

    slo = ngx_http_llm_stats(mcf)->slos.elts;

    for (n = 0; n < ngx_http_llm_stats(mcf)->slos.nelts; n++) {
        slo[n]->score = ngx_http_llm_find_score(mcf, &slo[n]->name);
    }

    ngx_shmtx_unlock(&shpool->mutex);

    if (i < mcf->models.nelts - mcf->nadded) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "no shared memory for the figures of a model");
        return NGX_ERROR;
    }

    if (ngx_http_llm_stats(mcf)->tenants_zone) {
        t = ngx_http_llm_stats(mcf)->tenants_zone->data;
        kept->times = t->times;
        kept->n_times = t->max + NGX_HTTP_LLM_FIRST_TENANT;
    }

    return NGX_OK;
}


void
ngx_http_llm_find_figures(ngx_http_llm_main_conf_t *mcf, ngx_uint_t model)
{
    ngx_slab_pool_t  *shpool;

    if (mcf->api_models[model].naming == 0) {
        return;
    }

    shpool = (ngx_slab_pool_t *) ngx_http_llm_stats(mcf)->shm_zone->shm.addr;

    ngx_shmtx_lock(&shpool->mutex);
    (void) ngx_http_llm_find_place(mcf, model);
    ngx_shmtx_unlock(&shpool->mutex);
}


void
ngx_http_llm_name_figures(ngx_http_llm_main_conf_t *mcf, ngx_uint_t model)
{
    ngx_slab_pool_t      *shpool;
    ngx_http_llm_kept_t  *k;

    k = ngx_http_llm_stats(mcf)->shm_zone->data;
    shpool = (ngx_slab_pool_t *) ngx_http_llm_stats(mcf)->shm_zone->shm.addr;

    ngx_shmtx_lock(&shpool->mutex);

    (void) ngx_http_llm_find_place(mcf, model);
    ngx_http_llm_tally_clear(&k->tally,
                             1 + ngx_http_llm_stats(mcf)->places[model]);

    ngx_shmtx_unlock(&shpool->mutex);
}


static ngx_int_t
ngx_http_llm_place_of(ngx_http_llm_main_conf_t *mcf,
    const llm_api_conf_t *conf, ngx_uint_t model)
{
    return conf->models[model].naming == mcf->api_models[model].naming
           ? (ngx_int_t) ngx_http_llm_stats(mcf)->places[model] : -1;
}


static ngx_uint_t
ngx_http_llm_is_model(ngx_http_llm_main_conf_t *mcf, ngx_str_t *name)
{
    ngx_uint_t             i;
    ngx_http_llm_model_t  *m;

    m = mcf->models.elts;

    for (i = 0; i < mcf->models.nelts; i++) {
        if (m[i].name.len == name->len
            && ngx_memcmp(m[i].name.data, name->data, name->len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* the place with the model's name; else a free one, or that of a model that is
   gone: there are more places than models */

static ngx_http_llm_place_t *
ngx_http_llm_choose_place(ngx_http_llm_main_conf_t *mcf, ngx_str_t *name)
{
    ngx_uint_t             i;
    ngx_http_llm_kept_t   *k;
    ngx_http_llm_place_t  *p, *unused, *gone;

    k = ngx_http_llm_stats(mcf)->shm_zone->data;
    unused = NULL;
    gone = NULL;

    for (i = 0; i < NGX_HTTP_LLM_PLACES; i++) {
        p = &k->places[i];

        if (p->name.len == 0) {
            unused = unused ? unused : p;

        } else if (p->name.len == name->len
                   && ngx_memcmp(p->name.data, name->data, name->len) == 0)
        {
            return p;

        } else if (!ngx_http_llm_is_model(mcf, &p->name)) {
            gone = gone ? gone : p;
        }
    }

    return unused ? unused : gone;
}


static void *
ngx_http_llm_find_place(ngx_http_llm_main_conf_t *mcf, ngx_uint_t model)
{
    ngx_str_t              name;
    ngx_slab_pool_t       *shpool;
    ngx_http_llm_kept_t   *k;
    ngx_http_llm_model_t  *m;
    ngx_http_llm_place_t  *p;

    k = ngx_http_llm_stats(mcf)->shm_zone->data;
    shpool = (ngx_slab_pool_t *) ngx_http_llm_stats(mcf)->shm_zone->shm.addr;
    m = mcf->models.elts;
    name = m[model].name;

    p = ngx_http_llm_choose_place(mcf, &name);
    ngx_http_llm_stats(mcf)->places[model] = p - k->places;

    if (p->name.len == name.len
        && ngx_memcmp(p->name.data, name.data, name.len) == 0)
    {
        return p->counters;
    }

    if (p->name.len) {
        p->name.len = 0;
        ngx_slab_free_locked(shpool, p->name.data);
    }

    if (p->counters == NULL) {
        p->counters = ngx_slab_alloc_locked(shpool, llm_counters_size());
    }

    p->name.data = ngx_slab_alloc_locked(shpool, name.len);

    if (p->counters == NULL || p->name.data == NULL) {
        return NULL;
    }

    ngx_memzero(p->counters, llm_counters_size());
    ngx_http_llm_tally_clear(&k->tally,
                             1 + ngx_http_llm_stats(mcf)->places[model]);

    ngx_memcpy(p->name.data, name.data, name.len);
    p->name.len = name.len;

    return p->counters;
}


static ngx_uint_t
ngx_http_llm_is_slo(ngx_http_llm_main_conf_t *mcf, u_char *name, size_t len)
{
    ngx_uint_t             n;
    ngx_http_llm_slo_t   **slo;

    slo = ngx_http_llm_stats(mcf)->slos.elts;

    for (n = 0; n < ngx_http_llm_stats(mcf)->slos.nelts; n++) {
        if (slo[n]->name.len == len
            && ngx_memcmp(slo[n]->name.data, name, len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* the score with the objective's name; else a free one, or that of an objective
   that is gone */

static ngx_http_llm_score_t *
ngx_http_llm_find_score(ngx_http_llm_main_conf_t *mcf, ngx_str_t *name)
{
    ngx_uint_t             i;
    ngx_http_llm_kept_t   *k;
    ngx_http_llm_score_t  *s, *unused, *gone;

    k = ngx_http_llm_stats(mcf)->shm_zone->data;
    unused = NULL;
    gone = NULL;

    for (i = 0; i < NGX_HTTP_LLM_SCORES; i++) {
        s = &k->scores[i];

        if (s->len == name->len && ngx_memcmp(s->name, name->data, s->len) == 0)
        {
            return s;
        }

        if (s->len == 0) {
            unused = unused ? unused : s;

        } else if (gone == NULL
                   && !ngx_http_llm_is_slo(mcf, s->name, s->len))
        {
            gone = s;
        }
    }

    unused = unused ? unused : gone;

    ngx_memzero(unused, sizeof(ngx_http_llm_score_t));
    ngx_memcpy(unused->name, name->data, name->len);
    unused->len = name->len;

    return unused;
}


static uint32_t
ngx_http_llm_tenant_account(ngx_http_llm_ctx_t *ctx)
{
    if (ngx_http_llm_stats(ctx->main)->tenants_zone == NULL) {
        return 0;
    }

    return 1 + ngx_http_llm_tenant_owner(ctx->main, &ctx->tenant);
}


ngx_atomic_t *
ngx_http_llm_writes(ngx_http_llm_main_conf_t *mcf, ngx_uint_t worker)
{
    ngx_http_llm_kept_t  *k;

    k = ngx_http_llm_stats(mcf)->shm_zone->data;

    return &k->writes[worker];
}


/* sets where the engine and the log phase count the request */

static ngx_int_t
ngx_http_llm_find_request(ngx_http_llm_body_t *body)
{
    llm_request_t       *msg;
    ngx_http_llm_ctx_t  *ctx;

    ctx = body->ctx;
    msg = (llm_request_t *) body->msg.data;

    ctx->place = ngx_http_llm_place_of(ctx->main, &body->conf, ctx->model);
    ctx->naming = body->conf.models[ctx->model].naming;
    msg->account = ngx_http_llm_tenant_account(ctx);

    return NGX_OK;
}


ngx_http_llm_stage_t  ngx_http_llm_metrics_stage = {
    .parsed = ngx_http_llm_find_request
};
