/*
 * The directives of token quotas:
 *
 *   llm_token_zone $key zone=NAME:SIZE [rate=N/m|$v] [day=N|$v]
 *                  [requests=N/m|$v] [streams=N|$v] [count=all|in|out]
 *                  [cached=PRICE] [state=FILE];
 *   llm_token_limit zone=NAME [burst=N|$v] [reserve=N] [dry_run];
 *
 * A limit may name a zone that the configuration declares later: names are
 * looked up when all of it is read.
 */

#include "http/admin/ngx_http_llm_admin.h"
#include "http/access/ngx_http_llm_quota.h"


static char *ngx_http_llm_quota_param(ngx_conf_t *cf, ngx_http_llm_quota_t *q,
    ngx_str_t *value);
static char *ngx_http_llm_quota_zone(ngx_conf_t *cf, ngx_http_llm_quota_t *q,
    ngx_str_t *value, ngx_str_t *s);
static char *ngx_http_llm_quota_state(ngx_conf_t *cf, ngx_http_llm_quota_t *q,
    ngx_str_t *value, ngx_str_t *s);
static ngx_uint_t ngx_http_llm_same_file(ngx_str_t *a, ngx_str_t *b);
static char *ngx_http_llm_quota_count(ngx_conf_t *cf, ngx_http_llm_quota_t *q,
    ngx_str_t *s);
static char *ngx_http_llm_limit_param(ngx_conf_t *cf, ngx_http_llm_limit_t *l,
    ngx_str_t *value);
static ngx_uint_t ngx_http_llm_is_param(ngx_str_t *value, const char *name,
    ngx_str_t *s);


/* zones of the module itself */

static const char *const  ngx_http_llm_own_zones[] = {
    "llm", "llm_admin", "llm_engines", "llm_figures", "llm_idempotency",
    "llm_tenants"
};


#define NGX_HTTP_LLM_PARAM_ERROR(cf, what, value)                             \
    do {                                                                      \
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, what " \"%V\"", value);      \
        return NGX_CONF_ERROR;                                                \
    } while (0)


/* ---- llm_token_zone ---- */

char *
ngx_http_llm_token_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_main_conf_t *mcf = conf;

    char                              *rv;
    ngx_str_t                         *value;
    ngx_uint_t                         i;
    ngx_http_llm_quota_t              *q, **slot;
    ngx_http_compile_complex_value_t   ccv;

    value = cf->args->elts;

    q = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_quota_t));
    if (q == NULL) {
        return NGX_CONF_ERROR;
    }

    if (value[1].len == 0) {
        return "has an empty key";
    }

    rv = ngx_http_llm_once(cf, 2);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = &value[1];
    ccv.complex_value = &q->key;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    q->in = 1;
    q->out = 1;
    q->cached = 1000;
    q->folder = -1;

    for (i = 2; i < cf->args->nelts; i++) {
        rv = ngx_http_llm_quota_param(cf, q, &value[i]);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    if (q->shm_zone == NULL) {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "no zone= in", &cmd->name);
    }

    if (!q->rate.set && !q->day.set && !q->requests.set && !q->streams.set) {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "no rate=, and nothing else that limits, "
                                 "in", &cmd->name);
    }

    q->order = mcf->quotas.nelts;
    q->shm_zone->data = q;
    q->shm_zone->init = ngx_http_llm_init_quota;

    slot = ngx_array_push(&mcf->quotas);
    if (slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = q;

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_quota_param(ngx_conf_t *cf, ngx_http_llm_quota_t *q,
    ngx_str_t *value)
{
    ngx_str_t  s;

    if (ngx_http_llm_is_param(value, "zone=", &s)) {
        return ngx_http_llm_quota_zone(cf, q, value, &s);
    }

    if (ngx_http_llm_is_param(value, "rate=", &s)) {
        return ngx_http_llm_set_amount(cf, &q->rate, 0, &s);
    }

    if (ngx_http_llm_is_param(value, "day=", &s)) {
        return ngx_http_llm_set_amount(cf, &q->day, 1, &s);
    }

    if (ngx_http_llm_is_param(value, "requests=", &s)) {
        return ngx_http_llm_set_amount(cf, &q->requests, 0, &s);
    }

    if (ngx_http_llm_is_param(value, "streams=", &s)) {
        return ngx_http_llm_set_amount(cf, &q->streams, 1, &s);
    }

    if (ngx_http_llm_is_param(value, "count=", &s)) {
        return ngx_http_llm_quota_count(cf, q, &s);
    }

    if (ngx_http_llm_is_param(value, "cached=", &s)) {
        q->cached = ngx_atofp(s.data, s.len, 3);

        if (q->cached == NGX_ERROR || q->cached > 1000) {
            NGX_HTTP_LLM_PARAM_ERROR(cf, "not a price from 0 to 1:", value);
        }

        return NGX_CONF_OK;
    }

    if (ngx_http_llm_is_param(value, "state=", &s)) {
        return ngx_http_llm_quota_state(cf, q, value, &s);
    }

    NGX_HTTP_LLM_PARAM_ERROR(cf, "unknown parameter", value);
}


/* NAME:SIZE; the module's own zones come later, and nobody would know why they
   cannot be made */

static char *
ngx_http_llm_quota_zone(ngx_conf_t *cf, ngx_http_llm_quota_t *q,
    ngx_str_t *value, ngx_str_t *s)
{
    u_char      *colon;
    ssize_t      size;
    ngx_str_t    name, number;
    ngx_uint_t   i;

    colon = ngx_strlchr(s->data, s->data + s->len, ':');

    if (colon == NULL || colon == s->data) {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "not zone=NAME:SIZE:", value);
    }

    name.data = s->data;
    name.len = colon - s->data;
    number.data = colon + 1;
    number.len = s->data + s->len - number.data;

    size = ngx_parse_size(&number);

    if (size == NGX_ERROR || size > (ssize_t) ngx_http_llm_machine_memory()) {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "invalid size in", value);
    }

    if (size < (ssize_t) (8 * ngx_pagesize)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "zone \"%V\" is too small, it must have at least "
                           "%uzk", value, 8 * ngx_pagesize / 1024);
        return NGX_CONF_ERROR;
    }

    for (i = 0; i < llm_nelems(ngx_http_llm_own_zones); i++) {
        if (ngx_strlen(ngx_http_llm_own_zones[i]) == name.len
            && ngx_memcmp(ngx_http_llm_own_zones[i], name.data, name.len) == 0)
        {
            NGX_HTTP_LLM_PARAM_ERROR(cf, "the module has a zone of its own "
                                     "with the name", &name);
        }
    }

    q->shm_zone = ngx_shared_memory_add(cf, &name, size, &ngx_llm_module);

    if (q->shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    if (q->shm_zone->data) {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "there is already a zone", &name);
    }

    return NGX_CONF_OK;
}


