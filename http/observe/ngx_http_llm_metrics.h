/*
 * Metrics: what the files of llm_metrics share.
 *
 *   ngx_http_llm_metrics_conf.c        the module, the directive
 *   ngx_http_llm_metrics_store.c       shared memory that survives reloads
 *   ngx_http_llm_metrics_names.c       numbers of labels and tenants in it
 *   ngx_http_llm_metrics_counters.c    counters by owner, endpoint and status
 *   ngx_http_llm_metrics_log.c         counting of a request in the log phase
 *   ngx_http_llm_slo.c                 llm_slo
 *   ngx_http_llm_metrics.c             metrics of models and workers
 *   ngx_http_llm_metrics_kinds.c       how their values are written
 *   ngx_http_llm_metrics_labels.c      metrics of requests: tables, owners
 *   ngx_http_llm_metrics_prometheus.c  metrics of requests for Prometheus
 *   ngx_http_llm_metrics_json.c        metrics of requests in JSON
 *   ngx_http_llm_metrics_write.c       labels and histograms
 *
 * The engine's counters are updated by its scheduler (engine/ipc/zone.h), in
 * memory that is allocated here.  All others are updated when a request is
 * logged, so they are the sums of what an access log has.
 *
 * Words: a "tally" is a table of counters; its "owners" are models or tenants;
 * a "word" is the path of an endpoint or the code of an error; a "place" is an
 * entry for a model, a "score" one for an objective (llm_slo).
 */

#ifndef NGX_HTTP_LLM_METRICS_H
#define NGX_HTTP_LLM_METRICS_H


#include "http/conf/ngx_http_llm_conf.h"
#include "http/request/ngx_http_llm_stage.h"


/* most bytes of a tenant's label, and of a word */
#define NGX_HTTP_LLM_LABEL       128
#define NGX_HTTP_LLM_WORD        48

/* entries for models of this configuration and of earlier ones */
#define NGX_HTTP_LLM_PLACES      (4 * LLM_MAX_MODELS)

/* most words, in all tallies */
#define NGX_HTTP_LLM_WORDS       128

#define NGX_HTTP_LLM_MAX_TENANTS 1000
#define NGX_HTTP_LLM_MAX_SLOS    64
/* entries for objectives of this configuration and of the previous one */
#define NGX_HTTP_LLM_SCORES      (2 * NGX_HTTP_LLM_MAX_SLOS)


/* ---- in shared memory ---- */

/* a counter; key packs owner, kind, word and status, and is set once */

typedef struct {
    ngx_atomic_t                 key;           /* 0: the cell is free */
    ngx_atomic_t                 n;
} ngx_http_llm_cell_t;

typedef enum {
    NGX_HTTP_LLM_TALLY_REQUESTS = 1,            /* by endpoint and status */
    NGX_HTTP_LLM_TALLY_REJECTED,                /* by error, before the request
                                                   ran */
    NGX_HTTP_LLM_TALLY_FAILED                   /* by error, while it ran */
} ngx_http_llm_tally_e;

/* tokens of an owner's requests */

typedef struct {
    ngx_atomic_t                 prompt;
    ngx_atomic_t                 cached;
    ngx_atomic_t                 completion;
} ngx_http_llm_tokens_t;

/* the counters of all owners of one kind: models or tenants */

typedef struct {
    ngx_uint_t                   nowners;
    ngx_http_llm_tokens_t       *tokens;        /* [nowners] */
    ngx_uint_t                   mask;
    ngx_http_llm_cell_t         *cells;         /* [mask + 1] */
    ngx_atomic_t                 lost;          /* requests that found no free
                                                   cell */
} ngx_http_llm_tally_t;

/* an endpoint's path or an error's code; its number never changes */

typedef struct {
    size_t                       len;
    u_char                       text[NGX_HTTP_LLM_WORD];
} ngx_http_llm_word_t;

typedef struct {
    ngx_str_t                    name;          /* len 0: the place is free */
    void                        *counters;      /* of the engine */
} ngx_http_llm_place_t;

typedef struct {
    size_t                       len;
    u_char                       name[NGX_HTTP_LLM_WORD];
    ngx_atomic_t                 total;
    ngx_atomic_t                 good;
} ngx_http_llm_score_t;

/* the zone "llm_figures" */

