/*
 * What an operator sees of the server: health, figures, logs, traces.
 * ngx_http_llm_module.h includes it, behind the types that are used here.
 */

#ifndef NGX_HTTP_LLM_OBSERVE_H
#define NGX_HTTP_LLM_OBSERVE_H


#define NGX_HTTP_LLM_TRACE_SAMPLED  1

/* the trace of a request, in r->pool; ids are hexadecimal */

typedef struct {
    u_char                       trace[32];
    u_char                       span[16];      /* of the request */
    u_char                       parent[16];    /* zeros: none */
    ngx_uint_t                   flags;
    ngx_str_t                    state;         /* tracestate */
} ngx_http_llm_trace_t;


/* what a variable has of it */

typedef enum {
    NGX_HTTP_LLM_TRACE_ID = 0,
    NGX_HTTP_LLM_TRACE_SPAN_ID,
    NGX_HTTP_LLM_TRACE_PARENT_ID,
    NGX_HTTP_LLM_TRACE_STATE,
    NGX_HTTP_LLM_TRACE_PARENT
} ngx_http_llm_trace_e;


/* ngx_http_llm_health.c */

char *ngx_http_llm_health(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_llm_probe.c */

/* a location may want its models probed: see ngx_http_llm_serves_t */
char *ngx_http_llm_want_probes(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_loc_conf_t *llcf);
/* where their results are told */
ngx_int_t ngx_http_llm_create_probed(ngx_http_llm_main_conf_t *mcf,
    ngx_slab_pool_t *shpool);
/* worker 0 begins, and ends */
ngx_int_t ngx_http_llm_init_probes(ngx_http_llm_main_conf_t *mcf,
    ngx_log_t *log);
void ngx_http_llm_stop_probes(ngx_http_llm_worker_t *w);
/* why a model that is loaded cannot serve, or NULL */
const char *ngx_http_llm_probe_result(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t i);

/* ngx_http_llm_busy.c */

/* $llm_load, $llm_waiting, $llm_predicted_ttft */
typedef enum {
    NGX_HTTP_LLM_LOAD_LOAD = 0,
    NGX_HTTP_LLM_LOAD_WAITING,
    NGX_HTTP_LLM_LOAD_TTFT
} ngx_http_llm_load_e;

ngx_int_t ngx_http_llm_load_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/* ngx_http_llm_metrics_conf.c, ngx_http_llm_metrics.c */

char *ngx_http_llm_metrics(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

ngx_int_t ngx_http_llm_metrics_handler(ngx_http_request_t *r);

/* ngx_http_llm_metrics_store.c */

ngx_int_t ngx_http_llm_create_figures(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);
/* before the engine's zone is added: these are there first */
char *ngx_http_llm_add_figures(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);
/* the engine's zone counts in what is kept; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_keep_figures(ngx_http_llm_main_conf_t *mcf);
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

/* ngx_http_llm_metrics_log.c: a handler of the log phase, which counts
   requests */
ngx_int_t ngx_http_llm_log_handler(ngx_http_request_t *r);

/* ngx_http_llm_slo.c */

char *ngx_http_llm_slo(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_llm_variables.c */

ngx_int_t ngx_http_llm_add_variables(ngx_conf_t *cf);
/* the state of a request to a llm_api location, the last one that it came to,
   or NULL */
ngx_http_llm_ctx_t *ngx_http_llm_find_ctx(ngx_http_request_t *r);

/* microseconds from a request's arrival to its first token, 0: it had none, and
   to its latest one or its end */
void ngx_http_llm_times(ngx_http_llm_ctx_t *ctx, uint64_t *ttft,
    uint64_t *total);
/* and for each further token */
#define NGX_HTTP_LLM_NO_TPOT  UINT64_MAX
uint64_t ngx_http_llm_tpot(ngx_http_llm_ctx_t *ctx);

/* of the first choice; a request that began and did not end was aborted; NULL:
   there is none yet */
const char *ngx_http_llm_finish_reason(ngx_http_llm_ctx_t *ctx);

/* ngx_http_llm_capture.c */

char *ngx_http_llm_capture(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
extern ngx_http_llm_stage_t  ngx_http_llm_capture_stage;
/* $llm_input; $llm_output where data is set */
ngx_int_t ngx_http_llm_capture_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/* ngx_http_llm_trace.c */

/* of any request; NULL: no memory, or no random numbers */
ngx_http_llm_trace_t *ngx_http_llm_trace(ngx_http_request_t *r);
/* data: ngx_http_llm_trace_e */
ngx_int_t ngx_http_llm_trace_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/* ngx_http_llm_spans.c */

/* $llm_spans */
ngx_int_t ngx_http_llm_spans_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#endif /* NGX_HTTP_LLM_OBSERVE_H */
