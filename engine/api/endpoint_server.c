/*
 * Endpoints that tools for other servers use: vLLM's GET /version, /ping and
 * /load; and endpoints that are not supported, which answer with the reason.
 */

#include "engine/api/endpoint.h"
#include "engine/base/version.h"


static int
llm_api_server_done(llm_buf_t *out, llm_err_t *err)
{
    return out->failed ? llm_fail(err, "No memory is left for this answer.")
                       : LLM_OK;
}


static int
llm_api_version_answer(const llm_api_conf_t *conf, llm_str_t rest,
    llm_buf_t *out, llm_err_t *err)
{
    (void) conf;
    (void) rest;
    (void) llm_buf_adds(out, "{\"version\":\"" LLM_VERSION "\"}");

    return llm_api_server_done(out, err);
}


/* can the models of the location serve? */

static int
llm_api_ping_answer(const llm_api_conf_t *conf, llm_str_t rest,
    llm_buf_t *out, llm_err_t *err)
{
    int               rc, ready;
    llm_buf_t         body;
    llm_api_health_t  h;

    (void) rest;
    ready = 1;

    if (conf->zone) {
        memset(&h, 0, sizeof(h));
        h.rule = LLM_HEALTH_LOADED;
        llm_buf_init(&body, 0);
        rc = llm_api_health_body(conf->zone, conf, &h, &body, &ready);
        llm_buf_free(&body);

        if (rc != LLM_OK) {
            return llm_fail(err, "No memory is left for this answer.");
        }
    }

    if (!ready) {
        return llm_fail_with(err, 503, "not_ready", NULL, "The models are not "
                             "ready to serve.");
    }

    (void) llm_buf_adds(out, "{\"status\":\"ok\"}");

    return llm_api_server_done(out, err);
}


/* the requests that wait or run, of all models of the location */

static int
llm_api_load_answer(const llm_api_conf_t *conf, llm_str_t rest,
    llm_buf_t *out, llm_err_t *err)
{
    uint32_t            i;
    uint64_t            n;
    llm_model_status_t  st;

    (void) rest;
    n = 0;

    for (i = 0; conf->zone && i < conf->n_models; i++) {
        if (llm_api_allowed(conf, i)) {
            llm_zone_status(conf->zone, i, &st);
            n += st.requests;
        }
    }

    (void) llm_buf_addf(out, "{\"server_load\":%llu}",
                        (unsigned long long) n);

    return llm_api_server_done(out, err);
}


/* on this error a client shortens the conversation by its own means */

static int
llm_api_compact_answer(const llm_api_conf_t *conf, llm_str_t rest,
    llm_buf_t *out, llm_err_t *err)
{
    (void) conf;
    (void) rest;
    (void) out;

    return llm_fail_with(err, 400, "unsupported_endpoint", NULL,
                         "This server does not compact conversations: have a "
                         "model sum them up by an ordinary request, and send "
                         "what it says in place of the items.");
}


const llm_api_endpoint_t  llm_api_version = {
    .answer = llm_api_version_answer
};

const llm_api_endpoint_t  llm_api_ping = {
    .answer = llm_api_ping_answer
};

const llm_api_endpoint_t  llm_api_load = {
    .answer = llm_api_load_answer
};

const llm_api_endpoint_t  llm_api_compact = {
    .answer = llm_api_compact_answer
};
