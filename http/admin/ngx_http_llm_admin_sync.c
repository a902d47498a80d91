/*
 * The file of llm_admin's state.
 *
 * - Any worker writes it, after each change, in a thread.  A lock of the file's
 *   folder serializes writers, so an older state never replaces a newer one;
 *   the kernel releases the lock of a worker that dies.
 * - Another nginx may use the file, too: during a binary upgrade, while an old
 *   one drains, or as a second instance.  So a writer first reads what others
 *   have written, and applies their changes to the state; worker 0 checks for
 *   such changes.
 */

#include "http/access/ngx_http_llm_file.h"
#include "http/admin/ngx_http_llm_admin.h"
#include "http/conf/ngx_http_llm_conf.h"


/* most ms that a thread waits for the lock of the folder */
#define NGX_HTTP_LLM_ADMIN_LOCKED  2000


static int ngx_http_llm_admin_run_save(ngx_http_llm_admin_job_t *job);
static ngx_uint_t ngx_http_llm_admin_is_foreign(ngx_http_llm_admin_t *admin);
static void ngx_http_llm_admin_tell_lost(ngx_http_llm_admin_t *admin,
    const llm_admin_state_t *before, const llm_admin_state_t *st,
    ngx_log_t *log);
static int ngx_http_llm_admin_sync(ngx_http_llm_admin_t *admin,
    llm_admin_state_t *st, ngx_log_t *log, llm_err_t *err);
static int ngx_http_llm_admin_theirs(ngx_http_llm_admin_t *admin,
    llm_admin_state_t *theirs, ngx_uint_t *there, llm_err_t *err);
static int ngx_http_llm_admin_write_state(ngx_http_llm_admin_t *admin,
    llm_admin_state_t *st, llm_err_t *err);


/* after a reload the path may be another one */

ngx_uint_t
ngx_http_llm_admin_is_saved(ngx_http_llm_admin_t *admin, ngx_uint_t version)
{
    return admin->state.len == 0
           || (admin->sh->saved == version
               && admin->sh->place == admin->place);
}


/* has another nginx written the file? */

static ngx_uint_t
ngx_http_llm_admin_is_foreign(ngx_http_llm_admin_t *admin)
{
    llm_keys_id_t  file;

    if (admin->state.len == 0 || admin->sh->place != admin->place) {
        return 0;
    }

    llm_keys_which((char *) admin->state.data, &file);

    return file.inode
           && ngx_memcmp(&file, &admin->sh->file, sizeof(llm_keys_id_t)) != 0;
}


ngx_int_t
ngx_http_llm_admin_save(ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_admin_request_t *a,
    void (*done)(ngx_http_llm_admin_job_t *job), ngx_log_t *log)
{
    ngx_http_llm_admin_t      *admin;
    ngx_http_llm_admin_job_t  *job;

    admin = ngx_http_llm_admin_of(mcf);

    if (ngx_http_llm_admin_is_saved(admin, admin->sh->version)
        && !ngx_http_llm_admin_is_foreign(admin))
    {
        return NGX_DECLINED;
    }

    job = ngx_http_llm_admin_job(mcf, a, log);
    if (job == NULL) {
        return NGX_ERROR;
    }

    job->run = ngx_http_llm_admin_run_save;
    job->done = done;

    return ngx_http_llm_admin_run(job, log);
}


static int
ngx_http_llm_admin_run_save(ngx_http_llm_admin_job_t *job)
{
    return ngx_http_llm_admin_save_state(ngx_http_llm_admin_of(job->main),
                                         job->main->cycle->log, &job->err);
}


int
ngx_http_llm_admin_save_state(ngx_http_llm_admin_t *admin, ngx_log_t *log,
    llm_err_t *err)
{
    int                 fd, rc;
    llm_admin_state_t  *st;

    /* 4 states: ours, theirs, the last known one of the file, and ours before
       the merge */

    st = malloc(4 * sizeof(llm_admin_state_t));

    if (st == NULL) {
        return llm_fail(err, "no memory to write the state of \"llm_admin\"");
    }

    fd = ngx_http_llm_lock_folder("the state of \"llm_admin\"", &admin->state,
                                  NGX_HTTP_LLM_ADMIN_LOCKED, err);
    if (fd == -1) {
        free(st);
        return LLM_ERROR;
    }

    rc = ngx_http_llm_admin_sync(admin, st, log, err);

    if (rc == LLM_OK) {
        (void) fsync(fd);
    }

    (void) close(fd);
    free(st);

    return rc;
}


/* logs added models that others have removed, or had no place for */

