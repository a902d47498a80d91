/*
 * llm_api_keys: files of API keys, which change while nginx runs.
 *
 * - nginx -t and the master read a file; a mistake in it is an error of the
 *   configuration.  The workers inherit the table.
 * - Each worker checks every `check` ms whether the file was replaced.  A
 *   thread that is started for this reads the new file; the event loop only
 *   exchanges two pointers.  A broken file leaves the table unchanged.
 * - No request points into a table, so the old one is freed at once, also by a
 *   thread.
 * - A worker that replaces a dead one inherits the table that the master read
 *   at its start.  If the file has changed, the worker reads it before it
 *   serves anything.  If that fails it refuses all keys: one of the old table
 *   may have been revoked since.
 */

#include "http/access/ngx_http_llm_keys.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_param.h"
#include "http/request/ngx_http_llm_stage.h"
#include "http/worker/ngx_http_llm_worker.h"


/* ms between checks whether the thread is done */
#define NGX_HTTP_LLM_KEYS_POLL  10


static ngx_int_t ngx_http_llm_add_keys(ngx_conf_t *cf);
static ngx_int_t ngx_http_llm_add_access(ngx_conf_t *cf);
static void *ngx_http_llm_create_keys_main_conf(ngx_conf_t *cf);
static void *ngx_http_llm_create_keys_loc_conf(ngx_conf_t *cf);
static char *ngx_http_llm_merge_keys_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_llm_init_keys(ngx_cycle_t *cycle);
static void ngx_http_llm_exit_keys(ngx_cycle_t *cycle);
static char *ngx_http_llm_api_keys(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_http_llm_keyfile_t *ngx_http_llm_keyfile(ngx_conf_t *cf,
    ngx_http_llm_keys_main_conf_t *kmcf, ngx_str_t *path);
static ngx_int_t ngx_http_llm_read_keyfile(ngx_conf_t *cf,
    ngx_http_llm_keyfile_t *f);
static void ngx_http_llm_keyfile_cleanup(void *data);
static void ngx_http_llm_stop_keyfile(ngx_http_llm_keyfile_t *f);
static void ngx_http_llm_refresh_keys(ngx_http_llm_keyfile_t *f,
    ngx_log_t *log);
static void ngx_http_llm_keys_handler(ngx_event_t *ev);
static ngx_uint_t ngx_http_llm_keys_changed(ngx_http_llm_keyfile_t *f);
static ngx_int_t ngx_http_llm_keys_begin(ngx_http_llm_keyfile_t *f,
    ngx_uint_t read, ngx_log_t *log);
static void *ngx_http_llm_keys_thread(void *data);
static void ngx_http_llm_keys_end(ngx_http_llm_keyfile_t *f, ngx_log_t *log);


static ngx_http_variable_t  ngx_http_llm_keys_vars[] = {

    { ngx_string("llm_key"), NULL, ngx_http_llm_key_variable,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_key_"), NULL, ngx_http_llm_key_variable,
      0, NGX_HTTP_VAR_NOCACHEABLE|NGX_HTTP_VAR_PREFIX, 0 },

      ngx_http_null_variable
};


static ngx_command_t  ngx_http_llm_keys_commands[] = {

    { ngx_string("llm_api_keys"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_llm_api_keys,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_llm_keys_module_ctx = {
    ngx_http_llm_add_keys,                 /* preconfiguration */
    ngx_http_llm_add_access,               /* postconfiguration */

    ngx_http_llm_create_keys_main_conf,    /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_llm_create_keys_loc_conf,     /* create location configuration */
    ngx_http_llm_merge_keys_loc_conf       /* merge location configuration */
};


ngx_module_t  ngx_http_llm_keys_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_keys_module_ctx,         /* module context */
    ngx_http_llm_keys_commands,            /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_llm_init_keys,                /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_llm_exit_keys,                /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_llm_add_keys(ngx_conf_t *cf)
{
    if (ngx_http_llm_add_variables(cf, ngx_http_llm_keys_vars) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_llm_add_stage(cf, &ngx_http_llm_key_stage);
}


/* nginx runs the handlers in the reverse order of the list, so the first entry
   runs last */

static ngx_int_t
ngx_http_llm_add_access(ngx_conf_t *cf)
{
    ngx_str_t                       name = ngx_string("http_x_api_key");
    ngx_array_t                    *handlers;
    ngx_http_handler_pt            *h;
    ngx_http_core_main_conf_t      *cmcf;
    ngx_http_llm_keys_main_conf_t  *kmcf;

    kmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_keys_module);

    kmcf->header = ngx_http_get_variable_index(cf, &name);
    if (kmcf->header == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (kmcf->files.nelts == 0) {
        return NGX_OK;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    handlers = &cmcf->phases[NGX_HTTP_ACCESS_PHASE].handlers;

    if (ngx_array_push(handlers) == NULL) {
        return NGX_ERROR;
    }

    h = handlers->elts;

    ngx_memmove(h + 1, h, (handlers->nelts - 1) * sizeof(*h));
    h[0] = ngx_http_llm_access_handler;

    return NGX_OK;
}


static void *
ngx_http_llm_create_keys_main_conf(ngx_conf_t *cf)
{
    ngx_http_llm_keys_main_conf_t  *kmcf;

    kmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_keys_main_conf_t));

    if (kmcf == NULL
        || ngx_array_init(&kmcf->files, cf->pool, 1,
                          sizeof(ngx_http_llm_keyfile_t *))
           != NGX_OK)
    {
        return NULL;
    }

    return kmcf;
}


static void *
ngx_http_llm_create_keys_loc_conf(ngx_conf_t *cf)
{
    ngx_http_llm_keys_loc_conf_t  *conf;

    conf = ngx_palloc(cf->pool, sizeof(ngx_http_llm_keys_loc_conf_t));

    if (conf) {
        conf->file = NGX_CONF_UNSET_PTR;
    }

    return conf;
}


static char *
ngx_http_llm_merge_keys_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_llm_keys_loc_conf_t *prev = parent;
    ngx_http_llm_keys_loc_conf_t *conf = child;

    ngx_conf_merge_ptr_value(conf->file, prev->file, NULL);

    return NGX_CONF_OK;
}


/* llm_api_keys FILE [check=TIME] | off */

static char *
ngx_http_llm_api_keys(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_keys_loc_conf_t *klcf = conf;

    char                           *rv;
    ngx_str_t                      *value, path;
    ngx_msec_t                      check;
    ngx_http_llm_keys_main_conf_t  *kmcf;

    if (klcf->file != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;
    path = value[1];
    check = 1000;

    if (ngx_strcmp(path.data, "off") == 0) {
        klcf->file = NULL;
        return cf->args->nelts == 2 ? NGX_CONF_OK
                                    : "has parameters besides \"off\"";
    }

    if (cf->args->nelts == 3) {

        if (ngx_strncmp(value[2].data, "check=", 6) != 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "unknown parameter \"%V\"", &value[2]);
            return NGX_CONF_ERROR;
        }

        rv = ngx_http_llm_param_time(cf, &value[2], 6, &check);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    if (path.len == 0) {
        return "names no file";
    }

    if (ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    kmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_keys_module);

    klcf->file = ngx_http_llm_keyfile(cf, kmcf, &path);
    if (klcf->file == NULL) {
        return NGX_CONF_ERROR;
    }

    /* locations that name the same file share its table */

    klcf->file->check = ngx_min(klcf->file->check, check);

    return NGX_CONF_OK;
}


static ngx_http_llm_keyfile_t *
ngx_http_llm_keyfile(ngx_conf_t *cf, ngx_http_llm_keys_main_conf_t *kmcf,
    ngx_str_t *path)
{
    ngx_uint_t                 i;
    ngx_pool_cleanup_t        *cln;
    ngx_http_llm_keyfile_t    *f, **files;
    ngx_http_llm_main_conf_t  *mcf;

    files = kmcf->files.elts;

    for (i = 0; i < kmcf->files.nelts; i++) {
        if (files[i]->path.len == path->len
            && ngx_memcmp(files[i]->path.data, path->data, path->len) == 0)
        {
            return files[i];
        }
    }

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    f = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_keyfile_t));
    files = ngx_array_push(&kmcf->files);

    if (cln == NULL || f == NULL || files == NULL
        || ngx_http_llm_add_file(mcf, "llm_api_keys", path, path, 0) != NGX_OK)
    {
        return NULL;
    }

    cln->handler = ngx_http_llm_keyfile_cleanup;
    cln->data = f;
    *files = f;

    f->path = *path;
    f->check = NGX_MAX_INT_T_VALUE;
    f->ident = -1;

    return ngx_http_llm_read_keyfile(cf, f) == NGX_OK ? f : NULL;
}


static ngx_int_t
ngx_http_llm_read_keyfile(ngx_conf_t *cf, ngx_http_llm_keyfile_t *f)
{
    if (ngx_process == NGX_PROCESS_SIGNALLER) {
        return NGX_OK;
    }

    llm_keys_which((char *) f->path.data, &f->id);

    f->keys = llm_keys_read((char *) f->path.data, &f->id, &f->err);

    if (f->keys == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the keys cannot be used: %s", f->err.msg);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void
ngx_http_llm_keyfile_cleanup(void *data)
{
    ngx_http_llm_keyfile_t *f = data;

    /* with master_process off, the process outlives its configurations */

    ngx_http_llm_stop_keyfile(f);

    llm_keys_free(f->keys);
    llm_keys_free(f->old);
    f->keys = NULL;
    f->old = NULL;
}


/* ---- in a worker ---- */

static ngx_int_t
ngx_http_llm_init_keys(ngx_cycle_t *cycle)
{
    ngx_uint_t                       i;
    ngx_http_llm_keyfile_t         **files;
    ngx_http_llm_keys_main_conf_t   *kmcf;

    kmcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_llm_keys_module);

    if (!ngx_http_llm_is_worker() || kmcf == NULL) {
        return NGX_OK;
    }

    files = kmcf->files.elts;

    for (i = 0; i < kmcf->files.nelts; i++) {

        if (ngx_http_llm_keys_changed(files[i])) {
            ngx_http_llm_refresh_keys(files[i], cycle->log);
        }

        files[i]->event.handler = ngx_http_llm_keys_handler;
        files[i]->event.data = files[i];
        files[i]->event.log = cycle->log;
        files[i]->event.cancelable = 1;

        ngx_add_timer(&files[i]->event, files[i]->check);
    }

    return NGX_OK;
}


static void
ngx_http_llm_exit_keys(ngx_cycle_t *cycle)
{
    ngx_uint_t                       i;
    ngx_http_llm_keyfile_t         **files;
    ngx_http_llm_keys_main_conf_t   *kmcf;

    kmcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_llm_keys_module);
    if (kmcf == NULL) {
        return;
    }

    files = kmcf->files.elts;

    for (i = 0; i < kmcf->files.nelts; i++) {
        ngx_http_llm_stop_keyfile(files[i]);
    }
}


static void
ngx_http_llm_stop_keyfile(ngx_http_llm_keyfile_t *f)
{
    if (f->busy) {
        (void) pthread_join(f->thread, NULL);
        llm_keys_free(f->fresh);
        f->fresh = NULL;
        f->busy = 0;
    }

    if (f->event.timer_set) {
        ngx_del_timer(&f->event);
    }
}


/* reads the file before the worker serves anything */

static void
ngx_http_llm_refresh_keys(ngx_http_llm_keyfile_t *f, ngx_log_t *log)
{
    llm_keys_free(f->keys);

    f->keys = llm_keys_read((char *) f->path.data, &f->id, &f->err);

    if (f->keys == NULL) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "no keys can be used, and all are refused: %s",
                      f->err.msg);
    }
}


