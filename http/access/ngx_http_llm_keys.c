/*
 * The API key of a request: taken from "Authorization: Bearer", or else from
 * "x-api-key".  It is looked up when it is first needed (for limit_req by
 * $llm_key, before the access phase); the request keeps a copy, so later
 * changes of the file do not affect it.
 *
 * The handler is the last one of the access phase: a client that "deny" keeps
 * out cannot try keys, and with "satisfy any" the other handlers have run, so
 * this one may answer with an error in the form of the path.
 */

#include "http/access/ngx_http_llm_keys.h"
#include "http/access/ngx_http_llm_proxied.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"


/* client of a request; in r->pool, found by its cleanup handler, because an
   internal redirect clears the module's contexts */

typedef struct {
    ngx_http_llm_keyfile_t      *file;          /* where the secret was looked
                                                   up */
    ngx_str_t                    secret;        /* len 0: none was sent */
    llm_key_t                    key;           /* text NULL: unknown secret */
    ngx_int_t                    age;           /* validity of a known key: see
                                                   llm_key_age(); 0: valid */
} ngx_http_llm_client_t;


static ngx_http_llm_client_t *ngx_http_llm_client(ngx_http_request_t *r);
static ngx_int_t ngx_http_llm_look_up(ngx_http_request_t *r,
    ngx_http_llm_client_t *c);
static ngx_uint_t ngx_http_llm_is_bearer(ngx_str_t *value, ngx_str_t *s);
static void ngx_http_llm_client_cleanup(void *data);
static uint32_t ngx_http_llm_scope(ngx_http_request_t *r);
static ngx_int_t ngx_http_llm_check_key(ngx_http_llm_client_t *c,
    uint32_t scope, llm_err_t *err);
static ngx_int_t ngx_http_llm_check_model(ngx_http_request_t *r,
    ngx_http_llm_client_t *c, llm_err_t *err);
static ngx_int_t ngx_http_llm_bad_key(ngx_http_llm_client_t *c,
    llm_err_t *err);
static ngx_int_t ngx_http_llm_challenge(ngx_http_request_t *r,
    ngx_http_llm_client_t *c, uint32_t scope, llm_err_t *err);
static ngx_int_t ngx_http_llm_refuse(ngx_http_request_t *r, llm_err_t *err);


static void ngx_http_llm_key_allow(ngx_http_llm_ctx_t *ctx,
    llm_api_conf_t *conf);
static void ngx_http_llm_key_tenant(ngx_http_llm_ctx_t *ctx);


ngx_http_llm_stage_t  ngx_http_llm_key_stage = {
    .allow = ngx_http_llm_key_allow,
    .tenant = ngx_http_llm_key_tenant
};


ngx_int_t
ngx_http_llm_access_handler(ngx_http_request_t *r)
{
    uint32_t                  scope;
    llm_err_t                 err;
    ngx_http_llm_client_t    *c;
    ngx_http_llm_keys_loc_conf_t  *klcf;

    klcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_keys_module);

    if (klcf->file == NULL) {
        return NGX_DECLINED;
    }

    c = ngx_http_llm_client(r);
    if (c == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    scope = ngx_http_llm_scope(r);

    if (ngx_http_llm_check_key(c, scope, &err) == NGX_OK
        && ngx_http_llm_check_model(r, c, &err) == NGX_OK)
    {
        return NGX_OK;
    }

    if (ngx_http_llm_challenge(r, c, scope, &err) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_finalize_request(r, ngx_http_llm_refuse(r, &err));

    return NGX_DONE;
}


/* ---- which key it is ---- */

const llm_key_t *
ngx_http_llm_key(ngx_http_request_t *r)
{
    ngx_http_llm_client_t    *c;
    ngx_http_llm_keys_loc_conf_t  *klcf;

    klcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_keys_module);

    if (klcf->file == NULL) {
        return NULL;
    }

    c = ngx_http_llm_client(r);

    return (c && c->key.text && c->age == 0) ? &c->key : NULL;
}


/* a request that is redirected to a location with another file is looked up
   there again */

static ngx_http_llm_client_t *
ngx_http_llm_client(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t       *cln;
    ngx_http_llm_client_t    *c;
    ngx_http_llm_keys_loc_conf_t  *klcf;

    klcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_keys_module);

    for (cln = r->pool->cleanup; cln; cln = cln->next) {
        c = cln->data;

        if (cln->handler == ngx_http_llm_client_cleanup
            && c->file == klcf->file)
        {
            return c;
        }
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_llm_client_t));
    if (cln == NULL) {
        return NULL;
    }

    c = cln->data;
    ngx_memzero(c, sizeof(ngx_http_llm_client_t));

    c->file = klcf->file;

    if (ngx_http_llm_look_up(r, c) != NGX_OK) {
        return NULL;
    }

    cln->handler = ngx_http_llm_client_cleanup;

    return c;
}


