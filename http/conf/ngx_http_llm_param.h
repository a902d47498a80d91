/*
 * What all directives ask of parameters: times, sizes, amounts.
 *
 *   ngx_http_llm_param.c   times, sizes, names
 *   ngx_http_llm_amount.c  numbers that may be variables
 */

#ifndef NGX_HTTP_LLM_PARAM_H
#define NGX_HTTP_LLM_PARAM_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "engine/api/api.h"
#include "engine/llm.h"


/* the longest of times in the configuration: 365 days */
#define NGX_HTTP_LLM_MOST_S   (365 * 24 * 60 * 60)
#define NGX_HTTP_LLM_MOST_MS  ((ngx_int_t) NGX_HTTP_LLM_MOST_S * 1000)


/* the most of sizes: a terabyte */
#define NGX_HTTP_LLM_MOST_SIZE  ((size_t) 1 << 40)

/* the most of tokens */
#define NGX_HTTP_LLM_MOST_TOKENS  (1 << 24)

/* the most of a tenant's weight, in thousandths */
#define NGX_HTTP_LLM_MOST_WEIGHT  (1000 * 1000)


/* bounds of a size of the configuration */

typedef struct {
    ngx_conf_post_handler_pt     post_handler;
    size_t                       min;
    ngx_uint_t                   shared;        /* it is of shared memory */
} ngx_http_llm_size_min_t;


/* a number of the configuration, or variables that become one */

typedef struct {
    ngx_http_complex_value_t    *value;         /* NULL: rate is it */
    llm_rate_t                   rate;
    unsigned                     set:1;         /* else there is no limit */
} ngx_http_llm_amount_t;


/* ngx_http_llm_param.c */

/* an error if a parameter, from the one of this number on, is there twice */
char *ngx_http_llm_once(ngx_conf_t *cf, ngx_uint_t first);
/* for messages: the parameter that s is the end of */
ngx_str_t *ngx_http_llm_whole(ngx_conf_t *cf, ngx_str_t *s);
/* what stands behind the parameter's name, which has so many bytes */
char *ngx_http_llm_param_time(ngx_conf_t *cf, ngx_str_t *value, size_t name,
    ngx_msec_t *ms);
char *ngx_http_llm_param_size(ngx_conf_t *cf, ngx_str_t *value, size_t name,
    size_t min, size_t max, size_t *size);
/* the most of shared memory, which nginx maps without saying for what */
size_t ngx_http_llm_machine_memory(void);
/* may it be a name? */
ngx_uint_t ngx_http_llm_is_text(ngx_str_t *s);
/* post handlers; of check_size() with a ngx_http_llm_size_min_t */
char *ngx_http_llm_check_size(ngx_conf_t *cf, void *post, void *data);
char *ngx_http_llm_check_time(ngx_conf_t *cf, void *post, void *data);


/* ngx_http_llm_amount.c */

/* plain: a number; else it may have "/s", "/m" or "/h" behind it */
char *ngx_http_llm_set_amount(ngx_conf_t *cf, ngx_http_llm_amount_t *a,
    ngx_uint_t plain, ngx_str_t *s);
/* what it is for a request; NGX_DECLINED: there is none, or its value is
   empty; NGX_ERROR: no memory, or it is no number, which is logged */
ngx_int_t ngx_http_llm_amount(ngx_http_request_t *r, ngx_http_llm_amount_t *a,
    ngx_uint_t plain, llm_rate_t *rate);


#endif /* NGX_HTTP_LLM_PARAM_H */
