/*
 * Figures of requests, by model and by tenant: what their files share.
 *
 *   ngx_http_llm_metrics_conf.c        the module, llm_metrics
 *   ngx_http_llm_metrics_store.c       memory that is kept over reloads
 *   ngx_http_llm_metrics_names.c       numbers of words and tenants in it
 *   ngx_http_llm_metrics_counters.c    counts in it, by what they are of
 *   ngx_http_llm_metrics_log.c         what a request adds
 *   ngx_http_llm_slo.c                 llm_slo
 *   ngx_http_llm_metrics_labels.c      whose they are
 *   ngx_http_llm_metrics_prometheus.c  how llm_metrics writes them ...
 *   ngx_http_llm_metrics_json.c        ... as JSON
 *   ngx_http_llm_metrics_write.c       pieces of both
 *
 * The engine's figures are counted by its scheduler (engine/ipc/zone.h), in
 * memory that is allocated here.  All others are counted when a request is
 * logged, so that they are the sums of what an access log says.
 */

#ifndef NGX_HTTP_LLM_FIGURES_H
#define NGX_HTTP_LLM_FIGURES_H


#include "http/conf/ngx_http_llm_conf.h"
#include "http/request/ngx_http_llm_stage.h"


/* most bytes of a tenant's label, of an endpoint and of an error's word */
#define NGX_HTTP_LLM_LABEL       128
#define NGX_HTTP_LLM_WORD        48

/* models of this configuration and of earlier ones */
#define NGX_HTTP_LLM_PLACES      (4 * LLM_MAX_MODELS)

/* endpoints and words of errors, of all tallies */
#define NGX_HTTP_LLM_WORDS       128

#define NGX_HTTP_LLM_MAX_TENANTS 1000
#define NGX_HTTP_LLM_MAX_SLOS    64
/* those of a configuration that is gone keep theirs for a while */
#define NGX_HTTP_LLM_SCORES      (2 * NGX_HTTP_LLM_MAX_SLOS)


/* ---- in shared memory ---- */

/* how many requests were so: what they are of is packed into a number, which
   is set once */

typedef struct {
    ngx_atomic_t                 key;           /* 0: the cell is free */
    ngx_atomic_t                 n;
} ngx_http_llm_cell_t;

typedef enum {
    NGX_HTTP_LLM_TALLY_REQUESTS = 1,            /* by endpoint and status */
    NGX_HTTP_LLM_TALLY_REJECTED,                /* by the error's word */
    NGX_HTTP_LLM_TALLY_FAILED                   /* likewise */
} ngx_http_llm_tally_e;

/* the tokens of an owner's requests */

typedef struct {
    ngx_atomic_t                 prompt;
    ngx_atomic_t                 cached;
    ngx_atomic_t                 completion;
} ngx_http_llm_tokens_t;

/* an owner is a model or a tenant */

typedef struct {
    ngx_uint_t                   nowners;
    ngx_http_llm_tokens_t       *tokens;        /* [nowners] */
    ngx_uint_t                   mask;
    ngx_http_llm_cell_t         *cells;         /* [mask + 1] */
    ngx_atomic_t                 lost;          /* counts that found no
                                                   cell */
} ngx_http_llm_tally_t;

/* a word has its number for good */

typedef struct {
    size_t                       len;
    u_char                       text[NGX_HTTP_LLM_WORD];
} ngx_http_llm_word_t;

typedef struct {
    ngx_str_t                    name;          /* len 0: the place is free */
    void                        *counters;      /* the engine's */
} ngx_http_llm_place_t;

typedef struct {
    size_t                       len;
    u_char                       name[NGX_HTTP_LLM_WORD];
    ngx_atomic_t                 total;
    ngx_atomic_t                 good;
} ngx_http_llm_score_t;

/* the zone "llm_figures" */

typedef struct {
    ngx_http_llm_tally_t         tally;         /* owner 0: no model; then a
                                                   place each */
    ngx_http_llm_place_t         places[NGX_HTTP_LLM_PLACES];
    void                        *workers;       /* the engine's */
    ngx_atomic_t                 writes[LLM_MAX_WORKERS];
    ngx_atomic_t                 nwords;
    ngx_http_llm_word_t          words[NGX_HTTP_LLM_WORDS];
    ngx_http_llm_score_t         scores[NGX_HTTP_LLM_SCORES];
} ngx_http_llm_kept_t;

