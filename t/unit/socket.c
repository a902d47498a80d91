/*
 * Messages of OpenAI's WebSocket mode: the body that each becomes, what is
 * remembered of the last response and what makes it forgotten, the bound of a
 * conversation, answers that generate nothing, streams beside each other,
 * errors.
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
static uint32_t           lane;         /* of the last message */


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

    return llm_api_socket_ask(s, json(text), &lane, &out, &err);
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


/* what the client gets of an event of a lane, which ends with the last one; the
   NUL between two is a line feed */

static int
event_of(uint32_t of, const char *text)
{
    int     last;
    char   *p;

    llm_buf_free(&out);
    llm_buf_init(&out, 0);
    last = llm_api_socket_event(s, of, json(text), &out);

    while ((p = out.len ? memchr(out.data, '\0', out.len) : NULL) != NULL) {
        *p = '\n';
    }

    if (last) {
        llm_api_socket_end(s, of);
    }

    return last;
}


static int
event(const char *text)
{
    return event_of(lane, text);
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
            "'top_p':0.5}",
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
    (void) event(ENDS("w2"));
}


static void
again(int want, const char *name)
{
    llm_buf_free(&out);
    llm_buf_init(&out, 0);
    is_int(llm_api_socket_again(s, &lane, &out, &err), want, name);
}


#define SAYS(stream, input)                                                  \
    "{'type':'response.create','stream_id':'" stream "','input':'" input "'}"

