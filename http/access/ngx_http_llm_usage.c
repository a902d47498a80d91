/*
 * state= of llm_token_zone: tokens of the day and usage in a file, so that they
 * survive a restart.  engine/api/usage.h describes its format.
 *
 * - The process that creates the zone's memory reads the file: the master, or
 *   nginx -t.  A broken file is logged and not used, and is kept as FILE.bad.
 * - Worker 0 writes the file, a second after a change and at its own end: to a
 *   temporary file, which is then renamed.  A thread does this; it holds the
 *   zone's lock for a few accounts at a time.
 * - While other processes use the file, too (ngx_http_llm_usage_sync.c), it is
 *   written and read without delay: by worker 0 as soon as it sees a change,
 *   and by each worker before and after it charges an account, if the file is
 *   small and not locked for long.
 * - What live requests were charged and have not used counts only for other
 *   processes, and while the requests' own process lives: a restart ends them.
 */

#include "http/access/ngx_http_llm_quota.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/worker/ngx_http_llm_worker.h"


/* ms between checks whether the file must be written, and ms from a change to
   writing */
#define NGX_HTTP_LLM_USAGE_LOOK   200
#define NGX_HTTP_LLM_USAGE_EACH   1000


/* the writer of a configuration's usage files; allocated by malloc(); while
   busy, the thread owns it */

struct ngx_http_llm_usage_s {
    ngx_http_llm_quotas_main_conf_t  *quotas;
    ngx_log_t                   *log;
    ngx_event_t                  timer;
    ngx_http_llm_task_t          task;
    ngx_uint_t                   busy;
    ngx_uint_t                   failed;        /* 1: the last try has failed,
                                                   and was logged */
    llm_err_t                    err;           /* status 0: no error */

    /* arrays with an entry for each zone */

    ngx_uint_t                  *written;       /* value of `changes` that was
                                                   written */
    ngx_uint_t                  *due;           /* 1: it must be written */
    ngx_msec_t                  *since;         /* time of the first change not
                                                   written, in ms; 0: none was
                                                   seen */
};


/* for reading a file, before any process uses the zone */

typedef struct {
    ngx_http_llm_quota_t        *quota;
    ngx_uint_t                   shared;
    ngx_uint_t                   left;          /* accounts that found no
                                                   room */
} ngx_http_llm_load_t;


static int ngx_http_llm_usage_load_one(void *data, const llm_usage_t *u,
    llm_err_t *err);
static void ngx_http_llm_usage_handler(ngx_event_t *ev);
static ngx_uint_t ngx_http_llm_usage_due(ngx_http_llm_usage_t *u,
    ngx_http_llm_quota_t *q, ngx_uint_t i);
static void ngx_http_llm_usage_run(void *data);
static void ngx_http_llm_usage_done(void *data);


/* ---- reading ---- */

void
ngx_http_llm_usage_load(ngx_http_llm_quota_t *q, ngx_log_t *log)
{
    char                 *path;
    llm_err_t             err;
    ngx_file_info_t       fi;
    ngx_http_llm_load_t   load;

    path = (char *) q->state.data;

    if (q->state.len == 0
        || (ngx_file_info(path, &fi) == NGX_FILE_ERROR
            && ngx_errno == NGX_ENOENT))
    {
        return;
    }

    load.quota = q;
    load.shared = ngx_http_llm_usage_shared(q);
    load.left = 0;

    llm_keys_which(path, &q->sh->file);

    if (llm_usage_read_file(path, ngx_http_llm_usage_load_one, &load, &err)
        != LLM_OK)
    {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "the usage of zone \"%V\" in \"%s\" is not used: %s",
                      &q->shm_zone->shm.name, path, err.msg);
        ngx_memzero(&q->sh->file, sizeof(llm_keys_id_t));
    }

    if (load.left) {
        q->sh->beyond = 1;
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "zone \"%V\" has no room for %ui accounts in \"%s\"",
                      &q->shm_zone->shm.name, load.left, path);
    }
}


static int
ngx_http_llm_usage_load_one(void *data, const llm_usage_t *u, llm_err_t *err)
{
    ngx_http_llm_load_t *load = data;

    ngx_str_t                key;
    llm_usage_t              one;
    ngx_http_llm_quota_t    *q;
    ngx_http_llm_account_t  *a;

    q = load->quota;

    one = *u;
    one.held = load->shared ? one.held : 0;
    key.data = (u_char *) u->key.data;
    key.len = u->key.len;

    /* there is nothing to remember */

    if (ngx_http_llm_usage_is_empty(&one) || key.len > NGX_HTTP_LLM_MAX_KEY) {
        return LLM_OK;
    }

    a = ngx_http_llm_account_get(q, ngx_crc32_short(key.data, key.len), &key,
                                 1);
    if (a == NULL) {
        load->left++;
        return LLM_OK;
    }

    ngx_http_llm_usage_take(q, a, &one, load->shared);

    return LLM_OK;
}


/* ---- writing ---- */

/* a reload may give the zone's memory another file; only the workers know that
   the new configuration is in use */

void
ngx_http_llm_usage_attach(ngx_http_llm_quotas_main_conf_t *qmcf)
{
    ngx_uint_t              i;
    ngx_http_llm_quota_t  **q;

    q = qmcf->quotas.elts;

    for (i = 0; i < qmcf->quotas.nelts; i++) {

        if (q[i]->state.len == 0) {
            continue;
        }

        ngx_http_llm_quota_lock(q[i]);

        if (q[i]->sh->place != q[i]->place) {
            q[i]->sh->place = q[i]->place;
            q[i]->sh->moved = 1;
        }

        ngx_http_llm_quota_unlock(q[i]);
        ngx_http_llm_usage_open(q[i]);
    }
}


