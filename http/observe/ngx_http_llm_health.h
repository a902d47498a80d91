/*
 * llm_health: whether a balancer may send requests.
 *
 *   ngx_http_llm_health.c  the module, the directive and its handler
 *   ngx_http_llm_probe.c   probes of models
 */

#ifndef NGX_HTTP_LLM_HEALTH_H
#define NGX_HTTP_LLM_HEALTH_H


#include "http/conf/ngx_http_llm_conf.h"
#include "http/worker/ngx_http_llm_worker.h"


typedef struct ngx_http_llm_probe_s  ngx_http_llm_probe_t;
typedef struct ngx_http_llm_probed_s  ngx_http_llm_probed_t;


/* the module's configuration */

typedef struct {
    ngx_http_llm_probed_t       *probed;        /* [models], in shared memory */
    ngx_http_llm_probe_t        *probes;        /* [models], of worker 0 */
} ngx_http_llm_health_main_conf_t;


typedef struct {
    llm_health_rule_t            rule;
    ngx_msec_t                   probe;         /* ms between probes; 0: no
                                                   probes */
    ngx_uint_t                   prompt;        /* tokens of a probe's prompt;
                                                   0: one */
} ngx_http_llm_health_conf_t;


extern ngx_module_t  ngx_http_llm_health_module;


/* ngx_http_llm_probe.c */

/* notes the probes that a location asks for: see ngx_http_llm_serves_t */
char *ngx_http_llm_want_probes(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_loc_conf_t *llcf);
/* allocates the results of probes in shared memory; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_create_probed(ngx_http_llm_main_conf_t *mcf,
    ngx_slab_pool_t *shpool, ngx_log_t *log);
/* worker 0 begins to probe, and ends */
ngx_int_t ngx_http_llm_init_probes(ngx_http_llm_main_conf_t *mcf,
    ngx_log_t *log);
void ngx_http_llm_stop_probes(ngx_http_llm_main_conf_t *mcf);
/* why a loaded model cannot serve, or NULL if it can */
const char *ngx_http_llm_probe_result(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t i);


#endif /* NGX_HTTP_LLM_HEALTH_H */
