/*
 * Files that workers write.
 */

#ifndef NGX_HTTP_LLM_FILE_H
#define NGX_HTTP_LLM_FILE_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "engine/api/api.h"
#include "engine/llm.h"


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


#endif /* NGX_HTTP_LLM_FILE_H */
