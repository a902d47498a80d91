/*
 * state= of llm_token_zone: days and usage in a file, so that a restart does
 * not forget them; its form is that of engine/api/usage.h.
 *
 * - Who creates the zone's memory reads the file: the master, or nginx -t.
 *   One that is torn is named in the log and not used, and kept beside the new
 *   one as FILE.bad.
 * - Worker 0 writes it, each second in which something has changed and at its
 *   end: to a file of another name, which takes its place.  A thread does it,
 *   which holds the zone's lock for a few accounts at a time.
 * - What live requests were charged and have not used is not written: a
 *   restart ends them.
 */

#include "http/ngx_http_llm_quota.h"


/* how often the file is written, in ms */
#define NGX_HTTP_LLM_USAGE_EACH   1000

/* bytes of accounts that are copied under one lock */
#define NGX_HTTP_LLM_USAGE_CHUNK  32768


/* an account that was copied; its key is behind it, then room to align */

typedef struct {
    ngx_http_llm_figures_t       n;
    uint32_t                     hash;
    size_t                       len;
    u_char                       key[];
} ngx_http_llm_copied_t;


/* who writes the files of a configuration; malloc(), the thread's while busy */

struct ngx_http_llm_usage_s {
    ngx_http_llm_main_conf_t    *main;
    ngx_event_t                  timer;
    ngx_http_llm_task_t          task;
    ngx_uint_t                   busy;
    ngx_uint_t                   failed;        /* the last try; it was
                                                   logged */
    llm_err_t                    err;           /* status 0: all went well */
    ngx_uint_t                  *written;       /* changes of each zone */
};


static int ngx_http_llm_usage_take(void *data, const llm_usage_t *u,
    llm_err_t *err);
static void ngx_http_llm_usage_handler(ngx_event_t *ev);
static void ngx_http_llm_usage_run(void *data);
static void ngx_http_llm_usage_done(void *data);
static int ngx_http_llm_usage_write(ngx_http_llm_quota_t *q, llm_err_t *err);
static int ngx_http_llm_usage_gather(ngx_http_llm_quota_t *q, llm_buf_t *out);
static ngx_uint_t ngx_http_llm_usage_add(u_char *chunk, size_t len,
    ngx_uint_t most, const char *between, ngx_http_llm_copied_t *last,
    llm_buf_t *out);
static size_t ngx_http_llm_usage_copy(ngx_http_llm_quota_t *q,
    ngx_http_llm_copied_t *last, u_char *chunk);
static int ngx_http_llm_usage_replace(ngx_http_llm_quota_t *q,
    llm_buf_t *text, llm_err_t *err);


/* ---- reading ---- */

void
ngx_http_llm_usage_load(ngx_http_llm_quota_t *q, ngx_log_t *log)
{
    char             *path;
    llm_err_t         err;
    ngx_file_info_t   fi;

    path = (char *) q->state.data;

    if (q->state.len == 0
        || (ngx_file_info(path, &fi) == NGX_FILE_ERROR
            && ngx_errno == NGX_ENOENT))
    {
        return;
    }

    if (llm_usage_read_file(path, ngx_http_llm_usage_take, q, &err) != LLM_OK)
    {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "the usage of zone \"%V\" in \"%s\" is not used: %s",
                      &q->shm_zone->shm.name, path, err.msg);
        q->sh->bad_file = 1;
    }
}


/* before any process uses the zone */

static int
ngx_http_llm_usage_take(void *data, const llm_usage_t *u, llm_err_t *err)
{
    ngx_http_llm_quota_t *q = data;

    ngx_str_t                key;
    ngx_http_llm_account_t  *a;

    key.data = (u_char *) u->key.data;
    key.len = u->key.len;

    a = ngx_http_llm_account_get(q, ngx_crc32_short(key.data, key.len), &key);

    if (a == NULL) {
        return llm_fail(err, "the zone is too small for all accounts");
    }

    a->n.day = u->day;
    a->n.day_units = (int64_t) (u->day_tokens * (LLM_QUOTA_UNIT / 1000));
    a->n.n_requests = u->requests;
    a->n.n_prompt = u->prompt;
    a->n.n_cached = u->cached;
    a->n.n_answer = u->answer;

    return LLM_OK;
}


/* ---- when it is written ---- */

ngx_int_t
ngx_http_llm_usage_init(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log)
{
    ngx_uint_t              i, n;
    ngx_http_llm_usage_t   *u;
    ngx_http_llm_quota_t  **q;

    n = mcf->quotas.nelts;
    q = mcf->quotas.elts;

    for (i = 0; i < n && q[i]->state.len == 0; i++) { /* void */ }

    if (i == n) {
        return NGX_OK;
    }

    u = ngx_calloc(sizeof(ngx_http_llm_usage_t) + n * sizeof(ngx_uint_t), log);
    if (u == NULL) {
        return NGX_ERROR;
    }

    u->main = mcf;
    u->written = (ngx_uint_t *) (u + 1);

    u->timer.handler = ngx_http_llm_usage_handler;
    u->timer.data = mcf->worker->conn;
    u->timer.log = log;
    u->timer.cancelable = 1;

    u->task.run = ngx_http_llm_usage_run;
    u->task.done = ngx_http_llm_usage_done;
    u->task.data = u;

    mcf->worker->usage = u;

    ngx_add_timer(&u->timer, NGX_HTTP_LLM_USAGE_EACH);

    return NGX_OK;
}


