/*
 * Answers: events in, frames and bodies out, compared byte by byte and read
 * back with cJSON.
 */

#include "engine/api/endpoint.h"
#include "t/unit/tap.h"

#include <cjson/cJSON.h>
#include <math.h>

#define HEAD(id, object)                                                     \
    "{\"id\":\"" id "deadbeef\",\"object\":\"" object "\","                  \
    "\"created\":1750000000,\"model\":\"demo\","                             \
    "\"system_fingerprint\":\"fp_FINGERPRIN\",\"choices\":["

#define CHUNK    "data: " HEAD("chatcmpl-", "chat.completion.chunk")
#define TEXT     "data: " HEAD("cmpl-", "text_completion")
#define BODY     HEAD("chatcmpl-", "chat.completion")

#define USAGE                                                                \
    "{\"prompt_tokens\":11,\"completion_tokens\":5,\"total_tokens\":16,"     \
    "\"prompt_tokens_details\":{\"cached_tokens\":8,\"audio_tokens\":0},"    \
    "\"completion_tokens_details\":{\"reasoning_tokens\":2,"                 \
    "\"audio_tokens\":0,\"accepted_prediction_tokens\":0,"                   \
    "\"rejected_prediction_tokens\":0}}"


static const llm_api_model_t  model = {
    { 4, "demo" }, NULL, 0, 1, -1, 1700000000
};

static const llm_api_conf_t  conf = {
    .models = &model, .n_models = 1, .allowed = 1, .fallback = -1,
    .cap = -1, .id = { 8, "deadbeef" }, .now = 1750000000
};


/* an event with what follows it */

typedef struct {
    llm_event_t          ev;
    llm_token_logprob_t  tokens[4];
    llm_top_logprob_t    tops[8];
    int32_t              ids[4];
    char                 bytes[512];
    uint32_t             n_tokens, n_tops, n_ids, n_bytes;
} event_t;

static llm_api_t  *a;
static llm_buf_t   out;
static llm_err_t   err;


static llm_ref_t
put(event_t *e, const char *s, uint32_t len)
{
    llm_ref_t  ref;

    ref.off = (uint32_t) (e->bytes + e->n_bytes - (char *) e);
    ref.len = len;

    memcpy(e->bytes + e->n_bytes, s, len);
    e->n_bytes += len;

    return ref;
}


static event_t
text_event(uint32_t index, llm_part_t part, uint32_t call, const char *text)
{
    event_t  e;

    memset(&e, 0, sizeof(e));
    e.ev.size = sizeof(e);
    e.ev.type = LLM_EV_TEXT;
    e.ev.index = index;
    e.ev.u.text.part = part;
    e.ev.u.text.call = call;
    e.ev.u.text.n_tokens = 1;
    e.ev.u.text.text = put(&e, text, (uint32_t) strlen(text));

    return e;
}


/* offsets are from the event's start, so an event may be copied */

static void
add_token(event_t *e, int32_t id, float logprob, uint32_t offset,
    const char *bytes)
{
    llm_token_logprob_t  *t;

    t = &e->tokens[e->n_tokens++];
    t->id = id;
    t->logprob = logprob;
    t->text_offset = offset;
    t->bytes = put(e, bytes, (uint32_t) strlen(bytes));
    t->top.off = (uint32_t) ((char *) &e->tops[e->n_tops] - (char *) e);

    e->ev.u.text.logprobs.off = (uint32_t) ((char *) e->tokens - (char *) e);
    e->ev.u.text.logprobs.len = e->n_tokens;
}


static void
add_top(event_t *e, int32_t id, float logprob, const char *bytes)
{
    llm_top_logprob_t  *t;

    t = &e->tops[e->n_tops++];
    t->id = id;
    t->logprob = logprob;
    t->bytes = put(e, bytes, (uint32_t) strlen(bytes));

    e->tokens[e->n_tokens - 1].top.len++;
}


static void
add_id(event_t *e, int32_t id)
{
    e->ids[e->n_ids++] = id;
    e->ev.u.text.ids.off = (uint32_t) ((char *) e->ids - (char *) e);
    e->ev.u.text.ids.len = e->n_ids;
}


