/*
 * The usage file of a llm_token_zone, which several memories may use: an old
 * and a new nginx during a binary upgrade, one that drains and one that was
 * started meanwhile, the memories of a zone before and after its size was
 * changed, two instances.
 *
 * - A writer locks the folder, and first reads what others have written;
 *   ngx_http_llm_usage_copy.c merges it.
 * - Accounts for which the zone has no room stay in the file, as long as it is
 *   not much larger than the zone.
 * - Each process that uses the file holds a lock on one byte of the folder,
 *   whose offset is made of the path and the memory's id.  The lock ends with
 *   the process, so others know whether its reservations still count.
 */

#include "http/access/ngx_http_llm_file.h"
#include "http/access/ngx_http_llm_quota.h"
#include "http/conf/ngx_http_llm_model.h"


/* most ms to wait for the folder's lock.  The event loop waits only if the lock
   was free at its last try: its holder will release it soon, or hangs */
#define NGX_HTTP_LLM_USAGE_WAIT     2000
#define NGX_HTTP_LLM_USAGE_AT_ONCE  100


static int ngx_http_llm_usage_read(ngx_http_llm_quota_t *q,
    ngx_http_llm_merge_t *m, llm_err_t *err);
static int ngx_http_llm_usage_line_of(void *data, const llm_usage_t *u,
    llm_err_t *err);
static void ngx_http_llm_usage_order(ngx_http_llm_merge_t *m);
static int ngx_http_llm_usage_merge(ngx_http_llm_quota_t *q,
    ngx_http_llm_merge_t *m, ngx_uint_t at_once, llm_err_t *err);
static void ngx_http_llm_usage_undo(ngx_http_llm_quota_t *q,
    ngx_http_llm_merge_t *m, u_char *chunk);
static uint64_t ngx_http_llm_usage_walk(ngx_http_llm_quota_t *q,
    ngx_http_llm_merge_t *m, u_char *chunk, llm_buf_t *out);
static uint64_t ngx_http_llm_usage_rest(ngx_http_llm_quota_t *q,
    ngx_http_llm_merge_t *m, llm_buf_t *out);
static ngx_uint_t ngx_http_llm_usage_adopt(ngx_http_llm_quota_t *q,
    ngx_http_llm_merge_t *m, ngx_http_llm_line_t *line);


/* ---- which processes use the file ---- */

static ngx_uint_t
ngx_http_llm_usage_is_locked(int fd, uint64_t from, uint64_t to)
{
    struct flock  fl;

    if (from == to) {
        return 0;
    }

    ngx_memzero(&fl, sizeof(struct flock));

    fl.l_type = F_WRLCK;
    fl.l_whence = SEEK_SET;
    fl.l_start = (off_t) from;
    fl.l_len = (off_t) (to - from);

    return fcntl(fd, F_OFD_GETLK, &fl) == 0 && fl.l_type != F_UNLCK;
}


/* first of 2^32 byte offsets in the folder that stand for the file */

static uint64_t
ngx_http_llm_usage_bytes(ngx_http_llm_quota_t *q)
{
    return (uint64_t) (q->place & 0x3fffffff) << 32;
}


void
ngx_http_llm_usage_open(ngx_http_llm_quota_t *q)
{
    struct flock  fl;

    q->folder = ngx_http_llm_open_folder(&q->state);

    if (q->folder == -1) {
        return;
    }

    ngx_memzero(&fl, sizeof(struct flock));

    fl.l_type = F_RDLCK;
    fl.l_whence = SEEK_SET;
    fl.l_start = (off_t) (ngx_http_llm_usage_bytes(q) + q->sh->id);
    fl.l_len = 1;

    (void) fcntl(q->folder, F_OFD_SETLK, &fl);
}


