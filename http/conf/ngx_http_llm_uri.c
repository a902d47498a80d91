/*
 * URIs of directives whose location is asked by a subrequest: llm_guard,
 * llm_fetch.  Such a URI may contain variables; one that does not is checked by
 * nginx -t.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"


char *
ngx_http_llm_uri_read(ngx_conf_t *cf, ngx_command_t *cmd,
    ngx_http_llm_uri_t *uri)
{
    ngx_str_t                         *value;
    ngx_http_compile_complex_value_t   ccv;

    value = cf->args->elts;

    uri->directive = &cmd->name;
    uri->file = cf->conf_file->file.name;
    uri->line = cf->conf_file->line;

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = &value[1];
    ccv.complex_value = &uri->value;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (uri->value.lengths == NULL && value[1].data[0] != '/') {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid URI \"%V\" of \"%V\", it must begin with "
                           "\"/\"", &value[1], uri->directive);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


void
ngx_http_llm_uri_warn(ngx_conf_t *cf, ngx_http_llm_uri_t *uri,
    const char *cannot)
{
    ngx_str_t                 *text;
    ngx_http_llm_leads_e       to;
    ngx_http_core_srv_conf_t  *cscf;

    cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);

    if (uri->value.lengths || uri->checked == cscf) {
        return;
    }

    uri->checked = cscf;
    text = &uri->value.value;
    to = ngx_http_llm_leads(cf, cscf, text);

    if (to == NGX_HTTP_LLM_LEADS_NOWHERE) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "there is no location for the URI \"%V\" of \"%V\" in "
                      "%V:%ui", text, uri->directive, &uri->file, uri->line);

    } else if (to != NGX_HTTP_LLM_LEADS_MAYBE) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "the URI \"%V\" of \"%V\" leads to a location that %s "
                      "in %V:%ui", text, uri->directive, cannot, &uri->file,
                      uri->line);
    }
}


ngx_int_t
ngx_http_llm_uri_split(ngx_http_request_t *r, ngx_http_llm_uri_t *uri,
    ngx_str_t *value, ngx_str_t *args)
{
    ngx_uint_t  flags;

    flags = NGX_HTTP_LOG_UNSAFE;
    ngx_str_null(args);

    if (value->len == 0 || value->data[0] != '/') {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "invalid URI \"%s\" of \"%V\", it must begin with \"/\"",
                      ngx_http_llm_clean(r, value), uri->directive);
        return NGX_ERROR;
    }

    return ngx_http_parse_unsafe_uri(r, value, args, &flags);
}