/* worker 0 will write it: it may not be there yet, but its folder must */

static char *
ngx_http_llm_quota_state(ngx_conf_t *cf, ngx_http_llm_quota_t *q,
    ngx_str_t *value, ngx_str_t *s)
{
    u_char                    *name, first;
    ngx_int_t                  rc;
    ngx_file_info_t            fi;
    ngx_http_llm_main_conf_t  *mcf;

    if (s->len == 0) {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "no file in", value);
    }

    q->state = *s;

    if (ngx_conf_full_name(cf->cycle, &q->state, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    /* the name of another file, beside it, is a little longer */

    if (q->state.len + NGX_INT_T_LEN + 8 > NGX_MAX_PATH) {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "too long:", value);
    }

    q->place = ngx_crc32_long(q->state.data, q->state.len);

    if (ngx_file_info(q->state.data, &fi) != NGX_FILE_ERROR
        && !ngx_is_file(&fi))
    {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "not a regular file:", value);
    }

    name = (u_char *) strrchr((char *) q->state.data, '/') + 1;
    first = *name;

    *name = '\0';
    rc = ngx_file_info(q->state.data, &fi);
    *name = first;

    if (rc == NGX_FILE_ERROR || !ngx_is_dir(&fi)) {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "there is no folder for", value);
    }

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);

    if (ngx_http_llm_is_usage(mcf, &q->state)) {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "another zone has the same file:",
                                 value);
    }

    if (mcf->admin && ngx_http_llm_same_file(&mcf->admin->state, &q->state)) {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "\"llm_admin\" has the same file:",
                                 value);
    }

    return NGX_CONF_OK;
}


static ngx_uint_t
ngx_http_llm_same_file(ngx_str_t *a, ngx_str_t *b)
{
    return a->len == b->len && ngx_memcmp(a->data, b->data, a->len) == 0;
}


ngx_uint_t
ngx_http_llm_is_usage(ngx_http_llm_main_conf_t *mcf, ngx_str_t *path)
{
    ngx_uint_t              i;
    ngx_http_llm_quota_t  **q;

    q = mcf->quotas.elts;

    for (i = 0; i < mcf->quotas.nelts; i++) {
        if (ngx_http_llm_same_file(&q[i]->state, path)) {
            return 1;
        }
    }

    return 0;
}


static char *
ngx_http_llm_quota_count(ngx_conf_t *cf, ngx_http_llm_quota_t *q,
    ngx_str_t *s)
{
    if (s->len == 3 && ngx_strncmp(s->data, "all", 3) == 0) {
        q->in = 1;
        q->out = 1;

    } else if (s->len == 2 && ngx_strncmp(s->data, "in", 2) == 0) {
        q->in = 1;
        q->out = 0;

    } else if (s->len == 3 && ngx_strncmp(s->data, "out", 3) == 0) {
        q->in = 0;
        q->out = 1;

    } else {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "count= is all, in or out, not", s);
    }

    return NGX_CONF_OK;
}


