/*
 * Ollama's lists of models: GET /api/tags, those of the location; GET /api/ps,
 * those that are loaded; GET /api/version.  And its endpoints that change the
 * models of a server, which are refused: models are those of the configuration.
 *
 * A model without a tag in its name is listed as "NAME:latest", by which it is
 * found, too.
 */

#include "engine/api/ollama.h"
#include "engine/base/version.h"

/* seconds; a model that is loaded stays for longer than clients look ahead */
#define LLM_API_OL_STAYS  ((int64_t) 100 * 365 * 86400)


static int
llm_api_ol_done(llm_buf_t *out, llm_err_t *err)
{
    return out->failed ? llm_fail(err, "No memory is left for this answer.")
                       : LLM_OK;
}


static void
llm_api_ol_tagged(llm_buf_t *out, llm_str_t name)
{
    (void) llm_buf_addc(out, '"');
    (void) llm_json_add_text(out, name.data, name.len);
    (void) llm_buf_adds(out, memchr(name.data, ':', name.len) ? "\""
                                                              : ":latest\"");
}


/* a digest that changes with the model: of its name and its file's time */

static void
llm_api_ol_digest(llm_buf_t *out, const llm_api_model_t *m)
{
    size_t    i;
    uint32_t  k;
    uint64_t  h;

    h = 0xcbf29ce484222325ull ^ (uint64_t) m->created;

    for (k = 0; k < 4; k++) {
        for (i = 0; i < m->name.len; i++) {
            h = (h ^ (unsigned char) m->name.data[i]) * 0x100000001b3ull;
        }

        h = (h ^ k) * 0x100000001b3ull;
        h ^= h >> 29;
        (void) llm_buf_addf(out, "%016llx", (unsigned long long) h);
    }
}


/* {"name":...,"details":... left open; alias: the name to show, or empty for
   the model's own */

static void
llm_api_ol_add(llm_buf_t *out, const llm_api_model_t *m, llm_str_t alias,
    const llm_model_status_t *st)
{
    llm_str_t  name;

    name = alias.len ? alias : m->name;

    if (out->data[out->len - 1] != '[') {
        (void) llm_buf_addc(out, ',');
    }

    (void) llm_buf_adds(out, "{\"name\":");
    llm_api_ol_tagged(out, name);
    (void) llm_buf_adds(out, ",\"model\":");
    llm_api_ol_tagged(out, name);
    (void) llm_buf_addf(out, ",\"size\":%llu,\"digest\":\"",
                        (unsigned long long) st->n_bytes);
    llm_api_ol_digest(out, m);
    (void) llm_buf_adds(out, "\",\"details\":");
    llm_api_ollama_details(out, llm_str(""), st->n_params);
}


static void
llm_api_ol_status(const llm_api_conf_t *conf, uint32_t model,
    llm_model_status_t *st)
{
    memset(st, 0, sizeof(*st));

    if (conf->zone) {
        llm_zone_status(conf->zone, model, st);
    }
}


/* is an alias the name under which the model is listed anyway? */

static int
llm_api_ol_is_latest(llm_str_t name, llm_str_t alias)
{
    const size_t  tag = sizeof(":latest") - 1;

    return alias.len == name.len + tag
           && memcmp(alias.data, name.data, name.len) == 0
           && memcmp(alias.data + name.len, ":latest", tag) == 0;
}


/* may the client use the model? */

static int
llm_api_ol_shows(const llm_api_conf_t *conf, uint32_t model)
{
    return llm_api_allowed(conf, model) && !((conf->denied >> model) & 1)
           && !llm_api_is_gone(conf, model);
}


static void
llm_api_ol_tag(llm_buf_t *out, const llm_api_conf_t *conf, uint32_t model,
    llm_str_t alias)
{
    llm_model_status_t  st;

    llm_api_ol_status(conf, model, &st);

    if (!out->failed) {
        llm_api_ol_add(out, &conf->models[model], alias, &st);
        (void) llm_buf_adds(out, ",\"modified_at\":");
        llm_api_ollama_time(out, conf->models[model].created);
        (void) llm_buf_addc(out, '}');
    }
}


