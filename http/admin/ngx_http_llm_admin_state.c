/*
 * The results of commands are in the engine's zone, which belongs to one
 * configuration.  Worker 0 copies them to llm_admin's memory for the engine of
 * the next configuration (ngx_http_llm_admin_begin.c), but only while its own
 * is the latest.  With state= they are also in a file, which survives nginx;
 * any worker writes it, after each change (ngx_http_llm_admin_sync.c).
 */

#include "http/admin/ngx_http_llm_admin.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/worker/ngx_http_llm_worker.h"


/* ms between looks of worker 0 at the engine's zone, and from a failure to
   write the file to the next try */
#define NGX_HTTP_LLM_ADMIN_LOOK   200
#define NGX_HTTP_LLM_ADMIN_AGAIN  5000


static void ngx_http_llm_admin_timer(ngx_event_t *ev);
static void ngx_http_llm_admin_saved(ngx_http_llm_admin_job_t *job);
static void ngx_http_llm_admin_tell_all(ngx_http_llm_main_conf_t *mcf,
    ngx_log_t *log);


static ngx_uint_t
ngx_http_llm_admin_is_latest(ngx_http_llm_main_conf_t *mcf)
{
    return !llm_zone_replaced(mcf->zone, mcf->engines->data);
}


/* the model's state in the zone; a file below the folder of models= is named
   relative to it, because the folder may move */

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


/* forgets an added model that has been removed; st: the copy that is being
   changed, or NULL; returns it */

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

        /* the place has no name, or has just got another one, which is kept at
           the next call */

        if (mcf->models.nelts - i <= mcf->nadded
            && (mcf->api_models[i].naming == 0
                || llm_zone_naming(mcf->zone, i)
                   != mcf->api_models[i].naming))
        {
            continue;
        }

        /* a change by another nginx is not undone */

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


/* writes the file in the event loop: the threads of tasks have ended */

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


/* handles what no request waits for: the end of a command, and a file that
   could not be written */

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


/* logs commands that have ended */

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


/* 1: this worker must log the command's end, and no other will.  Numbers have
   32 bits, and wrap around */

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
                      "llm_admin: action %uL, %s of \"%V\": replaced by "
                      "action %uL",
                      st->number, llm_admin_kind(st->kind), &name, other);
        return;
    }

    ngx_log_error(NGX_LOG_NOTICE, log, 0,
                  "llm_admin: action %uL, %s of \"%V\": %s%s%s",
                  st->number, llm_admin_kind(st->kind), &name,
                  st->state == LLM_COMMAND_DONE ? "done" : "failed",
                  st->reason[0] ? ": " : "", st->reason);
}
