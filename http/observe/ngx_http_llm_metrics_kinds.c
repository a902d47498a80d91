/*
 * Kinds of metrics of models and workers: how llm_metrics writes the value of a
 * metric in Prometheus's text format and in JSON.
 */

#include "http/observe/ngx_http_llm_metrics.h"


static void ngx_http_llm_small_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b);
static void ngx_http_llm_small_json(const ngx_http_llm_metric_t *m,
    const void *figures, llm_buf_t *b);
static void ngx_http_llm_count_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b);
static void ngx_http_llm_count_json(const ngx_http_llm_metric_t *m,
    const void *figures, llm_buf_t *b);
static void ngx_http_llm_seconds_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b);
static void ngx_http_llm_seconds_json(const ngx_http_llm_metric_t *m,
    const void *figures, llm_buf_t *b);
static void ngx_http_llm_share_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b);
static void ngx_http_llm_share_json(const ngx_http_llm_metric_t *m,
    const void *figures, llm_buf_t *b);
static void ngx_http_llm_pages_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b);
static void ngx_http_llm_pages_json(const ngx_http_llm_metric_t *m,
    const void *figures, llm_buf_t *b);
static void ngx_http_llm_drafts_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b);
static void ngx_http_llm_drafts_json(const ngx_http_llm_metric_t *m,
    const void *figures, llm_buf_t *b);
static void ngx_http_llm_reasons_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b);
static void ngx_http_llm_reasons_json(const ngx_http_llm_metric_t *m,
    const void *figures, llm_buf_t *b);
static void ngx_http_llm_hist_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b);
static void ngx_http_llm_hist_json(const ngx_http_llm_metric_t *m,
    const void *figures, llm_buf_t *b);


const ngx_http_llm_metric_kind_t  ngx_http_llm_gauge = {
    "gauge", ngx_http_llm_small_prometheus, ngx_http_llm_small_json
};

const ngx_http_llm_metric_kind_t  ngx_http_llm_size = {
    "gauge", ngx_http_llm_count_prometheus, ngx_http_llm_count_json
};

const ngx_http_llm_metric_kind_t  ngx_http_llm_counter = {
    "counter", ngx_http_llm_count_prometheus, ngx_http_llm_count_json
};

const ngx_http_llm_metric_kind_t  ngx_http_llm_seconds = {
    "counter", ngx_http_llm_seconds_prometheus, ngx_http_llm_seconds_json
};

const ngx_http_llm_metric_kind_t  ngx_http_llm_share = {
    "gauge", ngx_http_llm_share_prometheus, ngx_http_llm_share_json
};

const ngx_http_llm_metric_kind_t  ngx_http_llm_pages = {
    "gauge", ngx_http_llm_pages_prometheus, ngx_http_llm_pages_json
};

const ngx_http_llm_metric_kind_t  ngx_http_llm_drafts = {
    "counter", ngx_http_llm_drafts_prometheus, ngx_http_llm_drafts_json
};

const ngx_http_llm_metric_kind_t  ngx_http_llm_reasons = {
    "counter", ngx_http_llm_reasons_prometheus, ngx_http_llm_reasons_json
};

const ngx_http_llm_metric_kind_t  ngx_http_llm_hist = {
    "histogram", ngx_http_llm_hist_prometheus, ngx_http_llm_hist_json
};


/* vLLM's names of llm_finish_t */
static const char *const  ngx_http_llm_reason_names[] = {
    NULL, "stop", "length", "tool_calls", "abort"
};


#define figure(type, m)  (*(const type *) ((const char *) figures             \
                                           + (m)->offset))

static void
ngx_http_llm_small_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b)
{
    llm_buf_addf(b, "%s{%s} %u\n", m->name, label, figure(uint32_t, m));
}


static void
ngx_http_llm_small_json(const ngx_http_llm_metric_t *m, const void *figures,
    llm_buf_t *b)
{
    llm_buf_addf(b, "%u", figure(uint32_t, m));
}


static void
ngx_http_llm_count_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b)
{
    llm_buf_addf(b, "%s{%s} %llu\n", m->name, label,
                 (unsigned long long) figure(uint64_t, m));
}


static void
ngx_http_llm_count_json(const ngx_http_llm_metric_t *m, const void *figures,
    llm_buf_t *b)
{
    llm_buf_addf(b, "%llu", (unsigned long long) figure(uint64_t, m));
}


