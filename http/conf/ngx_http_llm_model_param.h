/*
 * The parameters of llm_model.
 */

#ifndef NGX_HTTP_LLM_MODEL_PARAM_H
#define NGX_HTTP_LLM_MODEL_PARAM_H


#include "http/conf/ngx_http_llm_model.h"


typedef struct ngx_http_llm_param_s  ngx_http_llm_param_t;

/* a parameter of llm_model: "name=value", or a flag */

struct ngx_http_llm_param_s {
    ngx_str_t                    name;          /* with its "=" */
    char                      *(*set)(ngx_conf_t *cf,
                                      ngx_http_llm_model_t *model,
                                      ngx_http_llm_param_t *param,
                                      ngx_str_t *value);
    size_t                       offset;        /* in ngx_http_llm_model_t */
    int64_t                      min;
    int64_t                      max;
};


/* ngx_http_llm_model_speculate.c */

char *ngx_http_llm_model_speculate(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_http_llm_param_t *param,
    ngx_str_t *value);


/* ngx_http_llm_model_file.c */

char *ngx_http_llm_model_template(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value);
char *ngx_http_llm_model_mmproj(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value);
char *ngx_http_llm_model_warmup(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value);
char *ngx_http_llm_model_packed(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value);
char *ngx_http_llm_model_device(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value);
char *ngx_http_llm_model_split(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value);


#endif /* NGX_HTTP_LLM_MODEL_PARAM_H */
