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

/* opens the file's folder; -1 and errno: it cannot be opened */
int ngx_http_llm_open_folder(ngx_str_t *path);
/* locks the file's folder and returns its descriptor; closing it releases the
   lock.  -1 and *err: it cannot be opened, or is still locked after ms
   milliseconds.  what: what is written, for *err */
int ngx_http_llm_lock_folder(const char *what, ngx_str_t *path, ngx_uint_t ms,
    llm_err_t *err);
/* renames a file that cannot be used to FILE.bad */
void ngx_http_llm_keep_bad(ngx_str_t *path);
/* with the folder's lock held: writes a temporary file in the folder and
   renames it; flush: the new file survives a power failure.  LLM_ERROR and
   *err: it cannot be written */
int ngx_http_llm_replace_file(const char *what, ngx_str_t *path,
    llm_buf_t *text, ngx_uint_t flush, llm_err_t *err);


#endif /* NGX_HTTP_LLM_FILE_H */