/* the tasks' threads have ended */

void
ngx_http_llm_usage_stop(ngx_http_llm_main_conf_t *mcf)
{
    ngx_http_llm_usage_t  *u;

    u = mcf->worker->usage;

    if (u == NULL) {
        return;
    }

    if (u->timer.timer_set) {
        ngx_del_timer(&u->timer);
    }

    ngx_http_llm_usage_run(u);
    ngx_http_llm_usage_done(u);

    ngx_free(u);
    mcf->worker->usage = NULL;
}


static void
ngx_http_llm_usage_handler(ngx_event_t *ev)
{
    ngx_uint_t                 i, changed;
    ngx_http_llm_usage_t      *u;
    ngx_http_llm_quota_t     **q;
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_llm_event_conf(ev);
    u = mcf->worker->usage;
    q = mcf->quotas.elts;
    changed = 0;

    for (i = 0; !u->busy && i < mcf->quotas.nelts; i++) {
        changed |= q[i]->state.len && q[i]->sh->changes != u->written[i];
    }

    if (changed
        && ngx_http_llm_run_task(&mcf->worker->tasks, &u->task, ev->log)
           == NGX_OK)
    {
        u->busy = 1;
    }

    if (!ngx_exiting) {
        ngx_add_timer(ev, NGX_HTTP_LLM_USAGE_EACH);
    }
}


static void
ngx_http_llm_usage_run(void *data)
{
    ngx_http_llm_usage_t *u = data;

    ngx_uint_t              i, changes;
    ngx_http_llm_quota_t  **q;

    q = u->main->quotas.elts;
    u->err.status = 0;

    for (i = 0; i < u->main->quotas.nelts; i++) {
        changes = q[i]->sh->changes;

        if (q[i]->state.len && changes != u->written[i]
            && ngx_http_llm_usage_write(q[i], &u->err) == LLM_OK)
        {
            u->written[i] = changes;
        }
    }
}


static void
ngx_http_llm_usage_done(void *data)
{
    ngx_http_llm_usage_t *u = data;

    u->busy = 0;

    if (u->err.status && !u->failed) {
        ngx_log_error(NGX_LOG_ERR, u->main->cycle->log, 0, "%s", u->err.msg);
    }

    u->failed = u->err.status != 0;
}


/* ---- how ---- */

static int
ngx_http_llm_usage_write(ngx_http_llm_quota_t *q, llm_err_t *err)
{
    int        rc;
    llm_buf_t  text;

    llm_buf_init(&text, LLM_USAGE_BYTES);

    rc = ngx_http_llm_usage_gather(q, &text);

    if (rc != LLM_OK) {
        rc = llm_fail(err, "no memory to write the usage to \"%s\"",
                      (char *) q->state.data);
    } else {
        rc = ngx_http_llm_usage_replace(q, &text, err);
    }

    llm_buf_free(&text);

    return rc;
}


static int
ngx_http_llm_usage_gather(ngx_http_llm_quota_t *q, llm_buf_t *out)
{
    size_t                  len;
    u_char                 *chunk;
    uint64_t                n;
    ngx_http_llm_copied_t  *last;

    chunk = malloc(2 * NGX_HTTP_LLM_USAGE_CHUNK);
    if (chunk == NULL) {
        return LLM_ERROR;
    }

    (void) llm_usage_begin(out, ngx_http_llm_text(&q->shm_zone->shm.name));

    last = NULL;
    n = 0;

    while ((len = ngx_http_llm_usage_copy(q, last, chunk)) != 0) {
        last = (ngx_http_llm_copied_t *) (chunk + NGX_HTTP_LLM_USAGE_CHUNK);
        n += ngx_http_llm_usage_add(chunk, len, NGX_MAX_INT_T_VALUE, NULL,
                                    last, out);
    }

    free(chunk);

    return llm_usage_end(out, n);
}


/* writes what was copied, with something between accounts if it is not NULL;
   their number, `most` at most; *last is the last one */

static ngx_uint_t
ngx_http_llm_usage_add(u_char *chunk, size_t len, ngx_uint_t most,
    const char *between, ngx_http_llm_copied_t *last, llm_buf_t *out)
{
    size_t                  pos;
    ngx_uint_t              n;
    llm_usage_t             u;
    ngx_http_llm_copied_t  *c;

    for (pos = 0, n = 0; pos < len && n < most; n++) {
        c = (ngx_http_llm_copied_t *) (chunk + pos);

        u.key.data = (char *) c->key;
        u.key.len = c->len;
        u.day = c->n.day;
        u.day_tokens = (uint64_t) c->n.day_units / (LLM_QUOTA_UNIT / 1000);
        u.requests = c->n.n_requests;
        u.prompt = c->n.n_prompt;
        u.cached = c->n.n_cached;
        u.answer = c->n.n_answer;

        if (between && out->data[out->len - 1] == '\n') {
            (void) llm_buf_adds(out, between);
        }

        (void) llm_usage_add(out, &u);

        ngx_memcpy(last, c, sizeof(*c) + c->len);
        pos += ngx_align(sizeof(*c) + c->len, 8);
    }

    return n;
}


