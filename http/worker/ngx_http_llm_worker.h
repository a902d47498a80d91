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


#endif /* NGX_HTTP_LLM_WORKER_H */
