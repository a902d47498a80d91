/*
 * The arguments of tool calls as engine/api reads them: what becomes an
 * object beside its text, what stays text, what a client cannot set, and the
 * bounds of depth, values and size.  In JSON ' stands for ".
 */

#include "engine/api/arguments.h"
#include "engine/api/endpoint.h"
#include "t/unit/api_dump.h"
#include "t/unit/tap.h"

#define READ  "'" LLM_CHAT_ARGS "':"

/* a call in a request, and where its own members begin and end in a dump */
#define BEFORE  "{'messages':[{'role':'assistant','tool_calls':["
#define AFTER   "]}]}"


typedef struct {
    const char  *call;
    const char  *want;                  /* NULL: as it came */
} case_t;

static const case_t  cases[] = {

    /* objects */

    { "{'function':{'name':'f','arguments':'{\\'a\\': [1, 2.5]}','x':1}}",
      "{'function':{'name':'f','arguments':'{\"a\": [1, 2.5]}',"
      READ "{'a':[1,d2.5]},'x':1}}" },
    { "{'function':{'arguments':''}}",
      "{'function':{'arguments':''," READ "{}}}" },
    { "{'function':{'arguments':' \\n{} '}}",
      "{'function':{'arguments':' \n{} '," READ "{}}}" },
    { "{'function':{'arguments':'{\\'a\\':1,\\'a\\':2}'}}",
      "{'function':{'arguments':'{\"a\":1,\"a\":2}'," READ "{'a':2}}}" },
    { "{'id':'c','arguments':'{}'}",
      "{'id':'c','arguments':'{}'," READ "{}}" },
    { "{'arguments':'{}','function':{'arguments':'{}'}}",
      "{'arguments':'{}'," READ "{},'function':{'arguments':'{}',"
      READ "{}}}" },

    /* what stays as it is */

    { "{'function':{'arguments':{'a':1}}}", NULL },
    { "{'function':{'arguments':null}}", NULL },
    { "{'function':{'name':'f'}}", NULL },
    { "{'function':{'arguments':'[1]'}}", NULL },
    { "{'function':{'arguments':'7'}}", NULL },
    { "{'function':{'arguments':'null'}}", NULL },
    { "{'function':{'arguments':' '}}", NULL },
    { "{'function':{'arguments':'{oops'}}", NULL },
    { "{'function':{'arguments':'{} {}'}}", NULL },
    { "{'function':{'arguments':'{} x'}}", NULL },
    { "{'function':{'arguments':'x{}'}}", NULL },
    { "{'function':{'arguments':'{1:2}'}}", NULL },
    { "{'function':{'function':{'arguments':'{}'}}}", NULL },
    { "{'f':{'arguments':'{}'}}", NULL },
    { "{'function':'{}'}", NULL },
    { "7", NULL },
    { "{'function':{'arguments':'{\\'a\\': 1e999}','x':1}}",
      "{'function':{'arguments':'{\"a\": 1e999}','x':1}}" },
    { "{'function':{'arguments':'{\\'a\\': \\'\\\\ud800\\'}'}}",
      "{'function':{'arguments':'{\"a\": \"\\ud800\"}',"
      READ "{'a':'\xef\xbf\xbd'}}}" },
    { "{'function':{'arguments':'{\\'a\\': \\'x\\\\u0000\\'}'}}",
      "{'function':{'arguments':'{\"a\": \"x\\u0000\"}',"
      READ "{'a':'x\xef\xbf\xbd'}}}" },

    /* the key is not the client's to set */

    { "{" READ "{'a':1},'function':{" READ "{'a':1},'arguments':'{oops'}}",
      "{'function':{'arguments':'{oops'}}" },
    { "{'function':{'arguments':'{}'," READ "{'a':1}}," READ "7}",
      "{'function':{'arguments':'{}'," READ "{}}}" },
    { "{'function':{" READ "{}}}", "{'function':{}}" }
};


static const llm_api_model_t  models[] = {
    { .name = { 4, "demo" }, .is_default = 1, .max_tokens = -1,
      .created = 1700000000 }
};

static const llm_api_conf_t  conf = {
    .models = models, .n_models = 1, .allowed = 1, .fallback = -1,
    .cap = -1, .id = { 4, "beef" }, .now = 1750000000
};