static void
ngx_http_llm_admin_tell_lost(ngx_http_llm_admin_t *admin,
    const llm_admin_state_t *before, const llm_admin_state_t *st,
    ngx_log_t *log)
{
    uint32_t   i;
    ngx_str_t  name;
    llm_str_t  of;

    for (i = 0; i < before->n_models; i++) {
        of = llm_admin_str(&before->models[i].name);

        if (before->models[i].o.added && llm_admin_find_model(st, of) == NULL)
        {
            name.data = (u_char *) of.data;
            name.len = of.len;

            ngx_log_error(NGX_LOG_WARN, log, 0,
                          "the next reload removes model \"%V\" of "
                          "\"llm_admin\": another nginx has removed it from "
                          "\"%V\"",
                          &name, &admin->state);
        }
    }
}


static int
ngx_http_llm_admin_sync(ngx_http_llm_admin_t *admin, llm_admin_state_t *st,
    ngx_log_t *log, llm_err_t *err)
{
    int                           rc;
    ngx_uint_t                    version, there;
    llm_admin_state_t            *theirs, *base, *before;
    ngx_http_llm_admin_shared_t  *sh;

    sh = admin->sh;
    theirs = st + 1;
    base = st + 2;
    before = st + 3;

    /* after a reload the path may be another one, whose file is not known */

    if (sh->place == admin->place) {
        *base = sh->known;

    } else {
        ngx_memzero(base, sizeof(llm_admin_state_t));
    }

    *theirs = *base;
    rc = ngx_http_llm_admin_theirs(admin, theirs, &there, err);

    if (rc != LLM_OK) {
        return rc;
    }

    ngx_http_llm_admin_lock(admin);

    *st = *ngx_http_llm_admin_state(admin);
    *before = *st;
    llm_admin_merge(st, base, theirs);

    if (!llm_admin_same_state(st, ngx_http_llm_admin_state(admin))) {
        *ngx_http_llm_admin_change(admin) = *st;
        ngx_http_llm_admin_changed(admin);
    }

    version = sh->version;

    ngx_http_llm_admin_unlock(admin);

    ngx_http_llm_admin_tell_lost(admin, before, st, log);

    if (!there || !llm_admin_same_state(st, theirs)) {
        rc = ngx_http_llm_admin_write_state(admin, st, err);
    }

    if (rc == LLM_OK) {
        sh->known = *st;
        sh->saved = version;
        sh->place = admin->place;
        llm_keys_which((char *) admin->state.data, &sh->file);
    }

    return rc;
}


/* Reads what others have written.  A broken file is kept as FILE.bad, and
   counts as missing; a file that cannot be read is not replaced. */

static int
ngx_http_llm_admin_theirs(ngx_http_llm_admin_t *admin,
    llm_admin_state_t *theirs, ngx_uint_t *there, llm_err_t *err)
{
    int            rc;
    llm_buf_t      text;
    llm_err_t      why;
    llm_keys_id_t  file;

    llm_keys_which((char *) admin->state.data, &file);

    *there = (file.inode != 0);

    if (!*there
        || (admin->sh->place == admin->place && !admin->sh->bad_file
            && ngx_memcmp(&file, &admin->sh->file, sizeof(llm_keys_id_t))
               == 0))
    {
        return LLM_OK;
    }

    rc = llm_admin_text((char *) admin->state.data, &text, &why);

    if (rc != LLM_OK) {
        llm_buf_free(&text);
        return llm_fail(err, "the state of \"llm_admin\" cannot be written to "
                        "\"%s\", because the file cannot be read: %s",
                        (char *) admin->state.data, why.msg);
    }

    rc = llm_admin_read(theirs, text.len ? text.data : "", text.len, &why);
    llm_buf_free(&text);

    if (rc != LLM_OK) {
        *there = 0;
        *theirs = admin->sh->known;
        ngx_http_llm_keep_bad(&admin->state);
    }

    admin->sh->bad_file = 0;

    return LLM_OK;
}


static int
ngx_http_llm_admin_write_state(ngx_http_llm_admin_t *admin,
    llm_admin_state_t *st, llm_err_t *err)
{
    int        rc;
    llm_buf_t  text;

    llm_buf_init(&text, LLM_ADMIN_BYTES);

    if (llm_admin_write(st, &text) != LLM_OK) {
        llm_buf_free(&text);
        return llm_fail(err, "no memory to write the state of \"llm_admin\"");
    }

    rc = ngx_http_llm_replace_file("the state of \"llm_admin\"",
                                   &admin->state, &text, 1, err);
    llm_buf_free(&text);

    return rc;
}