static void
ngx_http_llm_keys_handler(ngx_event_t *ev)
{
    ngx_msec_t                next;
    ngx_http_llm_keyfile_t   *f;

    f = ev->data;
    next = f->check;

    if (f->busy && __atomic_load_n(&f->done, __ATOMIC_ACQUIRE)) {
        ngx_http_llm_keys_end(f, ev->log);
    }

    if (!f->busy && ngx_http_llm_keys_changed(f)
        && ngx_http_llm_keys_begin(f, 1, ev->log) != NGX_OK)
    {
        /* read it again at the next check */
        ngx_memzero(&f->id, sizeof(llm_keys_id_t));
    }

    if (f->busy) {
        next = ngx_min(next, NGX_HTTP_LLM_KEYS_POLL);
    }

    ngx_add_timer(ev, next);
}


/* has the file changed since the last attempt to read it? */

static ngx_uint_t
ngx_http_llm_keys_changed(ngx_http_llm_keyfile_t *f)
{
    llm_keys_id_t  id;

    llm_keys_which((char *) f->path.data, &id);

    if (ngx_memcmp(&id, &f->id, sizeof(llm_keys_id_t)) == 0) {
        return 0;
    }

    f->id = id;

    return 1;
}


/* starts the thread, which frees f->old, and, if read is set, reads the file;
   until the thread is done only it uses f->id */