static int
llm_api_ol_tags_answer(const llm_api_conf_t *conf, llm_str_t rest,
    llm_buf_t *out, llm_err_t *err)
{
    int32_t                 model;
    uint32_t                i, k;
    llm_str_t               alias;
    const llm_api_alias_t  *a;

    (void) rest;
    (void) llm_buf_adds(out, "{\"models\":[");

    for (i = 0; i < conf->n_models; i++) {
        if (llm_api_ol_shows(conf, i)) {
            llm_api_ol_tag(out, conf, i, llm_str(""));

            for (k = 0; k < conf->models[i].n_aliases; k++) {
                alias = conf->models[i].aliases[k];

                if (!llm_api_ol_is_latest(conf->models[i].name, alias)) {
                    llm_api_ol_tag(out, conf, i, alias);
                }
            }
        }
    }

    for (i = 0; i < conf->n_aliases; i++) {
        a = &conf->aliases[i];
        model = llm_api_alias_model(conf, i);

        if (model >= 0 && (a->granted || !((conf->denied >> model) & 1))
            && !llm_api_is_gone(conf, (uint32_t) model))
        {
            llm_api_ol_tag(out, conf, (uint32_t) model, a->name);
        }
    }

    (void) llm_buf_adds(out, "]}");

    return llm_api_ol_done(out, err);
}


static int
llm_api_ol_ps_answer(const llm_api_conf_t *conf, llm_str_t rest,
    llm_buf_t *out, llm_err_t *err)
{
    int                 gpu;
    int64_t             idle;
    uint32_t            i;
    llm_model_status_t  st;

    (void) rest;
    (void) llm_buf_adds(out, "{\"models\":[");

    for (i = 0; i < conf->n_models && !out->failed; i++) {
        llm_api_ol_status(conf, i, &st);

        if (!llm_api_ol_shows(conf, i) || st.state != LLM_MODEL_READY) {
            continue;
        }

        gpu = strncmp(st.device, "cuda", 4) == 0;
        llm_api_ol_add(out, &conf->models[i], llm_str(""), &st);
        (void) llm_buf_addf(out, ",\"context_length\":%u,\"size_vram\":%llu,"
                            "\"expires_at\":", st.ctx,
                            gpu ? (unsigned long long) st.n_bytes : 0ull);

        /* if nobody uses it any more; when it was used last is not known */

        idle = conf->models[i].idle_s;
        llm_api_ollama_time(out, conf->now + (idle ? idle
                                                   : LLM_API_OL_STAYS));
        (void) llm_buf_addc(out, '}');
    }

    (void) llm_buf_adds(out, "]}");

    return llm_api_ol_done(out, err);
}


static int
llm_api_ol_version_answer(const llm_api_conf_t *conf, llm_str_t rest,
    llm_buf_t *out, llm_err_t *err)
{
    (void) conf;
    (void) rest;
    (void) llm_buf_adds(out, "{\"version\":\"" LLM_VERSION "\"}");

    return llm_api_ol_done(out, err);
}


static int
llm_api_ol_none_answer(const llm_api_conf_t *conf, llm_str_t rest,
    llm_buf_t *out, llm_err_t *err)
{
    (void) conf;
    (void) rest;
    (void) out;

    return llm_fail_with(err, 400, "unsupported_endpoint", NULL,
                         "Models are not made, fetched or removed by this "
                         "API: the server has those of its configuration, "
                         "which GET /api/tags lists.");
}


const llm_api_endpoint_t  llm_api_ollama_tags = {
    .answer = llm_api_ol_tags_answer,
    .error = llm_api_ollama_error
};

const llm_api_endpoint_t  llm_api_ollama_ps = {
    .answer = llm_api_ol_ps_answer,
    .error = llm_api_ollama_error
};

const llm_api_endpoint_t  llm_api_ollama_version = {
    .answer = llm_api_ol_version_answer,
    .error = llm_api_ollama_error
};

const llm_api_endpoint_t  llm_api_ollama_none = {
    .answer = llm_api_ol_none_answer,
    .error = llm_api_ollama_error
};
