/*
 * PUT and DELETE models/NAME of llm_admin: models under new names, and their
 * end.  They have the places of new= (ngx_http_llm_added.c).
 *
 * - A name is given, and its file with it, under llm_admin's lock; a LOAD
 *   follows.  From then on it is a model as any other one: what it is told,
 *   where it is kept, a worker that dies, are as for those.
 * - REMOVE is an UNLOAD after which the engine takes the name.
 */

#include "http/admin/ngx_http_llm_admin.h"
#include "http/conf/ngx_http_llm_alias.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/observe/ngx_http_llm_metrics.h"


static ngx_int_t ngx_http_llm_admin_give(ngx_http_llm_admin_request_t *a,
    const char *name, const char *file, llm_err_t *err);
static ngx_int_t ngx_http_llm_admin_vacant(ngx_http_llm_main_conf_t *mcf);
static void ngx_http_llm_admin_add_one(ngx_http_llm_main_conf_t *mcf,
    const llm_admin_model_t *m, ngx_log_t *log);


/* ---- PUT ---- */

void
ngx_http_llm_admin_put_model(ngx_http_llm_admin_request_t *a)
{
    llm_err_t                  err;
    ngx_http_llm_main_conf_t  *mcf;

    mcf = a->main;
    a->kind = LLM_COMMAND_LOAD;

    if (a->model >= 0
        && (ngx_uint_t) a->model < mcf->models.nelts - mcf->nadded)
    {
        llm_fail_with(&err, 409, "model_exists", NULL,
                      "The model '%.*s' is the configuration's: load its "
                      "file.", (int) ngx_min(a->to.name.len, 128),
                      a->to.name.data);

    } else if (mcf->nadded == 0) {
        llm_fail_with(&err, 404, "not_found", NULL,
                      "No model can be added: \"llm_admin\" has no new= "
                      "here.");

    } else if (a->model < 0
               && llm_admin_check_new_name(a->to.name, &err) != LLM_OK)
    {
        /* void */

    } else if (!a->body.given || a->body.null) {
        llm_fail_with(&err, 400, "missing_required_parameter", "file",
                      "'file' is required: the model's file, below the "
                      "folder of models=.");

    } else {
        ngx_http_llm_admin_find_file(a);
        return;
    }

    ngx_http_llm_admin_fail(a, &err);
}


void
ngx_http_llm_admin_add_model(ngx_http_llm_admin_request_t *a,
    const char *file)
{
    char       name[LLM_NAME_TEXT];
    llm_err_t  err;

    ngx_memzero(name, sizeof(name));
    ngx_memcpy(name, a->to.name.data, a->to.name.len);

    ngx_http_llm_admin_lock(a->admin);

    if (ngx_http_llm_admin_give(a, name, file, &err) != NGX_OK) {
        ngx_http_llm_admin_unlock(a->admin);
        ngx_http_llm_admin_fail(a, &err);
        return;
    }

    ngx_http_llm_admin_unlock(a->admin);

    /* if that fails there is a model that is stopped: somebody else may have
       it loaded by now */

    (void) ngx_http_llm_admin_send(a, NULL, file);
}


/* is it a name of something?  Under the lock; err says of what */