ngx_int_t
ngx_http_llm_usage_page(ngx_http_llm_quota_t *q, ngx_str_t *after,
    ngx_uint_t most, llm_buf_t *out, ngx_str_t *key)
{
    size_t                  len;
    u_char                 *chunk;
    ngx_uint_t              n;
    ngx_http_llm_copied_t  *last, *from;

    if (after->len > NGX_HTTP_LLM_MAX_KEY) {
        return 0;
    }

    chunk = malloc(2 * NGX_HTTP_LLM_USAGE_CHUNK);
    if (chunk == NULL) {
        return NGX_ERROR;
    }

    last = (ngx_http_llm_copied_t *) (chunk + NGX_HTTP_LLM_USAGE_CHUNK);
    from = NULL;
    n = 0;

    if (after->data) {
        from = last;
        from->hash = ngx_crc32_short(after->data, after->len);
        from->len = after->len;
        ngx_memcpy(from->key, after->data, after->len);
    }

    while (n < most && (len = ngx_http_llm_usage_copy(q, from, chunk)) != 0) {
        n += ngx_http_llm_usage_add(chunk, len, most - n, ",", last, out);
        from = last;
    }

    if (n) {
        key->len = last->len;
        ngx_memcpy(key->data, last->key, last->len);
    }

    free(chunk);

    return out->failed ? NGX_ERROR : (ngx_int_t) n;
}


/* the first account behind the one copied last, or of all; NULL: none */

static ngx_http_llm_account_t *
ngx_http_llm_usage_after(ngx_http_llm_quota_t *q, ngx_http_llm_copied_t *last)
{
    ngx_int_t           rc;
    ngx_rbtree_node_t  *node, *next;

    ngx_http_llm_account_t  *a;

    next = NULL;

    for (node = q->sh->tree.root; node != &q->sh->sentinel; /* void */ ) {
        a = (ngx_http_llm_account_t *) node;

        rc = last == NULL ? 1
             : node->key != last->hash ? (node->key > last->hash ? 1 : -1)
             : ngx_memn2cmp(a->key, last->key, a->len, last->len);

        if (rc > 0) {
            next = node;
            node = node->left;

        } else {
            node = node->right;
        }
    }

    return (ngx_http_llm_account_t *) next;
}


/* what its live requests were charged today and have not used */

static int64_t
ngx_http_llm_usage_unused(ngx_http_llm_quota_t *q, ngx_http_llm_account_t *a)
{
    int64_t                units;
    ngx_queue_t           *p;
    ngx_http_llm_claim_t  *c;

    units = 0;

    for (p = ngx_queue_head(&a->claims);
         p != ngx_queue_sentinel(&a->claims);
         p = ngx_queue_next(p))
    {
        c = ngx_queue_data(p, ngx_http_llm_claim_t, same);

        if (c->day == a->n.day) {
            units += ngx_max(c->charged - ngx_http_llm_claim_used(q, c), 0);
        }
    }

    return units;
}


/* as many accounts as a chunk holds; its bytes, 0: there is no other */

static size_t
ngx_http_llm_usage_copy(ngx_http_llm_quota_t *q, ngx_http_llm_copied_t *last,
    u_char *chunk)
{
    size_t                   len, size;
    ngx_rbtree_node_t       *node;
    ngx_http_llm_copied_t   *c;
    ngx_http_llm_account_t  *a;

    len = 0;

    ngx_http_llm_quota_lock(q);

    a = ngx_http_llm_usage_after(q, last);

    while (a) {
        size = ngx_align(sizeof(*c) + a->len, 8);

        if (len + size > NGX_HTTP_LLM_USAGE_CHUNK) {
            break;
        }

        c = (ngx_http_llm_copied_t *) (chunk + len);

        c->n = a->n;
        c->n.day_units -= ngx_min(ngx_http_llm_usage_unused(q, a),
                                  c->n.day_units);
        c->hash = (uint32_t) a->node.key;
        c->len = a->len;
        ngx_memcpy(c->key, a->key, a->len);

        len += size;

        node = ngx_rbtree_next(&q->sh->tree, &a->node);
        a = (ngx_http_llm_account_t *) node;
    }

    ngx_http_llm_quota_unlock(q);

    return len;
}


/* one that could not be used is kept */

static int
ngx_http_llm_usage_replace(ngx_http_llm_quota_t *q, llm_buf_t *text,
    llm_err_t *err)
{
    char  bad[NGX_MAX_PATH];

    if (q->sh->bad_file) {
        (void) ngx_snprintf((u_char *) bad, sizeof(bad), "%V.bad%Z",
                            &q->state);
        (void) rename((char *) q->state.data, bad);
        q->sh->bad_file = 0;
    }

    return ngx_http_llm_replace_file("the usage", &q->state, text, err);
}