ngx_uint_t
ngx_http_llm_usage_shared(ngx_http_llm_quota_t *q)
{
    int         fd;
    uint64_t    from;
    ngx_uint_t  shared;

    fd = (q->folder != -1) ? q->folder : ngx_http_llm_open_folder(&q->state);

    if (fd == -1) {
        return 0;
    }

    from = ngx_http_llm_usage_bytes(q);

    shared = ngx_http_llm_usage_is_locked(fd, from, from + q->sh->id)
             || ngx_http_llm_usage_is_locked(fd, from + q->sh->id + 1,
                                             from + ((uint64_t) 1 << 32));

    if (fd != q->folder) {
        (void) close(fd);
    }

    return shared;
}


/* ---- reading and writing ---- */

/* For the event loop.  If a lock stays taken, only the first request waits for
   it; until it is released, worker 0's thread writes later what this worker
   charges. */

static int
ngx_http_llm_usage_lock(ngx_http_llm_quota_t *q, llm_err_t *err)
{
    int  fd;

    fd = ngx_http_llm_lock_folder("the usage", &q->state,
                                  q->locked ? 0 : NGX_HTTP_LLM_USAGE_AT_ONCE,
                                  err);

    if (fd == -1 && !q->locked) {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "%s; requests do not wait for this, it is written later",
                      err->msg);
    }

    q->locked = (fd == -1);

    return fd;
}


int
ngx_http_llm_usage_sync(ngx_http_llm_quota_t *q, ngx_uint_t at_once,
    llm_err_t *err)
{
    int                   fd, rc;
    llm_keys_id_t         file;
    ngx_http_llm_merge_t  m;

    fd = at_once ? ngx_http_llm_usage_lock(q, err)
                 : ngx_http_llm_lock_folder("the usage", &q->state,
                                            NGX_HTTP_LLM_USAGE_WAIT, err);
    if (fd == -1) {
        return LLM_ERROR;
    }

    /* a newer configuration may use another file for this memory */

    if (q->sh->place != q->place) {
        (void) close(fd);
        return LLM_OK;
    }

    llm_keys_which((char *) q->state.data, &file);

    /* the file may have grown before it was locked */

    if (at_once && file.size > NGX_HTTP_LLM_USAGE_SMALL) {
        (void) close(fd);
        return LLM_OK;
    }

    ngx_memzero(&m, sizeof(ngx_http_llm_merge_t));
    llm_buf_init(&m.keys, LLM_USAGE_BYTES);

    m.shared = ngx_http_llm_usage_shared(q);
    q->sh->shared = m.shared;
    m.there = (file.inode != 0);
    m.news = q->sh->loose && !at_once;
    m.read = q->sh->beyond || q->sh->moved || !m.there
             || ngx_memcmp(&file, &q->sh->file, sizeof(llm_keys_id_t)) != 0;

    /* deleting an account sets it again */

    q->sh->beyond = 0;

    rc = m.read ? ngx_http_llm_usage_read(q, &m, err) : LLM_OK;

    if (rc == LLM_OK) {
        rc = ngx_http_llm_usage_merge(q, &m, at_once, err);
    }

    if (rc != LLM_OK) {
        q->sh->beyond = 1;
    }

    free(m.lines);
    llm_buf_free(&m.keys);
    (void) close(fd);

    return rc;
}


/* ---- the file ---- */

/* a broken file is kept as FILE.bad; a file that cannot be read is not
   replaced */

static int
ngx_http_llm_usage_read(ngx_http_llm_quota_t *q, ngx_http_llm_merge_t *m,
    llm_err_t *err)
{
    int         rc;
    llm_buf_t   text;
    llm_err_t   why;

    if (!m->there) {
        return LLM_OK;
    }

    rc = llm_usage_text((char *) q->state.data, &text, &why);

    if (rc != LLM_OK) {
        llm_buf_free(&text);
        return llm_fail(err, "the usage cannot be written to \"%s\", because "
                        "the file cannot be read: %s", (char *) q->state.data,
                        why.msg);
    }

    rc = llm_usage_read(text.len ? text.data : "", text.len, NULL,
                        ngx_http_llm_usage_line_of, m, &why);
    llm_buf_free(&text);

    if (m->keys.failed) {
        return llm_fail(err, "no memory to read the usage in \"%s\"",
                        (char *) q->state.data);
    }

    if (rc != LLM_OK) {
        m->n = 0;
        m->there = 0;
        ngx_http_llm_keep_bad(&q->state);
    }

    ngx_http_llm_usage_order(m);

    return LLM_OK;
}


