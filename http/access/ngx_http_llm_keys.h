/*
 * llm_api_keys: authentication by API keys, and what a key permits.
 *
 *   ngx_http_llm_keyfile.c  the directive, key files and their changes
 *   ngx_http_llm_keys.c     the API key of a request, what it permits
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
 * inherit the table, and each worker looks for changes on its own.  While
 * `busy`, a thread of the worker uses the fields marked "thread", and reads
 * `keys`; all other fields are the event loop's.
 */

typedef struct {
    ngx_str_t                    path;          /* full, NUL-terminated */
    ngx_msec_t                   check;         /* ms between checks of the
                                                   file */
    ngx_int_t                    ident;         /* at the offset of fd in
                                                   ngx_connection_t, which an
                                                   event's debug log reads */
    llm_keys_t                  *keys;          /* NULL: no table is usable */
    llm_keys_id_t                id;            /* of the file read last */
    ngx_event_t                  event;

    pthread_t                    thread;
    ngx_uint_t                   busy;
    ngx_uint_t                   read;          /* thread; 0: only frees old */
    llm_keys_t                  *old;           /* thread; table to be freed */
    llm_keys_t                  *fresh;         /* thread; table that was
                                                   read */
    llm_err_t                    err;           /* thread */
    char                         changes[1024]; /* thread; ids added and
                                                   removed, for the log */
    int                          done;          /* set by the thread as its last
                                                   step */
} ngx_http_llm_keyfile_t;


/* the module's configuration */

typedef struct {
    ngx_array_t                  files;         /* ngx_http_llm_keyfile_t * */
    ngx_int_t                    header;        /* index of $http_x_api_key */
} ngx_http_llm_keys_main_conf_t;


typedef struct {
    ngx_http_llm_keyfile_t      *file;          /* NULL: off */
} ngx_http_llm_keys_loc_conf_t;


extern ngx_module_t  ngx_http_llm_keys_module;


/* ngx_http_llm_keys.c */

extern ngx_http_llm_stage_t  ngx_http_llm_key_stage;

/* the valid key of a request; NULL: none, or the location has no
   llm_api_keys */
const llm_key_t *ngx_http_llm_key(ngx_http_request_t *r);
/* the secret that the client has sent; len 0: none */
void ngx_http_llm_find_secret(ngx_http_request_t *r, ngx_str_t *s);
/* the value of x-api-key; not_found: not sent */
ngx_http_variable_value_t *ngx_http_llm_x_api_key(ngx_http_request_t *r);
/* handler of the access phase */
ngx_int_t ngx_http_llm_access_handler(ngx_http_request_t *r);
/* $llm_key, $llm_key_NAME */
ngx_int_t ngx_http_llm_key_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#endif /* NGX_HTTP_LLM_KEYS_H */