/* the zone "llm_tenants" */

#define NGX_HTTP_LLM_NO_TENANT      0
#define NGX_HTTP_LLM_OTHER_TENANT   1
#define NGX_HTTP_LLM_FIRST_TENANT   2

typedef struct {
    size_t                       len;
    u_char                       text[NGX_HTTP_LLM_LABEL];
} ngx_http_llm_label_t;

typedef struct {
    ngx_http_llm_tally_t         tally;         /* owner: as above, then the
                                                   names */
    void                        *times;         /* the engine's, likewise */
    ngx_uint_t                   max;
    ngx_atomic_t                 n;             /* names */
    ngx_http_llm_label_t        *names;         /* [max] */
    ngx_uint_t                   mask;
    ngx_atomic_t                *index;         /* [mask + 1] by hash: number
                                                   of a name, from 1 */
} ngx_http_llm_tenants_t;


/* ---- in the cycle's pool ---- */

/* a llm_slo; 0: no such bound */

typedef struct {
    ngx_str_t                    name;
    ngx_msec_t                   ttft;
    ngx_msec_t                   itl;
    ngx_msec_t                   e2e;
    ngx_uint_t                   prompt;        /* it is for requests of up to
                                                   so many tokens */
    ngx_uint_t                   completion;
    ngx_str_t                    file;
    ngx_uint_t                   line;
    ngx_http_llm_score_t        *score;
} ngx_http_llm_slo_t;

/* the module's main configuration */

typedef struct {
    ngx_shm_zone_t              *shm_zone;      /* data: a kept_t */
    ngx_shm_zone_t              *tenants_zone;  /* data: a tenants_t; NULL:
                                                   there are none */
    ngx_uint_t                   ntenants;
    ngx_uint_t                   places[LLM_MAX_MODELS];
    ngx_array_t                  slos;          /* ngx_http_llm_slo_t *, of
                                                   different names */
} ngx_http_llm_stats_t;


typedef struct {
    ngx_flag_t                   json;
    ngx_uint_t                   tenants;       /* they are shown */
    ngx_array_t                 *slos;          /* ngx_http_llm_slo_t *; NULL:
                                                   none */
} ngx_http_llm_metrics_conf_t;


extern ngx_module_t  ngx_http_llm_metrics_module;

#define ngx_http_llm_stats(mcf)                                               \
    ((ngx_http_llm_stats_t *)                                                 \
         ngx_http_llm_get_main_conf(mcf, ngx_http_llm_metrics_module))


/* ngx_http_llm_metrics.c */

ngx_int_t ngx_http_llm_metrics_handler(ngx_http_request_t *r);

/* ngx_http_llm_metrics_counters.c */

/* bytes of shared memory, and what is made of them, which are zeros; the
   number of cells is about this one for each owner */
size_t ngx_http_llm_tally_size(ngx_uint_t nowners, ngx_uint_t each);
ngx_int_t ngx_http_llm_tally_init(ngx_http_llm_tally_t *t,
    ngx_slab_pool_t *shpool, ngx_uint_t nowners, ngx_uint_t each);
/* forgets what an owner had */
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

/* all that was counted, sorted as the members are; NULL: no memory */
ngx_http_llm_counted_t *ngx_http_llm_tally_read(ngx_http_llm_tally_t *t,
    ngx_pool_t *pool, ngx_uint_t *n);

/* ngx_http_llm_metrics_store.c */

/* before the engine's zone is made: these are there first */
char *ngx_http_llm_add_figures(ngx_conf_t *cf, ngx_http_llm_stats_t *f);
/* the engine's zone counts in what is kept; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_keep_figures(ngx_http_llm_main_conf_t *mcf,
    ngx_slab_pool_t *zone, ngx_log_t *log);
/* of a model that is added, those of its requests: where they are, in this
   process; and from 0 on */
