/*
 * llm_api_keys: what a request proves itself by, and what it may do.
 *
 *   ngx_http_llm_keyfile.c  the directive, files of keys that change
 *   ngx_http_llm_keys.c     the API key of a request, what it may do
 */

#ifndef NGX_HTTP_LLM_KEYS_H
#define NGX_HTTP_LLM_KEYS_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <pthread.h>

#include "http/conf/ngx_http_llm_conf.h"
#include "http/request/ngx_http_llm_stage.h"


/*
 * A file of API keys, in the cycle's pool.  The master reads it, workers
 * inherit what it has read, and each looks after changes on its own.  While
 * `busy` a thread of the worker uses what is marked so, and reads `keys`; the
 * rest is the event loop's.
 */

typedef struct {
    ngx_str_t                    path;          /* full, NUL-terminated */
    ngx_msec_t                   check;
    ngx_int_t                    ident;         /* behind three pointers, as an
                                                   event's log wants it */
    llm_keys_t                  *keys;          /* NULL: none is usable */
    llm_keys_id_t                id;            /* of the file read last */
    ngx_event_t                  event;

    pthread_t                    thread;
    ngx_uint_t                   busy;
    ngx_uint_t                   read;          /* a file, too; thread */
    llm_keys_t                  *old;           /* to be freed; thread */
    llm_keys_t                  *fresh;         /* what was read; thread */
    llm_err_t                    err;           /* thread */
    char                         changes[1024]; /* ids that came and went, for
                                                   the log; thread, which reads
                                                   keys for it */
    int                          done;          /* set by the thread, the last
                                                   that it does */
} ngx_http_llm_keyfile_t;


/* the module's configuration */

typedef struct {
    ngx_array_t                  files;         /* ngx_http_llm_keyfile_t * */
    ngx_int_t                    header;        /* $http_x_api_key */
} ngx_http_llm_keys_main_conf_t;


typedef struct {
    ngx_http_llm_keyfile_t      *file;          /* NULL: off */
} ngx_http_llm_keys_loc_conf_t;


extern ngx_module_t  ngx_http_llm_keys_module;


/* ngx_http_llm_keys.c */

extern ngx_http_llm_stage_t  ngx_http_llm_key_stage;

/* the valid key of a request, where its location has keys, or NULL */
const llm_key_t *ngx_http_llm_key(ngx_http_request_t *r);
/* what a client proves itself by; len 0: nothing */
void ngx_http_llm_find_secret(ngx_http_request_t *r, ngx_str_t *s);
/* the value of x-api-key; not_found: there is none */
ngx_http_variable_value_t *ngx_http_llm_x_api_key(ngx_http_request_t *r);
/* a handler of the access phase */
ngx_int_t ngx_http_llm_access_handler(ngx_http_request_t *r);
/* $llm_key, $llm_key_NAME */
ngx_int_t ngx_http_llm_key_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#endif /* NGX_HTTP_LLM_KEYS_H */