typedef struct {
    ngx_http_llm_tally_t         tally;         /* owner 0: no model; then one
                                                   for each place */
    ngx_http_llm_place_t         places[NGX_HTTP_LLM_PLACES];
    void                        *workers;       /* counters of the engine */
    ngx_atomic_t                 writes[LLM_MAX_WORKERS];
    ngx_atomic_t                 nwords;
    ngx_http_llm_word_t          words[NGX_HTTP_LLM_WORDS];
    ngx_http_llm_score_t         scores[NGX_HTTP_LLM_SCORES];
} ngx_http_llm_kept_t;

/* the zone "llm_tenants_N"; owners 0 and 1 are not names */

#define NGX_HTTP_LLM_NO_TENANT      0
#define NGX_HTTP_LLM_OTHER_TENANT   1
#define NGX_HTTP_LLM_FIRST_TENANT   2

typedef struct {
    size_t                       len;
    u_char                       text[NGX_HTTP_LLM_LABEL];
} ngx_http_llm_label_t;

typedef struct {
    ngx_http_llm_tally_t         tally;         /* owners: no tenant, other
                                                   tenants, then the names */
    void                        *times;         /* histograms of the engine, per
                                                   owner */
    ngx_uint_t                   max;
    ngx_atomic_t                 n;             /* names in use */
    ngx_http_llm_label_t        *names;         /* [max] */
    ngx_uint_t                   mask;
    ngx_atomic_t                *index;         /* [mask + 1] by hash: number of
                                                   a name, from 1; 0: free */
} ngx_http_llm_tenants_t;


/* ---- in the cycle's pool ---- */

/* a llm_slo; times in ms; 0: no such bound */

typedef struct {
    ngx_str_t                    name;
    ngx_msec_t                   ttft;
    ngx_msec_t                   itl;
    ngx_msec_t                   e2e;
    ngx_uint_t                   prompt;        /* most prompt tokens of
                                                   requests that the objective
                                                   applies to */
    ngx_uint_t                   completion;    /* most generated tokens of
                                                   these */
    ngx_str_t                    file;
    ngx_uint_t                   line;
    ngx_http_llm_score_t        *score;
} ngx_http_llm_slo_t;

/* the module's main configuration */

typedef struct {
    ngx_shm_zone_t              *shm_zone;      /* data: ngx_http_llm_kept_t */
    ngx_shm_zone_t              *tenants_zone;  /* data: ngx_http_llm_tenants_t;
                                                   NULL: no tenants= */
    ngx_uint_t                   ntenants;      /* most tenants; 0: no
                                                   tenants= */
    ngx_uint_t                   places[LLM_MAX_MODELS];
    ngx_array_t                  slos;          /* ngx_http_llm_slo_t *, with
                                                   different names */
} ngx_http_llm_stats_t;


typedef struct {
    ngx_flag_t                   json;          /* format; 0: Prometheus */
    ngx_uint_t                   tenants;       /* not 0: metrics of tenants are
                                                   shown */
    ngx_array_t                 *slos;          /* ngx_http_llm_slo_t *; NULL:
                                                   none */
} ngx_http_llm_metrics_conf_t;


extern ngx_module_t  ngx_http_llm_metrics_module;

#define ngx_http_llm_stats(mcf)                                               \
    ((ngx_http_llm_stats_t *)                                                 \
         ngx_http_llm_get_main_conf(mcf, ngx_http_llm_metrics_module))


/* ngx_http_llm_metrics.c */

ngx_int_t ngx_http_llm_metrics_handler(ngx_http_request_t *r);

/* ngx_http_llm_metrics_kinds.c */

/* a metric of a model or a worker, whose value is a member of a struct of
   figures */

typedef struct ngx_http_llm_metric_s  ngx_http_llm_metric_t;

typedef struct {
    const char                  *type;          /* as in Prometheus */

    /* writes the metric's line, or lines, with this label */
    void                       (*prometheus)(const ngx_http_llm_metric_t *m,
                                             const void *figures,
                                             const char *label,
                                             llm_buf_t *b);
    /* writes the metric's value */
    void                       (*json)(const ngx_http_llm_metric_t *m,
                                       const void *figures, llm_buf_t *b);
} ngx_http_llm_metric_kind_t;

