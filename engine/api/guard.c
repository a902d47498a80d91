/*
 * What a guard (llm_guard) is told of a request: one JSON object,
 *
 *   {"request_id": ..., "endpoint": "chat/completions", "model": "demo",
 *    "tenant": ..., "messages": [...], ...}
 *
 * The first four members are set by the server; all of the client's own
 * members follow: a guard sees whatever a model may see of a request.  Each
 * key is there once, with the value that counts, so a guard and the parser
 * cannot read the same bytes in two ways.  guard_members.c writes the client's
 * members.
 */

#include "engine/api/endpoint.h"


/* the first path of the endpoint, whichever path was requested */

static const char *
llm_api_guard_path(const llm_api_endpoint_t *ep)
{
    const llm_api_row_t  *row;

    for (row = llm_api_endpoints; row->path; row++) {
        if (row->endpoint == ep || row->endpoint->v1 == ep) {
            return row->path;
        }
    }

    return "";
}


int
llm_api_guard_head(const llm_api_t *a, const llm_api_conf_t *conf,
    llm_str_t request_id, llm_str_t tenant, llm_buf_t *out)
{
    llm_str_t    model;
    const char  *path;

    model = conf->models[a->model].name;
    path = llm_api_guard_path(a->endpoint);

    (void) llm_buf_adds(out, "{\"request_id\":");
    (void) llm_json_add_string(out, request_id.data, request_id.len);
    (void) llm_buf_adds(out, ",\"endpoint\":");
    (void) llm_json_add_string(out, path, strlen(path));
    (void) llm_buf_adds(out, ",\"model\":");
    (void) llm_json_add_string(out, model.data, model.len);
    (void) llm_buf_adds(out, ",\"tenant\":");

    if (tenant.len) {
        return llm_json_add_string(out, tenant.data, tenant.len);
    }

    return llm_buf_adds(out, "null");
}