/* ---- llm_token_limit ---- */

char *
ngx_http_llm_token_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_loc_conf_t *llcf = conf;

    char                       *rv;
    ngx_str_t                  *value;
    ngx_uint_t                  i;
    ngx_array_t               **list;
    ngx_http_llm_limit_t       *l, *other;
    ngx_http_llm_main_conf_t   *mcf;

    if (llcf->limits == NULL) {
        mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);

        llcf->limits = ngx_array_create(cf->pool, 2,
                                        sizeof(ngx_http_llm_limit_t));
        list = ngx_array_push(&mcf->limits);

        if (llcf->limits == NULL || list == NULL) {
            return NGX_CONF_ERROR;
        }

        *list = llcf->limits;
    }

    l = ngx_array_push(llcf->limits);
    if (l == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(l, sizeof(ngx_http_llm_limit_t));

    l->reserve = UINT64_MAX;
    l->file = cf->conf_file->file.name;
    l->line = cf->conf_file->line;

    rv = ngx_http_llm_once(cf, 1);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        rv = ngx_http_llm_limit_param(cf, l, &value[i]);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    if (l->zone.len == 0) {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "no zone= in", &cmd->name);
    }

    other = llcf->limits->elts;

    for (i = 0; i < llcf->limits->nelts - 1; i++) {
        if (other[i].zone.len == l->zone.len
            && ngx_memcmp(other[i].zone.data, l->zone.data, l->zone.len) == 0)
        {
            return "is duplicate";
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_limit_param(ngx_conf_t *cf, ngx_http_llm_limit_t *l,
    ngx_str_t *value)
{
    ngx_str_t  s;

    if (ngx_http_llm_is_param(value, "zone=", &s)) {
        l->zone = s;
        return NGX_CONF_OK;
    }

    if (ngx_http_llm_is_param(value, "burst=", &s)) {
        return ngx_http_llm_set_amount(cf, &l->burst, 1, &s);
    }

    if (ngx_http_llm_is_param(value, "reserve=", &s)) {
        if (llm_quota_amount((char *) s.data, s.len, &l->reserve) != LLM_OK) {
            NGX_HTTP_LLM_PARAM_ERROR(cf, "not a number of tokens:", value);
        }

        return NGX_CONF_OK;
    }

    if (value->len == 7 && ngx_strncmp(value->data, "dry_run", 7) == 0) {
        l->dry_run = 1;
        return NGX_CONF_OK;
    }

    NGX_HTTP_LLM_PARAM_ERROR(cf, "unknown parameter", value);
}


static ngx_uint_t
ngx_http_llm_is_param(ngx_str_t *value, const char *name, ngx_str_t *s)
{
    size_t  len;

    len = ngx_strlen(name);

    if (value->len < len || ngx_strncmp(value->data, name, len) != 0) {
        return 0;
    }

    s->data = value->data + len;
    s->len = value->len - len;

    return 1;
}


/* ---- once all is read ---- */

/* limits are sorted: requests lock zones in one order */

static char *
ngx_http_llm_find_quotas(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_array_t *limits)
{
    ngx_uint_t              i, k;
    ngx_str_t              *name;
    ngx_http_llm_limit_t   *l, swap;
    ngx_http_llm_quota_t  **q;

    l = limits->elts;
    q = mcf->quotas.elts;

    for (i = 0; i < limits->nelts; i++) {

        for (k = 0; k < mcf->quotas.nelts; k++) {
            name = &q[k]->shm_zone->shm.name;

            if (name->len == l[i].zone.len
                && ngx_memcmp(name->data, l[i].zone.data, name->len) == 0)
            {
                l[i].quota = q[k];
            }
        }

        if (l[i].quota == NULL) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "there is no \"llm_token_zone\" of the name \"%V\" "
                          "in %V:%ui", &l[i].zone, &l[i].file, l[i].line);
            return NGX_CONF_ERROR;
        }

        if (l[i].burst.set && !l[i].quota->rate.set) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"burst=\" of zone \"%V\", whose "
                          "\"llm_token_zone\" has no \"rate=\", in %V:%ui",
                          &l[i].zone, &l[i].file, l[i].line);
            return NGX_CONF_ERROR;
        }

        for (k = i; k > 0 && l[k].quota->order < l[k - 1].quota->order; k--) {
            swap = l[k];
            l[k] = l[k - 1];
            l[k - 1] = swap;
        }
    }

    return NGX_CONF_OK;
}


char *
ngx_http_llm_check_quotas(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf)
{
    char          *rv;
    ngx_uint_t     i;
    ngx_array_t  **lists;

    lists = mcf->limits.elts;

    for (i = 0; i < mcf->limits.nelts; i++) {
        rv = ngx_http_llm_find_quotas(cf, mcf, lists[i]);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}
