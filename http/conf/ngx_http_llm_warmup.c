/*
 * warmup=FILE of llm_model: requests that the engine runs before the model
 * counts as ready.  They are read with the configuration, into its pool, so
 * that nginx -t reports their errors.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"


typedef struct {
    ngx_conf_t                  *cf;
    ngx_array_t                  prompts;       /* llm_request_t * */
} ngx_http_llm_warmup_t;


static int ngx_http_llm_warmup_take(void *data, llm_request_t *msg,
    llm_str_t tenant, llm_err_t *err);


char *
ngx_http_llm_read_warmup(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t i)
{
    llm_err_t               err;
    llm_api_conf_t          conf;
    ngx_http_llm_model_t   *model;
    ngx_http_llm_warmup_t   w;

    model = (ngx_http_llm_model_t *) mcf->models.elts + i;

    /* added models get the warm-up of their `like=` model */

    if (model->warmup.len == 0 || model->engine.added
        || ngx_process == NGX_PROCESS_SIGNALLER)
    {
        return NGX_CONF_OK;
    }

    w.cf = cf;

    if (ngx_array_init(&w.prompts, cf->pool, 16, sizeof(llm_request_t *))
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(&conf, sizeof(llm_api_conf_t));

    conf.models = mcf->api_models;
    conf.n_models = mcf->models.nelts;
    conf.allowed = (uint64_t) 1 << i;
    conf.fallback = i;
    conf.cap = -1;
    conf.id = llm_str("warmup");
    conf.model = llm_str("");

    if (llm_api_warmup((char *) model->warmup.data, &conf,
                       ngx_http_llm_warmup_take, &w, &err)
        != LLM_OK)
    {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "the warm-up of model \"%V\" cannot be used: \"%V\": %s "
                      "in %V:%ui", &model->name, &model->warmup, err.msg,
                      &model->file, model->line);
        return NGX_CONF_ERROR;
    }

    model->engine.prompts = w.prompts.elts;
    model->engine.n_prompts = w.prompts.nelts;

    return NGX_CONF_OK;
}


static int
ngx_http_llm_warmup_take(void *data, llm_request_t *msg, llm_str_t tenant,
    llm_err_t *err)
{
    ngx_http_llm_warmup_t *w = data;

    ngx_str_t       s;
    llm_request_t  *copy, **prompt;

    prompt = ngx_array_push(&w->prompts);
    copy = ngx_palloc(w->cf->pool, msg->head.size);

    if (prompt == NULL || copy == NULL) {
        return llm_fail(err, "no memory");
    }

    s.len = tenant.len;
    s.data = (u_char *) tenant.data;

    ngx_memcpy(copy, msg, msg->head.size);

    copy->tenant = ngx_http_llm_hash_tenant(&s);
    *prompt = copy;

    return LLM_OK;
}
