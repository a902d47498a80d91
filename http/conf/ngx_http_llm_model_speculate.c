/*
 * speculate= of llm_model: what tokens are drafted from.
 */

#include "http/conf/ngx_http_llm_model.h"
#include "http/conf/ngx_http_llm_model_param.h"


static char *ngx_http_llm_model_draft(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, const llm_str_t *path);


char *
ngx_http_llm_model_speculate(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    llm_err_t  err;
    llm_str_t  text, path;

    text.data = (char *) value->data;
    text.len = value->len;

    if (llm_speculate_read(text, model->engine.speculate, &path, &err)
        == LLM_OK)
    {
        return ngx_http_llm_model_draft(cf, model, &path);
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V%V\" of model \"%V\", %s",
                       &param->name, value, &model->name, err.msg);

    return NGX_CONF_ERROR;
}


/* the path of draft=FILE; empty: there is none */

static char *
ngx_http_llm_model_draft(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    const llm_str_t *path)
{
    ngx_str_t  *name;

    if (path->len == 0) {
        return NGX_CONF_OK;
    }

    name = &model->draft_path;
    name->len = path->len;
    name->data = ngx_pnalloc(cf->pool, name->len + 1);
    if (name->data == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memcpy(name->data, path->data, name->len);
    name->data[name->len] = '\0';

    if (ngx_conf_full_name(cf->cycle, name, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    model->engine.draft_path = (char *) name->data;

    return NGX_CONF_OK;
}
