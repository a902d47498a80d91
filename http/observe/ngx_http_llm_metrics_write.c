/*
 * Labels and histograms, as llm_metrics writes them.
 */

#include "http/observe/ngx_http_llm_metrics.h"


typedef struct {
    char                         text[16];
} ngx_http_llm_le_t;


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


/* bounds as text, made once for all histograms of a family that follow each
   other: there may be one per tenant, and the event loop must not be held up */

static ngx_http_llm_le_t *
ngx_http_llm_bounds(const llm_hist_t *h)
{
    uint32_t  j;

    static const double       *of;
    static ngx_http_llm_le_t   le[LLM_HIST_MAX];

    for (j = 0; of != h->bounds && j < h->n; j++) {
        (void) snprintf(le[j].text, sizeof(le[j].text), "%g", h->bounds[j]);
    }

    of = h->bounds;

    return le;
}


static void
ngx_http_llm_write_bucket(llm_buf_t *b, const char *name, const char *label,
    const char *le, uint64_t n)
{
    u_char  number[NGX_INT64_LEN + sizeof("\"} \n")], *last;

    last = ngx_sprintf(number, "\"} %uL\n", n);

    llm_buf_adds(b, name);
    llm_buf_adds(b, "_bucket{");
    llm_buf_adds(b, label);
    llm_buf_adds(b, ",le=\"");
    llm_buf_adds(b, le);
    llm_buf_add(b, (char *) number, last - number);
}


void
ngx_http_llm_write_hist(llm_buf_t *b, const char *name, const char *label,
    const llm_hist_t *h)
{
    uint32_t            j;
    ngx_http_llm_le_t  *le;

    le = ngx_http_llm_bounds(h);

    for (j = 0; j < h->n; j++) {
        ngx_http_llm_write_bucket(b, name, label, le[j].text,
                                  h->buckets[j]);
    }

    ngx_http_llm_write_bucket(b, name, label, "+Inf", h->count);

    llm_buf_addf(b, "%s_sum{%s} %.6f\n%s_count{%s} %llu\n",
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