struct ngx_http_llm_metric_s {
    const char                        *name;    /* as in Prometheus */
    const char                        *json;
    const ngx_http_llm_metric_kind_t  *kind;
    size_t                             offset;  /* of the value, in the
                                                   figures */
    size_t                             whole;   /* of a share: offset of the
                                                   whole, in the figures */
    const char                        *help;
};

/* a uint32_t */
extern const ngx_http_llm_metric_kind_t  ngx_http_llm_gauge;
/* a uint64_t that grows and shrinks */
extern const ngx_http_llm_metric_kind_t  ngx_http_llm_size;
/* a uint64_t that grows */
extern const ngx_http_llm_metric_kind_t  ngx_http_llm_counter;
/* a uint64_t of milliseconds that grows */
extern const ngx_http_llm_metric_kind_t  ngx_http_llm_seconds;
/* two uint32_t, the first a part of the second */
extern const ngx_http_llm_metric_kind_t  ngx_http_llm_share;
/* a uint32_t, the pages of a cache */
extern const ngx_http_llm_metric_kind_t  ngx_http_llm_pages;
/* a uint64_t for each llm_draft_kind_t */
extern const ngx_http_llm_metric_kind_t  ngx_http_llm_drafts;
/* a uint64_t for each llm_finish_t */
extern const ngx_http_llm_metric_kind_t  ngx_http_llm_reasons;
/* a llm_hist_t */
extern const ngx_http_llm_metric_kind_t  ngx_http_llm_hist;

/* ngx_http_llm_metrics_counters.c */

/* bytes of shared memory for a tally's arrays; then their allocation, filled
   with zeros; *t itself must be zeros.  each: about the number of cells per
   owner.  NGX_ERROR: no memory */
size_t ngx_http_llm_tally_size(ngx_uint_t nowners, ngx_uint_t each);
ngx_int_t ngx_http_llm_tally_init(ngx_http_llm_tally_t *t,
    ngx_slab_pool_t *shpool, ngx_uint_t nowners, ngx_uint_t each);
/* sets an owner's counters to 0 */
void ngx_http_llm_tally_clear(ngx_http_llm_tally_t *t, ngx_uint_t owner);
void ngx_http_llm_tally_add(ngx_http_llm_tally_t *t, ngx_uint_t owner,
    ngx_http_llm_tally_e kind, ngx_uint_t word, ngx_uint_t status);

typedef struct {
    ngx_uint_t                   kind;
    ngx_uint_t                   owner;
    ngx_uint_t                   word;
    ngx_uint_t                   status;
    uint64_t                     n;
} ngx_http_llm_counted_t;

/* all counters that are not 0, sorted by kind, owner, word and status; NULL: no
   memory */
ngx_http_llm_counted_t *ngx_http_llm_tally_read(ngx_http_llm_tally_t *t,
    ngx_pool_t *pool, ngx_uint_t *n);

/* ngx_http_llm_metrics_store.c */

/* declares the zones, before the engine's */
char *ngx_http_llm_add_figures(ngx_conf_t *cf, ngx_http_llm_stats_t *f);
/* finds the memory in which the engine counts for each model; NGX_ERROR: no
   memory */
ngx_int_t ngx_http_llm_keep_figures(ngx_http_llm_main_conf_t *mcf,
    ngx_slab_pool_t *zone, ngx_log_t *log);
/* for a model that llm_admin has added: the first finds its place, in this
   process; the second also sets the counters of its requests to 0 */
void ngx_http_llm_find_figures(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t model);
void ngx_http_llm_name_figures(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t model);
extern ngx_http_llm_stage_t  ngx_http_llm_metrics_stage;
/* counter of a worker's writes to clients */
ngx_atomic_t *ngx_http_llm_writes(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t worker);

/* ngx_http_llm_metrics_names.c */

/* number of a word, which is added if it is new; 0 for all words that find no
   room */
ngx_uint_t ngx_http_llm_word(ngx_http_llm_main_conf_t *mcf,
    const u_char *text, size_t len);
/* the word of a number; "other" for 0 */
void ngx_http_llm_word_text(ngx_http_llm_main_conf_t *mcf, ngx_uint_t word,
    ngx_str_t *text);
/* owner of a tenant, which is added if it is new; "other" if there is no
   room */
ngx_uint_t ngx_http_llm_tenant_owner(ngx_http_llm_main_conf_t *mcf,
    ngx_str_t *tenant);

/* ngx_http_llm_metrics_log.c: handler of the log phase, which counts
   requests */
