/*
 * Messages of OpenAI's WebSocket mode: the body that each becomes, what is
 * remembered of the last response and what makes it forgotten, the bound of a
 * conversation, answers that generate nothing, errors.
 */

#include "engine/api/socket.h"
#include "t/unit/tap.h"

#define MOST  400

#define MESSAGE  "{'type':'message','role':'user','content':'a'}"
#define ANSWER   "{'type':'message','role':'assistant','content':'b'}"
#define ENDS(id)                                                             \
    "{'type':'response.completed','sequence_number':9,'response':"           \
    "{'id':'" id "','status':'completed','output':[" ANSWER "],'usage':null}}"

static llm_api_socket_t  *s;
static llm_buf_t          out;
static llm_err_t          err;


/* JSON with ' for " */

static llm_str_t
json(const char *text)
{
    char         *p;
    static char   copy[4096];

    snprintf(copy, sizeof(copy), "%s", text);

    for (p = copy; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }

    return (llm_str_t) { strlen(copy), copy };
}


static int
asks(const char *text)
{
    llm_buf_free(&out);
    llm_buf_init(&out, 0);

    return llm_api_socket_ask(s, json(text), &out, &err);
}


static void
becomes(const char *text, const char *body)
{
    llm_str_t  want;

    ok(asks(text) == LLM_OK, "it is understood: %s", text);
    want = json(body);
    ok(out.len == want.len && memcmp(out.data, want.data, want.len) == 0,
       "as %.*s", (int) out.len, out.data ? out.data : "");
}


static void
refused(const char *text, int status, const char *code, const char *param)
{
    ok(asks(text) == LLM_ERROR && err.status == status
       && strcmp(err.code, code) == 0 && strcmp(err.param, param) == 0,
       "%s: %d %s '%s': %s", text, err.status, err.code, err.param, err.msg);
}


/* what the client gets of an event; the NUL between two is a line feed */

static int
event(const char *text)
{
    int     last;
    char   *p;

    llm_buf_free(&out);
    llm_buf_init(&out, 0);
    last = llm_api_socket_event(s, json(text), &out);

    while ((p = out.len ? memchr(out.data, '\0', out.len) : NULL) != NULL) {
        *p = '\n';
    }

    return last;
}


static int
has(const char *text)
{
    llm_str_t  want;

    want = json(text);

    return out.len && memmem(out.data, out.len, want.data, want.len) != NULL;
}


static void
test_memory(void)
{
    char  text[1024];

    becomes("{'type':'response.create','model':'m','input':'a','stream':false,"
            "'stream_id':'1','top_p':0.5}",
            "{'stream':true,'input':[" MESSAGE "],'model':'m','top_p':0.5}");
    is_int(event("{'type':'response.output_text.delta','delta':'b'}"), 0,
           "a delta is not the last event");
    ok(has("'delta':'b'"), "and goes to the client");
    is_int(event(ENDS("r1")), 1, "the last one");
    ok(has("'id':'r1'"), "goes there, too");

    becomes("{'type':'response.create','previous_response_id':'r1',"
            "'input':[" MESSAGE "]}",
            "{'stream':true,'input':[" MESSAGE "," ANSWER "," MESSAGE "]}");
    (void) event(ENDS("r2"));
    refused("{'type':'response.create','previous_response_id':'r1'}", 400,
            "previous_response_not_found", "previous_response_id");
    becomes("{'type':'response.create','previous_response_id':'r2'}",
            "{'stream':true,'input':[" MESSAGE "," ANSWER "," MESSAGE ","
            ANSWER "]}");
    is_int(event("{'type':'response.failed','response':{'id':'r3'}}"), 1,
           "a failure is the last event");
    refused("{'type':'response.create','previous_response_id':'r2'}", 400,
            "previous_response_not_found", "previous_response_id");

    snprintf(text, sizeof(text), "{'type':'response.create','input':'%0*d'}",
             MOST, 0);
    refused(text, 413, "request_too_large", "");

    /* what is sent fits, and what is answered does not */

    snprintf(text, sizeof(text), "{'type':'response.create','input':'%0*d'}",
             MOST - 80, 0);
    ok(asks(text) == LLM_OK, "just small enough");
    (void) event(ENDS("r4"));
    refused("{'type':'response.create','previous_response_id':'r4'}", 400,
            "previous_response_not_found", "previous_response_id");
}


static void
test_warms(void)
{
    becomes("{'type':'response.create','generate':false,'input':'a',"
            "'max_output_tokens':50}",
            "{'stream':true,'input':[" MESSAGE "],'max_output_tokens':1}");
    is_int(event("{'type':'response.output_text.delta','delta':'b'}"), 0,
           "nothing is generated");
    is_int(out.len, 0, "as far as the client sees");
    is_int(event(ENDS("w1")), 1, "until it ends");
    ok(has("'type':'response.created','sequence_number':0,'response':"
           "{'id':'w1','status':'in_progress','output':[]"), "it was created");
    ok(has("'type':'response.completed','sequence_number':1,'response':"
           "{'id':'w1','status':'completed','output':[]"), "and completed");
    becomes("{'type':'response.create','previous_response_id':'w1'}",
            "{'stream':true,'input':[" MESSAGE "]}");
}


static void
test_errors(void)
{
    refused("{'type':'response.cancel'}", 400, "invalid_value", "type");
    refused("{'type':5}", 400, "invalid_value", "type");
    refused("5", 400, "invalid_type", "");
    refused("{'type':'response.create','input':{}}", 400, "invalid_type",
            "input");
    refused("{'type':'response.create','generate':'no'}", 400, "invalid_type",
            "generate");

    llm_buf_free(&out);
    llm_buf_init(&out, 0);
    llm_api_socket_error(s, &err, &out);
    ok(has("{'type':'error','status':400,'error':{'message':"), "its message");

    out.len = 0;
    llm_api_socket_failed(s, 429, json("{'error':{'message':'full'}}"), &out);
    ok(has("'status':429,'error':{'message':'full'}}"), "an answer's error");

    out.len = 0;
    llm_api_socket_failed(s, 503, llm_str("<html>"), &out);
    ok(has("'status':503,'error':{'message':'Too many"), "a page of nginx");

    out.len = 0;
    llm_api_socket_failed(s, 200, llm_str(""), &out);
    ok(has("'type':'server_error'"), "an answer that has broken off");
}


int
main(void)
{
    s = llm_api_socket_create(MOST);
    llm_buf_init(&out, 0);

    ok(llm_api_socket_path(llm_str("responses"))
       && llm_api_socket_path(llm_str("v1/responses"))
       && !llm_api_socket_path(llm_str("chat/completions"))
       && !llm_api_socket_path(llm_str("none")), "the path");

    test_memory();
    test_warms();
    test_errors();

    llm_api_socket_free(s);
    llm_buf_free(&out);

    return done_testing();
}
