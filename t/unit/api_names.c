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


/* names that follow a rule, as one request has them */

static void
test_aliases(void)
{
    size_t          i;
    llm_str_t       name, got;
    llm_err_t       err;
    llm_api_conf_t  c;

    static const llm_api_alias_t  aliases[] = {
        { { 4, "Chat" }, { 8, "big-tiny" }, 0 },
        { { 4, "beta" }, { 10, "Qwen/Small" }, 0 },
        { { 4, "none" }, { 0, "" }, 0 },
        { { 5, "wrong" }, { 4, "Chat" }, 0 },
        { { 5, "cased" }, { 4, "DEMO" }, 0 },
        { { 5, "other" }, { 6, "secret" }, 0 },
        { { 3, "key" }, { 8, "Big-Llm7" }, 1 },
        { { 6, "secreT" }, { 4, "demo" }, 0 },
        { { 4, "llm7" }, { 4, "demo" }, 0 }
    };

    static const struct {
        const char  *name;
        int32_t      want;
        int          status;
        const char  *alias, *why;
    } names[] = {
        { "Chat", 2, 0, "Chat", "to a model" },
        { "CHAT", 2, 0, "Chat", "in any case" },
        { "cha", -1, 404, "", "not by a part" },
        { "beta", 0, 0, "beta", "to an alias of a model" },
        { "none", -1, 404, "", "to nothing: it is not there" },
        { "wrong", -1, 404, "wrong", "not to another alias" },
        { "cased", -1, 404, "cased", "only to exact names" },
        { "other", -1, 404, "other", "not to another location's model" },
        { "key", 1, 0, "key", "a denied model by a granted alias" },
        { "Big-Llm7", -1, 403, "", "but not by its name" },
        { "gpt-4o-mini", 0, 0, "gpt-4o-mini", "an alias of a model" },
        { "QWEN/small", 0, 0, "Qwen/Small", "as it is there" },
        { "demo", 0, 0, "", "a name is none" },
        { "Demo", 0, 0, "", "in no case" },
        { "tiny", 2, 0, "", "nor is a part" },
        { "llm7", 0, 0, "llm7", "an alias before a part of a name" },
        { "", 0, 0, "", "the default is none" },
    };

    c = conf;
    c.aliases = aliases;
    c.n_aliases = llm_nelems(aliases);
    c.alias = &got;
    c.denied = 2;

    for (i = 0; i < llm_nelems(names); i++) {
        name.data = names[i].name;
        name.len = strlen(names[i].name);
        memset(&err, 0, sizeof(err));
        got = llm_str("");

        is_int(llm_api_resolve(&c, name, &err), names[i].want,
               "'%s': %s", names[i].name, names[i].why);
        is_int(err.status, names[i].status, "its status");
        ok(got.len == strlen(names[i].alias)
           && memcmp(got.data, names[i].alias, got.len) == 0,
           "the alias '%s'", names[i].alias);
    }

    (void) llm_api_resolve(&c, llm_str("WRONG"), &err);
    is_str(err.msg, "The alias 'wrong' leads to 'Chat', which is not a model "
           "here.", "says where it leads");
    ok(strcmp(err.code, "model_not_found") == 0
       && strcmp(err.param, "model") == 0, "as for any other name");

    c.fallback = 0;
    is_int(llm_api_resolve(&c, llm_str("wrong"), &err), -1,
           "no fallback for what is a mistake");
    is_int(llm_api_resolve(&c, llm_str("none"), &err), 0,
           "but for what is not there");

    c.alias = NULL;
    is_int(llm_api_resolve(&c, llm_str("chat"), &err), 2,
           "nobody asks for the alias");
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
        { "POST", "chat/completions", &llm_api_chat_any, "", "" },
        { "POST", "/chat/completions", &llm_api_chat_any, "", "" },
        { "POST", "v1/chat/completions", CHAT, "", "" },
        { "POST", "/v1/chat/completions", CHAT, "", "" },
        { "POST", "completions", &llm_api_completions_any, "", "" },
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


/* no table names a field twice, and they are not too many; forms have their
   own, sound_form.c */

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

        ok((llm_api_answers(row->endpoint)
            || row->endpoint->task == LLM_TASK_LISTEN) == (n == 0)
           && n <= LLM_API_MAX_FIELDS, "%u fields of %s", n, row->path);
    }
}


/* what a fingerprint depends on */

static void
test_fingerprint(void)
{
    size_t            i;
    char              all[6][16];
    llm_buf_t         head;
    const char       *p;
    llm_api_conf_t    c;
    llm_api_model_t   m[6];
    llm_api_reader_t  rd;

    for (i = 0; i < llm_nelems(m); i++) {
        m[i] = models[0];
    }

    m[5].products = "fp8";
    m[1].weights_fp8 = 1;
    m[2].kv = 1;
    m[3].created++;

    for (i = 0; i < llm_nelems(m); i++) {
        c = conf;
        c.models = &m[i];
        memset(&rd, 0, sizeof(rd));
        rd.conf = &c;
        llm_buf_init(&rd.head, 0);
        llm_api_write_head(&rd, "", "", "");
        head = rd.head;
        p = strstr(head.data, "fingerprint\":\"b");
        snprintf(all[i], sizeof(all[i]), "%.11s", p ? p + 14 : "none");
        llm_buf_free(&head);
    }

    is_int(strlen(all[0]), 11, "a fingerprint: %s", all[0]);
    ok(strcmp(all[0], all[4]) == 0, "the same of the same");
    ok(strcmp(all[0], all[1]) && strcmp(all[0], all[2])
       && strcmp(all[0], all[3]) && strcmp(all[0], all[5])
       && strcmp(all[1], all[2]),
       "another one for other weights, products, another cache, file");
}