void ngx_http_llm_find_figures(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t model);
void ngx_http_llm_name_figures(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t model);
extern ngx_http_llm_stage_t  ngx_http_llm_metrics_stage;
/* where a worker counts what it writes */
ngx_atomic_t *ngx_http_llm_writes(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t worker);

/* ngx_http_llm_metrics_names.c */

/* the number of a word; those that find no room have one together */
ngx_uint_t ngx_http_llm_word(ngx_http_llm_main_conf_t *mcf,
    const u_char *text, size_t len);
/* and back */
void ngx_http_llm_word_text(ngx_http_llm_main_conf_t *mcf, ngx_uint_t word,
    ngx_str_t *text);
/* the owner that a tenant is, a new one if there is room */
ngx_uint_t ngx_http_llm_tenant_owner(ngx_http_llm_main_conf_t *mcf,
    ngx_str_t *tenant);

/* ngx_http_llm_metrics_log.c: a handler of the log phase, which counts
   requests */
ngx_int_t ngx_http_llm_log_handler(ngx_http_request_t *r);

/* ngx_http_llm_slo.c */

char *ngx_http_llm_slo(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* a request to a location with objectives has ended */
void ngx_http_llm_judge(ngx_http_request_t *r, ngx_http_llm_ctx_t *ctx,
    ngx_uint_t status);

/* ngx_http_llm_metrics_labels.c */

#define NGX_HTTP_LLM_MAX_GPUS  16


/* whose figures a tally has, and how they are called */

typedef struct {
    const char                  *prefix;        /* of metrics */
    const char                  *label;
    const char                  *of;            /* in helps */
    ngx_http_llm_tally_t        *tally;
    const char                 **labels;        /* [tally->nowners] NULL: it is
                                                   not shown */
    ngx_str_t                   *names;         /* likewise */
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
    size_t                       offset;        /* in llm_gpu_stats_t, of a
                                                   uint64_t */
    uint32_t                     bit;
    double                       unit;
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

/* NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_models_of(ngx_http_request_t *r,
    ngx_http_llm_owners_t *o);
ngx_int_t ngx_http_llm_tenants_of(ngx_http_request_t *r,
    ngx_http_llm_owners_t *o);
uint64_t ngx_http_llm_tokens_at(ngx_http_llm_owners_t *o, ngx_uint_t owner,
    const ngx_http_llm_tokens_row_t *row);
/* a GPU's value of a row, if its bit is set */
double ngx_http_llm_gpu_at(const llm_gpu_stats_t *gpu,
    const ngx_http_llm_gpu_row_t *row);
/* a bound of an objective in seconds, 0: none; k counts from 0 */
#define NGX_HTTP_LLM_SLO_BOUNDS  3
extern const char *const  ngx_http_llm_slo_names[NGX_HTTP_LLM_SLO_BOUNDS];
double ngx_http_llm_slo_seconds(const ngx_http_llm_slo_t *slo, ngx_uint_t k);
/* the next that is shown, from place *i on, of a row of kinds; NULL: none */
ngx_http_llm_counted_t *ngx_http_llm_next_counted(ngx_http_llm_owners_t *o,
    ngx_uint_t kind, ngx_uint_t *i);

/* ngx_http_llm_metrics_prometheus.c */

void ngx_http_llm_report_prometheus(ngx_http_request_t *r,
    ngx_uint_t tenants, llm_buf_t *b);

/* ngx_http_llm_metrics_json.c: members of the object, each with a comma in
   front */

void ngx_http_llm_report_json(ngx_http_request_t *r, ngx_uint_t tenants,
    llm_buf_t *b);


/* ngx_http_llm_metrics_write.c */

/* NAME="value", escaped; NULL: no memory */
const char *ngx_http_llm_write_label(ngx_pool_t *pool, const char *name,
    ngx_str_t *value);
void ngx_http_llm_write_hist(llm_buf_t *b, const char *name,
    const char *label, const llm_hist_t *h);
void ngx_http_llm_write_hist_json(llm_buf_t *b, const llm_hist_t *h);


#endif /* NGX_HTTP_LLM_FIGURES_H */
