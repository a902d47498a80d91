/*
 * llm_alias: names that lead to a model by a rule, which is looked at anew for
 * each request.
 *
 * The values are made before the body is parsed, because a thread may parse
 * it, and variables are the event loop's; so all those of a location are made.
 * What an alias leads to is found by the engine (llm_api_resolve()), which
 * also says which name was asked for.  What llm_admin has set comes before what
 * a rule says (ngx_http_llm_admin_alias.c).
 */

#include "http/admin/ngx_http_llm_admin.h"


/* what llm_admin has set, of a request */

typedef struct {
    llm_admin_alias_t           *aliases;
    ngx_uint_t                   n;
} ngx_http_llm_set_t;


static ngx_http_llm_alias_t *ngx_http_llm_find_alias(ngx_array_t *aliases,
    ngx_str_t *name);
static ngx_uint_t ngx_http_llm_set_leads(ngx_http_llm_ctx_t *ctx,
    llm_admin_alias_t *set);
static ngx_int_t ngx_http_llm_alias_value(ngx_http_llm_ctx_t *ctx,
    ngx_http_llm_alias_t *alias, ngx_http_llm_set_t *set, llm_str_t *value);
static ngx_uint_t ngx_http_llm_set_alone(ngx_http_llm_ctx_t *ctx,
    ngx_http_llm_set_t *set, llm_api_alias_t *made);


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
        return "has a name that is no text";
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


static ngx_http_llm_alias_t *
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


/* a level has its own, and those of the level above that have other names */

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


/* a model's own names are its own, and a value without variables is one */

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


/* of a location with llm_api, which has not inherited others yet */

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


/* the model that has this name or alias, in any case; -1: none */

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


/* for the parser, in r->pool; what the values are made of may be the tenant */

ngx_int_t
ngx_http_llm_make_aliases(ngx_http_llm_ctx_t *ctx, llm_api_conf_t *conf)
{
    ngx_uint_t               i, n;
    const llm_key_t         *key;
    llm_api_alias_t         *made;
    ngx_http_request_t      *r;
    ngx_http_llm_set_t       set;
    ngx_http_llm_alias_t   **alias;

    conf->aliases = NULL;
    conf->n_aliases = 0;

    r = ctx->request;

    if (ngx_http_llm_admin_aliases(ctx->main, r->pool, &set.aliases, &set.n)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    n = ctx->conf->aliases ? ctx->conf->aliases->nelts : 0;

    if (n + set.n == 0) {
        return NGX_OK;
    }

    made = ngx_palloc(r->pool, (n + set.n) * sizeof(llm_api_alias_t));

    if (made == NULL || ngx_http_llm_find_tenant(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    alias = n ? ctx->conf->aliases->elts : NULL;

    for (i = 0; i < n; i++) {
        made[i].name = ngx_http_llm_text(&alias[i]->name);

        if (ngx_http_llm_alias_value(ctx, alias[i], &set, &made[i].value)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    n += ngx_http_llm_set_alone(ctx, &set, made + n);
    key = ngx_http_llm_key(r);

    for (i = 0; i < n; i++) {
        made[i].granted = key && llm_key_names_model(key, made[i].name);
    }

    conf->aliases = made;
    conf->n_aliases = n;

    return NGX_OK;
}


/* is its model one of this location? */

static ngx_uint_t
ngx_http_llm_set_leads(ngx_http_llm_ctx_t *ctx, llm_admin_alias_t *set)
{
    ngx_int_t  i;
    ngx_str_t  model;

    model.data = (u_char *) set->model.data;
    model.len = set->model.len;

    i = ngx_http_llm_find_model(ctx->main, &model);

    return i >= 0 && ((ctx->conf->allowed >> i) & 1);
}


static ngx_int_t
ngx_http_llm_alias_value(ngx_http_llm_ctx_t *ctx, ngx_http_llm_alias_t *alias,
    ngx_http_llm_set_t *set, llm_str_t *value)
{
    ngx_str_t   s;
    ngx_uint_t  i;

    /* one that is taken away here is not there, whatever is set */

    for (i = 0; i < set->n && (alias->value.lengths || alias->text.len); i++) {
        s.data = (u_char *) set->aliases[i].name.data;
        s.len = set->aliases[i].name.len;

        if (ngx_http_llm_same_name(&alias->name, &s)
            && ngx_http_llm_set_leads(ctx, &set->aliases[i]))
        {
            *value = llm_admin_str(&set->aliases[i].model);
            return NGX_OK;
        }
    }

    if (ngx_http_complex_value(ctx->request, &alias->value, &s) != NGX_OK) {
        return NGX_ERROR;
    }

    *value = ngx_http_llm_text(&s);

    return NGX_OK;
}


/* those that the location does not name itself; a reload may have brought a
   model of this name */

static ngx_uint_t
ngx_http_llm_set_alone(ngx_http_llm_ctx_t *ctx, ngx_http_llm_set_t *set,
    llm_api_alias_t *made)
{
    ngx_str_t     name;
    ngx_uint_t    i, n;
    ngx_array_t  *own;

    own = ctx->conf->aliases;

    for (i = 0, n = 0; i < set->n; i++) {
        name.data = (u_char *) set->aliases[i].name.data;
        name.len = set->aliases[i].name.len;

        if ((own && ngx_http_llm_find_alias(own, &name))
            || ngx_http_llm_pinned(ctx->main, &name) >= 0
            || !ngx_http_llm_set_leads(ctx, &set->aliases[i]))
        {
            continue;
        }

        made[n].name = llm_admin_str(&set->aliases[i].name);
        made[n++].value = llm_admin_str(&set->aliases[i].model);
    }

    return n;
}


/* one that leads nowhere is a mistake of the configuration, for llm_admin's
   lead somewhere: each worker says so once */

void
ngx_http_llm_asked(ngx_http_llm_ctx_t *ctx, const llm_api_conf_t *conf,
    llm_str_t name)
{
    int32_t                 i;
    ngx_str_t               value;
    ngx_http_request_t     *r;
    ngx_http_llm_alias_t  **alias, *a;

    ctx->alias.data = (u_char *) name.data;
    ctx->alias.len = name.len;

    i = llm_api_alias_index(conf, name);

    if (i < 0 || llm_api_alias_model(conf, i) >= 0) {
        return;
    }

    r = ctx->request;
    alias = ctx->conf->aliases->elts;
    a = alias[i];

    if (a->said) {
        return;
    }

    a->said = 1;

    value.data = (u_char *) conf->aliases[i].value.data;
    value.len = conf->aliases[i].value.len;

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "\"llm_alias\" \"%V\" leads to \"%s\", which is no model of "
                  "this location, in %V:%ui",
                  &a->name, ngx_http_llm_clean(r, &value), &a->file, a->line);
}
