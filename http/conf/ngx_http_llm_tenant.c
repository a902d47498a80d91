/*
 * llm_tenant and llm_priority: whom a request counts for, and how urgent it is.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_param.h"

#include <ngx_md5.h>


/* llm_tenant $value [weight=$value] */

char *
ngx_http_llm_tenant(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_loc_conf_t *llcf = conf;

    ngx_int_t                          weight;
    ngx_str_t                         *value, s;
    ngx_uint_t                         i;
    ngx_http_complex_value_t         **cv;
    ngx_http_compile_complex_value_t   ccv;

    if (llcf->tenant) {
        return "is duplicate";
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        s = value[i];
        cv = &llcf->tenant;

        if (i == 2) {
            if (ngx_strncmp(s.data, "weight=", 7) != 0) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "unknown parameter \"%V\"", &s);
                return NGX_CONF_ERROR;
            }

            s.data += 7;
            s.len -= 7;
            cv = &llcf->weight;
        }

        *cv = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));
        if (*cv == NULL) {
            return NGX_CONF_ERROR;
        }

        ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

        ccv.cf = cf;
        ccv.value = &s;
        ccv.complex_value = *cv;

        if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
            return NGX_CONF_ERROR;
        }
    }

    if (llcf->weight == NULL || llcf->weight->lengths) {
        return NGX_CONF_OK;
    }

    weight = ngx_atofp(s.data, s.len, 3);

    if (weight < 1 || weight > NGX_HTTP_LLM_MOST_WEIGHT) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" of \"llm_tenant\", it must "
                           "be between 0.001 and 1000", &value[2]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


uint64_t
ngx_http_llm_hash_tenant(ngx_str_t *tenant)
{
    u_char     digest[16];
    uint64_t   hash;
    ngx_md5_t  md5;

    ngx_md5_init(&md5);
    ngx_md5_update(&md5, tenant->data, tenant->len);
    ngx_md5_final(digest, &md5);
    ngx_memcpy(&hash, digest, sizeof(uint64_t));

    return hash;
}


/* llm_priority VALUE */

char *
ngx_http_llm_priority(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_loc_conf_t *llcf = conf;

    char       *rv;
    ngx_int_t   n;
    ngx_str_t  *value;

    rv = ngx_http_set_complex_value_slot(cf, cmd, conf);

    if (rv != NGX_CONF_OK || llcf->priority->lengths) {
        return rv;
    }

    value = cf->args->elts;

    if (ngx_http_llm_read_priority(&value[1], &n) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" of \"llm_priority\", it "
                           "must be between -100 and 100", &value[1]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_llm_read_priority(ngx_str_t *value, ngx_int_t *priority)
{
    u_char     *p;
    ngx_int_t   n, sign;

    p = value->data;
    sign = 1;

    if (value->len && *p == '-') {
        sign = -1;
        p++;
    }

    n = value->len ? ngx_atoi(p, value->data + value->len - p) : 0;

    if (n == NGX_ERROR || n > LLM_MAX_PRIORITY) {
        return NGX_ERROR;
    }

    *priority = sign * n;

    return NGX_OK;
}
