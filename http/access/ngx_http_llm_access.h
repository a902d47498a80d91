/*
 * Who may ask, how much, and whether it was asked before: keys, quotas, the
 * guard, identities, requests that are sent again.
 * ngx_http_llm_module.h includes it, behind the types that are used here.
 */

#ifndef NGX_HTTP_LLM_ACCESS_H
#define NGX_HTTP_LLM_ACCESS_H


/* ngx_http_llm_keyfile.c */

char *ngx_http_llm_api_keys(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* a worker begins to look after changes, and ends */
void ngx_http_llm_init_keys(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log);
void ngx_http_llm_stop_keys(ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_keys.c */

extern ngx_http_llm_stage_t  ngx_http_llm_key_stage;

/* the valid key of a request, where its location has keys, or NULL */
const llm_key_t *ngx_http_llm_key(ngx_http_request_t *r);
/* what a client proves itself by; len 0: nothing */
void ngx_http_llm_find_secret(ngx_http_request_t *r, ngx_str_t *s);
/* adds the access phase's handler */
ngx_int_t ngx_http_llm_add_access(ngx_conf_t *cf);
/* $llm_key, $llm_key_NAME */
ngx_int_t ngx_http_llm_key_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/* ngx_http_llm_quota_conf.c */

char *ngx_http_llm_token_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llm_token_limit(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
/* is it a zone's file of usage? */
ngx_uint_t ngx_http_llm_is_usage(ngx_http_llm_main_conf_t *mcf,
    ngx_str_t *path);
/* names of zones to zones, once the whole configuration is read */
char *ngx_http_llm_check_quotas(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_claim.c */

/* when this process began, see llm_process_lives() */
uint64_t ngx_http_llm_born(void);
/* gives back what a dead worker, whose place this one takes, had reserved */
void ngx_http_llm_sweep_quotas(ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_file.c */

/* of the file; -1 and errno: it cannot be opened */
int ngx_http_llm_open_folder(ngx_str_t *path);
/* a descriptor with the lock, until it is closed; -1 and *err: it cannot be
   had, not even within so many ms */
int ngx_http_llm_lock_folder(const char *what, ngx_str_t *path, ngx_uint_t ms,
    llm_err_t *err);
/* one that cannot be used becomes FILE.bad */
void ngx_http_llm_keep_bad(ngx_str_t *path);
/* with the folder's lock: writes a file beside it, which takes its place, and,
   if flush, outlives a power failure; *err: what cannot be written */
int ngx_http_llm_replace_file(const char *what, ngx_str_t *path,
    llm_buf_t *text, ngx_uint_t flush, llm_err_t *err);

/* ngx_http_llm_usage.c */

/* this worker has the files from now on */
void ngx_http_llm_usage_attach(ngx_http_llm_main_conf_t *mcf);
/* worker 0 begins to write files of usage, and ends */
ngx_int_t ngx_http_llm_usage_init(ngx_http_llm_main_conf_t *mcf,
    ngx_log_t *log);
void ngx_http_llm_usage_stop(ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_quota.c */

extern ngx_http_llm_stage_t  ngx_http_llm_quota_stage;

/* ngx_http_llm_guard_ask.c: a handler of the preaccess phase */
ngx_int_t ngx_http_llm_guard_length(ngx_http_request_t *r);

/* ngx_http_llm_guard.c */

char *ngx_http_llm_guard(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* once the location has its handler */
char *ngx_http_llm_merge_guard(ngx_conf_t *cf, ngx_http_llm_loc_conf_t *prev,
    ngx_http_llm_loc_conf_t *conf);
extern ngx_http_llm_stage_t  ngx_http_llm_guard_stage;

/* ngx_http_llm_store.c; with the store's lock held, but for the first two */

char *ngx_http_llm_idempotency(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llm_add_store(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf);
/* the entry of this key, if it is still valid, or NULL */
ngx_http_llm_entry_t *ngx_http_llm_store_find(ngx_shm_zone_t *zone,
    u_char *key);
/* a new one, this process is its owner; NULL: there is no room */
ngx_http_llm_entry_t *ngx_http_llm_store_create(ngx_shm_zone_t *zone,
    u_char *key, u_char *digest);
/* NGX_ERROR: the answer is too large, or there is no room */
ngx_int_t ngx_http_llm_store_append(ngx_shm_zone_t *zone,
    ngx_http_llm_entry_t *e, const char *data, size_t len);
void ngx_http_llm_store_remove(ngx_shm_zone_t *zone,
    ngx_http_llm_entry_t *e);
/* appends the answer */
void ngx_http_llm_store_copy(ngx_http_llm_entry_t *e, llm_buf_t *to);

/* ngx_http_llm_idempotency.c */

extern ngx_http_llm_stage_t  ngx_http_llm_idem_stage;


#endif /* NGX_HTTP_LLM_ACCESS_H */
