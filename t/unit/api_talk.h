/*
 * A request and the engine's events for it, for the tests of endpoints whose
 * answers are lists of items.  In bodies ' stands for ".
 */

#ifndef LLM_API_TALK_H
#define LLM_API_TALK_H

#include "t/unit/api_conf.h"
#include "t/unit/api_dump.h"
#include "t/unit/tap.h"

static llm_api_t  *a;
static llm_buf_t   msg;
static llm_buf_t   out;
static llm_err_t   err;


static inline int
ask(const llm_api_endpoint_t *ep, const llm_api_conf_t *c, const char *text)
{
    char  *body;

    body = quoted(text);
    memset(&err, 0, sizeof(err));
    llm_buf_init(&msg, 0);
    llm_buf_init(&out, 0);

    a = llm_api_parse(ep, c, body, strlen(body), &msg, &err);
    free(body);

    return a ? LLM_OK : LLM_ERROR;
}


static inline void
hang_up(void)
{
    llm_api_free(a);
    llm_buf_free(&msg);
    llm_buf_free(&out);
    a = NULL;
}


/* all that the engine gets; the caller frees it */

static inline char *
asked(const llm_api_endpoint_t *ep, const char *text)
{
    char       *copy;
    llm_buf_t   dump;

    llm_buf_init(&dump, 0);

    if (ask(ep, &conf, text) == LLM_OK) {
        dump_request((const llm_request_t *) msg.data, &dump);

    } else {
        llm_buf_adds(&dump, err.msg);
    }

    copy = strdup(dump.data);
    llm_buf_free(&dump);
    hang_up();

    return copy;
}


/* a request is read as this chat request is */

static inline void
same_as_chat(const llm_api_endpoint_t *ep, const char *text,
    const char *chat, const char *what)
{
    char  *got, *want;

    got = asked(ep, text);
    want = asked(CHAT, chat);

    ok(strstr(want, " chat={") != NULL, "a chat request: %s", what);
    is_str(got, want, "%s", what);

    free(got);
    free(want);
}


static inline void
refused(const llm_api_endpoint_t *ep, const char *text, const char *param,
    const char *words)
{
    is_int(ask(ep, &conf, text), LLM_ERROR, "refused: %s", text);
    ok(err.status == 400 && strcmp(err.param, param) == 0
       && strstr(err.msg, words), "names '%s': %s (%s)", param, err.msg,
       err.param);
    hang_up();
}


typedef struct {
    llm_event_t          ev;
    llm_token_logprob_t  token;
    char                 text[16384];
} told_t;


static inline int
tell(llm_event_type_t type, uint32_t part, uint32_t call, const char *text)
{
    static told_t  e;

    memset(&e, 0, offsetof(told_t, text));
    e.ev.type = type;

    if (type == LLM_EV_TEXT) {
        e.ev.u.text.part = part;
        e.ev.u.text.call = call;
        e.ev.u.text.n_tokens = 1;
        e.ev.u.text.text.off = offsetof(told_t, text);
        e.ev.u.text.text.len = (uint32_t) strlen(text);
        memcpy(e.text, text, strlen(text));
    }

    if (type == LLM_EV_TEXT && a->n_logprobs >= 0) {
        e.token.logprob = -0.5;
        e.token.bytes = e.ev.u.text.text;
        e.ev.u.text.logprobs.off = offsetof(told_t, token);
        e.ev.u.text.logprobs.len = 1;
    }

    if (type == LLM_EV_START) {
        e.ev.u.start.prompt_tokens = 11;
        e.ev.u.start.cached_tokens = 8;
        e.ev.u.start.start_us = llm_now_us() - 2000000;
    }

    if (type == LLM_EV_PROGRESS) {
        e.ev.u.progress.processed = call;
    }

    if (type == LLM_EV_FINISH) {
        e.ev.u.finish.reason = part;
        e.ev.u.finish.completion_tokens = 5;
        e.ev.u.finish.stop.off = offsetof(told_t, text);
        e.ev.u.finish.stop.len = (uint32_t) strlen(text);
        memcpy(e.text, text, strlen(text));
    }

    if (type == LLM_EV_DONE) {
        e.ev.u.done.prompt_tokens = 11;
        e.ev.u.done.cached_tokens = 8;
        e.ev.u.done.completion_tokens = 5;
        e.ev.u.done.reasoning_tokens = 2;
    }

    if (type == LLM_EV_ERROR) {
        e.ev.u.error.status = 503;
        e.ev.u.error.msg.off = offsetof(told_t, text);
        e.ev.u.error.msg.len = (uint32_t) strlen(text);
        memcpy(e.text, text, strlen(text));
    }

    e.ev.size = sizeof(e);

    return llm_api_event(a, &e.ev, &out, &err);
}


#define content(text)    tell(LLM_EV_TEXT, LLM_PART_CONTENT, 0, text)
#define reasoning(text)  tell(LLM_EV_TEXT, LLM_PART_REASONING, 0, text)
#define name(i, text)    tell(LLM_EV_TEXT, LLM_PART_TOOL_NAME, i, text)
#define args(i, text)    tell(LLM_EV_TEXT, LLM_PART_TOOL_ARGS, i, text)
#define start()          tell(LLM_EV_START, 0, 0, "")
#define finish(reason)   tell(LLM_EV_FINISH, reason, 0, "")
#define done()           tell(LLM_EV_DONE, 0, 0, "")
#define broken(why)      tell(LLM_EV_ERROR, 0, 0, why)


/* an answer of all parts */

static inline void
say_all(void)
{
    start();
    reasoning("Hm,");
    reasoning(" so");
    content("a\n");
    content("b");
    name(0, "f");
    args(0, "{\"a\"");
    args(0, ":1}");
    name(1, "g");
    finish(LLM_FINISH_TOOL_CALLS);
    done();
}


/* is it this, with the quotes of JSON for single ones? */

static inline void
is_text(const char *got, const char *want, const char *what)
{
    char  *text;

    text = quoted(want);
    is_str(got, text, "%s", what);
    free(text);
}


/* the body, a piece of so many bytes at a time; it begins anew with each
   call */

static inline const char *
body(size_t max)
{
    int     rc;
    size_t  before;

    memset(&a->output.walk, 0, sizeof(a->output.walk));
    out.len = 0;

    do {
        before = out.len;
        rc = llm_api_body_next(a, out.len + max, &out);
    } while (rc == LLM_MORE && out.len > before);

    return rc == LLM_OK ? out.data : "no body";
}


/* a vector of two values */

static inline void
vector(uint32_t index, float x, float y)
{
    struct {
        llm_event_t  ev;
        float        v[2];
    } e;

    memset(&e, 0, sizeof(e));
    e.ev.size = sizeof(e);
    e.ev.type = LLM_EV_VECTOR;
    e.ev.index = index;
    e.ev.u.vector.total = 2;
    e.ev.u.vector.values.off = (uint32_t) offsetof(__typeof__(e), v);
    e.ev.u.vector.values.len = 2;
    e.v[0] = x;
    e.v[1] = y;
    is_int(llm_api_event(a, &e.ev, &out, &err), LLM_OK, "a vector");
}

#endif /* LLM_API_TALK_H */
