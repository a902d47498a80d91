/*
 * Numbers of the configuration that may be variables, and llm_max_tokens,
 * which has two of them.
 *
 * An empty value means no limit.  A value that is not a number is logged, and
 * the request is refused, because its limit is unknown.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_param.h"
#include "http/reply/ngx_http_llm_reply.h"


char *
ngx_http_llm_set_amount(ngx_conf_t *cf, ngx_http_llm_amount_t *a,
    ngx_uint_t plain, ngx_str_t *s)
{
    int                                rc;
    ngx_http_compile_complex_value_t   ccv;

    a->set = 1;

    if (ngx_http_script_variables_count(s)) {
        a->value = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));
        if (a->value == NULL) {
            return NGX_CONF_ERROR;
        }

        ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

        ccv.cf = cf;
        ccv.value = s;
        ccv.complex_value = a->value;

        return ngx_http_compile_complex_value(&ccv) == NGX_OK
               ? NGX_CONF_OK : NGX_CONF_ERROR;
    }

    rc = plain ? llm_quota_amount((char *) s->data, s->len, &a->rate.n)
               : llm_quota_rate((char *) s->data, s->len, &a->rate);

    if (rc != LLM_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid %s \"%V\" of \"%V\": a number from 0 to "
                           "%d%s", plain ? "amount" : "rate",
                           ngx_http_llm_whole(cf, s), cf->args->elts,
                           LLM_QUOTA_MOST,
                           plain ? "" : " with /s, /m, /h or /d");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_llm_amount(ngx_http_request_t *r, ngx_http_llm_amount_t *a,
    ngx_uint_t plain, llm_rate_t *rate)
{
    int        rc;
    ngx_str_t  s;

    if (!a->set) {
        return NGX_DECLINED;
    }

    if (a->value == NULL) {
        *rate = a->rate;
        return NGX_OK;
    }

    if (ngx_http_complex_value(r, a->value, &s) != NGX_OK) {
        return NGX_ERROR;
    }

    if (s.len == 0) {
        return NGX_DECLINED;
    }

    rc = plain ? llm_quota_amount((char *) s.data, s.len, &rate->n)
               : llm_quota_rate((char *) s.data, s.len, rate);

    if (rc == LLM_OK) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "invalid value \"%s\" of \"%V\", it must be a number",
                  ngx_http_llm_clean(r, &s), &a->value->value);

    return NGX_ERROR;
}


/* ---- llm_max_tokens N|$v [prompt=N|$v] ---- */

static char *
ngx_http_llm_set_most(ngx_conf_t *cf, ngx_http_llm_amount_t *a, ngx_str_t *s)
{
    if (ngx_http_llm_set_amount(cf, a, 1, s) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    if (a->value == NULL
        && (a->rate.n == 0 || a->rate.n > NGX_HTTP_LLM_MOST_TOKENS))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid amount \"%V\" of \"llm_max_tokens\", it "
                           "must be between 1 and %d",
                           ngx_http_llm_whole(cf, s),
                           NGX_HTTP_LLM_MOST_TOKENS);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_llm_max_tokens(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_loc_conf_t *llcf = conf;

    char        *rv;
    ngx_str_t   *value, s;
    ngx_uint_t   i;

    if (llcf->max_tokens.set || llcf->max_prompt.set) {
        return "is duplicate";
    }

    rv = ngx_http_llm_once(cf, 1);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "prompt=", 7) == 0) {
            s.data = value[i].data + 7;
            s.len = value[i].len - 7;
            rv = ngx_http_llm_set_most(cf, &llcf->max_prompt, &s);

        } else if (i == 1) {
            rv = ngx_http_llm_set_most(cf, &llcf->max_tokens, &value[i]);

        } else {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "unknown parameter \"%V\"", &value[i]);
            return NGX_CONF_ERROR;
        }

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}
