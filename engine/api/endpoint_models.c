/*
 * GET /models and /models/ID: the models of a location, and one of them.  An
 * alias, a model's or one that follows a rule, is listed like a model, with
 * the model's name: clients choose from the list by id.
 */

#include "engine/api/endpoint.h"


/* adds what the model takes and gives, as llama-server and OpenRouter tell
   it */

static void
llm_api_add_kinds(llm_buf_t *out, uint32_t takes)
{
    (void) llm_buf_addf(out, ",\"architecture\":{\"input_modalities\":[%s%s%s],"
                        "\"output_modalities\":[\"text\"]}",
                        takes & LLM_MEDIUM_SPEECH ? "\"audio\"" : "\"text\"",
                        takes & LLM_MEDIUM_IMAGE ? ",\"image\"" : "",
                        takes & LLM_MEDIUM_AUDIO ? ",\"audio\"" : "");
}


/*
 * Adds whether the model is loaded, in llama-server's words.  One that is being
 * unloaded is loaded until that has ended: clients load it again once the list
 * says "unloaded", and before they would be refused.
 */

static void
llm_api_add_state(llm_buf_t *out, const llm_api_conf_t *conf, uint32_t model,
    const llm_model_status_t *st)
{
    int                    leaving;
    const char            *word;
    llm_command_status_t   order;

    leaving = 0;

    if (st->state == LLM_MODEL_STOPPED) {
        llm_zone_command(conf->zone, model, &order);
        leaving = order.kind == LLM_COMMAND_UNLOAD
                  && order.state == LLM_COMMAND_RUNNING;
    }

    word = st->state == LLM_MODEL_READY || leaving ? "loaded"
           : st->state == LLM_MODEL_LOADING ? "loading" : "unloaded";

    (void) llm_buf_addf(out, ",\"status\":{\"value\":\"%s\"%s}", word,
                        st->state == LLM_MODEL_FAILED ? ",\"failed\":true"
                                                      : "");
}


/* adds what the loaded model takes, or what its configuration says, and, once
   the model has been loaded, its longest sequence, under the names that clients
   look for, and llama.cpp's figures about the file */

static void
llm_api_add_sizes(llm_buf_t *out, const llm_api_conf_t *conf, uint32_t model)
{
    llm_model_status_t  st;

    memset(&st, 0, sizeof(st));

    if (conf->zone) {
        llm_zone_status(conf->zone, model, &st);
    }

    llm_api_add_state(out, conf, model, &st);
    llm_api_add_kinds(out, st.ctx ? st.takes : conf->models[model].media);

    if (st.ctx == 0) {
        return;
    }

    (void) llm_buf_addf(out, ",\"max_model_len\":%u,\"context_window\":%u,"
                        "\"context_length\":%u,\"meta\":{\"n_ctx\":%u,"
                        "\"n_ctx_train\":%u,\"n_vocab\":%u,\"n_embd\":%u,"
                        "\"n_params\":%llu,\"size\":%llu}", st.ctx, st.ctx,
                        st.ctx, st.ctx, st.ctx_train, st.n_vocab, st.n_embd,
                        (unsigned long long) st.n_params,
                        (unsigned long long) st.n_bytes);
}


static void
llm_api_add_date(llm_buf_t *out, const char *name, llm_str_t value)
{
    if (value.len) {
        (void) llm_buf_addf(out, "%s\"%s\":",
                            out->data[out->len - 1] == '{' ? "" : ",", name);
        (void) llm_json_add_string(out, value.data, value.len);
    }
}


/* adds the dates of deprecation and sunset, and the successor */

static void
llm_api_add_dates(llm_buf_t *out, const llm_api_model_t *m)
{
    if (m->deprecated.len == 0 && m->sunset.len == 0) {
        return;
    }

    if (llm_buf_adds(out, ",\"deprecation\":{") == LLM_OK) {
        llm_api_add_date(out, "deprecated", m->deprecated);
        llm_api_add_date(out, "sunset", m->sunset);
        llm_api_add_date(out, "successor", m->successor);
        (void) llm_buf_addc(out, '}');
    }
}


