/*
 * A process from its start to its end.
 * ngx_http_llm_module.h includes it, behind the types that are used here.
 */

#ifndef NGX_HTTP_LLM_WORKER_H
#define NGX_HTTP_LLM_WORKER_H


/* ngx_http_llm_zone.c */

char *ngx_http_llm_add_zone(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf);
char *ngx_http_llm_size_zone(ngx_cycle_t *cycle);

/* ngx_http_llm_process.c */

/* the configuration of an event: of the worker's connection, or of a timer */
ngx_http_llm_main_conf_t *ngx_http_llm_event_conf(ngx_event_t *ev);
ngx_int_t ngx_http_llm_init_module(ngx_cycle_t *cycle);
ngx_int_t ngx_http_llm_init_process(ngx_cycle_t *cycle);
void ngx_http_llm_exit_process(ngx_cycle_t *cycle);
/* does an engine or a client run in this process? */
ngx_uint_t ngx_http_llm_serves(void);

/* ngx_http_llm_shutdown.c */

void ngx_http_llm_init_shutdown(ngx_http_llm_worker_t *w);
/* this worker got QUIT */
void ngx_http_llm_begin_shutdown(ngx_http_llm_main_conf_t *mcf);
/* live requests get an error and end */
void ngx_http_llm_end_requests(ngx_http_llm_worker_t *w);
/* a handler of the rewrite and the preaccess phase, which counts requests as
   soon as they are in a llm_api location */
ngx_int_t ngx_http_llm_count_handler(ngx_http_request_t *r);
/* has it been in a llm_api location? */
ngx_uint_t ngx_http_llm_is_counted(ngx_http_request_t *r);


#endif /* NGX_HTTP_LLM_WORKER_H */
