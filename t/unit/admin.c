/*
 * llm_admin below HTTP: paths, bodies, what is shown of a model, what it leaves
 * behind and the file of that, the memory that it tells of.
 */

#include "engine/api/admin.h"
#include "engine/api/sealed.h"
#include "engine/ipc/command.h"
#include "engine/ipc/zone.h"

#include "t/unit/tap.h"

#include <stdio.h>
#include <unistd.h>


/* ---- paths ---- */

static llm_str_t
text(const char *s)
{
    llm_str_t  t;

    t.data = s;
    t.len = strlen(s);

    return t;
}


static void
routes(const char *path, llm_admin_what_t what, const char *name)
{
    llm_admin_route_t  to;

    if (!ok(llm_admin_route(text(path), &to) == LLM_OK, "a path: %s", path)) {
        return;
    }

    is_int(to.what, what, "%s: what", path);
    ok(llm_str_is(to.name, name), "%s: whose", path);
}


static void
test_routes(void)
{
    size_t             i;
    llm_admin_route_t  to;

    static const char  *nothing[] = {
        "", "/", "model", "models/", "aliases/", "usage/", "usage/a",
        "modelsx", "Models", "models2/a/load", "load"
    };

    routes("models", LLM_ADMIN_LIST_MODELS, "");
    routes("aliases", LLM_ADMIN_LIST_ALIASES, "");
    routes("usage", LLM_ADMIN_USAGE, "");
    routes("models/demo", LLM_ADMIN_MODEL, "demo");
    routes("models/load", LLM_ADMIN_MODEL, "load");
    routes("models/demo/load", LLM_ADMIN_LOAD, "demo");
    routes("models/demo/unload", LLM_ADMIN_UNLOAD, "demo");
    routes("models/demo/drain", LLM_ADMIN_DRAIN, "demo");
    routes("models/demo/resume", LLM_ADMIN_RESUME, "demo");
    routes("models/org/demo/load", LLM_ADMIN_LOAD, "org/demo");
    routes("models/demo/load/load", LLM_ADMIN_LOAD, "demo/load");
    routes("models/demo/explode", LLM_ADMIN_MODEL, "demo/explode");
    routes("models//load", LLM_ADMIN_MODEL, "/load");
    routes("aliases/chat", LLM_ADMIN_ALIAS, "chat");
    routes("aliases/org/chat", LLM_ADMIN_ALIAS, "org/chat");

    for (i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
        ok(llm_admin_route(text(nothing[i]), &to) == LLM_ERROR,
           "nothing at \"%s\"", nothing[i]);
    }

    (void) llm_admin_route(text("models/a/b/drain"), &to);
    ok(llm_str_is(to.whole, "a/b/drain"), "an action's path may be a model's");
    is_str(llm_admin_methods(LLM_ADMIN_ALIAS), "GET, HEAD, PUT, DELETE",
           "methods");
    is_str(llm_admin_methods(LLM_ADMIN_MODEL), "GET, HEAD, PUT, DELETE",
           "methods of a model");
}


/* ---- bodies ---- */

static void
body(const char *json, const char *name, const char *want)
{
    char              got[200];
    llm_err_t         err;
    llm_admin_body_t  b;

    memset(&err, 0, sizeof(err));

    if (llm_admin_read_body(&b, json, strlen(json), name, &err) != LLM_OK) {
        snprintf(got, sizeof(got), "%d %s", err.status, err.code);
        ok(err.msg[0], "%s: a message", json);

    } else {
        snprintf(got, sizeof(got), "%s%.*s",
                 !b.given ? "none" : b.null ? "null" : "",
                 (int) b.value.len, b.value.len ? b.value.data : "");
    }

    is_str(got, want, "%.60s", json);
    llm_buf_free(&b.flat);
}