static int
ngx_http_llm_usage_line_of(void *data, const llm_usage_t *u, llm_err_t *err)
{
    ngx_http_llm_merge_t *m = data;

    size_t                cap;
    ngx_http_llm_line_t  *line;

    if (u->key.len > NGX_HTTP_LLM_MAX_KEY) {
        return LLM_OK;
    }

    if (m->n == m->cap) {
        cap = ngx_max(2 * m->cap, (size_t) 64);
        line = realloc(m->lines, cap * sizeof(ngx_http_llm_line_t));

        if (line == NULL) {
            m->keys.failed = 1;
            return llm_fail(err, "no memory");
        }

        m->lines = line;
        m->cap = cap;
    }

    line = &m->lines[m->n++];

    line->hash = ngx_crc32_short((u_char *) u->key.data, u->key.len);
    line->key = m->keys.len;
    line->len = u->key.len;
    line->u = *u;
    line->seen = 0;

    return llm_buf_add(&m->keys, u->key.data, u->key.len);
}


static int
ngx_http_llm_usage_cmp(const void *one, const void *two, void *data)
{
    const ngx_http_llm_line_t *a = one, *b = two;

    const char  *keys = data;

    if (a->hash != b->hash) {
        return a->hash > b->hash ? 1 : -1;
    }

    return (int) ngx_memn2cmp((u_char *) keys + a->key,
                              (u_char *) keys + b->key, a->len, b->len);
}


/* sorts the lines as the zone's accounts; of several lines for one key one is
   kept */

static void
ngx_http_llm_usage_order(ngx_http_llm_merge_t *m)
{
    size_t  i, n;

    if (m->n == 0) {
        return;
    }

    qsort_r(m->lines, m->n, sizeof(ngx_http_llm_line_t),
            ngx_http_llm_usage_cmp, m->keys.data);

    for (i = 1, n = 1; i < m->n; i++) {
        if (ngx_http_llm_usage_cmp(&m->lines[n - 1], &m->lines[i],
                                   m->keys.data) != 0)
        {
            m->lines[n++] = m->lines[i];
        }
    }

    m->n = n;
}


/* ---- merging ---- */

static int
ngx_http_llm_usage_merge(ngx_http_llm_quota_t *q, ngx_http_llm_merge_t *m,
    ngx_uint_t at_once, llm_err_t *err)
{
    int         rc;
    u_char     *chunk;
    uint64_t    n;
    llm_buf_t   text;

    chunk = malloc(2 * NGX_HTTP_LLM_USAGE_CHUNK);

    if (chunk == NULL) {
        return llm_fail(err, "no memory to write the usage to \"%s\"",
                        (char *) q->state.data);
    }

    llm_buf_init(&text, LLM_USAGE_BYTES);

    (void) llm_usage_begin(&text, ngx_http_llm_text(&q->shm_zone->shm.name));

    n = ngx_http_llm_usage_walk(q, m, chunk, &text);

    /* an account was deleted before it was copied: only the file has it */

    if (!m->read && q->sh->beyond) {

        if (ngx_http_llm_usage_read(q, m, err) != LLM_OK) {
            q->sh->moved = 1;
            llm_buf_free(&text);
            free(chunk);
            return LLM_ERROR;
        }

        m->read = 1;
        text.len = 0;

        (void) llm_usage_begin(&text,
                               ngx_http_llm_text(&q->shm_zone->shm.name));

        n = ngx_http_llm_usage_walk(q, m, chunk, &text);
    }

    if (m->read) {
        n += ngx_http_llm_usage_rest(q, m, &text);
        q->sh->moved = 0;
    }

    rc = LLM_OK;

    if (m->news || (!m->there && n)) {

        rc = llm_usage_end(&text, n) == LLM_OK
             ? ngx_http_llm_replace_file("the usage", &q->state, &text,
                                         !at_once, err)
             : llm_fail(err, "no memory to write the usage to \"%s\"",
                        (char *) q->state.data);
    }

    llm_keys_which((char *) q->state.data, &q->sh->file);

    if (rc != LLM_OK) {
        ngx_http_llm_usage_undo(q, m, chunk);

    } else if (m->news || !m->there) {
        q->sh->loose = at_once;
    }

    llm_buf_free(&text);
    free(chunk);

    return rc;
}


