/*
 * Parameters of all directives: times, sizes, amounts.
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


/* maximum of times in the configuration: 365 days */
#define NGX_HTTP_LLM_MOST_S   (365 * 24 * 60 * 60)
#define NGX_HTTP_LLM_MOST_MS  ((ngx_int_t) NGX_HTTP_LLM_MOST_S * 1000)


/* maximum of sizes: a terabyte */
#define NGX_HTTP_LLM_MOST_SIZE  ((size_t) 1 << 40)

/* maximum of numbers of tokens */
#define NGX_HTTP_LLM_MOST_TOKENS  (1 << 24)

/* maximum of a tenant's weight, in thousandths */
#define NGX_HTTP_LLM_MOST_WEIGHT  (1000 * 1000)


/* bounds of a size of the configuration */

typedef struct {
    ngx_conf_post_handler_pt     post_handler;
    size_t                       min;
    ngx_uint_t                   shared;        /* 1: a size of shared
                                                   memory */
} ngx_http_llm_size_min_t;


/* a number of the configuration, or a value with variables that is evaluated
   for each request */

typedef struct {
    ngx_http_complex_value_t    *value;         /* NULL: rate has the number */
    llm_rate_t                   rate;
    unsigned                     set:1;         /* 0: no limit */
} ngx_http_llm_amount_t;


/* ngx_http_llm_param.c */

/* error if a parameter is given twice; first: index of the first one that is
   checked */
char *ngx_http_llm_once(ngx_conf_t *cf, ngx_uint_t first);
/* for messages: the whole parameter that ends with s */
ngx_str_t *ngx_http_llm_whole(ngx_conf_t *cf, ngx_str_t *s);
/* read the value after the parameter's name and "=", `name` bytes together */
char *ngx_http_llm_param_time(ngx_conf_t *cf, ngx_str_t *value, size_t name,
    ngx_msec_t *ms);
char *ngx_http_llm_param_size(ngx_conf_t *cf, ngx_str_t *value, size_t name,
    size_t min, size_t max, size_t *size);
/* maximum of shared memory: the machine's memory.  If mapping fails, nginx does
   not say which directive asked for the size. */
size_t ngx_http_llm_machine_memory(void);
/* is it UTF-8 without control characters, so that it may be a name? */
ngx_uint_t ngx_http_llm_is_text(ngx_str_t *s);
/* post handlers; post of check_size() is a ngx_http_llm_size_min_t */
char *ngx_http_llm_check_size(ngx_conf_t *cf, void *post, void *data);
char *ngx_http_llm_check_time(ngx_conf_t *cf, void *post, void *data);


/* ngx_http_llm_amount.c */

/* plain: a number; otherwise "/s", "/m", "/h" or "/d" may follow it */
char *ngx_http_llm_set_amount(ngx_conf_t *cf, ngx_http_llm_amount_t *a,
    ngx_uint_t plain, ngx_str_t *s);
/* the amount for a request; NGX_DECLINED: it is not set, or its value is empty;
   NGX_ERROR: no memory, or the value is not a number, which is logged */
ngx_int_t ngx_http_llm_amount(ngx_http_request_t *r, ngx_http_llm_amount_t *a,
    ngx_uint_t plain, llm_rate_t *rate);


#endif /* NGX_HTTP_LLM_PARAM_H */