static void
test_bodies(void)
{
    body("", "file", "none");
    body(" \r\n\t", "file", "none");
    body("{}", "file", "none");
    body("{}", NULL, "none");
    body("{\"file\":\"a.gguf\"}", "file", "a.gguf");
    body("{\"file\":null}", "file", "null");
    body("\xef\xbb\xbf{\"file\":\"a.gguf\"}", "file", "a.gguf");
    body("\xef\xbb\xbf\r\n", "file", "none");
    body("\xef\xbb{\"file\":\"a.gguf\"}", "file", "400 ");
    body("\xef\xbb\xbf\xef\xbb\xbf{}", "file", "400 ");
    body("{\"file\":\"a\",\"file\":\"b\"}", "file", "b");
    body("{\"file\":\"\"}", "file", "400 invalid_value");
    body("{\"file\":1}", "file", "400 invalid_type");
    body("{\"file\":[\"a\"]}", "file", "400 invalid_type");
    body("{\"File\":\"a\"}", "file", "400 unknown_parameter");
    body("{\"file\":\"a\",\"x\":1}", "file", "400 unknown_parameter");
    body("{\"file\":\"a\"}", NULL, "400 unknown_parameter");
    body("[]", "file", "400 invalid_type");
    body("\"a\"", "file", "400 invalid_type");
    body("{\"file\":\"a", "file", "400 ");
    body("{\"file\":\"a\"} x", "file", "400 ");
    body("{\"file\":\"\\u0000\"}", "file", "400 ");
    body("{\"file\":\"\xff\"}", "file", "400 ");
    body("{\"file\":[[[[[[[]]]]]]]}", "file", "400 ");
}


/* ---- names ---- */

static void
test_names(void)
{
    char       longest[LLM_ADMIN_NAME + 2];
    llm_err_t  err;

    memset(longest, 'a', sizeof(longest));
    longest[LLM_ADMIN_NAME + 1] = '\0';

    ok(llm_admin_check_name(text("chat"), &err) == LLM_OK, "a name");
    ok(llm_admin_check_name(text("org/\xc3\xa4 \"b\""), &err) == LLM_OK,
       "odd characters");
    ok(llm_admin_check_name(text("\xff"), &err) == LLM_ERROR, "not UTF-8");
    ok(llm_admin_check_name(text("a\nb"), &err) == LLM_ERROR,
       "a control character");
    ok(llm_admin_check_name(text("a\x7f"), &err) == LLM_ERROR, "and DEL");
    ok(llm_admin_check_name(text(""), &err) == LLM_ERROR, "an empty one");
    ok(llm_admin_check_name(text(longest), &err) == LLM_ERROR, "too long");
    is_int(err.status, 400, "its status");
    ok(llm_admin_check_name(text(longest + 1), &err) == LLM_OK, "the longest");
}


/* what a reader does not see, or is misled by */

static void
test_new_names(void)
{
    size_t     i;
    llm_err_t  err;

    static const struct {
        const char  *name;
        const char  *why;               /* NULL: it can be one */
    } names[] = {
        { "chat", NULL },
        { "\xc2\xa0" "a\xc3\x9f\xd8\x9b\xe2\x80\x8d\xe2\x80\xaf", NULL },
        { "\xd7\xa2\xd7\x91\xd7\xa8\xd7\x99\xd7\xaa", NULL },
        { "a\nb", "control" },
        { "a\xc2\x80", "U+0080" },
        { "a\xc2\x9f" "b", "U+009F" },
        { "\xd8\x9c", "U+061C" },
        { "\xe2\x80\x8e", "U+200E" },
        { "a\xe2\x80\x8f", "U+200F" },
        { "a\xe2\x80\xaa", "U+202A" },
        { "a\xe2\x80\xae" "b", "U+202E" },
        { "a\xe2\x81\xa6", "U+2066" },
        { "a\xe2\x81\xa9", "U+2069" }
    };

    for (i = 0; i < llm_nelems(names); i++) {
        err.msg[0] = '\0';
        is_int(llm_admin_check_new_name(text(names[i].name), &err),
               names[i].why ? LLM_ERROR : LLM_OK, "new name %u: %s",
               (unsigned) i, err.msg);

        if (names[i].why) {
            is_int(err.status, 400, "400");
            is_str(err.code, "invalid_name", "and its code");
            ok(strstr(err.msg, names[i].why) != NULL, "it says %s",
               names[i].why);
        }
    }
}


/* ---- aliases ---- */

static llm_admin_state_t  st, again;


static const char *
leads(const llm_admin_state_t *s, const char *name)
{
    static char               to[LLM_ADMIN_NAME + 1];
    const llm_admin_alias_t  *a;

    a = llm_admin_find_alias(s, text(name));

    if (a == NULL) {
        return "nowhere";
    }

    snprintf(to, sizeof(to), "%.*s", (int) a->model.len, a->model.data);

    return to;
}


