/*
 * Pieces of what llm_metrics writes: labels, histograms.
 */

#include "http/ngx_http_llm_figures.h"


const char *
ngx_http_llm_write_label(ngx_pool_t *pool, const char *name,
    ngx_str_t *value)
{
    u_char      *p, *label;
    ngx_uint_t   i;

    label = ngx_pnalloc(pool, ngx_strlen(name) + sizeof("=\"\"")
                              + 2 * value->len);
    if (label == NULL) {
        return NULL;
    }

    p = ngx_sprintf(label, "%s=\"", name);

    for (i = 0; i < value->len; i++) {
        if (value->data[i] == '\n') {
            *p++ = '\\';
            *p++ = 'n';
            continue;
        }

        if (value->data[i] == '"' || value->data[i] == '\\') {
            *p++ = '\\';
        }

        *p++ = value->data[i];
    }

    *p++ = '"';
    *p = '\0';

    return (char *) label;
}


void
ngx_http_llm_write_hist(llm_buf_t *b, const char *name, const char *label,
    const llm_hist_t *h)
{
    uint32_t  j;

    for (j = 0; j < h->n; j++) {
        llm_buf_addf(b, "%s_bucket{%s,le=\"%g\"} %llu\n", name, label,
                     h->bounds[j], (unsigned long long) h->buckets[j]);
    }

    llm_buf_addf(b, "%s_bucket{%s,le=\"+Inf\"} %llu\n"
                 "%s_sum{%s} %.6f\n%s_count{%s} %llu\n",
                 name, label, (unsigned long long) h->count,
                 name, label, h->sum,
                 name, label, (unsigned long long) h->count);
}


void
ngx_http_llm_write_hist_json(llm_buf_t *b, const llm_hist_t *h)
{
    uint32_t  j;

    llm_buf_addf(b, "{\"count\":%llu,\"sum\":%.6f,\"buckets\":[",
                 (unsigned long long) h->count, h->sum);

    for (j = 0; j < h->n; j++) {
        llm_buf_addf(b, "%s[%g,%llu]", j ? "," : "", h->bounds[j],
                     (unsigned long long) h->buckets[j]);
    }

    llm_buf_adds(b, "]}");
}
