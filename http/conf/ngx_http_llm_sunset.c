/*
 * deprecated=, sunset= and successor= of llm_model: what clients are told of a
 * model that is to go, in headers (RFC 9745, RFC 8594, RFC 5829), and what
 * nginx -t says of it.
 */

#include "http/ngx_http_llm_module.h"


/* how long before its sunset nginx -t begins to warn */
#define NGX_HTTP_LLM_SUNSET_SOON  (30 * 86400)


static char *ngx_http_llm_check_dates(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_model_t *model);
static ngx_int_t ngx_http_llm_add_link(ngx_http_request_t *r,
    ngx_str_t *name);


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


/* ---- nginx -t ---- */

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


/* ---- headers ---- */

static ngx_int_t
ngx_http_llm_sunset_headers(ngx_http_request_t *r)
{
    u_char                *p, *last;
    ngx_http_llm_ctx_t    *ctx;
    ngx_http_llm_model_t  *model;

    ctx = ngx_http_get_module_ctx(r, ngx_http_llm_module);

    if (ctx == NULL || ctx->model < 0) {
        return NGX_OK;
    }

    model = (ngx_http_llm_model_t *) ctx->main->models.elts + ctx->model;

    if (model->deprecated.text.len) {
        p = ngx_pnalloc(r->pool, NGX_INT64_LEN + 1);
        if (p == NULL) {
            return NGX_ERROR;
        }

        last = ngx_sprintf(p, "@%L", model->deprecated.time);

        if (ngx_http_llm_add_header(r, "Deprecation", (char *) p, last - p)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (model->sunset.text.len) {
        p = ngx_pnalloc(r->pool, sizeof("Mon, 28 Sep 1970 06:00:00 GMT"));
        if (p == NULL) {
            return NGX_ERROR;
        }

        last = ngx_http_time(p, model->sunset.time);

        if (ngx_http_llm_add_header(r, "Sunset", (char *) p, last - p)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return model->successor.len
           ? ngx_http_llm_add_link(r, &model->successor) : NGX_OK;
}


/* where the API's clients find the successor: GET models/NAME */

static ngx_int_t
ngx_http_llm_add_link(ngx_http_request_t *r, ngx_str_t *name)
{
    size_t               len;
    u_char              *p, *last;
    uintptr_t            escape;
    ngx_str_t            prefix;
    ngx_http_llm_ctx_t  *ctx;

    static const char  rel[] = ">; rel=\"successor-version\"";

    ctx = ngx_http_get_module_ctx(r, ngx_http_llm_module);

    if (ctx->conf->prefix && ctx->conf->prefix <= r->uri.len) {
        prefix.data = r->uri.data;
        prefix.len = ctx->conf->prefix;

    } else {
        ngx_str_set(&prefix, "/v1");
    }

    while (prefix.len && prefix.data[prefix.len - 1] == '/') {
        prefix.len--;
    }

    escape = 2 * ngx_escape_uri(NULL, name->data, name->len,
                                NGX_ESCAPE_URI_COMPONENT);
    len = 3 * prefix.len + sizeof("</models/") + name->len + escape
          + sizeof(rel);

    p = ngx_pnalloc(r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    last = p;
    *last++ = '<';
    last = (u_char *) ngx_escape_uri(last, prefix.data, prefix.len,
                                     NGX_ESCAPE_URI);
    last = ngx_cpymem(last, "/models/", sizeof("/models/") - 1);
    last = (u_char *) ngx_escape_uri(last, name->data, name->len,
                                     NGX_ESCAPE_URI_COMPONENT);
    last = ngx_cpymem(last, rel, sizeof(rel) - 1);

    return ngx_http_llm_add_header(r, "Link", (char *) p, last - p);
}


ngx_http_llm_stage_t  ngx_http_llm_sunset_stage = {
    .headers = ngx_http_llm_sunset_headers
};