static void
test_aliases(void)
{
    int        i, rc;
    char       name[32];
    llm_err_t  err;

    memset(&st, 0, sizeof(st));

    ok(llm_admin_set_alias(&st, text("chat"), text("one"), &err) == LLM_OK,
       "an alias is set");
    ok(llm_admin_set_alias(&st, text("next"), text("two"), &err) == LLM_OK,
       "and another");
    is_str(leads(&st, "CHAT"), "one", "in any case");
    (void) llm_admin_set_alias(&st, text("Chat"), text("two"), &err);
    is_int(st.n_aliases, 2, "it is one alias");
    is_str(leads(&st, "chat"), "two", "which is set again");
    (void) llm_admin_set_alias(&st, text("chat"), text(""), &err);
    is_str(leads(&st, "chat"), "nowhere", "and taken back");
    is_str(leads(&st, "next"), "two", "the other one stays");
    (void) llm_admin_set_alias(&st, text("chat"), text(""), &err);
    is_int(st.n_aliases, 1, "what is not set need not be taken back");

    for (i = 0, rc = LLM_OK; rc == LLM_OK && i < LLM_ADMIN_ALIASES; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        rc = llm_admin_set_alias(&st, text(name), text("one"), &err);
    }

    is_int(st.n_aliases, LLM_ADMIN_ALIASES, "as many as there is room for");
    is_int(rc, LLM_ERROR, "one more is refused");
    is_int(err.status, 409, "its status");
    ok(llm_admin_set_alias(&st, text("n0"), text("two"), &err) == LLM_OK,
       "one of them may still change");
}


/* ---- models ---- */

static llm_override_t
override(const char *file, int stopped, int draining, uint64_t number)
{
    llm_override_t  o;

    memset(&o, 0, sizeof(o));
    snprintf(o.file, sizeof(o.file), "%s", file);
    o.stopped = stopped;
    o.draining = draining;
    o.number = number;

    return o;
}


static void
test_models(void)
{
    int                       i;
    char                      name[32];
    llm_override_t            o;
    const llm_admin_model_t  *m;

    memset(&st, 0, sizeof(st));

    o = override("", 0, 0, 0);
    ok(!llm_admin_is_news(&st, text("one"), &o), "as it was is no news");

    o = override("a.gguf", 0, 1, 3);
    ok(llm_admin_is_news(&st, text("one"), &o), "another file is");
    llm_admin_set_model(&st, text("one"), &o);
    ok(!llm_admin_is_news(&st, text("one"), &o), "not twice");

    o.number = 4;
    ok(llm_admin_is_news(&st, text("one"), &o), "a number is");
    llm_admin_set_model(&st, text("one"), &o);
    is_int(st.n_models, 1, "of one model");

    for (i = 0; i < LLM_ADMIN_MODELS + 5; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        o = override("", 1, 0, i + 1);
        llm_admin_set_model(&st, text(name), &o);
    }

    is_int(st.n_models, LLM_ADMIN_MODELS, "as many as there is room for");
    ok(llm_admin_find_model(&st, text("one")) == NULL,
       "the oldest ones have gone");
    m = llm_admin_find_model(&st, text(name));
    ok(m && m->o.number == LLM_ADMIN_MODELS + 5, "the latest one is there");

    /* one that was added is only here */

    memset(&st, 0, sizeof(st));
    o = override("a.gguf", 0, 0, 0);
    o.added = 1;
    ok(llm_admin_is_news(&st, text("new"), &o), "one that is added is news");
    llm_admin_set_model(&st, text("new"), &o);
    ok(!llm_admin_is_news(&st, text("new"), &o), "once");

    for (i = 0; i < LLM_ADMIN_MODELS + 5; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        o = override("", 1, 0, i + 1);
        llm_admin_set_model(&st, text(name), &o);
    }

    ok(llm_admin_find_model(&st, text("new")) != NULL,
       "others go before it does");
    llm_admin_forget_model(&st, text("new"));
    llm_admin_forget_model(&st, text("none"));
    is_int(st.n_models, LLM_ADMIN_MODELS - 1, "it is forgotten");
    ok(llm_admin_find_model(&st, text("new")) == NULL, "alone");
}