/* of a model that no engine has loaded */
#define TEXT                                                                 \
    ",\"status\":{\"value\":\"unloaded\"}"                                     \
    ",\"architecture\":{\"input_modalities\":[\"text\"],"                      \
    "\"output_modalities\":[\"text\"]}"


static void
test_models(void)
{
    llm_buf_t        out;
    llm_err_t        err;
    llm_api_conf_t   c;
    llm_api_model_t  others[4];

    static const llm_api_alias_t  aliases[] = {
        { { 4, "chat" }, { 4, "demo" }, 0 },
        { { 4, "mine" }, { 4, "demo" }, 1 },
        { { 5, "wrong" }, { 4, "chat" }, 1 },
        { { 4, "none" }, { 0, "" }, 1 }
    };

    llm_buf_init(&out, 0);

    (void) llm_api_answer(&llm_api_models, &conf, llm_str(""), &out, &err);
    is_str(out.data,
           "{\"object\":\"list\",\"data\":["
           "{\"id\":\"demo\",\"object\":\"model\",\"created\":1700000000,"
           "\"owned_by\":\"nginx\",\"aliases\":[\"gpt-4o-mini\","
           "\"Qwen/Small\"]" TEXT "},"
           "{\"id\":\"gpt-4o-mini\",\"object\":\"model\","
           "\"created\":1700000000,\"owned_by\":\"nginx\","
           "\"aliases\":[],\"alias_of\":\"demo\"" TEXT "},"
           "{\"id\":\"Qwen/Small\",\"object\":\"model\","
           "\"created\":1700000000,\"owned_by\":\"nginx\","
           "\"aliases\":[],\"alias_of\":\"demo\"" TEXT "},"
           "{\"id\":\"Big-Llm7\",\"object\":\"model\",\"created\":1700000001,"
           "\"owned_by\":\"nginx\",\"aliases\":[]" TEXT "},"
           "{\"id\":\"big-tiny\",\"object\":\"model\",\"created\":1700000002,"
           "\"owned_by\":\"nginx\",\"aliases\":[]" TEXT "}]}",
           "the models of a location");

    out.len = 0;
    is_int(llm_api_answer(&llm_api_models, &conf, llm_str("gpt-4o-mini"),
                          &out, &err), LLM_OK, "one model");
    is_str(out.data,
           "{\"id\":\"gpt-4o-mini\",\"object\":\"model\","
           "\"created\":1700000000,\"owned_by\":\"nginx\","
           "\"aliases\":[],\"alias_of\":\"demo\"" TEXT "}", "by its alias");

    c = conf;
    c.aliases = aliases;
    c.n_aliases = llm_nelems(aliases);
    c.allowed = 1;
    c.denied = 1;
    out.len = 0;
    (void) llm_api_answer(&llm_api_models, &c, llm_str(""), &out, &err);
    is_str(out.data, "{\"object\":\"list\",\"data\":["
           "{\"id\":\"mine\",\"object\":\"model\",\"created\":1700000000,"
           "\"owned_by\":\"nginx\",\"aliases\":[],\"alias_of\":\"demo\"" TEXT
           "}]}",
           "an alias that the key is for, of a model that it is not for");

    c.denied = 0;
    out.len = 0;
    (void) llm_api_answer(&llm_api_models, &c, llm_str("CHAT"), &out, &err);
    is_str(out.data, "{\"id\":\"chat\",\"object\":\"model\","
           "\"created\":1700000000,\"owned_by\":\"nginx\",\"aliases\":[],"
           "\"alias_of\":\"demo\"" TEXT "}", "an alias is found as one");

    c = conf;
    c.fallback = 0;
    ok(llm_api_answer(&llm_api_models, &c, llm_str("nope"), &out, &err)
       == LLM_ERROR && err.status == 404, "an unknown one, fallback or not");

    out.len = 0;
    c.allowed = 0;
    (void) llm_api_answer(&llm_api_models, &c, llm_str(""), &out, &err);
    is_str(out.data, "{\"object\":\"list\",\"data\":[]}", "no models");

    memcpy(others, conf.models, sizeof(others));
    c = conf;
    c.models = others;
    others[0].media = LLM_MEDIUM_IMAGE | LLM_MEDIUM_AUDIO;
    others[1].media = LLM_MEDIUM_SPEECH;
    out.len = 0;
    (void) llm_api_answer(&llm_api_models, &c, llm_str(""), &out, &err);
    ok(strstr(out.data, "{\"input_modalities\":[\"text\",\"image\","
                        "\"audio\"],\"output_modalities\":[\"text\"]}}"),
       "what a model takes that has an encoder");
    ok(strstr(out.data, "{\"input_modalities\":[\"audio\"],"),
       "and one that transcribes");

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
    test_aliases();
    test_endpoints();
    test_tables();
    test_models();
    test_fingerprint();
    test_errors();

    return done_testing();
}
