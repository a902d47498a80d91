/*
 * Aliases that llm_admin has set.  Such an alias stands for one model, in all
 * locations that have the model, and replaces a llm_alias of the same name.
 *
 * A location whose llm_alias has an empty value without variables does not have
 * the alias here either.  A model's own name always means that model.
 */

#include "http/admin/ngx_http_llm_admin.h"
#include "http/conf/ngx_http_llm_alias.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"


static ngx_uint_t ngx_http_llm_admin_view(ngx_http_llm_admin_request_t *a,
    const llm_admin_state_t *st, ngx_str_t *name, llm_admin_view_t *v);
static ngx_int_t ngx_http_llm_admin_target(ngx_http_llm_admin_request_t *a,
    llm_str_t *model, llm_err_t *err);
static ngx_int_t ngx_http_llm_admin_set(ngx_http_llm_admin_request_t *a,
    llm_str_t model, llm_err_t *err);
static void ngx_http_llm_admin_alias_saved(ngx_http_llm_admin_job_t *job);
static void ngx_http_llm_admin_answer_alias(ngx_http_llm_admin_request_t *a,
    int saved);


/* ---- for requests to llm_api ---- */

ngx_int_t
ngx_http_llm_admin_aliases(ngx_http_llm_main_conf_t *mcf, ngx_pool_t *pool,
    llm_admin_alias_t **list, ngx_uint_t *n)
{
    ngx_http_llm_admin_t     *admin;
    const llm_admin_state_t  *st;

    *n = 0;
    admin = ngx_http_llm_admin_of(mcf);

    if (admin == NULL) {
        return NGX_OK;
    }

    /* read without the lock: an alias that is being set may be missed */

    *n = ngx_http_llm_admin_state(admin)->n_aliases;

    if (*n == 0) {
        return NGX_OK;
    }

    *list = ngx_palloc(pool, *n * sizeof(llm_admin_alias_t));
    if (*list == NULL) {
        return NGX_ERROR;
    }

    ngx_http_llm_admin_lock(admin);

    st = ngx_http_llm_admin_state(admin);
    *n = ngx_min(*n, st->n_aliases);
    ngx_memcpy(*list, st->aliases, *n * sizeof(llm_admin_alias_t));

    ngx_http_llm_admin_unlock(admin);

    return NGX_OK;
}


/* ---- showing aliases ---- */

/* a copy of the state in r->pool; NULL: no memory */

static llm_admin_state_t *
ngx_http_llm_admin_copy(ngx_http_llm_admin_request_t *a)
{
    llm_admin_state_t  *st;

    st = ngx_palloc(a->request->pool, sizeof(llm_admin_state_t));

    if (st) {
        ngx_http_llm_admin_lock(a->admin);
        *st = *ngx_http_llm_admin_state(a->admin);
        ngx_http_llm_admin_unlock(a->admin);
    }

    return st;
}


/* 0: there is no such alias; v->rules has room for all rules of the
   configuration */

static ngx_uint_t
ngx_http_llm_admin_view(ngx_http_llm_admin_request_t *a,
    const llm_admin_state_t *st, ngx_str_t *name, llm_admin_view_t *v)
{
    llm_str_t                *rule;
    ngx_uint_t                i;
    ngx_http_llm_alias_t    **alias;
    const llm_admin_alias_t  *set;

    rule = (llm_str_t *) v->rules;
    alias = a->main->aliases.elts;

    v->name.data = (char *) name->data;
    v->name.len = name->len;
    v->n_rules = 0;

    for (i = 0; i < a->main->aliases.nelts; i++) {
        if (ngx_http_llm_same_name(&alias[i]->name, name)) {
            rule[v->n_rules].data = (char *) alias[i]->text.data;
            rule[v->n_rules++].len = alias[i]->text.len;
        }
    }

    set = llm_admin_find_alias(st, v->name);
    v->model = set ? llm_admin_str(&set->model) : llm_str("");

    return v->n_rules || set;
}