/* ---- the file ---- */

static void
fill(void)
{
    char            file[LLM_MAX_FILE];
    llm_err_t       err;
    llm_override_t  o;

    memset(&st, 0, sizeof(st));

    (void) llm_admin_set_alias(&st, text("chat"), text("demo-2"), &err);
    (void) llm_admin_set_alias(&st, text("org/\xc3\xa4 \"b\" \\"),
                               text("d\xc3\xa9mo"), &err);
    o = override("sub/\"b\".gguf", 0, 1, 7);
    llm_admin_set_model(&st, text("demo"), &o);

    memset(file, '"', sizeof(file));
    file[sizeof(file) - 1] = '\0';
    o = override(file, 1, 0, INT64_MAX);
    llm_admin_set_model(&st, text("demo-2"), &o);

    o = override("b.gguf", 0, 0, 1);
    o.added = 1;
    llm_admin_set_model(&st, text("org/\xc3\xa4 \"new\""), &o);

    /* names that could be given once */

    llm_admin_set_model(&st, text("a\xe2\x80\xae"), &o);
    (void) llm_admin_set_alias(&st, text("b\xc2\x85"), text("one"), &err);
}


static void
test_round_trip(void)
{
    llm_buf_t  out;
    llm_err_t  err;

    fill();
    llm_buf_init(&out, 0);

    ok(llm_admin_write(&st, &out) == LLM_OK, "it is written");
    ok(llm_admin_read(&again, out.data, out.len, &err) == LLM_OK,
       "and read");
    ok(memcmp(&st, &again, sizeof(st)) == 0, "the same");

    llm_buf_free(&out);

    memset(&st, 0, sizeof(st));
    llm_buf_init(&out, 0);
    (void) llm_admin_write(&st, &out);
    ok(llm_admin_read(&again, out.data, out.len, &err) == LLM_OK
       && again.n_aliases + again.n_models == 0, "of nothing");
    llm_buf_free(&out);
}


static void
test_torn(void)
{
    size_t     i;
    uint32_t   used, changed;
    llm_buf_t  out;
    llm_err_t  err;

    fill();
    llm_buf_init(&out, 0);
    (void) llm_admin_write(&st, &out);
    used = changed = 0;

    (void) llm_admin_read(&again, "", 0, &err);
    is_str(err.msg, "it is empty", "one that is empty is said to be");
    (void) llm_admin_read(&again, out.data, 9, &err);
    is_str(err.msg, "it ends in the middle of a line", "and one that is cut");

    for (i = 0; i < out.len; i++) {
        used += llm_admin_read(&again, out.data, i, &err) == LLM_OK
                || again.n_aliases || again.n_models;
        out.data[i] ^= 1;
        changed += llm_admin_read(&again, out.data, out.len, &err) == LLM_OK
                   || again.n_aliases || again.n_models;
        out.data[i] ^= 1;
    }

    is_int(used, 0, "nothing is used of a file that ends early, wherever");
    is_int(changed, 0, "nor of one with another byte, wherever");

    llm_buf_free(&out);
}


/* whole and wrong, under a right digest */

