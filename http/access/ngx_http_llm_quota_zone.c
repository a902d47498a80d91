/*
 * A zone of token quotas:
 *
 *   llm_token_zone $key zone=NAME:SIZE [rate=N/m|$v] [day=N|$v]
 *                  [requests=N/m|$v] [streams=N|$v]
 *                  [count=all|in|out|audio] [cached=PRICE] [state=FILE];
 */

#include "http/access/ngx_http_llm_quota.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_param.h"


static char *ngx_http_llm_quota_param(ngx_conf_t *cf, ngx_http_llm_quota_t *q,
    ngx_str_t *value);
static char *ngx_http_llm_quota_zone(ngx_conf_t *cf, ngx_http_llm_quota_t *q,
    ngx_str_t *value, ngx_str_t *s);
static char *ngx_http_llm_quota_state(ngx_conf_t *cf, ngx_http_llm_quota_t *q,
    ngx_str_t *value, ngx_str_t *s);
static char *ngx_http_llm_quota_count(ngx_conf_t *cf, ngx_http_llm_quota_t *q,
    ngx_str_t *s);


/* names of the module's own zones; "_" at the end: a number follows */

static const char *const  ngx_http_llm_own_zones[] = {
    "llm", "llm_admin", "llm_engines", "llm_figures", "llm_idempotency",
    "llm_tenants_"
};


#define NGX_HTTP_LLM_PARAM_ERROR(cf, what, value)                             \
    do {                                                                      \
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, what " \"%V\"", value);      \
        return NGX_CONF_ERROR;                                                \
    } while (0)


char *
ngx_http_llm_token_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_quotas_main_conf_t *qmcf = conf;

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
        NGX_HTTP_LLM_PARAM_ERROR(cf, "no rate=, day=, requests= or streams= "
                                 "in", &cmd->name);
    }

    q->order = qmcf->quotas.nelts;
    q->shm_zone->data = q;
    q->shm_zone->init = ngx_http_llm_init_quota;

    slot = ngx_array_push(&qmcf->quotas);
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


/* NAME:SIZE.  The names of the module's own zones, which are made later, are
   refused here, where the message can say why */

static char *
ngx_http_llm_quota_zone(ngx_conf_t *cf, ngx_http_llm_quota_t *q,
    ngx_str_t *value, ngx_str_t *s)
{
    size_t       len;
    u_char      *colon;
    ssize_t      size;
    ngx_str_t    name, number;
    ngx_uint_t   i;
    const char  *own;

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
        own = ngx_http_llm_own_zones[i];
        len = ngx_strlen(own);

        if ((len == name.len || (len < name.len && own[len - 1] == '_'))
            && ngx_memcmp(own, name.data, len) == 0)
        {
            NGX_HTTP_LLM_PARAM_ERROR(cf, "the module has a zone of its own "
                                     "with the name", &name);
        }
    }

    q->shm_zone = ngx_shared_memory_add(cf, &name, size,
                                        &ngx_http_llm_quotas_module);

    if (q->shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    if (q->shm_zone->data) {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "there is already a zone", &name);
    }

    return NGX_CONF_OK;
}


/* the file, which worker 0 will write, may not exist yet, but its folder
   must */

static char *
ngx_http_llm_quota_state(ngx_conf_t *cf, ngx_http_llm_quota_t *q,
    ngx_str_t *value, ngx_str_t *s)
{
    u_char                    *name, first;
    ngx_int_t                  rc;
    const char                *writer;
    ngx_file_info_t            fi;
    ngx_http_llm_main_conf_t  *mcf;

    if (s->len == 0) {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "no file in", value);
    }

    q->state = *s;

    if (ngx_conf_full_name(cf->cycle, &q->state, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    /* the name of the temporary file is a little longer */

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

    writer = ngx_http_llm_who_writes(mcf, &q->state);

    if (writer && ngx_strcmp(writer, "llm_token_zone") == 0) {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "another zone has the same file:",
                                 value);
    }

    if (writer) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%s\" has the same file: \"%V\"", writer, value);
        return NGX_CONF_ERROR;
    }

    if (ngx_http_llm_add_file(mcf, "llm_token_zone", &q->state, &q->state, 1)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
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

    } else if (s->len == 5 && ngx_strncmp(s->data, "audio", 5) == 0) {
        q->in = 0;
        q->out = 0;
        q->audio = 1;

    } else {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "count= is all, in, out or audio, not",
                                 s);
    }

    return NGX_CONF_OK;
}


ngx_uint_t
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
