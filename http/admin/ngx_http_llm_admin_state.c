/*
 * What llm_admin leaves behind: in shared memory, which all workers see and a
 * reload keeps, and with state= in a file, which outlives nginx.
 *
 * - Who creates the memory reads the file: the master, or nginx -t.  One that
 *   is torn, or is something else, is named in the log and not used, and kept
 *   beside the new one as FILE.bad.
 * - Any worker writes it, after each change (ngx_http_llm_admin_sync.c).
 * - What the engine has made of commands is in its zone, which belongs to one
 *   configuration.  Worker 0 looks at it and keeps it here, for the next
 *   configuration's engine; not when it is that of the last one.
 */

#include "http/admin/ngx_http_llm_admin.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/worker/ngx_http_llm_worker.h"


/* how often worker 0 looks at what the engine has made, in ms; and when it
   tries again to write a file */
#define NGX_HTTP_LLM_ADMIN_LOOK   200
#define NGX_HTTP_LLM_ADMIN_AGAIN  5000


static void ngx_http_llm_admin_load(ngx_http_llm_admin_t *admin,
    ngx_log_t *log);
static void ngx_http_llm_admin_locate(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t i, llm_override_t *o, ngx_log_t *log);
static void ngx_http_llm_admin_apply(ngx_http_llm_main_conf_t *mcf,
    ngx_log_t *log);
static void ngx_http_llm_admin_timer(ngx_event_t *ev);
static void ngx_http_llm_admin_saved(ngx_http_llm_admin_job_t *job);
static void ngx_http_llm_admin_tell_all(ngx_http_llm_main_conf_t *mcf,
    ngx_log_t *log);


/* ---- shared memory ---- */

ngx_int_t
ngx_http_llm_init_admin_zone(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_llm_admin_t *old = data;

    ngx_http_llm_admin_t  *admin;

    admin = shm_zone->data;
    admin->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (old) {
        admin->sh = old->sh;
        return NGX_OK;
    }

    if (shm_zone->shm.exists) {
        admin->sh = admin->shpool->data;
        return NGX_OK;
    }

    admin->sh = ngx_slab_calloc(admin->shpool,
                                sizeof(ngx_http_llm_admin_shared_t));
    if (admin->sh == NULL) {
        return NGX_ERROR;
    }

    admin->shpool->data = admin->sh;
    admin->sh->place = admin->place;

    ngx_http_llm_admin_load(admin, shm_zone->shm.log);

    return NGX_OK;
}


static void
ngx_http_llm_admin_load(ngx_http_llm_admin_t *admin, ngx_log_t *log)
{
    char             *path;
    llm_err_t         err;
    ngx_file_info_t   fi;

    path = (char *) admin->state.data;

    if (admin->state.len == 0
        || (ngx_file_info(path, &fi) == NGX_FILE_ERROR
            && ngx_errno == NGX_ENOENT))
    {
        return;
    }

    llm_keys_which(path, &admin->sh->file);

    if (llm_admin_read_file(&admin->sh->copies[0], path, &err) != LLM_OK) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "the state of \"llm_admin\" in \"%s\" is not used: %s",
                      path, err.msg);
        admin->sh->bad_file = 1;
    }

    admin->sh->known = admin->sh->copies[0];
}


void
ngx_http_llm_admin_lock(ngx_http_llm_admin_t *admin)
{
    ngx_shmtx_lock(&admin->shpool->mutex);
}


void
ngx_http_llm_admin_unlock(ngx_http_llm_admin_t *admin)
{
    ngx_shmtx_unlock(&admin->shpool->mutex);
}


llm_admin_state_t *
ngx_http_llm_admin_state(ngx_http_llm_admin_t *admin)
{
    return &admin->sh->copies[admin->sh->active];
}


llm_admin_state_t *
ngx_http_llm_admin_change(ngx_http_llm_admin_t *admin)
{
    llm_admin_state_t  *st;

    st = &admin->sh->copies[!admin->sh->active];
    *st = *ngx_http_llm_admin_state(admin);

    return st;
}


void
ngx_http_llm_admin_changed(ngx_http_llm_admin_t *admin)
{
    ngx_memory_barrier();
    admin->sh->active = !admin->sh->active;
    ngx_memory_barrier();
    admin->sh->version++;
}


