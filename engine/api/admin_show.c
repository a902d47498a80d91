/*
 * What llm_admin shows: models with what was last asked of them, aliases.
 */

#include "engine/api/admin.h"
#include "engine/api/json.h"


const char *
llm_admin_below(const char *dir, const char *path)
{
    size_t  len;

    len = dir ? strlen(dir) : 0;

    return len && strncmp(path, dir, len) == 0 && path[len] == '/'
           ? path + len + 1 : path;
}


void
llm_admin_begin_list(llm_buf_t *out)
{
    (void) llm_buf_adds(out, "{\"object\":\"list\",\"data\":[");
}


void
llm_admin_end_list(llm_buf_t *out)
{
    (void) llm_buf_adds(out, "]}");
}


/* opens an object, after a comma if another object precedes it */

static void
llm_admin_open(llm_buf_t *out)
{
    if (out->len && out->data[out->len - 1] == '}') {
        (void) llm_buf_addc(out, ',');
    }

    (void) llm_buf_addc(out, '{');
}


static void
llm_admin_add_text(llm_buf_t *out, const char *name, const char *text)
{
    (void) llm_buf_addf(out, ",\"%s\":", name);
    (void) llm_json_add_string(out, text, strlen(text));
}


static void
llm_admin_add_progress(llm_buf_t *out, uint32_t permille)
{
    (void) llm_buf_addf(out, ",\"progress\":%u.%03u", permille / 1000,
                        permille % 1000);
}


/* ---- the last command ---- */

static const char *const  llm_admin_kinds[] = {
    [LLM_COMMAND_LOAD] = "load",
    [LLM_COMMAND_UNLOAD] = "unload",
    [LLM_COMMAND_DRAIN] = "drain",
    [LLM_COMMAND_RESUME] = "resume",
    [LLM_COMMAND_REMOVE] = "remove"
};

static const char *const  llm_admin_states[] = {
    [LLM_COMMAND_SENT] = "sent",
    [LLM_COMMAND_RUNNING] = "running",
    [LLM_COMMAND_DONE] = "done",
    [LLM_COMMAND_FAILED] = "failed"
};


const char *
llm_admin_kind(llm_command_kind_t kind)
{
    return llm_admin_kinds[kind];
}


static void
llm_admin_add_action(const llm_admin_conf_t *conf, uint32_t i,
    llm_buf_t *out)
{
    llm_command_status_t  st;

    llm_zone_command(conf->zone, i, &st);

    if (st.number == 0 || st.kind == LLM_COMMAND_NONE) {
        (void) llm_buf_adds(out, ",\"action\":null");
        return;
    }

    (void) llm_buf_addf(out, ",\"action\":{\"id\":%llu,\"command\":\"%s\","
                        "\"state\":\"%s\"",
                        (unsigned long long) st.number,
                        llm_admin_kind(st.kind), llm_admin_states[st.state]);

    if (st.kind == LLM_COMMAND_LOAD) {
        if (st.file[0]) {
            llm_admin_add_text(out, "file",
                               llm_admin_below(conf->dir, st.file));
        }

        if (st.state == LLM_COMMAND_RUNNING) {
            llm_admin_add_progress(out, st.permille);
            (void) llm_buf_addf(out, ",\"warming\":%s",
                                st.warming ? "true" : "false");
        }
    }

    if (st.state == LLM_COMMAND_FAILED) {
        (void) llm_buf_addf(out, ",\"status\":%u", st.status);
        llm_admin_add_text(out, "code", st.code);
    }

    if (st.state >= LLM_COMMAND_DONE && st.reason[0]) {
        llm_admin_add_text(out, "reason", st.reason);
    }

    (void) llm_buf_addc(out, '}');
}


/* ---- models ---- */

static void
llm_admin_add_figures(const llm_admin_conf_t *conf, uint32_t i,
    const llm_model_status_t *st, llm_buf_t *out)
{
    llm_model_stats_t  n;

    llm_zone_model_stats(conf->zone, NULL, i, &n);   /* gauges alone */

    (void) llm_buf_addf(out, ",\"memory\":{\"weights\":%llu,\"requests\":%llu,"
                        "\"kv_pages\":%u,\"kv_used\":%u,\"kv_cached\":%u}",
                        (unsigned long long) n.weight_bytes,
                        (unsigned long long) n.request_memory, n.kv_pages,
                        n.kv_used, n.kv_cached);
    (void) llm_buf_addf(out, ",\"ctx\":%u,\"requests\":%u,\"running\":%u,"
                        "\"waiting\":%u,\"replaced\":%u", st->ctx,
                        st->requests, st->running, st->waiting, st->replaced);
}


