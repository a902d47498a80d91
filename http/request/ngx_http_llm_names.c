/*
 * Evaluates the aliases of a request's location.
 *
 * A thread may parse the body, and only the event loop may evaluate variables,
 * so the values of all the location's aliases are evaluated before the body is
 * parsed.  llm_api_resolve() finds the model of an alias, and returns the name
 * that was asked for.  A model set by llm_admin (ngx_http_llm_admin_alias.c)
 * takes precedence over the rule.
 */

#include "http/conf/ngx_http_llm_alias.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"


/* the aliases that llm_admin has set, as a request sees them */

typedef struct {
    llm_admin_alias_t           *aliases;
    ngx_uint_t                   n;
} ngx_http_llm_set_t;


static ngx_uint_t ngx_http_llm_set_leads(ngx_http_llm_ctx_t *ctx,
    llm_admin_alias_t *set);
static ngx_int_t ngx_http_llm_alias_value(ngx_http_llm_ctx_t *ctx,
    ngx_http_llm_alias_t *alias, ngx_http_llm_set_t *set, llm_str_t *value);
static ngx_uint_t ngx_http_llm_set_alone(ngx_http_llm_ctx_t *ctx,
    ngx_http_llm_set_t *set, llm_api_alias_t *made);


/* result in r->pool; the tenant is found first, because values may depend on
   it */

ngx_int_t
ngx_http_llm_make_aliases(ngx_http_llm_ctx_t *ctx, llm_api_conf_t *conf)
{
    ngx_uint_t               i, n;
    llm_api_alias_t         *made;
    ngx_http_request_t      *r;
    ngx_http_llm_set_t       set;
    ngx_http_llm_alias_t   **alias;

    conf->aliases = NULL;
    conf->n_aliases = 0;

    r = ctx->request;

    ngx_memzero(&set, sizeof(ngx_http_llm_set_t));

    if (ngx_http_llm_set_aliases(ctx->main, r->pool, &set.aliases, &set.n)
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

    for (i = 0; i < n; i++) {
        made[i].granted = 0;
    }

    conf->aliases = made;
    conf->n_aliases = n;

    return NGX_OK;
}


/* is the model of an alias of llm_admin one of this location? */

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

    /* an empty value removes the alias here, even if llm_admin has set it */

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


/* adds the aliases of llm_admin that the location does not define itself; the
   name may be a model's since a reload, and is left out then */

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


/* an alias without a model is a mistake of the configuration, because those of
   llm_admin always have one of the location's; each worker logs it once */

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
