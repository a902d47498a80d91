/*
 * Commands of llm_admin for models: they are sent to the engine, and their
 * results are read from its zone.
 *
 * An action is answered by a 202 with the URI at which its result can be read,
 * or, with ?wait=, by its result, if that comes in time.  In llama-server's
 * form the answer only says that the action was taken.
 */

#include "http/admin/ngx_http_llm_admin.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/reply/ngx_http_llm_reply.h"


/* ms between looks for a command's result */
#define NGX_HTTP_LLM_ADMIN_POLL  20


static void ngx_http_llm_admin_load_found(ngx_http_llm_admin_request_t *a,
    const char *file);
static int ngx_http_llm_admin_run_resolve(ngx_http_llm_admin_job_t *job);
static void ngx_http_llm_admin_resolved(ngx_http_llm_admin_job_t *job);
static void ngx_http_llm_admin_poll(ngx_event_t *ev);
static void ngx_http_llm_admin_look(ngx_http_llm_admin_request_t *a);
static void ngx_http_llm_admin_done(ngx_http_llm_admin_request_t *a);
static void ngx_http_llm_admin_command_saved(ngx_http_llm_admin_job_t *job);
static void ngx_http_llm_admin_show_model(ngx_http_llm_admin_request_t *a,
    ngx_uint_t status);
static ngx_int_t ngx_http_llm_admin_place(ngx_http_llm_admin_request_t *a);


void
ngx_http_llm_admin_models_conf(ngx_http_llm_main_conf_t *mcf,
    llm_admin_conf_t *conf)
{
    conf->zone = mcf->zone;
    conf->models = ngx_http_llm_admin_of(mcf)->known;
    conf->n_models = mcf->models.nelts;
    conf->dir = (char *) ngx_http_llm_admin_of(mcf)->models.data;
}


static const llm_command_kind_t  ngx_http_llm_admin_kinds[] = {
    [LLM_ADMIN_LOAD] = LLM_COMMAND_LOAD,
    [LLM_ADMIN_UNLOAD] = LLM_COMMAND_UNLOAD,
    [LLM_ADMIN_DRAIN] = LLM_COMMAND_DRAIN,
    [LLM_ADMIN_RESUME] = LLM_COMMAND_RESUME
};


void
ngx_http_llm_admin_command(ngx_http_llm_admin_request_t *a)
{
    a->kind = ngx_http_llm_admin_kinds[a->to.what];

    if (a->to.what == LLM_ADMIN_LOAD && a->body.given) {
        ngx_http_llm_admin_find_file(a, ngx_http_llm_admin_load_found);

    } else {
        (void) ngx_http_llm_admin_send(a, NULL, NULL);
    }
}


/* ---- another file ---- */

void
ngx_http_llm_admin_find_file(ngx_http_llm_admin_request_t *a,
    void (*found)(ngx_http_llm_admin_request_t *a, const char *file))
{
    llm_err_t                  err;
    ngx_log_t                 *log;
    ngx_http_llm_admin_job_t  *job;

    log = a->request->connection->log;

    if (a->body.value.len >= LLM_MAX_FILE) {
        llm_fail_with(&err, 400, "invalid_file", "file",
                      "'file' is too long.");
        ngx_http_llm_admin_fail(a, &err);
        return;
    }

    job = ngx_http_llm_admin_job(a->main, a, log);

    if (job) {
        /* all places for new models have the same parameters as the last one */

        job->model = a->model >= 0 ? (ngx_uint_t) a->model
                                   : a->main->models.nelts - 1;
        job->run = ngx_http_llm_admin_run_resolve;
        job->done = ngx_http_llm_admin_resolved;
        job->found = found;

        if (a->body.value.len) {
            ngx_memcpy(job->name, a->body.value.data, a->body.value.len);
        }

        if (ngx_http_llm_admin_run(job, log) == NGX_OK) {
            return;
        }
    }

    llm_fail_with(&err, 503, NULL, NULL,
                  "The server is too busy to look for the file.");
    ngx_http_llm_admin_fail(a, &err);
}


/* in a thread */