static ngx_int_t
ngx_http_llm_keys_begin(ngx_http_llm_keyfile_t *f, ngx_uint_t read,
    ngx_log_t *log)
{
    int       err;
    sigset_t  all, old;

    f->read = read;
    f->done = 0;

    sigfillset(&all);
    (void) pthread_sigmask(SIG_BLOCK, &all, &old);

    err = pthread_create(&f->thread, NULL, ngx_http_llm_keys_thread, f);

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    if (err) {
        ngx_log_error(NGX_LOG_ERR, log, err,
                      "cannot start a thread to read \"%V\"", &f->path);
        return NGX_ERROR;
    }

    f->busy = 1;

    return NGX_OK;
}


static void *
ngx_http_llm_keys_thread(void *data)
{
    ngx_http_llm_keyfile_t *f = data;

    (void) pthread_setname_np(pthread_self(), "llm-keys");

    llm_keys_free(f->old);
    f->old = NULL;

    if (f->read) {
        f->fresh = llm_keys_read((char *) f->path.data, &f->id, &f->err);

        if (f->fresh) {
            llm_keys_changes(f->keys, f->fresh, f->changes,
                             sizeof(f->changes));
        }
    }

    __atomic_store_n(&f->done, 1, __ATOMIC_RELEASE);

    return NULL;
}


static void
ngx_http_llm_keys_end(ngx_http_llm_keyfile_t *f, ngx_log_t *log)
{
    (void) pthread_join(f->thread, NULL);
    f->busy = 0;

    if (!f->read) {
        return;
    }

    if (f->fresh == NULL) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      f->keys ? "the keys stay as they were: %s"
                              : "no keys can be used, and all are refused: %s",
                      f->err.msg);
        return;
    }

    f->old = f->keys;
    f->keys = f->fresh;
    f->fresh = NULL;

    ngx_log_error(NGX_LOG_NOTICE, log, 0, "%uD keys from \"%V\"%s",
                  llm_keys_count(f->keys), &f->path, f->changes);

    /* if no thread can be started the next one frees it */

    if (f->old) {
        (void) ngx_http_llm_keys_begin(f, 0, log);
    }
}
