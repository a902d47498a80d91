/*
 * How a new zone of the engine gets the models' states that llm_admin has kept.
 */

#include "http/admin/ngx_http_llm_admin.h"
#include "http/conf/ngx_http_llm_alias.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"


static void ngx_http_llm_admin_locate(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t i, llm_override_t *o, ngx_log_t *log);
static void ngx_http_llm_admin_add_again(ngx_http_llm_main_conf_t *mcf,
    ngx_log_t *log);
static void ngx_http_llm_admin_add_one(ngx_http_llm_main_conf_t *mcf,
    const llm_admin_model_t *m, ngx_log_t *log);


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


/* called for a new zone, and again by a worker, for changes since then */

void
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


/* writes the file's path to o->file; a file that cannot be used any more is
   logged, and the configuration's is used */

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

    if (ngx_http_llm_admin_resolve(mcf, i, named.file, o->file, NULL, &err)
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


ngx_int_t
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


static void
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

    /* models that were removed since the last call */

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


/* Finds the path of an added model's file.  If the file is missing or broken,
   the model stays, and loading it fails; the engine tries again.  NGX_ERROR:
   the model is dropped. */

static ngx_int_t
ngx_http_llm_admin_added_file(ngx_http_llm_main_conf_t *mcf, ngx_uint_t i,
    ngx_str_t *name, const char *file, char *path, ngx_log_t *log)
{
    llm_err_t  err;

    *path = '\0';

    if (*file
        && ngx_http_llm_admin_resolve(mcf, i, file, path, NULL, &err)
           == LLM_OK)
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
                          "model \"%V\" of \"llm_admin\" is dropped: its "
                          "model \"%V\" has the same name", &name,
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