static ngx_int_t
ngx_http_llm_admin_init_view(ngx_http_llm_admin_request_t *a,
    llm_admin_view_t *v)
{
    ngx_memzero(v, sizeof(llm_admin_view_t));

    v->rules = ngx_palloc(a->request->pool,
                          (a->main->aliases.nelts + 1) * sizeof(llm_str_t));

    return v->rules ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_llm_admin_show_alias(ngx_http_llm_admin_request_t *a,
    llm_buf_t *out, llm_err_t *err)
{
    ngx_str_t           name;
    llm_admin_view_t    v;
    llm_admin_state_t  *st;

    st = ngx_http_llm_admin_copy(a);

    if (st == NULL || ngx_http_llm_admin_init_view(a, &v) != NGX_OK) {
        llm_fail(err, "No memory is left for this answer.");
        return NGX_ERROR;
    }

    name.data = (u_char *) a->to.name.data;
    name.len = a->to.name.len;

    if (!ngx_http_llm_admin_view(a, st, &name, &v)) {
        llm_fail_with(err, 404, "alias_not_found", NULL,
                      "There is no alias '%.*s'.",
                      (int) ngx_min(name.len, 128), name.data);
        return NGX_ERROR;
    }

    llm_admin_add_alias(out, &v);

    return NGX_OK;
}


/* the aliases of the configuration, each name once, then those that only
   llm_admin has */

ngx_int_t
ngx_http_llm_admin_show_aliases(ngx_http_llm_admin_request_t *a,
    llm_buf_t *out)
{
    ngx_str_t               name;
    ngx_uint_t              i, k, n;
    llm_admin_view_t        v;
    llm_admin_state_t      *st;
    ngx_http_llm_alias_t  **alias;

    st = ngx_http_llm_admin_copy(a);

    if (st == NULL || ngx_http_llm_admin_init_view(a, &v) != NGX_OK) {
        return NGX_ERROR;
    }

    alias = a->main->aliases.elts;
    n = a->main->aliases.nelts;

    llm_admin_begin_list(out);

    for (i = 0; i < n + st->n_aliases; i++) {

        if (i < n) {
            name = alias[i]->name;

        } else {
            name.data = (u_char *) st->aliases[i - n].name.data;
            name.len = st->aliases[i - n].name.len;
        }

        for (k = 0; k < ngx_min(i, n); k++) {
            if (ngx_http_llm_same_name(&alias[k]->name, &name)) {
                break;
            }
        }

        if (k < ngx_min(i, n)) {
            continue;
        }

        (void) ngx_http_llm_admin_view(a, st, &name, &v);
        llm_admin_add_alias(out, &v);
    }

    llm_admin_end_list(out);

    return NGX_OK;
}


/* ---- setting aliases ---- */

void
ngx_http_llm_admin_put_alias(ngx_http_llm_admin_request_t *a)
{
    ngx_int_t            rc;
    ngx_str_t            to;
    llm_err_t            err;
    llm_str_t            model;
    ngx_http_request_t  *r;

    r = a->request;

    if (ngx_http_llm_admin_target(a, &model, &err) != NGX_OK
        || ngx_http_llm_admin_set(a, model, &err) != NGX_OK)
    {
        ngx_http_llm_admin_fail(a, &err);
        return;
    }

    to.data = (u_char *) model.data;
    to.len = model.len;

    ngx_http_llm_admin_audit(a, &to, "done");

    rc = ngx_http_llm_admin_save(a->main, a, ngx_http_llm_admin_alias_saved,
                                 r->connection->log);

    if (rc != NGX_OK) {
        ngx_http_llm_admin_answer_alias(a, rc == NGX_ERROR ? 0
                                           : a->admin->state.len ? 1 : -1);
    }
}


/* is the alias's name that of a model?  Then err says so */

static ngx_uint_t
ngx_http_llm_admin_is_model(ngx_http_llm_admin_request_t *a, llm_err_t *err)
{
    ngx_int_t              i;
    ngx_str_t              name;
    ngx_http_llm_model_t  *m;

    ngx_http_llm_refresh_models(a->main);

    m = a->main->models.elts;
    name.data = (u_char *) a->to.name.data;
    name.len = a->to.name.len;

    i = ngx_http_llm_pinned(a->main, &name);

    if (i < 0) {
        return 0;
    }

    llm_fail_with(err, 409, "alias_is_model", NULL,
                  "'%.*s' is a name of the model '%.*s': no alias can have "
                  "it.", (int) name.len, name.data,
                  (int) ngx_min(m[i].name.len, 128), m[i].name.data);

    return 1;
}


/* the model that the alias will stand for; empty: the alias is removed */

static ngx_int_t
ngx_http_llm_admin_target(ngx_http_llm_admin_request_t *a, llm_str_t *model,
    llm_err_t *err)
{
    ngx_str_t  name;

    *model = llm_str("");

    if (llm_admin_check_name(a->to.name, err) != LLM_OK
        || ngx_http_llm_admin_is_model(a, err))
    {
        return NGX_ERROR;
    }

    if (a->request->method == NGX_HTTP_DELETE || a->body.null) {
        return NGX_OK;
    }

    if (!a->body.given) {
        llm_fail_with(err, 400, "missing_required_parameter", "model",
                      "'model' is required: the model of the alias.");
        return NGX_ERROR;
    }

    name.data = (u_char *) a->body.value.data;
    name.len = a->body.value.len;

    if (ngx_http_llm_find_model(a->main, &name) < 0) {
        llm_fail_with(err, 404, "model_not_found", "model",
                      "There is no model '%.*s'.",
                      (int) ngx_min(name.len, 128), name.data);
        return NGX_ERROR;
    }

    *model = a->body.value;

    return NGX_OK;
}


/* sets the alias; a->from gets its previous model */

static ngx_int_t
ngx_http_llm_admin_set(ngx_http_llm_admin_request_t *a, llm_str_t model,
    llm_err_t *err)
{
    int                       rc;
    u_char                   *p;
    llm_admin_state_t        *st;
    const llm_admin_alias_t  *old;

    p = ngx_pnalloc(a->request->pool, LLM_ADMIN_NAME);
    if (p == NULL) {
        llm_fail(err, "No memory is left for this request.");
        return NGX_ERROR;
    }

    a->from.data = p;

    ngx_http_llm_admin_lock(a->admin);

    /* the name may be that of a model that was added meanwhile */

    if (model.len && ngx_http_llm_admin_is_model(a, err)) {
        ngx_http_llm_admin_unlock(a->admin);
        return NGX_ERROR;
    }

    old = llm_admin_find_alias(ngx_http_llm_admin_state(a->admin),
                               a->to.name);

    if (old == NULL && model.len == 0) {
        ngx_http_llm_admin_unlock(a->admin);
        llm_fail_with(err, 404, "alias_not_set", NULL,
                      "The alias '%.*s' is not set here.",
                      (int) a->to.name.len, a->to.name.data);
        return NGX_ERROR;
    }

    if (old == NULL
        && llm_admin_check_new_name(a->to.name, err) != LLM_OK)
    {
        ngx_http_llm_admin_unlock(a->admin);
        return NGX_ERROR;
    }

    if (old) {
        a->from.len = old->model.len;
        ngx_memcpy(p, old->model.data, old->model.len);
    }

    st = ngx_http_llm_admin_change(a->admin);
    rc = llm_admin_set_alias(st, a->to.name, model, err);

    if (rc == LLM_OK) {
        ngx_http_llm_admin_changed(a->admin);
    }

    ngx_http_llm_admin_unlock(a->admin);

    return rc == LLM_OK ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_llm_admin_alias_saved(ngx_http_llm_admin_job_t *job)
{
    ngx_log_t  *log;

    if (job->rc != LLM_OK) {
        log = job->request ? job->request->request->connection->log
                           : job->main->cycle->log;
        ngx_log_error(NGX_LOG_ERR, log, 0, "%s", job->err.msg);
    }

    if (job->request) {
        ngx_http_llm_admin_answer_alias(job->request, job->rc == LLM_OK);
    }
}


static void
ngx_http_llm_admin_answer_alias(ngx_http_llm_admin_request_t *a, int saved)
{
    llm_buf_t           body;
    ngx_str_t           name;
    llm_admin_view_t    v;
    llm_admin_state_t  *st;

    llm_buf_init(&body, 0);

    st = ngx_http_llm_admin_copy(a);

    if (st == NULL || ngx_http_llm_admin_init_view(a, &v) != NGX_OK) {
        body.failed = 1;

    } else {
        name.data = (u_char *) a->to.name.data;
        name.len = a->to.name.len;

        (void) ngx_http_llm_admin_view(a, st, &name, &v);

        v.changed = 1;
        v.previous.data = (char *) a->from.data;
        v.previous.len = a->from.len;
        v.saved = saved;

        llm_admin_add_alias(&body, &v);
    }

    ngx_http_llm_admin_answer(a, NGX_HTTP_OK, &body);
}
