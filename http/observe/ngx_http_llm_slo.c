/*
 * llm_slo: objectives, and which requests met them.
 *
 *   llm_slo NAME [ttft=TIME] [itl=TIME] [e2e=TIME] [prompt=N] [completion=N];
 *
 * A request that needs a model counts when it has ended, unless it is larger
 * than the objective applies to, or its client ended it: by an error of its
 * own, by exceeding its quota, or by leaving before a bound was exceeded.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_param.h"
#include "http/observe/ngx_http_llm_metrics.h"
#include "http/observe/ngx_http_llm_outcome.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"


typedef struct {
    ngx_str_t                    name;
    size_t                       offset;
    ngx_uint_t                   time;          /* 1: a time; 0: a number of
                                                   tokens */
} ngx_http_llm_slo_bound_t;


static const ngx_http_llm_slo_bound_t  ngx_http_llm_slo_bounds[] = {
    { ngx_string("ttft="), offsetof(ngx_http_llm_slo_t, ttft), 1 },
    { ngx_string("itl="), offsetof(ngx_http_llm_slo_t, itl), 1 },
    { ngx_string("e2e="), offsetof(ngx_http_llm_slo_t, e2e), 1 },
    { ngx_string("prompt="), offsetof(ngx_http_llm_slo_t, prompt), 0 },
    { ngx_string("completion="), offsetof(ngx_http_llm_slo_t, completion), 0 },
    { ngx_null_string, 0, 0 }
};


static char *ngx_http_llm_slo_check_name(ngx_conf_t *cf, ngx_str_t *name);
static ngx_int_t ngx_http_llm_slo_bound(ngx_str_t *value);
static char *ngx_http_llm_slo_param(ngx_conf_t *cf, ngx_http_llm_slo_t *slo,
    ngx_str_t *value);
static ngx_http_llm_slo_t *ngx_http_llm_slo_find(
    ngx_http_llm_main_conf_t *mcf, ngx_str_t *name);
static ngx_uint_t ngx_http_llm_slo_same(ngx_http_llm_slo_t *a,
    ngx_http_llm_slo_t *b);


typedef enum {
    NGX_HTTP_LLM_SLO_NONE = 0,                  /* does not count */
    NGX_HTTP_LLM_SLO_BAD,
    NGX_HTTP_LLM_SLO_GOOD
} ngx_http_llm_slo_e;


/* ---- the directive ---- */

char *
ngx_http_llm_slo(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_metrics_conf_t *mlcf = conf;

    char                       *rv;
    ngx_str_t                  *value;
    ngx_uint_t                  i;
    ngx_http_llm_slo_t         *slo, *same, **to;
    ngx_http_llm_main_conf_t   *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);
    value = cf->args->elts;

    slo = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_slo_t));
    if (slo == NULL) {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_llm_once(cf, 2) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    slo->name = value[1];

    if (ngx_http_llm_slo_check_name(cf, &slo->name) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        rv = ngx_http_llm_slo_param(cf, slo, &value[i]);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    same = ngx_http_llm_slo_find(mcf, &slo->name);

    if (same && !ngx_http_llm_slo_same(same, slo)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "llm_slo \"%V\" has other bounds in %V:%ui",
                           &slo->name, &same->file, same->line);
        return NGX_CONF_ERROR;
    }

    if (same == NULL) {
        if (ngx_http_llm_stats(mcf)->slos.nelts == NGX_HTTP_LLM_MAX_SLOS) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "there are more than %d names of llm_slo",
                               NGX_HTTP_LLM_MAX_SLOS);
            return NGX_CONF_ERROR;
        }

        to = ngx_array_push(&ngx_http_llm_stats(mcf)->slos);
        if (to == NULL) {
            return NGX_CONF_ERROR;
        }

        slo->file = cf->conf_file->file.name;
        slo->line = cf->conf_file->line;
        *to = slo;
        same = slo;
    }

    if (mlcf->slos == NULL) {
        mlcf->slos = ngx_array_create(cf->pool, 2,
                                      sizeof(ngx_http_llm_slo_t *));
        if (mlcf->slos == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    to = mlcf->slos->elts;

    for (i = 0; i < mlcf->slos->nelts; i++) {
        if (to[i] == same) {
            return "is duplicate";
        }
    }

    to = ngx_array_push(mlcf->slos);
    if (to == NULL) {
        return NGX_CONF_ERROR;
    }

    *to = same;

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_slo_check_name(ngx_conf_t *cf, ngx_str_t *name)
{
    if (name->len == 0 || name->len > NGX_HTTP_LLM_WORD) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the name \"%V\" must have 1 to %d characters",
                           name, NGX_HTTP_LLM_WORD);
        return NGX_CONF_ERROR;
    }

    if (ngx_http_llm_slo_bound(name) != NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" of \"llm_slo\" must come after its "
                           "name", name);
        return NGX_CONF_ERROR;
    }

    if (!ngx_http_llm_is_text(name)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid name \"%V\" of \"llm_slo\", it must be "
                           "UTF-8 without control characters", name);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* index of the parameter in ngx_http_llm_slo_bounds; NGX_ERROR: none */

