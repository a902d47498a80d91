/*
 * llm_route and $llm_route_key, for a balancer in front of other servers.  They
 * need neither a model in this nginx nor a llm_api location.
 *
 * When an upstream chooses a server the body has been read, unless it is passed
 * on while it is received (proxy_request_buffering off).  A key that is
 * evaluated before the body was read depends on the client alone, and is not
 * cached; later it is computed once.  The body is read where it is, in buffers
 * or in a temporary file, up to NGX_HTTP_LLM_ROUTE_SCAN bytes, which bounds the
 * time spent in the event loop.
 */

#include "http/access/ngx_http_llm_keys.h"
#include "http/balance/ngx_http_llm_route.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_param.h"


#define NGX_HTTP_LLM_ROUTE_SCAN     (4 * 1024 * 1024)

/* bytes of a temporary file that are read at a time */
#define NGX_HTTP_LLM_ROUTE_PIECE    32768

#define NGX_HTTP_LLM_ROUTE_MESSAGE  4096
#define NGX_HTTP_LLM_ROUTE_PROMPT   256


static ngx_int_t ngx_http_llm_route_who(ngx_http_request_t *r,
    llm_str_t *tenant, llm_str_t *secret);
static ngx_uint_t ngx_http_llm_route_ready(ngx_http_request_t *r);
static void ngx_http_llm_route_body(ngx_http_request_t *r,
    llm_route_key_t *key);
static int ngx_http_llm_route_file(ngx_http_request_t *r,
    llm_route_key_t *key, ngx_buf_t *b, off_t size);


/* llm_route [message=SIZE] [prompt=SIZE] */

char *
ngx_http_llm_route_bytes(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_route_conf_t *rlcf = conf;

    size_t     *bytes;
    ssize_t     size;
    ngx_str_t  *value, s;
    ngx_uint_t  i;

    if (rlcf->message != NGX_CONF_UNSET_SIZE) {
        return "is duplicate";
    }

    if (ngx_http_llm_once(cf, 1) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    rlcf->message = NGX_HTTP_LLM_ROUTE_MESSAGE;
    rlcf->prompt = NGX_HTTP_LLM_ROUTE_PROMPT;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        s = value[i];

        if (ngx_strncmp(s.data, "message=", 8) == 0) {
            bytes = &rlcf->message;
            s.data += 8;
            s.len -= 8;

        } else if (ngx_strncmp(s.data, "prompt=", 7) == 0) {
            bytes = &rlcf->prompt;
            s.data += 7;
            s.len -= 7;

        } else {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "unknown parameter \"%V\"", &value[i]);
            return NGX_CONF_ERROR;
        }

        size = ngx_parse_size(&s);

        if (size < 0 || size > LLM_ROUTE_MOST) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid size \"%V\" of \"llm_route\", it must "
                               "be between 0 and %dk", &value[i],
                               LLM_ROUTE_MOST / 1024);
            return NGX_CONF_ERROR;
        }

        *bytes = (size_t) size;
    }

    return NGX_CONF_OK;
}


void *
ngx_http_llm_create_route_conf(ngx_conf_t *cf)
{
    ngx_http_llm_route_conf_t  *conf;

    conf = ngx_palloc(cf->pool, sizeof(ngx_http_llm_route_conf_t));

    if (conf) {
        conf->message = NGX_CONF_UNSET_SIZE;
        conf->prompt = NGX_CONF_UNSET_SIZE;
    }

    return conf;
}