static void
ngx_http_llm_client_cleanup(void *data)
{
    /* the handler only marks the entry */
}


static ngx_int_t
ngx_http_llm_look_up(ngx_http_request_t *r, ngx_http_llm_client_t *c)
{
    u_char           *text;
    const llm_key_t  *key;

    ngx_http_llm_find_secret(r, &c->secret);

    key = c->file->keys ? llm_keys_find(c->file->keys,
                                        (char *) c->secret.data,
                                        c->secret.len)
                        : NULL;
    if (key == NULL) {
        return NGX_OK;
    }

    text = ngx_pnalloc(r->pool, key->len);
    if (text == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(text, key->text, key->len);

    c->key = *key;
    c->key.text = (char *) text;
    c->age = llm_key_age(key, ngx_time());

    return NGX_OK;
}


void
ngx_http_llm_find_secret(ngx_http_request_t *r, ngx_str_t *s)
{
    ngx_table_elt_t            *auth;
    ngx_http_variable_value_t  *v;

    auth = r->headers_in.authorization;

    if (auth && ngx_http_llm_is_bearer(&auth->value, s)) {
        return;
    }

    v = ngx_http_llm_x_api_key(r);

    if (v && !v->not_found) {
        s->data = v->data;
        s->len = v->len;
    }
}


ngx_http_variable_value_t *
ngx_http_llm_x_api_key(ngx_http_request_t *r)
{
    ngx_http_llm_keys_main_conf_t  *kmcf;

    kmcf = ngx_http_get_module_main_conf(r, ngx_http_llm_keys_module);

    return ngx_http_get_indexed_variable(r, kmcf->header);
}


static ngx_uint_t
ngx_http_llm_is_bearer(ngx_str_t *value, ngx_str_t *s)
{
    u_char  *p, *last;

    p = value->data;
    last = p + value->len;

    if (value->len < 7
        || ngx_strncasecmp(p, (u_char *) "bearer ", 7) != 0)
    {
        return 0;
    }

    for (p += 7; p < last && *p == ' '; p++) { /* void */ }

    while (last > p && last[-1] == ' ') {
        last--;
    }

    s->data = p;
    s->len = last - p;

    return s->len != 0;
}


/* ---- what it permits ---- */

/* scope that the request needs; 0: the path does not exist, and any key may
   learn that */

static uint32_t
ngx_http_llm_scope(ngx_http_request_t *r)
{
    llm_api_route_t           to;
    ngx_http_llm_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    if (llcf->serves && !llcf->serves->api) {
        return llcf->serves->scope;
    }

    if ((llcf->serves || ngx_http_llm_is_proxied(r))
        && ngx_http_llm_route(r, llcf, &to) == NGX_OK)
    {
        return to.scope;
    }

    return llcf->serves ? 0 : LLM_SCOPE_OTHER;
}


static ngx_int_t
ngx_http_llm_check_key(ngx_http_llm_client_t *c, uint32_t scope,
    llm_err_t *err)
{
    if (c->key.text == NULL || c->age != 0) {
        return ngx_http_llm_bad_key(c, err);
    }

    if (scope & ~c->key.scopes) {
        llm_fail_with(err, 403, "insufficient_scope", NULL,
                      "Your API key lacks the scope '%s', which is needed "
                      "here.", llm_scope_name(scope));
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* another server's models are not known here: a key for some models may use that
   server only for one that llm_api has looked up before, for which the key was
   checked */

static ngx_int_t
ngx_http_llm_check_model(ngx_http_request_t *r, ngx_http_llm_client_t *c,
    llm_err_t *err)
{
    ngx_http_llm_ctx_t  *ctx;

    if (c->key.any_model || !ngx_http_llm_is_proxied(r)) {
        return NGX_OK;
    }

    ctx = ngx_http_llm_find_ctx(r);

    if (ctx && ctx->model >= 0) {
        return NGX_OK;
    }

    llm_fail_with(err, 403, "model_not_allowed", "model", "Your API key is for "
                  "some models only, and another server would answer for one "
                  "that is not among them.");

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_llm_bad_key(ngx_http_llm_client_t *c, llm_err_t *err)
{
    char         mask[LLM_KEY_MASK];
    const char  *what;

    if (c->key.text == NULL && c->file->keys == NULL) {
        llm_fail_with(err, 503, "keys_unavailable", NULL,
                      "No API key can be checked now.");
        return NGX_ERROR;
    }

    if (c->secret.len == 0) {
        llm_fail_with(err, 401, "invalid_api_key", NULL,
                      "An API key is needed here: send it as "
                      "'Authorization: Bearer KEY', or as 'x-api-key'.");
        return NGX_ERROR;
    }

    what = (c->key.text == NULL) ? "is not known"
           : (c->age < 0) ? "is not valid yet" : "has expired";

    llm_key_mask(mask, sizeof(mask), (char *) c->secret.data, c->secret.len);

    llm_fail_with(err, 401, "invalid_api_key", NULL, "The API key '%s' %s.",
                  mask, what);

    return NGX_ERROR;
}


static void
ngx_http_llm_key_allow(ngx_http_llm_ctx_t *ctx, llm_api_conf_t *conf)
{
    uint32_t          i;
    llm_api_alias_t  *alias;
    const llm_key_t  *key;

    key = ngx_http_llm_key(ctx->request);

    if (key == NULL) {
        return;
    }

    conf->denied = llm_api_denied(key, conf->models, conf->n_models);
    alias = (llm_api_alias_t *) conf->aliases;

    for (i = 0; i < conf->n_aliases; i++) {
        alias[i].granted = llm_key_names_model(key, alias[i].name);
    }
}


static void
ngx_http_llm_key_tenant(ngx_http_llm_ctx_t *ctx)
{
    const llm_key_t  *key;

    key = ngx_http_llm_key(ctx->request);

    if (key) {
        ctx->tenant.data = (u_char *) llm_key_member(key, "tenant", 6);
        ctx->tenant.len = ngx_strlen(ctx->tenant.data);
    }
}


/* ---- refusals ---- */

/* RFC 6750, section 3 */

static ngx_int_t
ngx_http_llm_challenge(ngx_http_request_t *r, ngx_http_llm_client_t *c,
    uint32_t scope, llm_err_t *err)
{
    u_char      *p, *last;
    const char  *name;

    static const char  lacks[] =
        "Bearer realm=\"llm\", error=\"insufficient_scope\", scope=\"%s\"";
    static const char  bad[] = "Bearer realm=\"llm\", error=\"invalid_token\"";
    static const char  none[] = "Bearer realm=\"llm\"";

    if (err->status == 503) {
        return NGX_OK;
    }

    if (err->status == 401) {
        return ngx_http_llm_add_header(r, "WWW-Authenticate",
                                       c->secret.len ? bad : none,
                                       c->secret.len ? sizeof(bad) - 1
                                                     : sizeof(none) - 1);
    }

    name = llm_scope_name(scope);

    p = ngx_pnalloc(r->pool, sizeof(lacks) + ngx_strlen(name));
    if (p == NULL) {
        return NGX_ERROR;
    }

    last = ngx_sprintf(p, lacks, name);

    return ngx_http_llm_add_header(r, "WWW-Authenticate", (char *) p,
                                   last - p);
}


/* sends the error, in the form of the path if that is one of the API */

static ngx_int_t
ngx_http_llm_refuse(ngx_http_request_t *r, llm_err_t *err)
{
    llm_api_route_t           to;
    ngx_http_llm_ctx_t       *ctx;
    ngx_http_llm_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    if (ngx_http_llm_is_api(llcf)) {
        ctx = ngx_http_llm_create_ctx(r);
        if (ctx == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        (void) ngx_http_llm_route(r, llcf, &to);
        ctx->reply->endpoint = to.path;
    }

    return ngx_http_llm_send_error(r, err, err->status == 503);
}


/* ---- variables ---- */

/* data: 0 for $llm_key, else the whole name of $llm_key_NAME */

ngx_int_t
ngx_http_llm_key_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_str_t *name = (ngx_str_t *) data;

    const char       *value;
    const llm_key_t  *key;

    key = ngx_http_llm_key(r);
    value = NULL;

    if (key) {
        value = name ? llm_key_member(key, (char *) name->data + 8,
                                      name->len - 8)
                     : llm_key_member(key, "id", 2);
    }

    if (value == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->data = (u_char *) value;
    v->len = ngx_strlen(value);

    return NGX_OK;
}