static ngx_int_t
ngx_http_llm_slo_bound(ngx_str_t *value)
{
    ngx_int_t         i;
    const ngx_str_t  *name;

    for (i = 0; ngx_http_llm_slo_bounds[i].name.len; i++) {
        name = &ngx_http_llm_slo_bounds[i].name;

        if (ngx_strncmp(value->data, name->data, name->len) == 0) {
            return i;
        }
    }

    return NGX_ERROR;
}


static char *
ngx_http_llm_slo_param(ngx_conf_t *cf, ngx_http_llm_slo_t *slo,
    ngx_str_t *value)
{
    size_t       len;
    uint64_t     n;
    ngx_int_t    i;
    ngx_uint_t  *to;

    i = ngx_http_llm_slo_bound(value);

    if (i == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "unknown parameter \"%V\"",
                           value);
        return NGX_CONF_ERROR;
    }

    /* ngx_msec_t and ngx_uint_t are the same type */

    to = (ngx_uint_t *) ((char *) slo + ngx_http_llm_slo_bounds[i].offset);
    len = ngx_http_llm_slo_bounds[i].name.len;

    if (ngx_http_llm_slo_bounds[i].time) {
        return ngx_http_llm_param_time(cf, value, len, to);
    }

    if (llm_count((char *) value->data + len, value->len - len,
                  NGX_MAX_INT32_VALUE, &n) != LLM_OK
        || n == 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid number of tokens \"%V\" of "
                           "\"llm_slo\", it must be between 1 and %d",
                           value, NGX_MAX_INT32_VALUE);
        return NGX_CONF_ERROR;
    }

    *to = n;

    return NGX_CONF_OK;
}


static ngx_http_llm_slo_t *
ngx_http_llm_slo_find(ngx_http_llm_main_conf_t *mcf, ngx_str_t *name)
{
    ngx_uint_t            i;
    ngx_http_llm_slo_t  **slo;

    slo = ngx_http_llm_stats(mcf)->slos.elts;

    for (i = 0; i < ngx_http_llm_stats(mcf)->slos.nelts; i++) {
        if (slo[i]->name.len == name->len
            && ngx_memcmp(slo[i]->name.data, name->data, name->len) == 0)
        {
            return slo[i];
        }
    }

    return NULL;
}


static ngx_uint_t
ngx_http_llm_slo_same(ngx_http_llm_slo_t *a, ngx_http_llm_slo_t *b)
{
    return a->ttft == b->ttft && a->itl == b->itl && a->e2e == b->e2e
           && a->prompt == b->prompt && a->completion == b->completion;
}


/* ---- requests ---- */

/* the endpoint's scopes that need a model; 0: it needs none */

static ngx_uint_t
ngx_http_llm_slo_scope(ngx_http_llm_ctx_t *ctx)
{
    llm_api_route_t  to;

    if (ctx->path.len == 0
        || llm_api_route(ctx->path, llm_str("POST"), &to) != LLM_OK)
    {
        return 0;
    }

    return to.scope & (LLM_SCOPE_GENERATE|LLM_SCOPE_EMBED);
}


/* has a bound been exceeded?  A generating request that ended without a token
   has waited for its first token until its end */

