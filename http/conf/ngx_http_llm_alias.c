/*
 * llm_alias: names whose model is chosen by a rule.  The rule is evaluated for
 * each request (ngx_http_llm_names.c).
 */

#include "http/conf/ngx_http_llm_alias.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/conf/ngx_http_llm_param.h"


/* llm_alias NAME VALUE */

char *
ngx_http_llm_alias(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_loc_conf_t *llcf = conf;

    ngx_str_t                         *value;
    ngx_http_llm_alias_t              *alias, **p;
    ngx_http_llm_main_conf_t          *mcf;
    ngx_http_compile_complex_value_t   ccv;

    value = cf->args->elts;

    if (value[1].len == 0) {
        return "has an empty name";
    }

    if (!ngx_http_llm_is_text(&value[1])) {
        return "has a name with control characters or invalid UTF-8";
    }

    if (llcf->aliases && ngx_http_llm_find_alias(llcf->aliases, &value[1])) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "duplicate alias \"%V\"",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    if (llcf->aliases == NULL) {
        llcf->aliases = ngx_array_create(cf->pool, 2,
                                         sizeof(ngx_http_llm_alias_t *));
        if (llcf->aliases == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    alias = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_alias_t));
    if (alias == NULL) {
        return NGX_CONF_ERROR;
    }

    alias->name = value[1];
    alias->text = value[2];
    alias->file = cf->conf_file->file.name;
    alias->line = cf->conf_file->line;

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = &value[2];
    ccv.complex_value = &alias->value;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    p = ngx_array_push(llcf->aliases);
    if (p == NULL) {
        return NGX_CONF_ERROR;
    }

    *p = alias;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);

    p = ngx_array_push(&mcf->aliases);
    if (p == NULL) {
        return NGX_CONF_ERROR;
    }

    *p = alias;

    return NGX_CONF_OK;
}


ngx_uint_t
ngx_http_llm_same_name(ngx_str_t *a, ngx_str_t *b)
{
    return a->len == b->len
           && ngx_strncasecmp(a->data, b->data, a->len) == 0;
}


ngx_http_llm_alias_t *
ngx_http_llm_find_alias(ngx_array_t *aliases, ngx_str_t *name)
{
    ngx_uint_t             i;
    ngx_http_llm_alias_t  **alias;

    alias = aliases->elts;

    for (i = 0; i < aliases->nelts; i++) {
        if (ngx_http_llm_same_name(&alias[i]->name, name)) {
            return alias[i];
        }
    }

    return NULL;
}


/* a level inherits the aliases of the level above whose names it does not
   define itself */

char *
ngx_http_llm_merge_aliases(ngx_conf_t *cf, ngx_http_llm_loc_conf_t *prev,
    ngx_http_llm_loc_conf_t *conf)
{
    ngx_uint_t              i;
    ngx_http_llm_alias_t  **p, **alias;

    if (prev->aliases == NULL) {
        return NGX_CONF_OK;
    }

    if (conf->aliases == NULL) {
        conf->aliases = prev->aliases;
        return NGX_CONF_OK;
    }

    alias = prev->aliases->elts;

    for (i = 0; i < prev->aliases->nelts; i++) {

        if (ngx_http_llm_find_alias(conf->aliases, &alias[i]->name)) {
            continue;
        }

        p = ngx_array_push(conf->aliases);
        if (p == NULL) {
            return NGX_CONF_ERROR;
        }

        *p = alias[i];
    }

    return NGX_CONF_OK;
}


/* an alias must not have the name of a model, and a value without variables
   must be the name of a model */

char *
ngx_http_llm_check_aliases(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf)
{
    ngx_int_t               i;
    ngx_uint_t              k;
    ngx_http_llm_alias_t  **alias, *a;
    ngx_http_llm_model_t   *model;

    alias = mcf->aliases.elts;
    model = mcf->models.elts;

    for (k = 0; k < mcf->aliases.nelts; k++) {
        a = alias[k];
        i = ngx_http_llm_pinned(mcf, &a->name);

        if (i >= 0) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"llm_alias\" \"%V\" is a name of the \"llm_model\" "
                          "\"%V\" in %V:%ui",
                          &a->name, &model[i].name, &a->file, a->line);
            return NGX_CONF_ERROR;
        }

        if (a->value.lengths == NULL && a->text.len
            && ngx_http_llm_find_model(mcf, &a->text) < 0)
        {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"llm_alias\" \"%V\" leads to \"%V\", but there is "
                          "no such \"llm_model\" in %V:%ui",
                          &a->name, &a->text, &a->file, a->line);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


/* for a location with llm_api, before it inherits aliases */

char *
ngx_http_llm_check_own_aliases(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_loc_conf_t *llcf)
{
    ngx_int_t               model;
    ngx_uint_t              i;
    ngx_http_llm_alias_t  **alias, *a;

    if (llcf->aliases == NULL) {
        return NGX_CONF_OK;
    }

    alias = llcf->aliases->elts;

    for (i = 0; i < llcf->aliases->nelts; i++) {
        a = alias[i];

        if (a->value.lengths || a->text.len == 0) {
            continue;
        }

        model = ngx_http_llm_find_model(mcf, &a->text);

        if (!(llcf->allowed & ((uint64_t) 1 << model))) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"llm_alias\" \"%V\" leads to \"%V\", which is no "
                          "model of the location in %V:%ui",
                          &a->name, &a->text, &a->file, a->line);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_llm_pinned(ngx_http_llm_main_conf_t *mcf, ngx_str_t *name)
{
    ngx_str_t             *alias;
    ngx_uint_t             i, j;
    ngx_http_llm_model_t  *model;

    model = mcf->models.elts;

    for (i = 0; name->len && i < mcf->models.nelts; i++) {

        if (ngx_http_llm_same_name(&model[i].name, name)) {
            return i;
        }

        alias = model[i].aliases.elts;

        for (j = 0; j < model[i].aliases.nelts; j++) {
            if (ngx_http_llm_same_name(&alias[j], name)) {
                return i;
            }
        }
    }

    return -1;
}