/* ---- what the engine has made ---- */

static ngx_uint_t
ngx_http_llm_admin_is_latest(ngx_http_llm_main_conf_t *mcf)
{
    return !llm_zone_replaced(mcf->zone, mcf->engines->data);
}


/* a file below the folder is named from there: that may move */

static void
ngx_http_llm_admin_override(ngx_http_llm_main_conf_t *mcf, ngx_uint_t i,
    llm_override_t *o)
{
    const char  *file;

    llm_zone_override(mcf->zone, i, o);

    file = llm_admin_below((char *) ngx_http_llm_admin_of(mcf)->models.data,
                           o->file);

    if (file != o->file) {
        ngx_memmove(o->file, file, ngx_strlen(file) + 1);
    }
}


/* a model that was added and has been removed is forgotten; st as there */

static llm_admin_state_t *
ngx_http_llm_admin_keep_name(ngx_http_llm_main_conf_t *mcf, ngx_uint_t i,
    llm_admin_state_t *st)
{
    llm_str_t                 name;
    ngx_http_llm_admin_t     *admin;
    const llm_admin_model_t  *m;

    admin = ngx_http_llm_admin_of(mcf);
    name = llm_admin_str(&admin->saved_names[i]);

    if (name.len == 0 || llm_str_eq(name, admin->known[i].name)) {
        return st;
    }

    m = llm_admin_find_model(st ? st : ngx_http_llm_admin_state(admin),
                             name);

    if (m && m->o.added) {
        st = st ? st : ngx_http_llm_admin_change(admin);
        llm_admin_forget_model(st, name);
    }

    admin->saved_names[i].len = 0;
    ngx_memzero(&admin->saved[i], sizeof(llm_override_t));

    return st;
}


void
ngx_http_llm_admin_keep(ngx_http_llm_main_conf_t *mcf)
{
    ngx_uint_t             i, news;
    llm_override_t         o;
    llm_admin_state_t     *st;
    ngx_http_llm_admin_t  *admin;

    admin = ngx_http_llm_admin_of(mcf);

    if (ngx_exiting || !ngx_http_llm_admin_is_latest(mcf)) {
        return;
    }

    ngx_http_llm_admin_lock(admin);
    ngx_http_llm_refresh_models(mcf);

    st = NULL;

    for (i = 0; i < mcf->models.nelts; i++) {
        st = ngx_http_llm_admin_keep_name(mcf, i, st);
        ngx_http_llm_admin_override(mcf, i, &o);

        /* it has no name, or has just got another one: the next time */

        if (mcf->models.nelts - i <= mcf->nadded
            && (mcf->api_models[i].naming == 0
                || llm_zone_naming(mcf->zone, i)
                   != mcf->api_models[i].naming))
        {
            continue;
        }

        /* what another nginx has made of the model is not undone */

        news = !llm_admin_same_override(&admin->saved[i], &o)
               && llm_admin_is_news(st ? st : ngx_http_llm_admin_state(admin),
                                    admin->known[i].name, &o);

        admin->saved[i] = o;

        if (news && st == NULL) {
            st = ngx_http_llm_admin_change(admin);
        }

        if (news) {
            llm_admin_set_model(st, admin->known[i].name, &o);
        }

        if (o.added) {
            llm_admin_copy_name(&admin->saved_names[i], admin->known[i].name);
        }
    }

    if (st) {
        ngx_http_llm_admin_changed(admin);
    }

    ngx_http_llm_admin_unlock(admin);
}


ngx_int_t
ngx_http_llm_admin_zone(ngx_http_llm_main_conf_t *mcf,
    ngx_slab_pool_t *shpool, ngx_log_t *log)
{
    ngx_uint_t             n;
    ngx_http_llm_admin_t  *admin;

    admin = ngx_http_llm_admin_of(mcf);
    n = mcf->models.nelts;

    if (admin == NULL) {
        return NGX_OK;
    }

    admin->told = ngx_slab_calloc(shpool, n * sizeof(ngx_atomic_t));
    admin->saved = ngx_slab_calloc(shpool, n * sizeof(llm_override_t));
    admin->saved_names = ngx_slab_calloc(shpool,
                                         n * sizeof(llm_admin_name_t));

    if (admin->told == NULL || admin->saved == NULL
        || admin->saved_names == NULL)
    {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "no shared memory for \"llm_admin\"");
        return NGX_ERROR;
    }

    ngx_http_llm_admin_apply(mcf, log);

    return NGX_OK;
}