static ngx_uint_t
ngx_http_llm_slo_exceeded(ngx_http_llm_slo_t *slo, ngx_http_llm_ctx_t *ctx,
    ngx_uint_t scope)
{
    uint64_t  ttft, total, tpot;

    ngx_http_llm_times(ctx, &ttft, &total);
    tpot = ngx_http_llm_tpot(ctx);

    if (!ctx->done) {
        total = ctx->ended_us - ctx->arrival_us;

        if (ttft == 0 && (scope & LLM_SCOPE_GENERATE)) {
            ttft = total;
        }
    }

    return (slo->ttft && ttft > (uint64_t) slo->ttft * 1000)
           || (slo->e2e && total > (uint64_t) slo->e2e * 1000)
           || (slo->itl && tpot != NGX_HTTP_LLM_NO_TPOT
               && tpot > (uint64_t) slo->itl * 1000);
}


static ngx_uint_t
ngx_http_llm_slo_is(ngx_str_t *cause, const char *word)
{
    return cause->len == ngx_strlen(word)
           && ngx_memcmp(cause->data, word, cause->len) == 0;
}


/* is it an error of the client, or of the client's quota? */

static ngx_uint_t
ngx_http_llm_slo_is_theirs(ngx_str_t *cause, ngx_uint_t status)
{
    if (status == 429) {
        return ngx_http_llm_slo_is(cause, "rate_limit_exceeded")
               || ngx_http_llm_slo_is(cause, "insufficient_quota");
    }

    return status < 500;
}


static ngx_http_llm_slo_e
ngx_http_llm_slo_of(ngx_http_llm_slo_t *slo, ngx_http_request_t *r,
    ngx_http_llm_ctx_t *ctx, ngx_uint_t scope, ngx_uint_t status)
{
    ngx_str_t  cause;

    cause = ngx_http_llm_cause(r);

    if (cause.len == 0 && !ctx->submitted) {
        return NGX_HTTP_LLM_SLO_NONE;           /* an answer was sent again, or
                                                   the engine never had the
                                                   request */
    }

    /* an error in a stream, whose status is 200, is not the client's */

    if (cause.len && (!ctx->started || status >= NGX_HTTP_BAD_REQUEST)
        && ngx_http_llm_slo_is_theirs(&cause, status))
    {
        return NGX_HTTP_LLM_SLO_NONE;
    }

    if (cause.len || ctx->broken) {
        return NGX_HTTP_LLM_SLO_BAD;
    }

    if (ctx->started
        && ((slo->prompt && ctx->usage.prompt_tokens > slo->prompt)
            || (slo->completion
                && ctx->usage.completion_tokens > slo->completion)))
    {
        return NGX_HTTP_LLM_SLO_NONE;
    }

    if (ngx_http_llm_slo_exceeded(slo, ctx, scope)) {
        return NGX_HTTP_LLM_SLO_BAD;
    }

    return ctx->done ? NGX_HTTP_LLM_SLO_GOOD : NGX_HTTP_LLM_SLO_NONE;
}


void
ngx_http_llm_judge(ngx_http_request_t *r, ngx_http_llm_ctx_t *ctx,
    ngx_uint_t status)
{
    ngx_uint_t                    i, scope;
    ngx_http_llm_slo_e            is;
    ngx_http_llm_slo_t          **slo;
    ngx_http_llm_metrics_conf_t  *mlcf;

    mlcf = ngx_http_llm_get_loc_conf(ctx->conf, ngx_http_llm_metrics_module);

    if (mlcf->slos == NULL) {
        return;
    }

    scope = ngx_http_llm_slo_scope(ctx);

    if (scope == 0) {
        return;
    }

    slo = mlcf->slos->elts;

    for (i = 0; i < mlcf->slos->nelts; i++) {
        is = ngx_http_llm_slo_of(slo[i], r, ctx, scope, status);

        if (is == NGX_HTTP_LLM_SLO_NONE) {
            continue;
        }

        (void) ngx_atomic_fetch_add(&slo[i]->score->total, 1);

        if (is == NGX_HTTP_LLM_SLO_GOOD) {
            (void) ngx_atomic_fetch_add(&slo[i]->score->good, 1);
        }
    }
}
