/*
 * Models that llm_admin adds while nginx runs: places for them after the models
 * of the configuration, and this process's copy of their names.
 *
 * The zone has the names: one process gives a name (llm_zone_give_name()), and
 * the engine takes it away.  Each process updates its copy only when a request
 * begins that may name a model, and before a probe, so names do not change in
 * the middle of an event.  Threads and waiting requests have copies of their
 * own.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"


static void ngx_http_llm_set_added(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t i, const llm_naming_t *given);


/* ---- the configuration ---- */

/* the parameters of the `like=` model, without its names, file, dates,
   successor, `default` and `required` */

static ngx_int_t
ngx_http_llm_added_like(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_model_t *model)
{
    ngx_int_t               i;
    ngx_http_llm_model_t   *models;
    ngx_http_llm_places_t  *places;

    places = &mcf->places;

    ngx_http_llm_model_defaults(model);

    if (places->like.len) {
        i = ngx_http_llm_find_model(mcf, &places->like);

        if (i < 0) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"like=\" of \"llm_admin\" names \"%V\", but there "
                          "is no such \"llm_model\" in %V:%ui",
                          &places->like, &places->file, places->line);
            return NGX_ERROR;
        }

        models = mcf->models.elts;
        *model = models[i];
    }

    ngx_str_null(&model->name);
    ngx_str_set(&model->path, "");
    model->is_default = 0;
    model->required = 0;
    ngx_str_null(&model->deprecated.text);
    ngx_str_null(&model->sunset.text);
    model->deprecated.time = 0;
    model->sunset.time = 0;
    ngx_str_null(&model->successor);

    model->file = places->file;
    model->line = places->line;

    model->engine.name = "";
    model->engine.path = "";
    model->engine.added = 1;

    return ngx_array_init(&model->aliases, cf->pool, 1, sizeof(ngx_str_t));
}


char *
ngx_http_llm_add_places(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf)
{
    ngx_uint_t              n;
    ngx_http_llm_model_t    like, *model;
    ngx_http_llm_places_t  *places;

    places = &mcf->places;

    /* without any model, check_uses() reports the error */

    if (places->n == 0 || mcf->models.nelts == 0) {
        return NGX_CONF_OK;
    }

    if (mcf->models.nelts + places->n > LLM_MAX_MODELS) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"new=%ui\" and %ui \"llm_model\" make more than %d "
                      "models in %V:%ui", places->n, mcf->models.nelts,
                      LLM_MAX_MODELS, &places->file, places->line);
        return NGX_CONF_ERROR;
    }

    mcf->added = ngx_pcalloc(cf->pool, places->n * LLM_NAME_TEXT);

    if (mcf->added == NULL
        || ngx_http_llm_added_like(cf, mcf, &like) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    for (n = 0; n < places->n; n++) {
        model = ngx_array_push(&mcf->models);
        if (model == NULL) {
            return NGX_CONF_ERROR;
        }

        *model = like;
    }

    mcf->nadded = places->n;

    return NGX_CONF_OK;
}


/* called when the warm-ups of the configuration have been read */

void
ngx_http_llm_added_warmup(ngx_http_llm_main_conf_t *mcf)
{
    ngx_int_t              i;
    ngx_uint_t             k;
    ngx_http_llm_model_t  *model;

    model = mcf->models.elts;
    i = mcf->nadded ? ngx_http_llm_find_model(mcf, &mcf->places.like) : -1;

    if (i < 0) {
        return;
    }

    for (k = mcf->models.nelts - mcf->nadded; k < mcf->models.nelts; k++) {
        model[k].engine.prompts = model[i].engine.prompts;
        model[k].engine.n_prompts = model[i].engine.n_prompts;
    }
}


/* ---- names ---- */

void
ngx_http_llm_refresh_models(ngx_http_llm_main_conf_t *mcf)
{
    uint32_t      names;
    uint64_t      news;
    ngx_uint_t    i;
    llm_naming_t  given;

    if (mcf->nadded == 0) {
        return;
    }

    names = llm_zone_names(mcf->zone);

    if (names == mcf->names) {
        return;
    }

    mcf->names = names;
    news = 0;

    for (i = mcf->models.nelts - mcf->nadded; i < mcf->models.nelts; i++) {
        llm_zone_name(mcf->zone, i, &given);

        if (given.naming != mcf->api_models[i].naming) {
            ngx_http_llm_set_added(mcf, i, &given);
            news |= (uint64_t) 1 << i;
        }
    }

    /* after all names are set, because the hooks reuse the counters of names
       that no model has any more */

    for (i = mcf->models.nelts - mcf->nadded; i < mcf->models.nelts; i++) {
        if (news & ((uint64_t) 1 << i)) {
            ngx_http_llm_on_renamed(mcf, i);
        }
    }
}


static void
ngx_http_llm_set_added(ngx_http_llm_main_conf_t *mcf, ngx_uint_t i,
    const llm_naming_t *given)
{
    u_char                *text;
    llm_api_model_t       *api;
    ngx_http_llm_model_t  *model;

    model = mcf->models.elts;
    model += i;
    api = &mcf->api_models[i];

    text = mcf->added + (i - (mcf->models.nelts - mcf->nadded))
                        * LLM_NAME_TEXT;
    ngx_memcpy(text, given->name, LLM_NAME_TEXT);

    model->name.data = text;
    model->name.len = ngx_strlen(text);

    api->name = ngx_http_llm_text(&model->name);
    api->naming = given->naming;
    api->created = given->since;
}


const llm_api_model_t *
ngx_http_llm_models_now(ngx_http_llm_main_conf_t *mcf, ngx_pool_t *pool)
{
    char             *text;
    ngx_uint_t        i;
    llm_api_model_t  *copy;

    if (mcf->nadded == 0) {
        return mcf->api_models;
    }

    ngx_http_llm_refresh_models(mcf);

    copy = ngx_palloc(pool, mcf->models.nelts * sizeof(llm_api_model_t));
    if (copy == NULL) {
        return NULL;
    }

    ngx_memcpy(copy, mcf->api_models,
               mcf->models.nelts * sizeof(llm_api_model_t));

    for (i = mcf->models.nelts - mcf->nadded; i < mcf->models.nelts; i++) {

        if (copy[i].name.len == 0) {
            continue;
        }

        text = ngx_pnalloc(pool, copy[i].name.len);
        if (text == NULL) {
            return NULL;
        }

        ngx_memcpy(text, copy[i].name.data, copy[i].name.len);
        copy[i].name.data = text;
    }

    return copy;
}