static void
test_wrong(void)
{
    size_t     i;
    llm_buf_t  out;
    llm_err_t  err;

    static const char  *lines[] = {
        "{}", "[]", "1", "", "{\"alias\":\"a\"}", "{\"model\":\"a\"}",
        "{\"alias\":\"a\",\"model\":\"\"}", "{\"alias\":\"\",\"model\":\"a\"}",
        "{\"alias\":1,\"model\":\"a\"}", "{\"alias\":\"\\n\",\"model\":\"a\"}",
        "{\"model\":\"a\",\"file\":\"\",\"stopped\":1,\"draining\":false,"
        "\"number\":0}",
        "{\"model\":\"a\",\"file\":null,\"stopped\":true,\"draining\":false,"
        "\"number\":0}",
        "{\"model\":\"a\",\"file\":\"\",\"stopped\":true,\"draining\":false,"
        "\"number\":-1}",
        "{\"model\":\"a\",\"file\":\"b\",\"stopped\":true,\"draining\":false,"
        "\"number\":1,\"added\":1}",
        "{\"model\":\"\\n\",\"file\":\"b\",\"stopped\":true,\"draining\":"
        "false,\"number\":1,\"added\":true}"
    };

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        llm_buf_init(&out, 0);
        (void) llm_buf_addf(&out, "{\"state_of\":\"llm_admin\"}\n%s\n",
                            lines[i]);
        (void) llm_sealed_end(&out, "lines", 1);

        is_int(llm_admin_read(&again, out.data, out.len, &err), LLM_ERROR,
               "not a line: %.60s", lines[i]);
        ok(strstr(err.msg, "line 2") != NULL, "it is named: %s", err.msg);
        llm_buf_free(&out);
    }

    llm_buf_init(&out, 0);
    (void) llm_buf_adds(&out, "{\"usage_of\":\"zone\"}\n");
    (void) llm_sealed_end(&out, "lines", 0);
    is_int(llm_admin_read(&again, out.data, out.len, &err), LLM_ERROR,
           "a file of something else");
    ok(strstr(err.msg, "no state") != NULL, "that is said: %s", err.msg);
    llm_buf_free(&out);
}


/* of a model that was unloaded the zone still knows what it was */

static void
test_memory(void)
{
    size_t             size;
    llm_buf_t          out;
    llm_zone_t        *zone;
    llm_admin_conf_t   conf;
    llm_zone_model_t   m;
    llm_admin_known_t  demo;

    memset(&m, 0, sizeof(m));
    m.parallel = 1;
    size = llm_align(llm_zone_size(1, 1, 1 << 17), 64);
    zone = llm_zone_init(aligned_alloc(64, size), 1, &m, 1, 1 << 17, 5);

    demo.name = text("demo");
    demo.path = "demo.gguf";
    conf.zone = zone;
    conf.models = &demo;
    conf.n_models = 1;
    conf.dir = NULL;

    llm_zone_set_state(zone, 0, LLM_MODEL_STOPPED);
    llm_zone_set(zone->models[0].n_bytes, 7000);

    llm_buf_init(&out, 0);
    (void) llm_admin_model_body(&conf, 0, &out);
    (void) llm_buf_addc(&out, '\0');
    ok(strstr(out.data, "\"memory\":{\"weights\":0,") != NULL,
       "one that is not there takes no memory: %s", out.data);

    /* while another file takes its place there are two */

    out.len = 0;
    llm_zone_set_state(zone, 0, LLM_MODEL_READY);
    llm_zone_add(zone->models[0].figures.weight_bytes, 7000);
    llm_zone_add(zone->models[0].figures.weight_bytes, 5000);
    (void) llm_admin_model_body(&conf, 0, &out);
    (void) llm_buf_addc(&out, '\0');
    ok(strstr(out.data, "\"memory\":{\"weights\":12000,") != NULL,
       "two files take that of both: %s", out.data);

    llm_buf_free(&out);
    free(zone);
}


/* ---- what is shown of a model, over a real zone ---- */

static const llm_admin_known_t  known[] = {
    { .name = { 3, "one" }, .path = "/srv/models/one.gguf" }
};


/* from its state to its device, and the action at the end */

static void
shows(llm_zone_t *z, const char *state, const char *action, const char *name)
{
    char              want[512];
    llm_buf_t         out;
    llm_admin_conf_t  conf = { z, known, 1, "/srv/models" };

    llm_buf_init(&out, 0);

    ok(llm_admin_model_body(&conf, 0, &out) == LLM_OK, "%s: a body", name);
    snprintf(want, sizeof(want), "{\"id\":\"one\",\"object\":\"model\","
             "\"state\":\"%s,\"device\":", state);

    if (!ok(strncmp(out.data, want, strlen(want)) == 0, "%s", name)) {
        printf("# %s\n# %s\n", out.data, want);
    }

    snprintf(want, sizeof(want), ",\"action\":%s}", action);

    if (!ok(out.len > strlen(want)
            && strcmp(out.data + out.len - strlen(want), want) == 0,
            "%s: its action", name))
    {
        printf("# %s\n# %s\n", out.data, want);
    }

    llm_buf_free(&out);
}