static int
feed(const event_t *e)
{
    return llm_api_event(a, &e->ev, &out, &err);
}


static int
feed_text(const char *text)
{
    event_t  e;

    e = text_event(0, LLM_PART_CONTENT, 0, text);

    return feed(&e);
}


static int
feed_start(void)
{
    event_t  e;

    memset(&e, 0, sizeof(e));
    e.ev.type = LLM_EV_START;
    e.ev.u.start.prompt_tokens = 11;
    e.ev.u.start.cached_tokens = 8;

    return feed(&e);
}


static int
feed_finish(uint32_t index, llm_finish_t reason)
{
    event_t  e;

    memset(&e, 0, sizeof(e));
    e.ev.type = LLM_EV_FINISH;
    e.ev.index = index;
    e.ev.u.finish.reason = reason;
    e.ev.u.finish.completion_tokens = 5;

    return feed(&e);
}


/* in pieces of this size, a body is the same as in one */

static size_t  piece_size = 1 << 20;
static size_t  largest;


static int
take_body(void)
{
    int        rc;
    llm_buf_t  piece;

    do {
        llm_buf_init(&piece, 0);
        rc = llm_api_body_next(a, piece_size, &piece);
        largest = llm_max(largest, piece.len);
        llm_buf_add(&out, piece.data, piece.len);
        llm_buf_free(&piece);
    } while (rc == LLM_MORE);

    return rc;
}


