/*
 * What has no body to read: names of models and endpoints, the tables of
 * fields, lists of models, error bodies.
 */

#include "t/unit/api_conf.h"
#include "t/unit/tap.h"


static void
test_resolve(void)
{
    size_t          i;
    llm_str_t       name;
    llm_err_t       err;
    llm_api_conf_t  c;

    static const struct {
        const char  *name;
        int32_t      want;
        const char  *why;
    } names[] = {
        { "demo", 0, "exact" },
        { "gpt-4o-mini", 0, "alias" },
        { "DEMO", 0, "case" },
        { "GPT-4o-MINI", 0, "case of an alias" },
        { "big-llm7", 1, "case" },
        { "llm7", 1, "part" },
        { "TINY", 2, "part, case" },
        { "qwen", 0, "part of an alias" },
        { "4o-", 0, "a short part of an alias" },
        { "4o", -1, "too short a part" },
        { "i", -1, "one letter" },
        { "big", -1, "part of two" },
        { "big-", -1, "part of two" },
        { "demo2", -1, "longer than any" },
        { "secret", -1, "not allowed here" },
        { "", 0, "none: the default" },
    };

    for (i = 0; i < llm_nelems(names); i++) {
        name.data = names[i].name;
        name.len = strlen(names[i].name);
        memset(&err, 0, sizeof(err));

        is_int(llm_api_resolve(&conf, name, &err), names[i].want,
               "'%s': %s", names[i].name, names[i].why);

        if (names[i].want < 0) {
            ok(err.status == 404 && strcmp(err.param, "model") == 0
               && strcmp(err.code, "model_not_found") == 0, "404");
        }
    }

    c = conf;
    c.fallback = 2;
    is_int(llm_api_resolve(&c, llm_str("other"), &err), 2, "fallback");
    is_int(llm_api_resolve(&c, llm_str("demo"), &err), 0,
           "not for a known name");

    c.allowed = 6;
    is_int(llm_api_resolve(&c, llm_str(""), &err), 2,
           "no name, no default here: the fallback");

    c.fallback = -1;
    is_int(llm_api_resolve(&c, llm_str(""), &err), -1,
           "no name, no default here, two models");

    c.allowed = 4;
    is_int(llm_api_resolve(&c, llm_str(""), &err), 2, "no name, one model");
}


static void
test_endpoints(void)
{
    size_t           i;
    llm_str_t        path, method;
    llm_api_route_t  to;

    static const struct {
        const char                *method, *path;
        const llm_api_endpoint_t  *want;
        const char                *rest, *allow;
    } paths[] = {
        { "POST", "chat/completions", CHAT, "", "" },
        { "POST", "/chat/completions", CHAT, "", "" },
        { "POST", "v1/chat/completions", CHAT, "", "" },
        { "POST", "/v1/chat/completions", CHAT, "", "" },
        { "POST", "completions", COMPL, "", "" },
        { "POST", "v1/completions", COMPL, "", "" },
        { "GET", "models", &llm_api_models, "", "" },
        { "HEAD", "models", &llm_api_models, "", "" },
        { "GET", "models/", &llm_api_models, "", "" },
        { "GET", "v1/models/demo", &llm_api_models, "demo", "" },
        { "GET", "models/Qwen/Small", &llm_api_models, "Qwen/Small", "" },
        { "GET", "completions", NULL, "", "POST" },
        { "post", "completions", NULL, "", "POST" },
        { "POS", "completions", NULL, "", "POST" },
        { "", "completions", NULL, "", "POST" },
        { "DELETE", "models/demo", NULL, "", "GET, HEAD" },
        { "GET,", "models", NULL, "", "GET, HEAD" },
        { "POST", "", NULL, "", "" },
        { "POST", "v1/", NULL, "", "" },
        { "GET", "v1/v1/models", NULL, "", "" },
        { "POST", "chat", NULL, "", "" },
        { "POST", "chat/completionsx", NULL, "", "" },
        { "POST", "chat/completions/", NULL, "", "" },
        { "GET", "Models", NULL, "", "" },
    };

    for (i = 0; i < llm_nelems(paths); i++) {
        path.data = paths[i].path;
        path.len = strlen(paths[i].path);
        method.data = paths[i].method;
        method.len = strlen(paths[i].method);

        ok(llm_api_route(path, method, &to)
           == (paths[i].want ? LLM_OK : LLM_ERROR)
           && to.endpoint == paths[i].want
           && to.rest.len == strlen(paths[i].rest)
           && memcmp(to.rest.data ? to.rest.data : "", paths[i].rest,
                     to.rest.len) == 0,
           "%s '%s'", paths[i].method, paths[i].path);
        is_str(paths[i].want ? "" : to.allow, paths[i].allow,
               "and what may be used there");
    }
}


/* no table names a field twice, and they are not too many */

static void
test_tables(void)
{
    uint32_t                 i, j, k, n;
    const llm_api_row_t     *row;
    const llm_api_fields_t  *fields;

    for (row = llm_api_endpoints; row->path; row++) {
        if (llm_scope_name(row->scope)[0] == '\0') {
            ok(0, "%s has no scope", row->path);
        }

        for (k = 0, n = 0; k < 2; k++) {
            fields = k ? row->endpoint->shared : row->endpoint->fields;

            for (i = 1; fields && i < fields->n; i++) {
                for (j = 0; j < i; j++) {
                    if (strcmp(fields->rows[j].name, fields->rows[i].name)
                        == 0)
                    {
                        ok(0, "%s is there twice", fields->rows[i].name);
                    }
                }
            }

            n += fields ? fields->n : 0;
        }

        ok(llm_api_answers(row->endpoint) == (n == 0)
           && n <= LLM_API_MAX_FIELDS, "%u fields of %s", n, row->path);
    }
}