static int
read_request(const char *json, llm_json_limits_t *limits, llm_buf_t *out,
    llm_err_t *err)
{
    int        rc;
    char      *text;
    llm_buf_t  flat;

    text = quoted(json);
    memset(err, 0, sizeof(llm_err_t));
    llm_buf_init(&flat, 0);

    rc = llm_json_to_flat(text, strlen(text), NULL, &flat, err);

    if (rc == LLM_OK) {
        rc = llm_args_add_request((llm_flat_t *) flat.data, limits, out, err);
    }

    llm_buf_free(&flat);
    free(text);

    return rc;
}


static void
test_cases(void)
{
    size_t              i;
    char                json[1024], want[1024];
    llm_buf_t           out, dump;
    llm_err_t           err;
    llm_json_limits_t   limits;
    const llm_flat_t   *v;

    for (i = 0; i < llm_nelems(cases); i++) {
        llm_buf_init(&out, 0);
        llm_buf_init(&dump, 0);
        limits.values = LLM_JSON_MAX_VALUES;
        limits.lenient = 1;

        snprintf(json, sizeof(json), BEFORE "%s" AFTER, cases[i].call);
        snprintf(want, sizeof(want), BEFORE "%s" AFTER,
                 cases[i].want ? cases[i].want : cases[i].call);

        is_int(read_request(json, &limits, &out, &err), LLM_OK,
               "case %zu%s", i, err.msg);

        v = (const llm_flat_t *) out.data;

        if (ok(out.len && llm_flat_check(v, out.len) == LLM_OK, "is sound")) {
            dump_flat(v, &dump);
            is_str(dump.data, want, "%s", cases[i].call);
        }

        llm_buf_free(&out);
        llm_buf_free(&dump);
    }
}


/* requests that are something else come back as they were */

static void
test_others(void)
{
    size_t             i;
    llm_buf_t          out, dump;
    llm_err_t          err;
    llm_json_limits_t  limits = { 0, LLM_JSON_MAX_VALUES, 0 };

    static const char *const  others[] = {
        "{}", "[]", "{'messages':7}", "{'messages':[7,{'tool_calls':{}}]}",
        "{'tool_calls':[{'arguments':'{}'}],'messages':[]}",
        "{'messages':[{'content':'{}','arguments':'{}'}]}"
    };

    for (i = 0; i < llm_nelems(others); i++) {
        llm_buf_init(&out, 0);
        llm_buf_init(&dump, 0);

        if (ok(read_request(others[i], &limits, &out, &err) == LLM_OK
               && llm_flat_check(out.data, out.len) == LLM_OK, "sound"))
        {
            dump_flat((llm_flat_t *) out.data, &dump);
            is_str(dump.data, others[i], "request %zu", i);
        }

        llm_buf_free(&out);
        llm_buf_free(&dump);
    }
}


/* a body whose one call has these arguments, for how many calls */

static void
write_body(llm_buf_t *body, const char *arguments, int calls)
{
    int  i;

    llm_buf_init(body, 0);
    llm_buf_adds(body, "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},"
                       "{\"role\":\"assistant\",\"tool_calls\":[");

    for (i = 0; i < calls; i++) {
        llm_buf_addf(body, "%s{\"function\":{\"name\":\"f\",\"arguments\":",
                     i ? "," : "");
        (void) llm_json_add_string(body, arguments, strlen(arguments));
        llm_buf_adds(body, "}}");
    }

    llm_buf_adds(body, "]},{\"role\":\"tool\",\"content\":\"r\"}]}");
}


/* what the first call's function of the message holds by this key, in a
   request of so many calls; NULL: there is no message, or no such key */

static const llm_flat_t *
parse(const char *arguments, int calls, llm_buf_t *msg, llm_err_t *err)
{
    llm_api_t         *a;
    llm_buf_t          body;
    const llm_flat_t  *v;

    memset(err, 0, sizeof(llm_err_t));
    write_body(&body, arguments, calls);

    a = llm_api_parse(&llm_api_chat, &conf, body.data, body.len, msg, err);
    v = NULL;

    if (a) {
        const llm_request_t  *r = (const llm_request_t *) msg->data;

        v = llm_ref_data(r, r->chat);
        ok(llm_flat_check(v, r->chat.len) == LLM_OK, "the message is sound");

        v = llm_flat_get(v, "messages");
        v = llm_flat_next(v, llm_flat_first(v));
        v = llm_flat_get(llm_flat_first(llm_flat_get(v, "tool_calls")),
                         "function");
    }

    llm_api_free(a);
    llm_buf_free(&body);

    return v;
}