void
ngx_http_llm_admin_renamed(ngx_http_llm_main_conf_t *mcf, ngx_uint_t model)
{
    ngx_http_llm_admin_t  *admin;

    admin = ngx_http_llm_admin_of(mcf);

    if (admin) {
        admin->known[model].name = mcf->api_models[model].name;
    }
}


/* a new zone begins with what was kept; a worker looks again whether there was
   more since */

static void
ngx_http_llm_admin_apply(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log)
{
    ngx_uint_t                i;
    llm_override_t            o;
    ngx_http_llm_admin_t     *admin;
    const llm_admin_model_t  *m;

    admin = ngx_http_llm_admin_of(mcf);

    if (admin->applied == admin->sh->version + 1) {
        return;
    }

    admin->applied = admin->sh->version + 1;

    for (i = 0; i < mcf->models.nelts - mcf->nadded; i++) {
        ngx_memzero(&o, sizeof(llm_override_t));

        ngx_http_llm_admin_lock(admin);

        m = llm_admin_find_model(ngx_http_llm_admin_state(admin),
                                 admin->known[i].name);
        if (m && m->o.added) {
            m = NULL;
        }

        if (m) {
            o = m->o;
        }

        admin->saved[i] = o;

        ngx_http_llm_admin_unlock(admin);

        if (m) {
            ngx_http_llm_admin_locate(mcf, i, &o, log);
            llm_zone_set_override(mcf->zone, i, &o);
            admin->told[i] = o.number;
        }
    }

    ngx_http_llm_admin_add_again(mcf, log);
}


/* a file that cannot be used any more is as if it had not been named */

static void
ngx_http_llm_admin_locate(ngx_http_llm_main_conf_t *mcf, ngx_uint_t i,
    llm_override_t *o, ngx_log_t *log)
{
    llm_err_t              err;
    llm_override_t         named;
    ngx_http_llm_model_t  *model;

    if (o->file[0] == '\0') {
        return;
    }

    named = *o;

    if (ngx_http_llm_admin_resolve(mcf, i, named.file, o->file, &err)
        == LLM_OK)
    {
        return;
    }

    o->file[0] = '\0';
    model = mcf->models.elts;

    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "model \"%V\" begins with the configuration's file, not "
                  "with \"%s\" of \"llm_admin\": %s",
                  &model[i].name, named.file, err.msg);
}


/* ---- worker 0 ---- */

void
ngx_http_llm_init_admin(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log)
{
    ngx_http_llm_admin_t  *admin;

    admin = ngx_http_llm_admin_of(mcf);

    if (admin == NULL) {
        return;
    }

    if (llm_zone_epoch(mcf->zone) == 0) {
        ngx_http_llm_admin_apply(mcf, log);
        ngx_http_llm_admin_drop(mcf);
    }

    admin->timer.handler = ngx_http_llm_admin_timer;
    admin->timer.data = mcf->worker->conn;
    admin->timer.log = log;
    admin->timer.cancelable = 1;

    ngx_add_timer(&admin->timer, NGX_HTTP_LLM_ADMIN_LOOK);
}


/* the tasks' threads have ended */

void
ngx_http_llm_stop_admin(ngx_http_llm_main_conf_t *mcf)
{
    llm_err_t              err;
    ngx_http_llm_admin_t  *admin;

    admin = ngx_http_llm_admin_of(mcf);

    if (admin == NULL || admin->timer.handler == NULL) {
        return;
    }

    if (admin->timer.timer_set) {
        ngx_del_timer(&admin->timer);
    }

    ngx_http_llm_admin_tell_all(mcf, mcf->cycle->log);

    if (ngx_http_llm_admin_is_latest(mcf)
        && !ngx_http_llm_admin_is_saved(admin, admin->sh->version)
        && ngx_http_llm_admin_save_state(admin, mcf->cycle->log, &err)
           != LLM_OK)
    {
        ngx_log_error(NGX_LOG_ERR, mcf->cycle->log, 0, "%s", err.msg);
    }
}


