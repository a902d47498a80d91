/*
 * PUT and DELETE models/NAME of llm_admin: models are added under new names,
 * and removed.  They take the places of new= (ngx_http_llm_added.c).
 *
 * - PUT assigns a place's name and file under llm_admin's lock; a LOAD command
 *   follows.  From then on the model is like any other: commands, state and a
 *   worker that dies are handled in the same way.
 * - REMOVE is an UNLOAD after which the engine removes the name.
 */

#include "http/admin/ngx_http_llm_admin.h"
#include "http/conf/ngx_http_llm_alias.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/observe/ngx_http_llm_metrics.h"


static void ngx_http_llm_admin_add_model(ngx_http_llm_admin_request_t *a,
    const char *file);
static ngx_int_t ngx_http_llm_admin_give(ngx_http_llm_admin_request_t *a,
    const char *name, const char *file, llm_err_t *err);


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
                      "The model '%.*s' is in the configuration: use its "
                      "action load.", (int) ngx_min(a->to.name.len, 128),
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
        ngx_http_llm_admin_find_file(a, ngx_http_llm_admin_add_model);
        return;
    }

    ngx_http_llm_admin_fail(a, &err);
}


/* loads the file: in a new model, or in one that was added before */

static void
ngx_http_llm_admin_add_model(ngx_http_llm_admin_request_t *a,
    const char *file)
{
    char       name[LLM_NAME_TEXT];
    llm_err_t  err;

    if (a->model >= 0) {
        (void) ngx_http_llm_admin_send(a, file, file);
        return;
    }

    ngx_memzero(name, sizeof(name));
    ngx_memcpy(name, a->to.name.data, a->to.name.len);

    ngx_http_llm_admin_lock(a->admin);

    if (ngx_http_llm_admin_give(a, name, file, &err) != NGX_OK) {
        ngx_http_llm_admin_unlock(a->admin);
        ngx_http_llm_admin_fail(a, &err);
        return;
    }

    ngx_http_llm_admin_unlock(a->admin);

    /* if this fails the model remains, stopped: another client may have loaded
       it by now */

    (void) ngx_http_llm_admin_send(a, NULL, file);
}


/* NGX_BUSY and err: the name is taken; with the lock held */

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
                      "'%.*s' is already a name of a model.",
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

    /* the engine of the next configuration might not see a model that is added
       now */

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


/* ---- DELETE ---- */

void
ngx_http_llm_admin_delete_model(ngx_http_llm_admin_request_t *a)
{
    llm_err_t  err;

    a->kind = LLM_COMMAND_REMOVE;

    if ((ngx_uint_t) a->model < a->main->models.nelts - a->main->nadded) {
        llm_fail_with(&err, 409, "model_is_configured", NULL,
                      "The model '%.*s' is in the configuration: it can be "
                      "unloaded, but not removed.",
                      (int) ngx_min(a->to.name.len, 128), a->to.name.data);
        ngx_http_llm_admin_fail(a, &err);
        return;
    }

    (void) ngx_http_llm_admin_send(a, NULL, NULL);
}