static void
test_depth(void)
{
    size_t             n;
    char               nest[2 * LLM_FLAT_MAX_DEPTH + 8];
    llm_buf_t          msg;
    llm_err_t          err;
    const llm_flat_t  *f;

    for (n = LLM_FLAT_MAX_DEPTH - 16; n <= LLM_FLAT_MAX_DEPTH - 15; n++) {
        memcpy(nest, "{\"a\":", 5);
        memset(nest + 5, '[', n - 1);
        memset(nest + 4 + n, ']', n - 1);
        memcpy(nest + 3 + 2 * n, "}", 2);

        llm_buf_init(&msg, 0);
        f = parse(nest, 1, &msg, &err);

        ok(f && llm_flat_get(f, "arguments")
           && (llm_flat_get(f, LLM_CHAT_ARGS) != NULL)
              == (n == LLM_FLAT_MAX_DEPTH - 16),
           "arguments of %zu levels%s", n, err.msg);

        llm_buf_free(&msg);
    }
}


/* the body's values and all arguments' together */

static void
test_values(void)
{
    char       *text;
    size_t      i, n;
    llm_buf_t   msg, out;
    llm_err_t   err;

    llm_json_limits_t  limits = { 0, 5, 0 };

    n = LLM_JSON_MAX_VALUES / 2;
    text = malloc(2 * n + 8);
    memcpy(text, "{\"a\":[1", 7);

    for (i = 0; i < n - 3; i++) {
        memcpy(text + 7 + 2 * i, ",1", 2);
    }

    memcpy(text + 7 + 2 * i, "]}", 3);

    llm_buf_init(&msg, 0);
    ok(parse(text, 1, &msg, &err) != NULL, "half of the values%s", err.msg);
    ok(parse(text, 2, &msg, &err) == NULL && err.status == 400,
       "twice that, and the body's");
    is_str(err.param, "messages", "where");
    ok(strstr(err.msg, "too many values") != NULL, "%s", err.msg);
    llm_buf_free(&msg);
    free(text);

    llm_buf_init(&out, 0);
    is_int(read_request(BEFORE "{'arguments':'{}'},{'arguments':'{}'},"
                        "{'arguments':'{\\'a\\':[]}'},{'arguments':''}" AFTER,
                        &limits, &out, &err), LLM_OK, "all that may be");
    is_int(limits.values, 0, "no more");
    is_int(read_request(BEFORE "{'arguments':'{}'}" AFTER, &limits, &out,
                        &err), LLM_ERROR, "one more is refused");
    is_int(read_request(BEFORE "{'arguments':'[1]'}" AFTER, &limits, &out,
                        &err), LLM_OK, "what is not read is not counted");
    llm_buf_free(&out);
}


/* the objects are a part of the message, whose size has a bound */

static void
test_size(void)
{
    char       text[512];
    size_t     i, n, large;
    llm_buf_t  msg;
    llm_err_t  err;

    for (i = 0, n = 0; i < 40; i++) {
        n += (size_t) snprintf(text + n, sizeof(text) - n, "%s\"k%zu\":[]",
                               i ? "," : "{", i);
    }

    snprintf(text + n, sizeof(text) - n, "}");

    llm_buf_init(&msg, 0);
    ok(parse(text, 1, &msg, &err) != NULL, "a message");
    large = msg.len;
    llm_buf_free(&msg);

    for (i = 8; i < 600; i += 8) {
        llm_buf_init(&msg, large - i);

        if (parse(text, 1, &msg, &err) || err.status != 413) {
            break;
        }

        llm_buf_free(&msg);
    }

    is_int(i, 600, "is refused wherever it has no room");
    llm_buf_free(&msg);
}


int
main(void)
{
    test_cases();
    test_others();
    test_depth();
    test_values();
    test_size();

    return done_testing();
}