/* what no request waits for: the end of a command, a file that could not be
   written */

static void
ngx_http_llm_admin_timer(ngx_event_t *ev)
{
    ngx_int_t                  rc;
    ngx_http_llm_admin_t      *admin;
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_llm_event_conf(ev);
    admin = ngx_http_llm_admin_of(mcf);

    ngx_http_llm_admin_keep(mcf);
    ngx_http_llm_admin_tell_all(mcf, ev->log);

    if (!admin->saving && ngx_http_llm_admin_is_latest(mcf)
        && (admin->tried == 0 || ngx_current_msec - admin->tried
                                 >= NGX_HTTP_LLM_ADMIN_AGAIN))
    {
        rc = ngx_http_llm_admin_save(mcf, NULL, ngx_http_llm_admin_saved,
                                     ev->log);

        admin->saving = (rc == NGX_OK);
        admin->tried = (rc == NGX_ERROR) ? ngx_current_msec : admin->tried;
    }

    ngx_add_timer(ev, NGX_HTTP_LLM_ADMIN_LOOK);
}


static void
ngx_http_llm_admin_saved(ngx_http_llm_admin_job_t *job)
{
    ngx_http_llm_admin_t  *admin;

    admin = ngx_http_llm_admin_of(job->main);
    admin->saving = 0;

    if (job->rc == LLM_OK) {
        admin->tried = 0;
        return;
    }

    if (admin->tried == 0) {
        ngx_log_error(NGX_LOG_ERR, job->main->cycle->log, 0, "%s",
                      job->err.msg);
    }

    admin->tried = ngx_current_msec;
}


/* how commands ended */

static void
ngx_http_llm_admin_tell_all(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log)
{
    ngx_uint_t            i;
    llm_command_status_t  st;

    for (i = 0; i < mcf->models.nelts; i++) {
        llm_zone_command(mcf->zone, i, &st);
        ngx_http_llm_admin_tell(mcf, i, &st, 0, log);
    }
}


/* is this worker the one that tells of the command?  Numbers have 32 bits, and
   begin anew */

static ngx_uint_t
ngx_http_llm_admin_is_untold(ngx_http_llm_main_conf_t *mcf, ngx_uint_t model,
    uint64_t number)
{
    ngx_atomic_t       *last;
    ngx_atomic_uint_t   told;

    last = &ngx_http_llm_admin_of(mcf)->told[model];

    do {
        told = *last;

        if ((int32_t) ((uint32_t) number - (uint32_t) told) <= 0) {
            return 0;
        }

    } while (!ngx_atomic_cmp_set(last, told,
                                 (ngx_atomic_uint_t) number));

    return 1;
}


void
ngx_http_llm_admin_tell(ngx_http_llm_main_conf_t *mcf, ngx_uint_t model,
    const llm_command_status_t *st, uint64_t other, ngx_log_t *log)
{
    ngx_str_t              name;
    ngx_http_llm_model_t  *m;

    if (st->kind == LLM_COMMAND_NONE
        || (st->state < LLM_COMMAND_DONE && other == 0)
        || !ngx_http_llm_admin_is_untold(mcf, model, st->number))
    {
        return;
    }

    m = mcf->models.elts;
    name = m[model].name;

    if (st->name[0]) {
        name.data = (u_char *) st->name;
        name.len = ngx_strlen(st->name);
    }

    if (st->state < LLM_COMMAND_DONE) {
        ngx_log_error(NGX_LOG_NOTICE, log, 0,
                      "llm_admin: action %uL, %s of \"%V\": action %uL has "
                      "taken its place",
                      st->number, llm_admin_kind(st->kind), &name, other);
        return;
    }

    ngx_log_error(NGX_LOG_NOTICE, log, 0,
                  "llm_admin: action %uL, %s of \"%V\": %s%s%s",
                  st->number, llm_admin_kind(st->kind), &name,
                  st->state == LLM_COMMAND_DONE ? "done" : "failed",
                  st->reason[0] ? ": " : "", st->reason);
}
