/*
 * Checks of parameters of any directive: that each is given only once, and that
 * sizes and times are within bounds.  Errors name the parameter and the
 * directive; nginx adds file and line.
 */

#include "http/conf/ngx_http_llm_param.h"


/* two parameters are the same if they have the same name before "=", or are
   the same word */

char *
ngx_http_llm_once(ngx_conf_t *cf, ngx_uint_t first)
{
    size_t       len;
    u_char      *equals;
    ngx_str_t   *value;
    ngx_uint_t   i, k;

    value = cf->args->elts;

    for (i = first; i < cf->args->nelts; i++) {
        equals = ngx_strlchr(value[i].data, value[i].data + value[i].len, '=');
        len = equals ? (size_t) (equals + 1 - value[i].data) : value[i].len;

        for (k = first; k < i; k++) {

            if ((equals ? value[k].len >= len : value[k].len == len)
                && ngx_memcmp(value[k].data, value[i].data, len) == 0)
            {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "duplicate parameter \"%V\" of \"%V\"",
                                   &value[i], &value[0]);
                return NGX_CONF_ERROR;
            }
        }
    }

    return NGX_CONF_OK;
}


/* s is a whole parameter, or the part after its "=" */

ngx_str_t *
ngx_http_llm_whole(ngx_conf_t *cf, ngx_str_t *s)
{
    ngx_str_t   *value;
    ngx_uint_t   i;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        if (s->data + s->len == value[i].data + value[i].len) {
            return &value[i];
        }
    }

    return s;
}


/* UTF-8 without control characters, because names are shown in JSON, headers
   and logs */

ngx_uint_t
ngx_http_llm_is_text(ngx_str_t *s)
{
    u_char    *p, *last;
    uint32_t   cp;

    p = s->data;
    last = p + s->len;

    while (p < last) {

        if (*p < 0x20 || *p == 0x7f) {
            return 0;
        }

        if (*p < 0x80) {
            p++;
            continue;
        }

        cp = ngx_utf8_decode(&p, last - p);

        if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000)) {
            return 0;
        }
    }

    return 1;
}


size_t
ngx_http_llm_machine_memory(void)
{
    long  pages;

    pages = sysconf(_SC_PHYS_PAGES);

    return pages > 0 ? ngx_min((size_t) pages * ngx_pagesize,
                               NGX_HTTP_LLM_MOST_SIZE)
                     : NGX_HTTP_LLM_MOST_SIZE;
}


static char *
ngx_http_llm_invalid(ngx_conf_t *cf, const char *kind, ngx_str_t *value,
    const char *bounds)
{
    ngx_str_t  *args;

    args = cf->args->elts;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid %s \"%V\" of \"%V\", it must be %s",
                       kind, value, &args[0], bounds);

    return NGX_CONF_ERROR;
}


char *
ngx_http_llm_param_time(ngx_conf_t *cf, ngx_str_t *value, size_t name,
    ngx_msec_t *ms)
{
    ngx_str_t  s;
    ngx_int_t  n;

    s.data = value->data + name;
    s.len = value->len - name;

    n = ngx_parse_time(&s, 0);

    if (n < 1 || n > NGX_HTTP_LLM_MOST_MS) {
        return ngx_http_llm_invalid(cf, "time", value,
                                    "between 1ms and 365d");
    }

    *ms = (ngx_msec_t) n;

    return NGX_CONF_OK;
}


/* in the form that nginx reads, rounded down to a unit */

static u_char *
ngx_http_llm_put_size(u_char *p, size_t size)
{
    return size < 1024 ? ngx_sprintf(p, "%uz", size)
           : size < 1024 * 1024 ? ngx_sprintf(p, "%uzk", size / 1024)
           : ngx_sprintf(p, "%uzm", size / 1024 / 1024);
}


char *
ngx_http_llm_param_size(ngx_conf_t *cf, ngx_str_t *value, size_t name,
    size_t min, size_t max, size_t *size)
{
    ssize_t    n;
    u_char     bounds[128], *p;
    ngx_str_t  s;

    s.data = value->data + name;
    s.len = value->len - name;

    n = ngx_parse_size(&s);

    if (n >= 0 && (size_t) n >= min && (size_t) n <= max) {
        *size = (size_t) n;
        return NGX_CONF_OK;
    }

    p = ngx_sprintf(bounds, "between ");
    p = ngx_http_llm_put_size(p, min);
    p = ngx_sprintf(p, " and ");
    p = ngx_http_llm_put_size(p, max);
    *p = '\0';

    return ngx_http_llm_invalid(cf, "size", value, (char *) bounds);
}


/* ---- directives that nginx itself parses ---- */

/* checks the only value, which nginx has parsed */

char *
ngx_http_llm_check_size(ngx_conf_t *cf, void *post, void *data)
{
    size_t                   *size = data;
    ngx_http_llm_size_min_t  *bound = post;

    return ngx_http_llm_param_size(cf, (ngx_str_t *) cf->args->elts + 1, 0,
                                   bound->min,
                                   bound->shared ? ngx_http_llm_machine_memory()
                                                 : NGX_HTTP_LLM_MOST_SIZE,
                                   size);
}


/* the time may be 0 */

char *
ngx_http_llm_check_time(ngx_conf_t *cf, void *post, void *data)
{
    ngx_msec_t *ms = data;

    return *ms <= (ngx_msec_t) NGX_HTTP_LLM_MOST_MS
           ? NGX_CONF_OK
           : ngx_http_llm_invalid(cf, "time",
                                  (ngx_str_t *) cf->args->elts + 1,
                                  "at most 365d");
}