static int
ngx_http_llm_admin_run_resolve(ngx_http_llm_admin_job_t *job)
{
    return ngx_http_llm_admin_resolve(job->main, job->model, job->name,
                                      job->path, NULL, &job->err);
}


/* if the client has left nothing is done */

static void
ngx_http_llm_admin_resolved(ngx_http_llm_admin_job_t *job)
{
    if (job->request == NULL) {
        return;
    }

    if (job->rc != LLM_OK) {
        ngx_http_llm_admin_fail(job->request, &job->err);
        return;
    }

    job->found(job->request, job->path);
}


static void
ngx_http_llm_admin_load_found(ngx_http_llm_admin_request_t *a,
    const char *file)
{
    (void) ngx_http_llm_admin_send(a, file, file);
}


/* ---- the command ---- */

/* sets a->from, for the log: the model's file, or its state */

static ngx_int_t
ngx_http_llm_admin_before(ngx_http_llm_admin_request_t *a, const char *file)
{
    const char          *text;
    ngx_str_t            s;
    llm_admin_conf_t     conf;
    llm_model_status_t   st;

    ngx_http_llm_admin_models_conf(a->main, &conf);
    llm_zone_status(conf.zone, a->model, &st);

    text = llm_model_state_word(&st);

    if (file) {
        text = llm_admin_below(conf.dir, st.file[0] ? st.file
                                         : conf.models[a->model].path);
    }

    s.data = (u_char *) text;
    s.len = ngx_strlen(text);

    a->from.data = ngx_pstrdup(a->request->pool, &s);
    a->from.len = a->from.data ? s.len : 0;

    return a->from.data ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_llm_admin_send(ngx_http_llm_admin_request_t *a, const char *file,
    const char *shown)
{
    char                   text[NGX_INT64_LEN + 32];
    ngx_log_t             *log;
    ngx_str_t              to;
    llm_err_t              err;
    llm_command_t          cmd;
    llm_command_status_t   last;

    cmd.model = a->model;
    cmd.kind = a->kind;
    cmd.file = file;
    cmd.timeout_ms = a->timeout;
    cmd.naming = a->naming;

    /* a new model has no previous state */

    if ((file || shown == NULL)
        && ngx_http_llm_admin_before(a, file) != NGX_OK)
    {
        llm_fail(&err, "No memory is left for this request.");
        ngx_http_llm_admin_fail(a, &err);
        return NGX_ERROR;
    }

    /* the new command replaces the last one's result in the zone, so that is
       logged first; for this request it does not matter */

    log = a->main->cycle->log;

    llm_zone_command(a->main->zone, a->model, &last);
    ngx_http_llm_admin_tell(a->main, a->model, &last, 0, log);

    if (llm_client_command(a->main->worker->client, &cmd, &a->number, &err)
        != LLM_OK)
    {
        ngx_http_llm_admin_fail(a, &err);
        return NGX_ERROR;
    }

    ngx_http_llm_admin_tell(a->main, a->model, &last, a->number, log);

    to.data = (u_char *) (shown ? llm_admin_below(
                                      (char *) a->admin->models.data, shown)
                                : "");
    to.len = ngx_strlen(to.data);

    (void) ngx_snprintf((u_char *) text, sizeof(text), "accepted, action %uL%Z",
                        a->number);
    ngx_http_llm_admin_audit(a, &to, text);

    if (a->wait == 0) {
        ngx_http_llm_admin_show_model(a, NGX_HTTP_ACCEPTED);
        return NGX_OK;
    }

    a->until = ngx_current_msec + a->wait;
    ngx_http_llm_admin_wait(a, ngx_http_llm_admin_poll,
                            NGX_HTTP_LLM_ADMIN_POLL);

    return NGX_OK;
}


/* ---- its result ---- */

static void
ngx_http_llm_admin_poll(ngx_event_t *ev)
{
    ngx_connection_t              *c;
    ngx_http_llm_admin_request_t  *a;

    a = ev->data;
    c = a->request->connection;

    ngx_http_set_log_request(c->log, a->request);
    ngx_http_llm_admin_look(a);
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_llm_admin_look(ngx_http_llm_admin_request_t *a)
{
    llm_err_t             err;
    llm_command_status_t  st;

    llm_zone_command(a->main->zone, a->model, &st);

    if (a->kind == LLM_COMMAND_REMOVE
        && llm_zone_naming(a->main->zone, a->model) != a->naming)
    {
        ngx_http_llm_admin_done(a);
        return;
    }

    if (st.number != a->number) {
        llm_fail_with(&err, 409, "command_replaced", NULL,
                      "A later command for this model has replaced this one.");

    } else if (st.state == LLM_COMMAND_FAILED) {
        llm_fail_with(&err, st.status ? st.status : 500, st.code, NULL, "%s",
                      st.reason);

    } else if (st.state == LLM_COMMAND_DONE
               && a->kind != LLM_COMMAND_REMOVE)
    {
        ngx_http_llm_admin_done(a);
        return;

    } else if (ngx_exiting
               || (ngx_msec_int_t) (a->until - ngx_current_msec) <= 0)
    {
        ngx_http_llm_admin_show_model(a, NGX_HTTP_ACCEPTED);
        return;

    } else {
        ngx_add_timer(&a->timer, NGX_HTTP_LLM_ADMIN_POLL);
        return;
    }

    ngx_http_finalize_request(a->request,
                              ngx_http_llm_send_error(a->request, &err,
                                                      err.status == 503));
}


/* answers after the state's file was written, if there is one */

static void
ngx_http_llm_admin_done(ngx_http_llm_admin_request_t *a)
{
    ngx_http_llm_admin_keep(a->main);

    if (ngx_http_llm_admin_save(a->main, a, ngx_http_llm_admin_command_saved,
                                a->request->connection->log)
        != NGX_OK)
    {
        ngx_http_llm_admin_show_model(a, NGX_HTTP_OK);
    }
}


/* if the file could not be written, worker 0 logs that and tries again */

static void
ngx_http_llm_admin_command_saved(ngx_http_llm_admin_job_t *job)
{
    if (job->request) {
        ngx_http_llm_admin_show_model(job->request, NGX_HTTP_OK);
    }
}


static void
ngx_http_llm_admin_show_model(ngx_http_llm_admin_request_t *a,
    ngx_uint_t status)
{
    llm_buf_t         body;
    llm_admin_conf_t  conf;

    llm_buf_init(&body, 0);

    if (a->router) {
        (void) llm_buf_adds(&body, "{\"success\":true}");
        ngx_http_llm_admin_answer(a, NGX_HTTP_OK, &body);
        return;
    }

    if (a->kind == LLM_COMMAND_REMOVE && status == NGX_HTTP_OK) {
        (void) llm_admin_removed_body(a->to.name, &body);
        ngx_http_llm_admin_answer(a, status, &body);
        return;
    }

    ngx_http_llm_admin_models_conf(a->main, &conf);

    if (llm_admin_model_body(&conf, a->model, &body) == LLM_OK
        && status == NGX_HTTP_ACCEPTED
        && ngx_http_llm_admin_place(a) != NGX_OK)
    {
        body.failed = 1;
    }

    ngx_http_llm_admin_answer(a, status, &body);
}


/* "Location": URI of the model, which shows its last action */

static ngx_int_t
ngx_http_llm_admin_place(ngx_http_llm_admin_request_t *a)
{
    size_t                     len;
    u_char                    *p, *last;
    ngx_str_t                  prefix, *name;
    ngx_http_llm_model_t      *model;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(a->request, ngx_http_core_module);
    model = a->main->models.elts;
    name = &model[a->model].name;
    prefix = clcf->name;

    while (prefix.len && prefix.data[prefix.len - 1] == '/') {
        prefix.len--;
    }

    len = 3 * (prefix.len + name->len) + sizeof("/models/");

    p = ngx_pnalloc(a->request->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    last = (u_char *) ngx_escape_uri(p, prefix.data, prefix.len,
                                     NGX_ESCAPE_URI);
    last = ngx_cpymem(last, "/models/", sizeof("/models/") - 1);
    last = (u_char *) ngx_escape_uri(last, name->data, name->len,
                                     NGX_ESCAPE_URI_COMPONENT);

    return ngx_http_llm_add_header(a->request, "Location", (char *) p,
                                   last - p);
}
