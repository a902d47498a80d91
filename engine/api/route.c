/*
 * Finds the endpoint of a path and a method, by the table in endpoints.c, and
 * lists that table.
 */

#include "engine/api/endpoint.h"

#include <stdio.h>

#define OLLAMA  "api/"


static int
llm_api_starts(llm_str_t s, const char *prefix, size_t len)
{
    return s.len >= len && memcmp(s.data, prefix, len) == 0;
}


static llm_str_t
llm_api_skip(llm_str_t s, size_t n)
{
    s.data += n;
    s.len -= n;

    return s;
}


/* *rest: what follows a path that ends in a slash, a model's name, which may
   have slashes itself */

static int
llm_api_is_at(const llm_api_row_t *row, llm_str_t path, llm_str_t *rest)
{
    size_t  len;

    len = strlen(row->path);

    if (!llm_api_starts(path, row->path, len)) {
        return 0;
    }

    *rest = llm_api_skip(path, len);

    return rest->len == 0 || row->path[len - 1] == '/';
}


/* is the method in a list like "GET, HEAD"? */

static int
llm_api_takes(const char *methods, llm_str_t method)
{
    size_t       len;
    const char  *p;

    for (p = methods; *p; p += strspn(p, ", ")) {
        len = strcspn(p, ", ");

        if (len == method.len && memcmp(p, method.data, len) == 0) {
            return 1;
        }

        p += len;
    }

    return 0;
}


/* the rows of a path, which has no slash before it; after "v1/" it is OpenAI's
   if it is that of several dialects */

static int
llm_api_find_rows(llm_str_t path, llm_str_t method, llm_api_route_t *to)
{
    int                   v1;
    size_t                len;
    llm_str_t             rest;
    const llm_api_row_t  *row, *first;

    first = NULL;
    v1 = llm_api_starts(path, "v1/", 3);

    if (v1) {
        path = llm_api_skip(path, 3);
    }

    for (row = llm_api_endpoints; row->path; row++) {

        if (first ? strcmp(row->path, first->path) != 0
                  : !llm_api_is_at(row, path, &rest))
        {
            continue;
        }

        first = first ? first : row;
        to->path = first->endpoint;
        to->name.data = first->path;
        to->name.len = strlen(first->path);
        to->name.len -= first->path[to->name.len - 1] == '/';

        if (llm_api_takes(row->methods, method)) {
            to->endpoint = v1 && row->endpoint->v1 ? row->endpoint->v1
                                                   : row->endpoint;
            to->scope = row->scope;
            to->rest = rest;
            return LLM_OK;
        }

        len = strlen(to->allow);
        snprintf(to->allow + len, sizeof(to->allow) - len, "%s%s",
                 len ? ", " : "", row->methods);
    }

    return LLM_ERROR;
}


/* paths that begin with "api/" are Ollama's; of the other endpoints there are
   those whose paths Ollama does not use */

int
llm_api_route(llm_str_t path, llm_str_t method, llm_api_route_t *to)
{
    int  rc;

    memset(to, 0, sizeof(llm_api_route_t));

    if (llm_api_starts(path, "/", 1)) {
        path = llm_api_skip(path, 1);
    }

    rc = llm_api_find_rows(path, method, to);

    if (to->path || !llm_api_starts(path, OLLAMA, sizeof(OLLAMA) - 1)) {
        return rc;
    }

    path = llm_api_skip(path, sizeof(OLLAMA) - 1);
    rc = llm_api_find_rows(path, method, to);

    if (to->path == NULL && !llm_api_starts(path, "v1/", 3)) {
        to->path = &llm_api_ollama_none;
    }

    return rc;
}


int
llm_api_is_root(llm_str_t path)
{
    while (path.len && path.data[path.len - 1] == '/') {
        path.len--;
    }

    if (llm_api_starts(path, "/", 1)) {
        path = llm_api_skip(path, 1);
    }

    return path.len == 0 || llm_str_is(path, "v1") || llm_str_is(path, "api");
}


/* below a prefix that ends in "/api" the rows of Ollama have their paths
   without "api/", the others with "v1/" */

int
llm_api_index(llm_str_t base, llm_buf_t *out)
{
    int                   own;
    size_t                len;
    const char           *p, *path;
    const llm_api_row_t  *row;

    own = base.len >= 4 && memcmp(base.data + base.len - 4, "/api", 4) == 0;

    (void) llm_buf_adds(out, "{\"object\":\"list\",\"data\":[");

    for (row = llm_api_endpoints; row->path; row++) {
        path = row->path;
        (void) llm_buf_addf(out, "%s{\"object\":\"endpoint\",\"path\":\"",
                            row == llm_api_endpoints ? "" : ",");
        (void) llm_json_add_text(out, base.data, base.len);

        if (own) {
            len = sizeof(OLLAMA) - 1;
            len = strncmp(path, OLLAMA, len) == 0 ? len : 0;
            path += len;
            (void) llm_buf_adds(out, len ? "" : "/v1");
        }

        (void) llm_buf_addf(out, "/%s%s\",\"methods\":[", path,
                            row->path[strlen(row->path) - 1] == '/' ? "{model}"
                                                                   : "");

        for (p = row->methods; *p; p += len + strspn(p + len, ", ")) {
            len = strcspn(p, ", ");
            (void) llm_buf_addf(out, "%s\"%.*s\"", p == row->methods ? "" : ",",
                                (int) len, p);
        }

        (void) llm_buf_adds(out, "]}");
    }

    return llm_buf_adds(out, "]}");
}


int
llm_api_bodiless(const llm_api_endpoint_t *ep)
{
    return ep->bodiless;
}


int
llm_api_answers(const llm_api_endpoint_t *ep)
{
    return ep->answer != NULL;
}


const char *
llm_api_id_header(const llm_api_endpoint_t *ep)
{
    return ep ? ep->id_header : NULL;
}


const char *
llm_api_stream_type(const llm_api_t *a)
{
    return a->endpoint->stream_type ? a->endpoint->stream_type
                                    : "text/event-stream";
}


void
llm_api_text(const llm_api_t *a, llm_buf_t *out)
{
    if (a->endpoint->text) {
        a->endpoint->text(a, out);
    }
}


const char *
llm_api_body_type(const llm_api_t *a)
{
    return a->endpoint->body_type ? a->endpoint->body_type(a)
                                  : "application/json";
}


int
llm_api_heartbeat(const llm_api_t *a, llm_buf_t *out)
{
    if (a->endpoint->heartbeat == NULL) {
        return llm_buf_adds(out, ": heartbeat\n\n");
    }

    a->endpoint->heartbeat(a, out);

    return out->failed ? LLM_ERROR : LLM_OK;
}


int
llm_api_answer(const llm_api_endpoint_t *ep, const llm_api_conf_t *conf,
    llm_str_t rest, llm_buf_t *out, llm_err_t *err)
{
    return ep->answer(conf, rest, out, err);
}
