/*
 * llm_alias: names that follow a rule.
 */

#ifndef NGX_HTTP_LLM_ALIAS_H
#define NGX_HTTP_LLM_ALIAS_H


#include "http/conf/ngx_http_llm_model.h"


typedef struct ngx_http_llm_loc_conf_s  ngx_http_llm_loc_conf_t;


/* a llm_alias directive */

typedef struct {
    ngx_str_t                    name;
    ngx_str_t                    text;          /* of the value */
    ngx_http_complex_value_t     value;
    ngx_str_t                    file;
    ngx_uint_t                   line;
    ngx_uint_t                   said;          /* that it leads nowhere */
} ngx_http_llm_alias_t;


/* ngx_http_llm_alias.c */

char *ngx_http_llm_alias(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llm_merge_aliases(ngx_conf_t *cf,
    ngx_http_llm_loc_conf_t *prev, ngx_http_llm_loc_conf_t *conf);
/* as requests name models: without regard to case */
ngx_uint_t ngx_http_llm_same_name(ngx_str_t *a, ngx_str_t *b);
/* the model that has this name or alias=, in any case; -1: none */
ngx_int_t ngx_http_llm_pinned(ngx_http_llm_main_conf_t *mcf,
    ngx_str_t *name);
/* once all models are known */
char *ngx_http_llm_check_aliases(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);
/* those of the location alone lead to its models */
char *ngx_http_llm_check_own_aliases(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_loc_conf_t *llcf);
/* the one of this name; NULL: none */
ngx_http_llm_alias_t *ngx_http_llm_find_alias(ngx_array_t *aliases,
    ngx_str_t *name);


#endif /* NGX_HTTP_LLM_ALIAS_H */
