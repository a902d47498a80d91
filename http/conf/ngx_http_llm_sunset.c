/*
 * deprecated=, sunset= and successor= of llm_model: values and warnings of
 * nginx -t.  The headers for clients are in ngx_http_llm_leaving.c.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"


/* seconds before a sunset when nginx -t begins to warn */
#define NGX_HTTP_LLM_SUNSET_SOON  (30 * 86400)


static char *ngx_http_llm_check_dates(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_model_t *model);


ngx_int_t
ngx_http_llm_read_date(ngx_str_t *value, ngx_http_llm_date_t *date)
{
    llm_str_t  s;

    s.len = value->len;
    s.data = (char *) value->data;

    date->text = *value;

    return llm_key_read_time(s, &date->time) == LLM_OK && date->time > 0
           ? NGX_OK : NGX_ERROR;
}


char *
ngx_http_llm_check_sunset(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf)
{
    char                  *rv;
    ngx_uint_t             i;
    ngx_http_llm_model_t  *model;

    model = mcf->models.elts;

    for (i = 0; i < mcf->models.nelts - mcf->nadded; i++) {
        rv = ngx_http_llm_check_dates(cf, mcf, &model[i]);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_check_dates(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_model_t *model)
{
    int64_t    left;
    ngx_int_t  found;

    found = model->successor.len
            ? ngx_http_llm_find_model(mcf, &model->successor) : -1;

    if (found >= 0
        && (ngx_http_llm_model_t *) mcf->models.elts + found == model)
    {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"successor=%V\" of model \"%V\" is the model itself "
                      "in %V:%ui", &model->successor, &model->name,
                      &model->file, model->line);
        return NGX_CONF_ERROR;
    }

    if (model->successor.len && found < 0) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "there is no model \"%V\", the successor of \"%V\" "
                      "in %V:%ui", &model->successor, &model->name,
                      &model->file, model->line);
    }

    if (model->sunset.text.len == 0) {
        return NGX_CONF_OK;
    }

    if (model->deprecated.text.len
        && model->deprecated.time > model->sunset.time)
    {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "the sunset of model \"%V\" comes before its "
                      "deprecation in %V:%ui", &model->name, &model->file,
                      model->line);
        return NGX_CONF_ERROR;
    }

    left = model->sunset.time - ngx_time();

    if (left <= 0) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "model \"%V\" is not served since its sunset, %V, "
                      "in %V:%ui", &model->name, &model->sunset.text,
                      &model->file, model->line);

    } else if (left <= NGX_HTTP_LLM_SUNSET_SOON) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "model \"%V\" has its sunset in %L days, %V, "
                      "in %V:%ui", &model->name, (left + 86399) / 86400,
                      &model->sunset.text, &model->file, model->line);
    }

    return NGX_CONF_OK;
}