ngx_int_t ngx_http_llm_log_handler(ngx_http_request_t *r);

/* ngx_http_llm_slo.c */

char *ngx_http_llm_slo(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* counts a request that has ended, if its location has objectives */
void ngx_http_llm_judge(ngx_http_request_t *r, ngx_http_llm_ctx_t *ctx,
    ngx_uint_t status);

/* ngx_http_llm_metrics_labels.c */

#define NGX_HTTP_LLM_MAX_GPUS  16


/* the owners of a tally and their names */

typedef struct {
    const char                  *prefix;        /* of metrics' names */
    const char                  *label;         /* name of the label */
    const char                  *of;            /* "model" or "tenant", for
                                                   helps */
    ngx_http_llm_tally_t        *tally;
    const char                 **labels;        /* [tally->nowners]
                                                   LABEL="NAME"; NULL: not
                                                   shown */
    ngx_str_t                   *names;         /* [tally->nowners] */
    ngx_http_llm_counted_t      *counted;
    ngx_uint_t                   n;
} ngx_http_llm_owners_t;

typedef struct {
    const char                  *name;
    const char                  *json;
    size_t                       offset;        /* in ngx_http_llm_tokens_t */
    const char                  *help;
} ngx_http_llm_tokens_row_t;

typedef struct {
    const char                  *name;
    const char                  *json;
    size_t                       offset;        /* of a uint64_t in
                                                   llm_gpu_stats_t */
    uint32_t                     bit;           /* LLM_GPU_...: the value is
                                                   known */
    double                       unit;          /* factor of the value */
    const char                  *help;
} ngx_http_llm_gpu_row_t;


typedef struct {
    ngx_uint_t                   kind;          /* ngx_http_llm_tally_e */
    const char                  *name;
    const char                  *json;
    const char                  *help;
} ngx_http_llm_kind_t;

/* each ends with a row without a name */
extern const ngx_http_llm_kind_t  ngx_http_llm_kinds[];
extern const ngx_http_llm_tokens_row_t  ngx_http_llm_tokens_rows[];
extern const ngx_http_llm_gpu_row_t  ngx_http_llm_gpu_rows[];

/* read the counters of all models or tenants; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_models_of(ngx_http_request_t *r,
    ngx_http_llm_owners_t *o);
ngx_int_t ngx_http_llm_tenants_of(ngx_http_request_t *r,
    ngx_http_llm_owners_t *o);
uint64_t ngx_http_llm_tokens_at(ngx_http_llm_owners_t *o, ngx_uint_t owner,
    const ngx_http_llm_tokens_row_t *row);
/* the GPU's value for a row; only if its bit is set */
double ngx_http_llm_gpu_at(const llm_gpu_stats_t *gpu,
    const ngx_http_llm_gpu_row_t *row);
/* bound k of an objective, in seconds; 0: none */
#define NGX_HTTP_LLM_SLO_BOUNDS  3
extern const char *const  ngx_http_llm_slo_names[NGX_HTTP_LLM_SLO_BOUNDS];
double ngx_http_llm_slo_seconds(const ngx_http_llm_slo_t *slo, ngx_uint_t k);
/* the next counter from index *i on that is of a kind (an index of
   ngx_http_llm_kinds) and shown; NULL: none */
ngx_http_llm_counted_t *ngx_http_llm_next_counted(ngx_http_llm_owners_t *o,
    ngx_uint_t kind, ngx_uint_t *i);

/* ngx_http_llm_metrics_prometheus.c */

void ngx_http_llm_report_prometheus(ngx_http_request_t *r,
    ngx_uint_t tenants, llm_buf_t *b);

/* ngx_http_llm_metrics_json.c: appends members to the object, each after a
   comma */

void ngx_http_llm_report_json(ngx_http_request_t *r, ngx_uint_t tenants,
    llm_buf_t *b);


/* ngx_http_llm_metrics_write.c */

/* NAME="value", escaped; NULL: no memory */
const char *ngx_http_llm_write_label(ngx_pool_t *pool, const char *name,
    ngx_str_t *value);
void ngx_http_llm_write_hist(llm_buf_t *b, const char *name,
    const char *label, const llm_hist_t *h);
void ngx_http_llm_write_hist_json(llm_buf_t *b, const llm_hist_t *h);


#endif /* NGX_HTTP_LLM_METRICS_H */