char *
ngx_http_llm_merge_route_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_llm_route_conf_t *prev = parent;
    ngx_http_llm_route_conf_t *conf = child;

    ngx_conf_merge_size_value(conf->message, prev->message,
                              NGX_HTTP_LLM_ROUTE_MESSAGE);
    ngx_conf_merge_size_value(conf->prompt, prev->prompt,
                              NGX_HTTP_LLM_ROUTE_PROMPT);

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_llm_route_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    int                         rc;
    llm_str_t                   tenant, secret;
    ngx_uint_t                  ready;
    llm_route_key_t            *key;
    ngx_http_llm_route_conf_t  *rlcf;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_upstream_module);

    v->data = ngx_pnalloc(r->pool, LLM_ROUTE_KEY_LEN);

    if (v->data == NULL
        || ngx_http_llm_route_who(r, &tenant, &secret) != NGX_OK)
    {
        return NGX_ERROR;
    }

    key = llm_route_key_create(rlcf->message, rlcf->prompt);
    if (key == NULL) {
        return NGX_ERROR;
    }

    ready = ngx_http_llm_route_ready(r);

    if (ready) {
        ngx_http_llm_route_body(r, key);
    }

    rc = llm_route_key_end(key, tenant, secret, (char *) v->data);

    llm_route_key_free(key);

    if (rc != LLM_OK) {
        return NGX_ERROR;
    }

    v->len = LLM_ROUTE_KEY_LEN;
    v->valid = 1;
    v->no_cacheable = !ready;
    v->not_found = 0;

    return NGX_OK;
}


/* each tenant has its own prefix cache; if only the servers know the tenants,
   the client's credentials stand for its tenant */

static ngx_int_t
ngx_http_llm_route_who(ngx_http_request_t *r, llm_str_t *tenant,
    llm_str_t *secret)
{
    ngx_str_t                 s;
    const llm_key_t          *key;
    ngx_http_llm_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    ngx_str_null(&s);
    ngx_memzero(secret, sizeof(llm_str_t));

    if (llcf->tenant
        && ngx_http_complex_value(r, llcf->tenant, &s) != NGX_OK)
    {
        return NGX_ERROR;
    }

    key = s.len ? NULL : ngx_http_llm_key(r);

    if (key) {
        s.data = (u_char *) llm_key_member(key, "tenant", 6);
        s.len = ngx_strlen(s.data);
    }

    tenant->data = (char *) s.data;
    tenant->len = s.len;

    if (s.len == 0) {
        ngx_http_llm_find_secret(r, &s);

        secret->data = (char *) s.data;
        secret->len = s.len;
    }

    return NGX_OK;
}


/* can the body be read?  nginx closes its temporary file when an upstream has
   answered */

static ngx_uint_t
ngx_http_llm_route_ready(ngx_http_request_t *r)
{
    ngx_http_request_body_t  *rb;

    rb = r->request_body;

    return rb && !r->reading_body
           && (rb->temp_file == NULL
               || rb->temp_file->file.fd != NGX_INVALID_FILE);
}


static void
ngx_http_llm_route_body(ngx_http_request_t *r, llm_route_key_t *key)
{
    int           rc;
    off_t         size, left;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    left = NGX_HTTP_LLM_ROUTE_SCAN;
    rc = LLM_MORE;

    for (cl = r->request_body->bufs; cl && left && rc == LLM_MORE;
         cl = cl->next)
    {
        b = cl->buf;
        size = ngx_min(ngx_buf_size(b), left);
        left -= size;

        rc = ngx_buf_in_memory(b)
             ? llm_route_key_add(key, (char *) b->pos, (size_t) size)
             : ngx_http_llm_route_file(r, key, b, size);
    }
}


/* not by ngx_read_file(), which changes the file's offset */

static int
ngx_http_llm_route_file(ngx_http_request_t *r, llm_route_key_t *key,
    ngx_buf_t *b, off_t size)
{
    int      rc;
    char     piece[NGX_HTTP_LLM_ROUTE_PIECE];
    off_t    at, end;
    ssize_t  n;

    rc = LLM_MORE;
    end = b->file_pos + size;

    for (at = b->file_pos; at < end && rc == LLM_MORE; at += n) {
        n = pread(b->file->fd, piece,
                  (size_t) ngx_min(end - at, (off_t) sizeof(piece)), at);

        if (n == -1 && ngx_errno == NGX_EINTR) {
            n = 0;

        } else if (n <= 0) {
            ngx_log_error(NGX_LOG_CRIT, r->connection->log, n ? ngx_errno : 0,
                          "pread() of a request body in \"%V\" ended %O "
                          "bytes early", &b->file->name, end - at);
            return LLM_OK;
        }

        rc = llm_route_key_add(key, piece, (size_t) n);
    }

    return rc;
}