static void
ngx_http_llm_seconds_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b)
{
    llm_buf_addf(b, "%s{%s} %.3f\n", m->name, label,
                 (double) figure(uint64_t, m) / 1000);
}


static void
ngx_http_llm_seconds_json(const ngx_http_llm_metric_t *m, const void *figures,
    llm_buf_t *b)
{
    llm_buf_addf(b, "%.3f", (double) figure(uint64_t, m) / 1000);
}


static double
ngx_http_llm_share_of(const ngx_http_llm_metric_t *m, const void *figures)
{
    uint32_t  whole;

    whole = *(const uint32_t *) ((const char *) figures + m->whole);

    return whole ? (double) figure(uint32_t, m) / whole : 0;
}


static void
ngx_http_llm_share_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b)
{
    llm_buf_addf(b, "%s{%s} %.6g\n", m->name, label,
                 ngx_http_llm_share_of(m, figures));
}


static void
ngx_http_llm_share_json(const ngx_http_llm_metric_t *m, const void *figures,
    llm_buf_t *b)
{
    llm_buf_addf(b, "%.6g", ngx_http_llm_share_of(m, figures));
}


/* routers read the number from a label: the value is always 1 */

static void
ngx_http_llm_pages_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b)
{
    llm_buf_addf(b, "%s{%s,block_size=\"%d\",num_gpu_blocks=\"%u\"} 1\n",
                 m->name, label, LLM_PAGE_TOKENS, figure(uint32_t, m));
}


static void
ngx_http_llm_pages_json(const ngx_http_llm_metric_t *m, const void *figures,
    llm_buf_t *b)
{
    llm_buf_addf(b, "{\"block_size\":%d,\"num_gpu_blocks\":%u}",
                 LLM_PAGE_TOKENS, figure(uint32_t, m));
}


static void
ngx_http_llm_drafts_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b)
{
    ngx_uint_t       i;
    const uint64_t  *n;

    n = &figure(uint64_t, m);

    for (i = LLM_DRAFT_NONE + 1; i < LLM_DRAFT_N; i++) {
        llm_buf_addf(b, "%s{%s,kind=\"%s\"} %llu\n", m->name, label,
                     llm_draft_name(i), (unsigned long long) n[i]);
    }
}


static void
ngx_http_llm_drafts_json(const ngx_http_llm_metric_t *m, const void *figures,
    llm_buf_t *b)
{
    ngx_uint_t       i;
    const uint64_t  *n;

    n = &figure(uint64_t, m);

    for (i = LLM_DRAFT_NONE + 1; i < LLM_DRAFT_N; i++) {
        llm_buf_addf(b, "%s\"%s\":%llu",
                     i > LLM_DRAFT_NONE + 1 ? "," : "{", llm_draft_name(i),
                     (unsigned long long) n[i]);
    }

    llm_buf_addc(b, '}');
}


static void
ngx_http_llm_reasons_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b)
{
    ngx_uint_t       i;
    const uint64_t  *n;

    n = &figure(uint64_t, m);

    for (i = 1; i < llm_nelems(ngx_http_llm_reason_names); i++) {
        llm_buf_addf(b, "%s{%s,finished_reason=\"%s\"} %llu\n", m->name,
                     label, ngx_http_llm_reason_names[i],
                     (unsigned long long) n[i]);
    }
}


static void
ngx_http_llm_reasons_json(const ngx_http_llm_metric_t *m, const void *figures,
    llm_buf_t *b)
{
    ngx_uint_t       i;
    const uint64_t  *n;

    n = &figure(uint64_t, m);

    for (i = 1; i < llm_nelems(ngx_http_llm_reason_names); i++) {
        llm_buf_addf(b, "%s\"%s\":%llu", i > 1 ? "," : "{",
                     ngx_http_llm_reason_names[i],
                     (unsigned long long) n[i]);
    }

    llm_buf_addc(b, '}');
}


static void
ngx_http_llm_hist_prometheus(const ngx_http_llm_metric_t *m,
    const void *figures, const char *label, llm_buf_t *b)
{
    ngx_http_llm_write_hist(b, m->name, label, &figure(llm_hist_t, m));
}


static void
ngx_http_llm_hist_json(const ngx_http_llm_metric_t *m, const void *figures,
    llm_buf_t *b)
{
    ngx_http_llm_write_hist_json(b, &figure(llm_hist_t, m));
}