static int
feed_done(void)
{
    event_t  e;

    memset(&e, 0, sizeof(e));
    e.ev.type = LLM_EV_DONE;
    e.ev.u.done.prompt_tokens = 11;
    e.ev.u.done.cached_tokens = 8;
    e.ev.u.done.completion_tokens = 5;
    e.ev.u.done.reasoning_tokens = 2;
    e.ev.u.done.queue_us = 1;
    e.ev.u.done.ttft_us = 2;
    e.ev.u.done.total_us = 3;

    if (feed(&e) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_api_is_stream(a) ? LLM_OK : take_body();
}


static int
feed_error(void)
{
    event_t  e;

    memset(&e, 0, sizeof(e));
    e.ev.type = LLM_EV_ERROR;
    e.ev.u.error.status = 400;
    e.ev.u.error.msg = put(&e, "too long", 8);
    e.ev.u.error.code = put(&e, "context_length_exceeded", 23);
    e.ev.u.error.param = put(&e, "messages", 8);

    return feed(&e);
}


static void
begin(const llm_api_endpoint_t *ep, const char *fields)
{
    char        body[512], *p;
    llm_buf_t   msg;

    snprintf(body, sizeof(body), "{%s%s}",
             ep == &llm_api_chat
             ? "'messages':[{'role':'user','content':'hi'}]"
             : "'prompt':['a','b']", fields);

    for (p = body; *p; p++) {
        *p = (*p == '\'') ? '"' : *p;
    }

    llm_buf_init(&msg, 0);
    llm_buf_init(&out, 0);
    memset(&err, 0, sizeof(err));

    a = llm_api_parse(ep, &conf, body, strlen(body), &msg, &err);
    if (a == NULL) {
        printf("# %s\n", err.msg);
        abort();
    }

    llm_buf_free(&msg);
}


static void
end(void)
{
    llm_api_free(a);
    llm_buf_free(&out);
}


/* the fingerprint is ten digits whose value is nobody's business here */

static void
is_out(const char *want, const char *name)
{
    char  *p;

    for (p = out.len ? out.data : NULL; p; p++) {
        p = strstr(p, "\"fp_");
        if (p == NULL) {
            break;
        }

        if (strspn(p + 4, "0123456789abcdef") == 10) {
            memcpy(p + 4, "FINGERPRIN", 10);
        }
    }

    is_str(out.len ? out.data : "", want, "%s", name);
    out.len = 0;
}


static void
test_chat_stream(void)
{
    llm_api_usage_t  u;

    begin(&llm_api_chat, ",'stream':true");
    ok(llm_api_is_stream(a), "it is a stream");

    feed_start();
    is_out(CHUNK "{\"index\":0,\"delta\":{\"role\":\"assistant\","
           "\"content\":\"\",\"refusal\":null},\"logprobs\":null,"
           "\"finish_reason\":null}]}\n\n", "the first delta has the role");

    feed_text("2 + 2\n= \"4\"\xc3\xa9");
    is_out(CHUNK "{\"index\":0,\"delta\":{\"content\":"
           "\"2 + 2\\n= \\\"4\\\"\xc3\xa9\"},\"logprobs\":null,"
           "\"finish_reason\":null}]}\n\n", "text");

    feed_text("");
    is_out("", "no text, no frame");

    feed_finish(0, LLM_FINISH_LENGTH);
    is_out(CHUNK "{\"index\":0,\"delta\":{},\"logprobs\":null,"
           "\"finish_reason\":\"length\"}]}\n\n", "the end of a choice");

    feed_done();
    is_out("data: [DONE]\n\n", "the end");

    llm_api_usage(a, &u);
    ok(u.prompt_tokens == 11 && u.cached_tokens == 8
       && u.completion_tokens == 5 && u.queue_us == 1 && u.ttft_us == 2
       && u.total_us == 3 && strcmp(u.finish_reason, "length") == 0,
       "the figures");
    end();

    begin(&llm_api_chat, ",'stream':true,'n':2,"
          "'stream_options':{'include_usage':true}");
    feed_start();
    is_out(CHUNK "{\"index\":0,\"delta\":{\"role\":\"assistant\","
           "\"content\":\"\",\"refusal\":null},\"logprobs\":null,"
           "\"finish_reason\":null}],\"usage\":null}\n\n"
           CHUNK "{\"index\":1,\"delta\":{\"role\":\"assistant\","
           "\"content\":\"\",\"refusal\":null},\"logprobs\":null,"
           "\"finish_reason\":null}],\"usage\":null}\n\n",
           "a role for each choice");

    feed_finish(1, LLM_FINISH_STOP);
    is_out(CHUNK "{\"index\":1,\"delta\":{},\"logprobs\":null,"
           "\"finish_reason\":\"stop\"}],\"usage\":null}\n\n",
           "every chunk says usage");

    feed_done();
    is_out(CHUNK "],\"usage\":" USAGE "}\n\ndata: [DONE]\n\n",
           "the figures in a chunk without choices");
    end();
}


static void
test_parts(void)
{
    event_t  e;

    begin(&llm_api_chat, ",'stream':true");

    e = text_event(0, LLM_PART_REASONING, 0, "hm\t");
    feed(&e);
    is_out(CHUNK "{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\\t\","
           "\"reasoning\":\"hm\\t\"},\"logprobs\":null,"
           "\"finish_reason\":null}]}\n\n", "reasoning");

    e = text_event(0, LLM_PART_TOOL_NAME, 1, "get");
    feed(&e);
    is_out(CHUNK "{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,"
           "\"id\":\"call_deadbeef_0_1\",\"type\":\"function\",\"function\":"
           "{\"name\":\"get\",\"arguments\":\"\"}}]},\"logprobs\":null,"
           "\"finish_reason\":null}]}\n\n", "a call begins");

    e = text_event(0, LLM_PART_TOOL_ARGS, 1, "{\"a\":");
    feed(&e);
    is_out(CHUNK "{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,"
           "\"function\":{\"arguments\":\"{\\\"a\\\":\"}}]},"
           "\"logprobs\":null,\"finish_reason\":null}]}\n\n",
           "its arguments");

    feed_finish(0, LLM_FINISH_TOOL_CALLS);
    is_out(CHUNK "{\"index\":0,\"delta\":{},\"logprobs\":null,"
           "\"finish_reason\":\"tool_calls\"}]}\n\n", "it ends in calls");
    end();

    begin(&llm_api_chat, "");
    feed_start();
    e = text_event(0, LLM_PART_REASONING, 0, "hm");
    feed(&e);
    e = text_event(0, LLM_PART_TOOL_NAME, 0, "get");
    feed(&e);
    e = text_event(0, LLM_PART_TOOL_ARGS, 0, "{\"a\":");
    feed(&e);
    e = text_event(0, LLM_PART_TOOL_ARGS, 0, "1}");
    feed(&e);
    e = text_event(0, LLM_PART_TOOL_NAME, 1, "put");
    feed(&e);
    feed_finish(0, LLM_FINISH_TOOL_CALLS);
    is_out("", "nothing is said before the end");

    feed_done();
    is_out(BODY "{\"index\":0,\"message\":{\"role\":\"assistant\","
           "\"content\":null,\"refusal\":null,\"reasoning_content\":\"hm\","
           "\"reasoning\":\"hm\","
           "\"tool_calls\":[{\"id\":\"call_deadbeef_0_0\",\"type\":"
           "\"function\",\"function\":{\"name\":\"get\",\"arguments\":"
           "\"{\\\"a\\\":1}\"}},{\"id\":\"call_deadbeef_0_1\",\"type\":"
           "\"function\",\"function\":{\"name\":\"put\",\"arguments\":\"\"}}"
           "]},\"logprobs\":null,\"finish_reason\":\"tool_calls\"}],"
           "\"usage\":" USAGE "}", "calls and reasoning in a body");
    end();
}


static void
test_bodies(void)
{
    event_t  e;

    begin(&llm_api_chat, ",'n':2");
    feed_start();
    feed_text("on");
    e = text_event(1, LLM_PART_CONTENT, 0, "tw\"o");
    feed(&e);
    feed_text("e\n");
    feed_finish(1, LLM_FINISH_LENGTH);
    feed_finish(0, LLM_FINISH_STOP);
    feed_done();
    is_out(BODY "{\"index\":0,\"message\":{\"role\":\"assistant\","
           "\"content\":\"one\\n\",\"refusal\":null},\"logprobs\":null,"
           "\"finish_reason\":\"stop\"},{\"index\":1,\"message\":{\"role\":"
           "\"assistant\",\"content\":\"tw\\\"o\",\"refusal\":null},"
           "\"logprobs\":null,\"finish_reason\":\"length\"}],\"usage\":"
           USAGE "}", "a chat body of two choices");
    end();

    begin(&llm_api_chat, "");
    feed_start();
    feed_finish(0, LLM_FINISH_STOP);
    feed_done();
    is_out(BODY "{\"index\":0,\"message\":{\"role\":\"assistant\","
           "\"content\":\"\",\"refusal\":null},\"logprobs\":null,"
           "\"finish_reason\":\"stop\"}],\"usage\":" USAGE "}",
           "nothing said is an empty string");
    end();

    begin(&llm_api_completions, ",'return_token_ids':true");
    feed_start();
    e = text_event(0, LLM_PART_CONTENT, 0, "x");
    add_id(&e, 7);
    add_id(&e, 8);
    feed(&e);
    e = text_event(0, LLM_PART_CONTENT, 0, "");
    add_id(&e, 9);
    feed(&e);
    feed_finish(0, LLM_FINISH_STOP);
    feed_finish(1, LLM_FINISH_LENGTH);
    feed_done();
    is_out(HEAD("cmpl-", "text_completion")
           "{\"index\":0,\"text\":\"x\",\"logprobs\":null,"
           "\"finish_reason\":\"stop\",\"token_ids\":[7,8,9]},"
           "{\"index\":1,\"text\":\"\",\"logprobs\":null,"
           "\"finish_reason\":\"length\",\"token_ids\":[]}],\"usage\":"
           USAGE "}", "a completion of two prompts, with token ids");
    end();
}


static void
test_completion_stream(void)
{
    event_t  e;

    begin(&llm_api_completions, ",'stream':true,'return_token_ids':true,"
          "'stream_options':{'include_usage':true}");

    feed_start();
    is_out("", "completions have no role");

    e = text_event(1, LLM_PART_CONTENT, 0, " once");
    add_id(&e, 42);
    feed(&e);
    is_out(TEXT "{\"index\":1,\"text\":\" once\",\"logprobs\":null,"
           "\"finish_reason\":null,\"token_ids\":[42]}],"
           "\"usage\":null}\n\n", "text of the second prompt, with its ids");

    feed_finish(1, LLM_FINISH_STOP);
    is_out(TEXT "{\"index\":1,\"text\":\"\",\"logprobs\":null,"
           "\"finish_reason\":\"stop\"}],\"usage\":null}\n\n",
           "the end of a choice");

    feed_done();
    is_out(TEXT "],\"usage\":" USAGE "}\n\ndata: [DONE]\n\n", "the end");
    end();
}


/* usage in every chunk, as vLLM has it: only if it is wanted at all */

#define SO_FAR(n, all)                                                       \
    "{\"prompt_tokens\":11,\"completion_tokens\":" n ",\"total_tokens\":"    \
    all ",\"prompt_tokens_details\":{\"cached_tokens\":8,"                   \
    "\"audio_tokens\":0},\"completion_tokens_details\":{"                    \
    "\"reasoning_tokens\":0,\"audio_tokens\":0,"                             \
    "\"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0}}"

static void
test_continuous_usage(void)
{
    begin(&llm_api_completions, ",'stream':true,'stream_options':"
          "{'continuous_usage_stats':true,'include_usage':true}");
    feed_start();
    feed_text("a");
    is_out(TEXT "{\"index\":0,\"text\":\"a\",\"logprobs\":null,"
           "\"finish_reason\":null}],\"usage\":" SO_FAR("1", "12") "}\n\n",
           "the figures so far");
    feed_text("b");
    is_out(TEXT "{\"index\":0,\"text\":\"b\",\"logprobs\":null,"
           "\"finish_reason\":null}],\"usage\":" SO_FAR("2", "13") "}\n\n",
           "in each chunk");
    feed_done();
    is_out(TEXT "],\"usage\":" USAGE "}\n\ndata: [DONE]\n\n",
           "and all of them in the last");
    end();

    begin(&llm_api_completions, ",'stream':true,'stream_options':"
          "{'continuous_usage_stats':true,'include_usage':false}");
    feed_start();
    feed_text("a");
    is_out(TEXT "{\"index\":0,\"text\":\"a\",\"logprobs\":null,"
           "\"finish_reason\":null}]}\n\n", "none if none are wanted");
    end();
}


/* two tokens: one a whole character, one the half of one */

static event_t
logprob_event(int n_top)
{
    event_t  e;

    e = text_event(0, LLM_PART_CONTENT, 0, "\xc3\xa9h");

    add_token(&e, 5, -0.5f, 0, "\xc3\xa9h");

    if (n_top) {
        add_top(&e, 6, -0.25f, "a\"");
        add_top(&e, 5, -0.5f, "\xc3\xa9h");
    }

    add_token(&e, 9, -3.25f, 3, "x\xe2\x82");

    if (n_top) {
        add_top(&e, 6, -0.25f, "a\"");
        add_top(&e, 7, -INFINITY, "b");
        add_top(&e, 9, -3.25f, "x\xe2\x82");
    }

    return e;
}


#define T5  "\"token\":\"\xc3\xa9h\",\"logprob\":-0.500000000,"              \
            "\"bytes\":[195,169,104]"
#define T6  "\"token\":\"a\\\"\",\"logprob\":-0.250000000,\"bytes\":[97,34]"
#define T9  "\"token\":\"x\\\\xe2\\\\x82\",\"logprob\":-3.250000000,"        \
            "\"bytes\":[120,226,130]"

static void
test_logprobs(void)
{
    event_t  e;

    begin(&llm_api_chat, ",'stream':true,'logprobs':true,'top_logprobs':2");
    e = logprob_event(1);
    feed(&e);
    is_out(CHUNK "{\"index\":0,\"delta\":{\"content\":\"\xc3\xa9h\"},"
           "\"logprobs\":{\"content\":["
           "{" T5 ",\"top_logprobs\":[{" T6 "},{" T5 "}]},"
           "{" T9 ",\"top_logprobs\":[{" T6 "},{" T9 "}]}],"
           "\"refusal\":null},\"finish_reason\":null}]}\n\n",
           "chat: two rivals each, the sampled token among them");

    feed_text("plain");
    is_out(CHUNK "{\"index\":0,\"delta\":{\"content\":\"plain\"},"
           "\"logprobs\":null,\"finish_reason\":null}]}\n\n",
           "text that has none");
    end();

    begin(&llm_api_chat, ",'logprobs':true");
    e = logprob_event(0);
    feed(&e);
    e = logprob_event(0);
    feed(&e);
    feed_finish(0, LLM_FINISH_STOP);
    feed_done();
    is_out(BODY "{\"index\":0,\"message\":{\"role\":\"assistant\","
           "\"content\":\"\xc3\xa9h\xc3\xa9h\",\"refusal\":null},"
           "\"logprobs\":{\"content\":["
           "{" T5 ",\"top_logprobs\":[]},{" T9 ",\"top_logprobs\":[]},"
           "{" T5 ",\"top_logprobs\":[]},{" T9 ",\"top_logprobs\":[]}],"
           "\"refusal\":null},\"finish_reason\":\"stop\"}],\"usage\":"
           USAGE "}", "chat: gathered in a body");
    end();

    begin(&llm_api_completions, ",'stream':true,'logprobs':2");
    e = logprob_event(1);
    feed(&e);
    is_out(TEXT "{\"index\":0,\"text\":\"\xc3\xa9h\",\"logprobs\":{"
           "\"tokens\":[\"\xc3\xa9h\",\"bytes:\\\\x78\\\\xe2\\\\x82\"],"
           "\"token_logprobs\":[-0.500000000,-3.250000000],"
           "\"top_logprobs\":[{\"a\\\"\":-0.250000000,"
           "\"\xc3\xa9h\":-0.500000000},{\"a\\\"\":-0.250000000,"
           "\"b\":-9999.000000000,\"bytes:\\\\x78\\\\xe2\\\\x82\":-3.250000000}],"
           "\"text_offset\":[0,2]},\"finish_reason\":null}]}\n\n",
           "completions: four arrays, offsets in characters");

    e = text_event(0, LLM_PART_CONTENT, 0, "zz\xe2\x82\xac!");
    add_token(&e, 1, -1, 3, "zz\xe2\x82\xac");
    add_token(&e, 2, -2, 8, "!");
    feed(&e);
    is_out(TEXT "{\"index\":0,\"text\":\"zz\xe2\x82\xac!\",\"logprobs\":{"
           "\"tokens\":[\"zz\xe2\x82\xac\",\"!\"],"
           "\"token_logprobs\":[-1.000000000,-2.000000000],"
           "\"top_logprobs\":[{\"zz\xe2\x82\xac\":-1.000000000},"
           "{\"!\":-2.000000000}],"
           "\"text_offset\":[2,5]},\"finish_reason\":null}]}\n\n",
           "offsets go on from event to event");
    end();

    begin(&llm_api_completions, ",'logprobs':0,'echo':true");
    e = text_event(0, LLM_PART_CONTENT, 0, "ab");
    add_token(&e, 1, NAN, 0, "a");
    add_token(&e, 2, 0, 1, "b");
    feed(&e);
    feed_finish(0, LLM_FINISH_STOP);
    feed_finish(1, LLM_FINISH_STOP);
    feed_done();
    is_out(HEAD("cmpl-", "text_completion")
           "{\"index\":0,\"text\":\"ab\",\"logprobs\":{"
           "\"tokens\":[\"a\",\"b\"],\"token_logprobs\":[null,0.000000000],"
           "\"top_logprobs\":[null,{\"b\":0.000000000}],"
           "\"text_offset\":[0,1]},\"finish_reason\":\"stop\"},"
           "{\"index\":1,\"text\":\"\",\"logprobs\":{\"tokens\":[],"
           "\"token_logprobs\":[],\"top_logprobs\":[],\"text_offset\":[]},"
           "\"finish_reason\":\"stop\"}],\"usage\":" USAGE "}",
           "an echoed prompt's first token has no probability");
    end();
}


static void
test_failures(void)
{
    begin(&llm_api_chat, ",'stream':true");
    ok(feed_error() == LLM_ERROR && err.status == 400 && out.len == 0
       && strcmp(err.code, "context_length_exceeded") == 0
       && strcmp(err.param, "messages") == 0
       && strcmp(err.msg, "too long") == 0,
       "before a stream begins an error is a real one");
    end();

    begin(&llm_api_chat, ",'stream':true");
    feed_start();
    out.len = 0;
    is_int(feed_error(), LLM_OK, "in a stream");
    is_out("data: {\"error\":{\"message\":\"too long\",\"type\":"
           "\"invalid_request_error\",\"param\":\"messages\",\"code\":"
           "\"context_length_exceeded\"}}\n\n", "it is a frame");
    end();

    begin(&llm_api_chat, "");
    feed_start();
    feed_text("x");
    ok(feed_error() == LLM_ERROR && err.status == 400 && out.len == 0,
       "not streaming, it is a real one at any time");
    end();

    begin(&llm_api_chat, ",'stream':true");
    llm_buf_free(&out);
    llm_buf_init(&out, 100);
    ok(feed_start() == LLM_ERROR && err.status == 500, "no room: 500");
    end();
}


/* every frame is JSON behind "data: ", whatever the text */

static void
test_reads_back(void)
{
    char      text[4], *line, *next;
    cJSON    *v, *content;
    size_t    wrong;
    uint32_t  c;

    begin(&llm_api_chat, ",'stream':true");
    wrong = 0;

    for (c = 1; c < 0x80; c++) {
        text[0] = (char) c;
        text[1] = 'z';
        text[2] = '\0';

        out.len = 0;
        feed_text(text);

        line = out.data + 6;
        next = strstr(line, "\n\n");
        v = cJSON_ParseWithLength(line, (size_t) (next - line));
        content = cJSON_GetObjectItem(
                      cJSON_GetObjectItem(
                          cJSON_GetArrayItem(
                              cJSON_GetObjectItem(v, "choices"), 0),
                          "delta"),
                      "content");

        wrong += memcmp(out.data, "data: ", 6) != 0
                 || next != out.data + out.len - 2
                 || strchr(line, '\n') != next
                 || !cJSON_IsString(content)
                 || strcmp(content->valuestring, text) != 0;

        cJSON_Delete(v);
    }

    is_int(wrong, 0, "each character reads back from its frame");
    end();
}


static void
test_speed(void)
{
    uint32_t  i;
    uint64_t  start;
    event_t   e;

    begin(&llm_api_chat, ",'stream':true");
    e = text_event(0, LLM_PART_CONTENT, 0, " token");
    start = llm_now_us();

    for (i = 0; i < 100000; i++) {
        out.len = 0;
        feed(&e);
    }

    printf("# a frame takes %.3f us\n",
           (double) (llm_now_us() - start) / 100000);
    ok(out.len > 200, "many frames");
    end();
}


/* the prompt's echo, sent once, begins each of its choices */

static void
test_echo(void)
{
    event_t  e;

    begin(&llm_api_completions, ",'logprobs':0,'echo':true,'n':2");
    feed_start();

    e = text_event(0, LLM_PART_CONTENT, 0, "a\xc3\xa9");
    e.ev.u.text.echo = 1;
    add_token(&e, 1, NAN, 0, "a\xc3\xa9");
    feed(&e);

    e = text_event(1, LLM_PART_CONTENT, 0, "c");
    add_token(&e, 3, -1, 3, "c");
    feed(&e);
    e = text_event(0, LLM_PART_CONTENT, 0, "b");
    add_token(&e, 2, -2, 3, "b");
    feed(&e);
    feed_finish(0, LLM_FINISH_STOP);
    feed_finish(1, LLM_FINISH_STOP);
    feed_finish(2, LLM_FINISH_STOP);
    feed_finish(3, LLM_FINISH_STOP);
    feed_done();
    is_out(HEAD("cmpl-", "text_completion")
           "{\"index\":0,\"text\":\"a\xc3\xa9" "b\",\"logprobs\":{"
           "\"tokens\":[\"a\xc3\xa9\",\"b\"],"
           "\"token_logprobs\":[null,-2.000000000],"
           "\"top_logprobs\":[null,{\"b\":-2.000000000}],"
           "\"text_offset\":[0,2]},\"finish_reason\":\"stop\"},"
           "{\"index\":1,\"text\":\"a\xc3\xa9" "c\",\"logprobs\":{"
           "\"tokens\":[\"a\xc3\xa9\",\"c\"],"
           "\"token_logprobs\":[null,-1.000000000],"
           "\"top_logprobs\":[null,{\"c\":-1.000000000}],"
           "\"text_offset\":[0,2]},\"finish_reason\":\"stop\"},"
           "{\"index\":2,\"text\":\"\",\"logprobs\":{\"tokens\":[],"
           "\"token_logprobs\":[],\"top_logprobs\":[],\"text_offset\":[]},"
           "\"finish_reason\":\"stop\"},"
           "{\"index\":3,\"text\":\"\",\"logprobs\":{\"tokens\":[],"
           "\"token_logprobs\":[],\"top_logprobs\":[],\"text_offset\":[]},"
           "\"finish_reason\":\"stop\"}],\"usage\":" USAGE "}",
           "an echo that came once is in both choices of its prompt");
    end();
}


/* large bodies: pieces of about the size asked for, together the whole */

static void
test_pieces(void)
{
    char       text[300];
    size_t     i, n, size;
    event_t    e;
    llm_buf_t  whole;

    static const size_t  sizes[] = { 1 << 20, 1, 100, 4096 };

    llm_buf_init(&whole, 0);

    for (n = 0; n < llm_nelems(sizes); n++) {
        piece_size = sizes[n];
        largest = 0;

        begin(&llm_api_completions, ",'logprobs':1,'return_token_ids':true");
        feed_start();

        for (i = 0; i < 2000; i++) {
            size = i % (sizeof(text) - 1);
            memset(text, 'a' + (int) (i % 26), size);
            text[size] = '\0';
            e = text_event(i % 2, LLM_PART_CONTENT, 0, text);
            add_token(&e, 5, -0.5f, 0, "ab");
            add_top(&e, 6, -0.25f, "a\"");
            add_id(&e, (int32_t) i);
            feed(&e);
        }

        feed_finish(0, LLM_FINISH_STOP);
        feed_finish(1, LLM_FINISH_STOP);
        is_int(feed_done(), LLM_OK, "a body in pieces of %zu", piece_size);

        if (n == 0) {
            llm_buf_add(&whole, out.data, out.len);
            ok(whole.len > 400000, "a large body");

        } else {
            ok(out.len == whole.len
               && memcmp(out.data, whole.data, out.len) == 0,
               "the same bytes");
            ok(largest < piece_size + 8192, "no piece is larger by much");
        }

        end();
    }

    llm_buf_free(&whole);
    piece_size = 1 << 20;
}


/* all choices together are bounded, however they share what there is */

static void
test_bound(void)
{
    int      rc;
    size_t   i;
    event_t  e;

    rc = LLM_OK;
    begin(&llm_api_completions, ",'n':64,'logprobs':1");
    feed_start();

    for (i = 0; i < 1000000 && rc == LLM_OK; i++) {
        e = text_event(i % 128, LLM_PART_CONTENT, 0, "x");
        add_token(&e, 5, -0.5f, 0, "x");
        rc = feed(&e);
    }

    is_int(rc, LLM_ERROR, "an answer without an end is refused");
    is_int(err.status, 400, "with 400");
    is_str(err.code, "answer_too_large", "and a code");
    ok(strstr(err.msg, "stream") != NULL, "that says what helps");
    ok(i * sizeof(e) > 15 << 20 && i * sizeof(e) <= 16 << 20,
       "at 16 MB, all choices together");
    end();
}


/* tokens are counted as they come: who is cut short has had these */

static void
test_counts(void)
{
    event_t          e;
    llm_api_usage_t  u;

    begin(&llm_api_completions, ",'stream':true");
    feed_start();
    feed_text("a");
    feed_text("b");
    llm_api_usage(a, &u);
    is_int(u.completion_tokens, 2, "two tokens so far");

    feed_finish(0, LLM_FINISH_STOP);
    llm_api_usage(a, &u);
    is_int(u.completion_tokens, 5, "the end of a choice says all of its");

    e = text_event(1, LLM_PART_CONTENT, 0, "c");
    e.ev.u.text.n_tokens = 3;
    feed(&e);
    llm_api_usage(a, &u);
    is_int(u.completion_tokens, 8, "and those of another choice");
    end();
}


int
main(void)
{
    test_chat_stream();
    test_parts();
    test_bodies();
    test_completion_stream();
    test_continuous_usage();
    test_logprobs();
    test_echo();
    test_pieces();
    test_bound();
    test_counts();
    test_failures();
    test_reads_back();
    test_speed();

    return done_testing();
}