static void
test_states(llm_zone_t *z)
{
    static const char  none[] = "null";

    llm_zone_set_state(z, 0, LLM_MODEL_IDLE);
    shows(z, "idle\",\"file\":\"one.gguf\",\"configured_file\":true", none,
          "idle");

    llm_zone_set_state(z, 0, LLM_MODEL_LOADING);
    llm_zone_set(z->models[0].permille, 250);
    shows(z, "loading\",\"file\":\"one.gguf\",\"configured_file\":true,"
          "\"progress\":0.250", none, "loading, and how far it is");

    llm_zone_set(z->models[0].permille, 1000);
    llm_zone_set(z->models[0].warming, 1);
    shows(z, "warming\",\"file\":\"one.gguf\",\"configured_file\":true,"
          "\"progress\":1.000", none, "warming");
    llm_zone_set(z->models[0].warming, 0);

    llm_zone_set_state(z, 0, LLM_MODEL_READY);
    shows(z, "ready\",\"file\":\"one.gguf\",\"configured_file\":true", none,
          "ready");

    atomic_store(&z->models[0].command.refuse_us, 1);
    shows(z, "draining\",\"file\":\"one.gguf\",\"configured_file\":true",
          none, "draining");
    atomic_store(&z->models[0].command.refuse_us, 0);

    llm_zone_set_state(z, 0, LLM_MODEL_STOPPED);
    llm_command_set_file(&z->models[0].command, "/srv/models/b.gguf");
    shows(z, "stopped\",\"file\":\"b.gguf\",\"configured_file\":false", none,
          "stopped, with another file");
    llm_command_set_file(&z->models[0].command, "");

    llm_zone_set_state(z, 0, LLM_MODEL_FAILED);
    llm_zone_set_text(z, 0, "a \"reason\"", NULL);
    shows(z, "failed\",\"file\":\"one.gguf\",\"configured_file\":true,"
          "\"reason\":\"a \\\"reason\\\"\"", none, "failed, and why");
}


static void
test_actions(llm_zone_t *z)
{
    uint64_t             n;
    llm_err_t            err;
    llm_zone_command_t  *c;

    static const char  state[] = "ready\",\"file\":\"one.gguf\","
                                 "\"configured_file\":true";

    c = &z->models[0].command;
    llm_zone_set_state(z, 0, LLM_MODEL_READY);

    ok(llm_command_claim(c, LLM_COMMAND_LOAD, &n, &err) == LLM_OK,
       "an action");
    shows(z, state, "{\"id\":1,\"command\":\"load\",\"state\":\"sent\"}",
          "sent");

    ok(llm_command_take(c, n, "/srv/models/b.gguf", "") == LLM_OK, "taken");
    llm_zone_set(c->permille, 70);
    shows(z, state, "{\"id\":1,\"command\":\"load\",\"state\":\"running\","
          "\"file\":\"b.gguf\",\"progress\":0.070,\"warming\":false}",
          "another file is being loaded");

    (void) llm_fail_with(&err, 503, "model_failed", NULL, "no memory");
    llm_command_end(c, n, &err);
    shows(z, state, "{\"id\":1,\"command\":\"load\",\"state\":\"failed\","
          "\"file\":\"b.gguf\",\"status\":503,\"code\":\"model_failed\","
          "\"reason\":\"no memory\"}", "it failed, and the old one goes on");

    ok(llm_command_claim(c, LLM_COMMAND_RESUME, &n, &err) == LLM_OK
       && llm_command_take(c, n, "", "") == LLM_OK, "another one");
    memset(&err, 0, sizeof(err));
    llm_command_end(c, n, &err);
    shows(z, state, "{\"id\":2,\"command\":\"resume\",\"state\":\"done\"}",
          "done");
}


static void
test_shown(void)
{
    void        *mem;
    size_t       size;
    llm_zone_t  *z;

    static const llm_zone_model_t  sizes[] = { { .parallel = 4 } };

    size = llm_align(llm_zone_size(1, 1, 65536), 64);
    mem = aligned_alloc(64, size);
    z = llm_zone_init(mem, 1, sizes, 1, 65536, 8);

    atomic_store(&z->engine_pid, getpid());
    atomic_store(&z->epoch, 1);
    atomic_store(&z->attached, 1);

    test_states(z);
    test_actions(z);

    free(mem);
}


/* two that have one file: what either has done is done, once */

