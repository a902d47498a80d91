/*
 * llm_alias: names of models that are chosen by a rule.
 */

#ifndef NGX_HTTP_LLM_ALIAS_H
#define NGX_HTTP_LLM_ALIAS_H


#include "http/conf/ngx_http_llm_model.h"


typedef struct ngx_http_llm_loc_conf_s  ngx_http_llm_loc_conf_t;


/* a llm_alias directive */

typedef struct {
    ngx_str_t                    name;
    ngx_str_t                    text;          /* value as written */
    ngx_http_complex_value_t     value;
    ngx_str_t                    file;
    ngx_uint_t                   line;
    ngx_uint_t                   said;          /* 1: this worker has logged a
                                                   value that is no model */
} ngx_http_llm_alias_t;


/* ngx_http_llm_alias.c */

char *ngx_http_llm_alias(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llm_merge_aliases(ngx_conf_t *cf,
    ngx_http_llm_loc_conf_t *prev, ngx_http_llm_loc_conf_t *conf);
/* ignores case, as in the names of models in requests */
ngx_uint_t ngx_http_llm_same_name(ngx_str_t *a, ngx_str_t *b);
/* index of the model with this name or alias=, ignoring case; -1: none */
ngx_int_t ngx_http_llm_pinned(ngx_http_llm_main_conf_t *mcf,
    ngx_str_t *name);
/* called when all models are known */
char *ngx_http_llm_check_aliases(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);
/* checks that aliases set in a location stand for models of the location */
char *ngx_http_llm_check_own_aliases(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_loc_conf_t *llcf);
/* the alias with this name, ignoring case; NULL: none */
ngx_http_llm_alias_t *ngx_http_llm_find_alias(ngx_array_t *aliases,
    ngx_str_t *name);


#endif /* NGX_HTTP_LLM_ALIAS_H */