int
llm_admin_model_body(const llm_admin_conf_t *conf, uint32_t i,
    llm_buf_t *out)
{
    const char               *file;
    llm_model_status_t        st;
    const llm_admin_known_t  *m;

    m = &conf->models[i];

    llm_zone_status(conf->zone, i, &st);

    file = st.file[0] ? st.file : m->path;

    llm_admin_open(out);
    (void) llm_buf_adds(out, "\"id\":");
    (void) llm_json_add_string(out, m->name.data, m->name.len);
    (void) llm_buf_adds(out, ",\"object\":\"model\"");

    llm_admin_add_text(out, "state", llm_model_state_word(&st));
    llm_admin_add_text(out, "file", llm_admin_below(conf->dir, file));
    (void) llm_buf_addf(out, ",\"configured_file\":%s",
                        strcmp(file, m->path) == 0 ? "true" : "false");

    if (st.state == LLM_MODEL_LOADING) {
        llm_admin_add_progress(out, st.permille);
    }

    if (st.state == LLM_MODEL_FAILED && st.error[0]) {
        llm_admin_add_text(out, "reason", st.error);
    }

    llm_admin_add_text(out, "device", st.device);
    (void) llm_buf_addf(out, ",\"added\":%s",
                        m->path[0] == '\0' ? "true" : "false");
    llm_admin_add_figures(conf, i, &st, out);
    llm_admin_add_action(conf, i, out);

    return llm_buf_addc(out, '}');
}


int
llm_admin_models_body(const llm_admin_conf_t *conf, llm_buf_t *out)
{
    uint32_t  i;

    llm_admin_begin_list(out);

    for (i = 0; i < conf->n_models; i++) {
        if (conf->models[i].name.len) {
            (void) llm_admin_model_body(conf, i, out);
        }
    }

    llm_admin_end_list(out);

    return out->failed ? LLM_ERROR : LLM_OK;
}


int
llm_admin_removed_body(llm_str_t name, llm_buf_t *out)
{
    (void) llm_buf_adds(out, "{\"id\":");
    (void) llm_json_add_string(out, name.data, name.len);

    return llm_buf_adds(out, ",\"object\":\"model\",\"deleted\":true}");
}


/* ---- aliases ---- */

static void
llm_admin_add_name(llm_buf_t *out, const char *key, llm_str_t name)
{
    (void) llm_buf_addf(out, ",\"%s\":", key);

    if (name.len) {
        (void) llm_json_add_string(out, name.data, name.len);

    } else {
        (void) llm_buf_adds(out, "null");
    }
}


void
llm_admin_add_alias(llm_buf_t *out, const llm_admin_view_t *a)
{
    uint32_t  i;

    llm_admin_open(out);
    (void) llm_buf_adds(out, "\"id\":");
    (void) llm_json_add_string(out, a->name.data, a->name.len);
    (void) llm_buf_adds(out, ",\"object\":\"alias\"");
    llm_admin_add_name(out, "model", a->model);
    (void) llm_buf_adds(out, ",\"rules\":[");

    for (i = 0; i < a->n_rules; i++) {
        if (i) {
            (void) llm_buf_addc(out, ',');
        }

        (void) llm_json_add_string(out, a->rules[i].data, a->rules[i].len);
    }

    (void) llm_buf_addc(out, ']');

    if (a->changed) {
        llm_admin_add_name(out, "previous", a->previous);
        (void) llm_buf_addf(out, ",\"saved\":%s",
                            a->saved < 0 ? "null"
                            : a->saved ? "true" : "false");
    }

    (void) llm_buf_addc(out, '}');
}


/* ---- usage ---- */

void
llm_admin_begin_zone(llm_buf_t *out, llm_str_t zone)
{
    llm_admin_open(out);
    (void) llm_buf_adds(out, "\"zone\":");
    (void) llm_json_add_string(out, zone.data, zone.len);
    (void) llm_buf_adds(out, ",\"accounts\":[");
}


void
llm_admin_end_zone(llm_buf_t *out, llm_str_t next)
{
    (void) llm_buf_addc(out, ']');
    llm_admin_add_name(out, "next", next);
    (void) llm_buf_addc(out, '}');
}