static void
alias(llm_admin_state_t *st, const char *name, const char *model)
{
    llm_err_t  err;

    is_int(llm_admin_set_alias(st, text(name), text(model), &err), LLM_OK,
           "%s: %s", name, model);
}


static void
test_merge(void)
{
    llm_override_t            o;
    const llm_admin_alias_t  *a;
    const llm_admin_model_t  *m;

    static llm_admin_state_t  base, ours, theirs;

    memset(&base, 0, sizeof(base));
    memset(&o, 0, sizeof(o));

    alias(&base, "same", "one");
    alias(&base, "gone", "one");
    alias(&base, "kept", "one");
    alias(&base, "both", "one");
    o.number = 1;
    llm_admin_set_model(&base, text("m"), &o);
    llm_admin_set_model(&base, text("n"), &o);

    ours = base;
    theirs = base;

    alias(&theirs, "gone", "");
    alias(&theirs, "kept", "");
    alias(&theirs, "both", "two");
    alias(&theirs, "new", "two");
    alias(&ours, "kept", "three");
    alias(&ours, "both", "three");
    alias(&ours, "mine", "three");
    o.number = 2;
    llm_admin_set_model(&theirs, text("m"), &o);
    llm_admin_set_model(&theirs, text("n"), &o);
    o.number = 3;
    llm_admin_set_model(&ours, text("n"), &o);

    ok(!llm_admin_same_state(&ours, &theirs), "two states");
    llm_admin_merge(&ours, &base, &theirs);

    ok(llm_admin_find_alias(&ours, text("gone")) == NULL, "taken back");

    a = llm_admin_find_alias(&ours, text("new"));
    ok(a && llm_str_is(llm_admin_str(&a->model), "two"), "theirs");
    a = llm_admin_find_alias(&ours, text("mine"));
    ok(a && llm_str_is(llm_admin_str(&a->model), "three"), "ours");
    a = llm_admin_find_alias(&ours, text("both"));
    ok(a && llm_str_is(llm_admin_str(&a->model), "three"), "ours of both");
    a = llm_admin_find_alias(&ours, text("kept"));
    ok(a && llm_str_is(llm_admin_str(&a->model), "three"), "changed here");
    a = llm_admin_find_alias(&ours, text("SAME"));
    ok(a && llm_str_is(llm_admin_str(&a->model), "one"), "as it was");

    m = llm_admin_find_model(&ours, text("m"));
    ok(m && m->o.number == 2, "their model");
    m = llm_admin_find_model(&ours, text("n"));
    ok(m && m->o.number == 3, "our model");

    /* models that were added may be removed, too */

    memset(&o, 0, sizeof(o));
    o.added = 1;
    strcpy(o.file, "a.gguf");
    llm_admin_set_model(&base, text("added"), &o);
    llm_admin_set_model(&base, text("changed"), &o);
    ours = base;
    theirs = base;
    llm_admin_forget_model(&theirs, text("added"));
    llm_admin_forget_model(&theirs, text("changed"));
    llm_admin_forget_model(&theirs, text("m"));
    llm_admin_set_model(&theirs, text("more"), &o);
    o.stopped = 1;
    llm_admin_set_model(&ours, text("changed"), &o);
    llm_admin_merge(&ours, &base, &theirs);

    ok(llm_admin_find_model(&ours, text("added")) == NULL,
       "one that they have removed");
    m = llm_admin_find_model(&ours, text("changed"));
    ok(m && m->o.stopped && m->o.added, "not if it was changed here");
    m = llm_admin_find_model(&ours, text("more"));
    ok(m && m->o.added, "one that they have added");
    ok(llm_admin_find_model(&ours, text("m")) != NULL,
       "what is known of others is kept");

    /* in another order it is the same */

    theirs = ours;
    alias(&theirs, "same", "");
    alias(&theirs, "same", "one");
    ok(llm_admin_same_state(&ours, &theirs), "in another order");
    alias(&theirs, "same", "two");
    ok(!llm_admin_same_state(&ours, &theirs), "another model");
}


int
main(void)
{
    test_routes();
    test_bodies();
    test_names();
    test_new_names();
    test_aliases();
    test_models();
    test_merge();
    test_round_trip();
    test_torn();
    test_wrong();
    test_memory();
    test_shown();

    return done_testing();
}