/* alias: the name to show, or empty for the model's own */

static void
llm_api_add_model(llm_buf_t *out, const llm_api_conf_t *conf, uint32_t model,
    llm_str_t alias)
{
    uint32_t                i;
    llm_str_t               id;
    const llm_api_model_t  *m;

    m = &conf->models[model];
    id = alias.len ? alias : m->name;

    (void) llm_buf_adds(out, "{\"id\":");
    (void) llm_json_add_string(out, id.data, id.len);
    (void) llm_buf_addf(out, ",\"object\":\"model\",\"created\":%lld,"
                        "\"owned_by\":", (long long) m->created);
    (void) llm_json_add_string(out, m->owner.data, m->owner.len);
    (void) llm_buf_adds(out, ",\"aliases\":[");

    for (i = 0; alias.len == 0 && i < m->n_aliases; i++) {
        if (i) {
            (void) llm_buf_addc(out, ',');
        }

        (void) llm_json_add_string(out, m->aliases[i].data,
                                   m->aliases[i].len);
    }

    (void) llm_buf_addc(out, ']');
    llm_api_add_dates(out, m);

    if (alias.len) {
        (void) llm_buf_adds(out, ",\"alias_of\":");
        (void) llm_json_add_string(out, m->name.data, m->name.len);
    }

    llm_api_add_sizes(out, conf, model);
    (void) llm_buf_addc(out, '}');
}


static void
llm_api_next_model(llm_buf_t *out, const llm_api_conf_t *conf, uint32_t model,
    llm_str_t alias, int *first)
{
    if (!*first) {
        (void) llm_buf_addc(out, ',');
    }

    llm_api_add_model(out, conf, model, alias);
    *first = 0;
}


static void
llm_api_add_models(llm_buf_t *out, const llm_api_conf_t *conf)
{
    int                     first;
    int32_t                 model;
    uint32_t                i, k;
    const llm_api_alias_t  *a;

    first = 1;

    (void) llm_buf_adds(out, "{\"object\":\"list\",\"data\":[");

    for (i = 0; i < conf->n_models; i++) {
        if (llm_api_allowed(conf, i) && !((conf->denied >> i) & 1)
            && !llm_api_is_gone(conf, i))
        {
            llm_api_next_model(out, conf, i, llm_str(""), &first);

            for (k = 0; k < conf->models[i].n_aliases; k++) {
                llm_api_next_model(out, conf, i, conf->models[i].aliases[k],
                                   &first);
            }
        }
    }

    for (i = 0; i < conf->n_aliases; i++) {
        a = &conf->aliases[i];
        model = llm_api_alias_model(conf, i);

        if (model >= 0 && (a->granted || !((conf->denied >> model) & 1))
            && !llm_api_is_gone(conf, (uint32_t) model))
        {
            llm_api_next_model(out, conf, (uint32_t) model, a->name, &first);
        }
    }

    (void) llm_buf_adds(out, "]}");
}


static int
llm_api_models_answer(const llm_api_conf_t *conf, llm_str_t name,
    llm_buf_t *out, llm_err_t *err)
{
    int32_t         i;
    llm_str_t       alias;
    llm_api_conf_t  strict;

    if (name.len == 0) {
        llm_api_add_models(out, conf);

    } else {

        /* looking up a model by name must not find the fallback model */

        alias = llm_str("");
        strict = *conf;
        strict.fallback = -1;
        strict.alias = &alias;

        i = llm_api_resolve(&strict, name, err);

        if (conf->alias) {
            *conf->alias = alias;
        }

        if (i < 0) {
            return LLM_ERROR;
        }

        llm_api_add_model(out, conf, (uint32_t) i, alias);
    }

    return out->failed ? llm_fail(err, "No memory is left for this answer.")
                       : LLM_OK;
}


const llm_api_endpoint_t  llm_api_models = {
    .answer = llm_api_models_answer
};