/* the file was not written: restores `known` from what the file has */

static void
ngx_http_llm_usage_undo(ngx_http_llm_quota_t *q, ngx_http_llm_merge_t *m,
    u_char *chunk)
{
    llm_buf_t  text;
    llm_err_t  err;

    if (!m->read && ngx_http_llm_usage_read(q, m, &err) != LLM_OK) {
        q->sh->moved = 1;
        return;
    }

    m->undo = 1;
    m->next = 0;

    llm_buf_init(&text, LLM_USAGE_BYTES);
    (void) ngx_http_llm_usage_walk(q, m, chunk, &text);
    llm_buf_free(&text);
}


static uint64_t
ngx_http_llm_usage_walk(ngx_http_llm_quota_t *q, ngx_http_llm_merge_t *m,
    u_char *chunk, llm_buf_t *out)
{
    size_t                  len;
    uint64_t                n;
    ngx_http_llm_copied_t  *last;

    last = NULL;
    n = 0;

    while ((len = ngx_http_llm_usage_copy(q, last, chunk, m)) != 0) {
        last = (ngx_http_llm_copied_t *) (chunk + NGX_HTTP_LLM_USAGE_CHUNK);
        n += ngx_http_llm_usage_add(chunk, len, NGX_MAX_INT_T_VALUE, NULL, 1,
                                    last, out);
    }

    return n;
}


/* Writes accounts that only the file has, and returns their number.  The zone
   takes them if there is free room.  If the file grows large, those of older
   days are left out first. */

static uint64_t
ngx_http_llm_usage_rest(ngx_http_llm_quota_t *q, ngx_http_llm_merge_t *m,
    llm_buf_t *out)
{
    size_t                i, size;
    uint64_t              n;
    ngx_uint_t            pass, today;
    ngx_http_llm_line_t  *line;

    n = 0;
    size = ngx_max(q->shm_zone->shm.size, (size_t) 65536);

    for (pass = 0; pass < 2; pass++) {
        for (i = 0; i < m->n; i++) {
            line = &m->lines[i];
            today = line->u.day >= ngx_http_llm_today();
            line->u.held = m->shared ? line->u.held : 0;

            if (line->seen || today != (pass == 0)
                || ngx_http_llm_usage_is_empty(&line->u))
            {
                continue;
            }

            if (!ngx_http_llm_usage_adopt(q, m, line)) {
                q->sh->beyond = 1;
            }

            if (out->len < (pass ? 2 : 4) * size) {
                line->u.key.data = m->keys.data + line->key;
                line->u.key.len = line->len;
                (void) llm_usage_add(out, &line->u);
                n++;
            }
        }
    }

    return n;
}


static ngx_uint_t
ngx_http_llm_usage_adopt(ngx_http_llm_quota_t *q, ngx_http_llm_merge_t *m,
    ngx_http_llm_line_t *line)
{
    ngx_str_t                key;
    ngx_http_llm_account_t  *a;

    key.data = (u_char *) m->keys.data + line->key;
    key.len = line->len;

    ngx_http_llm_quota_lock(q);

    a = ngx_http_llm_account_find(q, line->hash, &key);

    if (a == NULL) {
        a = ngx_http_llm_account_get(q, line->hash, &key, 1);

        if (a) {
            ngx_http_llm_account_change(q, a, NULL);
            ngx_http_llm_usage_take(q, a, &line->u, m->shared);
            ngx_http_llm_account_known(q);
        }
    }

    ngx_http_llm_quota_unlock(q);

    return a != NULL;
}