void
ngx_http_llm_usage_share(ngx_http_llm_quota_t *q)
{
    llm_err_t      err;
    llm_keys_id_t  file;

    if (q->state.len == 0 || q->folder == -1
        || !ngx_http_llm_usage_shared(q))
    {
        return;
    }

    llm_keys_which((char *) q->state.data, &file);

    if (file.size <= NGX_HTTP_LLM_USAGE_SMALL) {
        (void) ngx_http_llm_usage_sync(q, 1, &err);
    }
}


ngx_int_t
ngx_http_llm_usage_init(ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_quotas_main_conf_t *qmcf, ngx_log_t *log)
{
    ngx_uint_t              i, n;
    ngx_http_llm_usage_t   *u;
    ngx_http_llm_quota_t  **q;

    n = qmcf->quotas.nelts;
    q = qmcf->quotas.elts;

    for (i = 0; i < n && q[i]->state.len == 0; i++) { /* void */ }

    if (i == n) {
        return NGX_OK;
    }

    u = ngx_calloc(sizeof(ngx_http_llm_usage_t) + 3 * n * sizeof(ngx_uint_t),
                   log);
    if (u == NULL) {
        return NGX_ERROR;
    }

    u->quotas = qmcf;
    u->log = mcf->cycle->log;
    u->written = (ngx_uint_t *) (u + 1);
    u->due = u->written + n;
    u->since = (ngx_msec_t *) (u->due + n);

    u->timer.handler = ngx_http_llm_usage_handler;
    u->timer.data = mcf->worker->conn;
    u->timer.log = log;
    u->timer.cancelable = 1;

    u->task.run = ngx_http_llm_usage_run;
    u->task.done = ngx_http_llm_usage_done;
    u->task.data = u;

    qmcf->usage = u;

    ngx_add_timer(&u->timer, NGX_HTTP_LLM_USAGE_LOOK);

    return NGX_OK;
}


/* writes all files, in the event loop: the threads of tasks have ended */

void
ngx_http_llm_usage_stop(ngx_http_llm_quotas_main_conf_t *qmcf)
{
    ngx_uint_t             i;
    ngx_http_llm_usage_t  *u;

    u = qmcf->usage;

    if (u->timer.timer_set) {
        ngx_del_timer(&u->timer);
    }

    for (i = 0; i < qmcf->quotas.nelts; i++) {
        u->due[i] = 1;
    }

    ngx_http_llm_usage_run(u);
    ngx_http_llm_usage_done(u);

    ngx_free(u);
    qmcf->usage = NULL;
}


static void
ngx_http_llm_usage_handler(ngx_event_t *ev)
{
    ngx_uint_t                        i, due;
    ngx_http_llm_usage_t             *u;
    ngx_http_llm_quota_t            **q;
    ngx_http_llm_main_conf_t         *mcf;
    ngx_http_llm_quotas_main_conf_t  *qmcf;

    mcf = ngx_http_llm_event_conf(ev);
    qmcf = ngx_http_llm_get_main_conf(mcf, ngx_http_llm_quotas_module);
    u = qmcf->usage;
    q = qmcf->quotas.elts;
    due = 0;

    for (i = 0; !u->busy && i < qmcf->quotas.nelts; i++) {
        u->due[i] = ngx_http_llm_usage_due(u, q[i], i);
        due |= u->due[i];
    }

    if (due
        && ngx_http_llm_run_task(&mcf->worker->tasks, &u->task, ev->log)
           == NGX_OK)
    {
        u->busy = 1;
    }

    /* also while this nginx drains: another one may have begun to use the
       file */

    ngx_add_timer(ev, NGX_HTTP_LLM_USAGE_LOOK);
}


/* must zone i be written, or what others have written be read? */

static ngx_uint_t
ngx_http_llm_usage_due(ngx_http_llm_usage_t *u, ngx_http_llm_quota_t *q,
    ngx_uint_t i)
{
    llm_keys_id_t  file;

    if (q->state.len == 0) {
        return 0;
    }

    if (!ngx_http_llm_usage_shared(q)) {

        if (q->sh->changes == u->written[i]) {
            u->since[i] = 0;
            return 0;
        }

        if (u->since[i] == 0) {
            u->since[i] = ngx_max(ngx_current_msec, 1);
        }

        return ngx_current_msec - u->since[i] >= NGX_HTTP_LLM_USAGE_EACH;
    }

    llm_keys_which((char *) q->state.data, &file);

    return q->sh->changes != u->written[i] || q->sh->loose || !q->sh->shared
           || ngx_memcmp(&file, &q->sh->file, sizeof(llm_keys_id_t)) != 0;
}


static void
ngx_http_llm_usage_run(void *data)
{
    ngx_http_llm_usage_t *u = data;

    ngx_uint_t              i, changes;
    ngx_http_llm_quota_t  **q;

    q = u->quotas->quotas.elts;
    u->err.status = 0;

    for (i = 0; i < u->quotas->quotas.nelts; i++) {
        changes = q[i]->sh->changes;

        if (q[i]->state.len && u->due[i]
            && ngx_http_llm_usage_sync(q[i], 0, &u->err) == LLM_OK)
        {
            u->written[i] = changes;
        }
    }
}


static void
ngx_http_llm_usage_done(void *data)
{
    ngx_http_llm_usage_t *u = data;

    ngx_uint_t  i;

    u->busy = 0;

    for (i = 0; i < u->quotas->quotas.nelts; i++) {
        u->since[i] = u->due[i] ? 0 : u->since[i];
        u->due[i] = 0;
    }

    if (u->err.status && !u->failed) {
        ngx_log_error(NGX_LOG_ERR, u->log, 0, "%s", u->err.msg);
    }

    u->failed = u->err.status != 0;
}