static void
test_lanes(void)
{
    char      text[1024];
    uint32_t  a, b, i;

    llm_api_socket_free(s);
    s = llm_api_socket_create(MOST);

    /* two streams, and a second message of one */

    ok(asks(SAYS("a", "1")) == LLM_OK, "a stream");
    a = lane;
    ok(asks(SAYS("b", "1")) == LLM_OK && lane != a, "another one beside it");
    b = lane;
    is_int(asks(SAYS("a", "2")), LLM_FULL, "its second message waits");
    is_int(asks(SAYS("a", "3")), LLM_FULL, "so does its third");
    ok(llm_api_socket_waiting(s) > 0, "as bytes");
    again(LLM_FULL, "while the first is answered");

    (void) event_of(b, "{'type':'response.output_text.delta','delta':'x'}");
    ok(has("'delta':'x','stream_id':'b'}"), "an event names its stream");
    is_int(event_of(b, ENDS("rb")), 1, "the last event");
    again(LLM_FULL, "another stream's end is not theirs");
    (void) event_of(a, ENDS("ra"));
    again(LLM_OK, "their own is");
    ok(has("'content':'2'") && lane == a, "the second message");
    again(LLM_FULL, "before the third");
    (void) event_of(a, ENDS("ra2"));
    again(LLM_OK, "which follows");
    ok(has("'content':'3'"), "then");
    is_int(llm_api_socket_waiting(s), 0, "and none waits");
    (void) event_of(a, ENDS("ra3"));

    /* a response of one stream, continued by another */

    becomes("{'type':'response.create','stream_id':'c',"
            "'previous_response_id':'rb'}",
            "{'stream':true,'input':[{'type':'message','role':'user',"
            "'content':'1'}," ANSWER "]}");
    ok(lane != a && lane != b, "in a lane of its own");
    (void) event(ENDS("rc"));
    refused("{'type':'response.create','stream_id':'c',"
            "'previous_response_id':'ra2'}", 400,
            "previous_response_not_found", "previous_response_id");
    ok(asks("{'type':'response.create','stream_id':'b',"
            "'previous_response_id':'rb'}") == LLM_OK,
       "another stream's error forgets nothing of this one");
    (void) event(ENDS("rb2"));

    /* all lanes are busy; the lane that was used least recently gives way */

    for (i = 0; i < LLM_API_SOCKET_LANES; i++) {
        snprintf(text, sizeof(text), SAYS("s%u", "1"), i);
        ok(asks(text) == LLM_OK, "stream %u", i);
    }

    is_int(asks(SAYS("z", "1")), LLM_FULL, "there is no lane for more");
    ok(llm_api_socket_room(s, 10) && !llm_api_socket_room(s, MOST),
       "the bound of those that wait");
    (void) event_of(0, ENDS("r0"));
    again(LLM_OK, "until one is free");
    is_int(lane, 0, "which is it");
    refused("{'type':'response.create','stream_id':'','input':'a'}", 400,
            "invalid_value", "stream_id");
    is_int(lane, LLM_API_SOCKET_NOWHERE, "of no stream");
    refused("{'type':'response.create','stream_id':7,'input':'a'}", 400,
            "invalid_type", "stream_id");
    snprintf(text, sizeof(text), "{'type':'response.create','stream_id':"
             "'%0129d','input':'a'}", 0);
    ok(asks(text) == LLM_ERROR && strcmp(err.param, "stream_id") == 0,
       "a name that is too long");

    for (i = 0; i < LLM_API_SOCKET_LANES; i++) {
        llm_api_socket_end(s, i);
    }

    /* what runs, and what is remembered, is bounded for all together */

    for (i = 0; i < 3; i++) {
        snprintf(text, sizeof(text), "{'type':'response.create','stream_id':"
                 "'l%u','input':'%0*d'}", i, MOST - 140, 0);
        is_int(asks(text), i < 2 ? LLM_OK : LLM_FULL, "large: %u", i);
        snprintf(text, sizeof(text), ENDS("l%u"), i);

        if (i < 2) {
            a = i ? a : lane;
        }
    }

    (void) event_of(a, ENDS("l0"));
    again(LLM_OK, "the third, when one has ended");
    (void) event_of(lane, ENDS("l2"));
    (void) event_of((a + 1) % LLM_API_SOCKET_LANES, ENDS("l1"));
    refused("{'type':'response.create','stream_id':'n',"
            "'previous_response_id':'l0'}", 400,
            "previous_response_not_found", "previous_response_id");
    ok(asks("{'type':'response.create','stream_id':'n',"
            "'previous_response_id':'l1'}") == LLM_OK,
       "what was used least recently is forgotten first");
    (void) event(ENDS("n"));

    /* a stream that has no lane takes none for a message that is wrong */

    for (i = 0; i < LLM_API_SOCKET_LANES; i++) {
        snprintf(text, sizeof(text), SAYS("t%u", "1"), i);
        (void) asks(text);
        snprintf(text, sizeof(text), ENDS("m%u"), i);
        (void) event(text);
    }

    refused("{'type':'response.create','stream_id':'new','input':{}}", 400,
            "invalid_type", "input");
    is_int(lane, LLM_API_SOCKET_NOWHERE, "a wrong message of a new stream");
    out.len = 0;
    llm_api_socket_error(s, lane, &err, &out);
    ok(has(",'stream_id':'new'}"), "its error has its name");
    out.len = 0;
    llm_api_socket_error(s, lane, &err, &out);
    ok(!has("stream_id"), "and a later one has not");
    snprintf(text, sizeof(text), "{'type':'response.create','stream_id':'t0',"
             "'previous_response_id':'m0'}");
    ok(asks(text) == LLM_OK, "the stream used least recently is remembered");
    (void) event(ENDS("m0b"));
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
    llm_api_socket_error(s, lane, &err, &out);
    ok(has("{'type':'error','status':400,'error':{'message':"), "its message");

    out.len = 0;
    llm_api_socket_failed(s, lane, 429,
                          json("{'error':{'message':'full'}}"), &out);
    ok(has("'status':429,'error':{'message':'full'}}"), "an answer's error");

    out.len = 0;
    llm_api_socket_failed(s, lane, 503, llm_str("<html>"), &out);
    ok(has("'status':503,'error':{'message':'Too many"), "a page of nginx");

    out.len = 0;
    llm_api_socket_failed(s, lane, 200, llm_str(""), &out);
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
    test_lanes();

    llm_api_socket_free(s);
    llm_buf_free(&out);

    return done_testing();
}