static void
test_models(void)
{
    llm_buf_t       out;
    llm_err_t       err;
    llm_api_conf_t  c;

    llm_buf_init(&out, 0);

    (void) llm_api_answer(&llm_api_models, &conf, llm_str(""), &out, &err);
    is_str(out.data,
           "{\"object\":\"list\",\"data\":["
           "{\"id\":\"demo\",\"object\":\"model\",\"created\":1700000000,"
           "\"owned_by\":\"nginx\",\"aliases\":[\"gpt-4o-mini\","
           "\"Qwen/Small\"]},"
           "{\"id\":\"Big-Llm7\",\"object\":\"model\",\"created\":1700000001,"
           "\"owned_by\":\"nginx\",\"aliases\":[]},"
           "{\"id\":\"big-tiny\",\"object\":\"model\",\"created\":1700000002,"
           "\"owned_by\":\"nginx\",\"aliases\":[]}]}",
           "the models of a location");

    out.len = 0;
    is_int(llm_api_answer(&llm_api_models, &conf, llm_str("gpt-4o-mini"),
                          &out, &err), LLM_OK, "one model");
    is_str(out.data,
           "{\"id\":\"demo\",\"object\":\"model\",\"created\":1700000000,"
           "\"owned_by\":\"nginx\",\"aliases\":[\"gpt-4o-mini\","
           "\"Qwen/Small\"]}", "by its alias");

    c = conf;
    c.fallback = 0;
    ok(llm_api_answer(&llm_api_models, &c, llm_str("nope"), &out, &err)
       == LLM_ERROR && err.status == 404, "an unknown one, fallback or not");

    out.len = 0;
    c.allowed = 0;
    (void) llm_api_answer(&llm_api_models, &c, llm_str(""), &out, &err);
    is_str(out.data, "{\"object\":\"list\",\"data\":[]}", "no models");

    llm_buf_free(&out);
}


static void
test_errors(void)
{
    size_t      i;
    llm_api_t   a;
    llm_buf_t   out;
    llm_err_t   err;

    static const struct {
        int          status;
        const char  *code, *param, *want;
    } errors[] = {
        { 400, "invalid_type", "n",
          "{\"error\":{\"message\":\"say \\\"what\\\"\",\"type\":"
          "\"invalid_request_error\",\"param\":\"n\",\"code\":"
          "\"invalid_type\"}}" },
        { 401, NULL, NULL,
          "{\"error\":{\"message\":\"say \\\"what\\\"\",\"type\":"
          "\"authentication_error\",\"param\":null,\"code\":null}}" },
        { 403, NULL, NULL,
          "{\"error\":{\"message\":\"say \\\"what\\\"\",\"type\":"
          "\"permission_error\",\"param\":null,\"code\":null}}" },
        { 404, "model_not_found", "model",
          "{\"error\":{\"message\":\"say \\\"what\\\"\",\"type\":"
          "\"invalid_request_error\",\"param\":\"model\",\"code\":"
          "\"model_not_found\"}}" },
        { 413, NULL, NULL,
          "{\"error\":{\"message\":\"say \\\"what\\\"\",\"type\":"
          "\"invalid_request_error\",\"param\":null,\"code\":null}}" },
        { 429, NULL, NULL,
          "{\"error\":{\"message\":\"say \\\"what\\\"\",\"type\":"
          "\"rate_limit_error\",\"param\":null,\"code\":"
          "\"rate_limit_exceeded\"}}" },
        { 500, NULL, NULL,
          "{\"error\":{\"message\":\"say \\\"what\\\"\",\"type\":"
          "\"server_error\",\"param\":null,\"code\":null}}" },
        { 503, "loading", NULL,
          "{\"error\":{\"message\":\"say \\\"what\\\"\",\"type\":"
          "\"server_error\",\"param\":null,\"code\":\"loading\"}}" },
    };

    llm_buf_init(&out, 0);

    for (i = 0; i < llm_nelems(errors); i++) {
        (void) llm_fail_with(&err, errors[i].status, errors[i].code,
                             errors[i].param, "say \"%s\"", "what");

        out.len = 0;
        (void) llm_api_error_body(NULL, llm_str(""), &err, &out);
        is_str(out.data, errors[i].want, "body of %d", errors[i].status);
    }

    out.len = 0;
    memset(&a, 0, sizeof(a));
    a.endpoint = CHAT;
    (void) llm_fail_with(&err, 400, NULL, NULL, "\xe2\x82\n");
    (void) llm_api_error_frame(&a, &err, &out);
    is_str(out.data, "data: {\"error\":{\"message\":\"\\\\xe2\\\\x82\\\\x0a\","
           "\"type\":\"invalid_request_error\",\"param\":null,"
           "\"code\":null}}\n\n", "a frame, its text whole and in one line");

    llm_buf_free(&out);
}


int
main(void)
{
    test_resolve();
    test_endpoints();
    test_tables();
    test_models();
    test_errors();

    return done_testing();
}