static ngx_int_t
ngx_http_llm_admin_is_free(ngx_http_llm_admin_request_t *a, llm_err_t *err)
{
    ngx_str_t               name;
    ngx_uint_t              i;
    ngx_http_llm_alias_t  **alias;

    name.data = (u_char *) a->to.name.data;
    name.len = a->to.name.len;

    if (ngx_http_llm_pinned(a->main, &name) >= 0) {
        llm_fail_with(err, 409, "model_exists", NULL,
                      "'%.*s' is a name of a model already.",
                      (int) ngx_min(name.len, 128), name.data);
        return NGX_BUSY;
    }

    alias = a->main->aliases.elts;

    for (i = 0; i < a->main->aliases.nelts; i++) {
        if (ngx_http_llm_same_name(&alias[i]->name, &name)) {
            break;
        }
    }

    if (i < a->main->aliases.nelts
        || llm_admin_find_alias(ngx_http_llm_admin_state(a->admin),
                                a->to.name))
    {
        llm_fail_with(err, 409, "model_exists", NULL,
                      "'%.*s' is an alias.", (int) ngx_min(name.len, 128),
                      name.data);
        return NGX_BUSY;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_llm_admin_give(ngx_http_llm_admin_request_t *a, const char *name,
    const char *file, llm_err_t *err)
{
    ngx_http_llm_main_conf_t  *mcf;

    mcf = a->main;

    /* the next configuration's engine may not hear of it any more */

    if (ngx_exiting || llm_zone_epoch(mcf->zone) == 0
        || !llm_zone_alive(mcf->zone)
        || llm_zone_replaced(mcf->zone, mcf->engines->data))
    {
        llm_fail_with(err, 503, "engine_restarting", NULL,
                      "The engine is restarting, try again soon.");
        return NGX_ERROR;
    }

    ngx_http_llm_refresh_models(mcf);

    if (ngx_http_llm_admin_is_free(a, err) != NGX_OK) {
        return NGX_ERROR;
    }

    a->model = ngx_http_llm_admin_vacant(mcf);

    if (a->model < 0) {
        llm_fail_with(err, 409, "no_place", NULL,
                      "All %u places for new models are taken: remove one.",
                      (unsigned) mcf->nadded);
        return NGX_ERROR;
    }

    llm_zone_give_name(mcf->zone, a->model, name, file);
    ngx_http_llm_refresh_models(mcf);
    ngx_http_llm_name_figures(mcf, a->model);

    a->naming = mcf->api_models[a->model].naming;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llm_admin_vacant(ngx_http_llm_main_conf_t *mcf)
{
    ngx_uint_t  i;

    for (i = mcf->models.nelts - mcf->nadded; i < mcf->models.nelts; i++) {
        if (llm_zone_naming(mcf->zone, i) == 0) {
            return i;
        }
    }

    return -1;
}


/* ---- DELETE ---- */

void
ngx_http_llm_admin_delete_model(ngx_http_llm_admin_request_t *a)
{
    llm_err_t  err;

    a->kind = LLM_COMMAND_REMOVE;

    if ((ngx_uint_t) a->model < a->main->models.nelts - a->main->nadded) {
        llm_fail_with(&err, 409, "model_is_configured", NULL,
                      "The model '%.*s' is the configuration's: it can be "
                      "unloaded, not removed.",
                      (int) ngx_min(a->to.name.len, 128), a->to.name.data);
        ngx_http_llm_admin_fail(a, &err);
        return;
    }

    (void) ngx_http_llm_admin_send(a, NULL, NULL);
}


/* ---- the next configuration, and the next start ---- */

static ngx_int_t
ngx_http_llm_admin_find_added(ngx_http_llm_main_conf_t *mcf, llm_str_t name)
{
    ngx_uint_t  i;

    for (i = mcf->models.nelts - mcf->nadded; i < mcf->models.nelts; i++) {
        if (llm_str_eq(mcf->api_models[i].name, name)) {
            return i;
        }
    }

    return -1;
}


void
ngx_http_llm_admin_add_again(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log)
{
    ngx_uint_t                i;
    llm_admin_state_t        *st;
    const llm_admin_model_t  *m;

    st = ngx_alloc(sizeof(llm_admin_state_t), log);
    if (st == NULL) {
        return;
    }

    ngx_http_llm_admin_lock(ngx_http_llm_admin_of(mcf));
    *st = *ngx_http_llm_admin_state(ngx_http_llm_admin_of(mcf));
    ngx_http_llm_admin_unlock(ngx_http_llm_admin_of(mcf));

    ngx_http_llm_refresh_models(mcf);

    /* removed, since this was done the last time */

    for (i = mcf->models.nelts - mcf->nadded; i < mcf->models.nelts; i++) {

        if (mcf->api_models[i].naming == 0) {
            continue;
        }

        m = llm_admin_find_model(st, mcf->api_models[i].name);

        if (m == NULL || !m->o.added) {
            llm_zone_take_name(mcf->zone, i);
        }
    }

    ngx_http_llm_refresh_models(mcf);

    for (i = 0; i < st->n_models; i++) {
        if (st->models[i].o.added) {
            ngx_http_llm_admin_add_one(mcf, &st->models[i], log);
        }
    }

    ngx_free(st);
}


/* Where the file is that the model has had.  One that is not there now, or is
   broken, is one that cannot be loaded: the engine tries again. */

static ngx_int_t
ngx_http_llm_admin_added_file(ngx_http_llm_main_conf_t *mcf, ngx_uint_t i,
    ngx_str_t *name, const char *file, char *path, ngx_log_t *log)
{
    llm_err_t  err;

    *path = '\0';

    if (*file
        && ngx_http_llm_admin_resolve(mcf, i, file, path, &err) == LLM_OK)
    {
        return NGX_OK;
    }

    if (*file == '\0') {
        llm_fail(&err, "it has no file");

    } else if (ngx_strcmp(err.code, "file_not_found") == 0) {
        (void) ngx_snprintf((u_char *) path, LLM_MAX_FILE, "%V/%s%Z",
                            &ngx_http_llm_admin_of(mcf)->models, file);
        path[LLM_MAX_FILE - 1] = '\0';

    } else if (ngx_strcmp(err.code, "unusable_model") != 0) {
        *path = '\0';
    }

    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "model \"%V\" of \"llm_admin\" with \"%s\" %s: %s", name,
                  file, *path ? "cannot be loaded" : "is dropped", err.msg);

    return *path ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_llm_admin_add_one(ngx_http_llm_main_conf_t *mcf,
    const llm_admin_model_t *m, ngx_log_t *log)
{
    char                    text[LLM_NAME_TEXT];
    ngx_int_t               i, other;
    ngx_str_t               name;
    ngx_uint_t              k;
    llm_override_t          o;
    ngx_http_llm_alias_t  **alias;
    ngx_http_llm_model_t   *model;

    name.data = (u_char *) m->name.data;
    name.len = m->name.len;

    i = ngx_http_llm_admin_find_added(mcf, llm_admin_str(&m->name));

    if (i < 0) {
        alias = mcf->aliases.elts;

        for (k = 0; k < mcf->aliases.nelts; k++) {
            if (ngx_http_llm_same_name(&alias[k]->name, &name)) {
                break;
            }
        }

        other = ngx_http_llm_pinned(mcf, &name);

        if (other >= (ngx_int_t) (mcf->models.nelts - mcf->nadded)) {
            model = mcf->models.elts;
            ngx_log_error(NGX_LOG_WARN, log, 0,
                          "model \"%V\" of \"llm_admin\" is dropped: it has "
                          "\"%V\", which is the same name", &name,
                          &model[other].name);
            return;
        }

        if (k < mcf->aliases.nelts || other >= 0) {
            ngx_log_error(NGX_LOG_WARN, log, 0,
                          "model \"%V\" of \"llm_admin\" is dropped: the "
                          "configuration has this name", &name);
            return;
        }

        i = ngx_http_llm_admin_vacant(mcf);

        if (i < 0) {
            ngx_log_error(NGX_LOG_WARN, log, 0,
                          "model \"%V\" of \"llm_admin\" is dropped: there "
                          "are only %ui places for new models", &name,
                          mcf->nadded);
            return;
        }
    }

    o = m->o;

    if (ngx_http_llm_admin_added_file(mcf, i, &name, m->o.file, o.file, log)
        != NGX_OK)
    {
        return;
    }

    if (llm_zone_naming(mcf->zone, i) == 0) {
        ngx_memzero(text, sizeof(text));
        ngx_memcpy(text, name.data, name.len);

        llm_zone_give_name(mcf->zone, i, text, o.file);
        ngx_http_llm_refresh_models(mcf);
    }

    llm_zone_set_override(mcf->zone, i, &o);

    ngx_http_llm_admin_of(mcf)->told[i] = o.number;
    ngx_http_llm_admin_of(mcf)->saved[i] = m->o;
    ngx_http_llm_admin_of(mcf)->saved_names[i] = m->name;
}


void
ngx_http_llm_admin_drop(ngx_http_llm_main_conf_t *mcf)
{
    uint32_t            i, n;
    llm_admin_name_t    name;
    llm_admin_state_t  *st;

    ngx_http_llm_admin_lock(ngx_http_llm_admin_of(mcf));

    st = ngx_http_llm_admin_change(ngx_http_llm_admin_of(mcf));
    n = st->n_models;

    for (i = n; i > 0; i--) {
        name = st->models[i - 1].name;

        if (st->models[i - 1].o.added
            && ngx_http_llm_admin_find_added(mcf, llm_admin_str(&name)) < 0)
        {
            llm_admin_forget_model(st, llm_admin_str(&name));
        }
    }

    if (st->n_models != n) {
        ngx_http_llm_admin_changed(ngx_http_llm_admin_of(mcf));
    }

    ngx_http_llm_admin_unlock(ngx_http_llm_admin_of(mcf));
}
