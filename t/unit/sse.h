/*
 * Events of the engine for a request, and what comes of them, for the tests of
 * answers with choices.  In a request's fields ' stands for ".
 */

#ifndef LLM_T_SSE_H
#define LLM_T_SSE_H

#include "engine/api/endpoint.h"
#include "t/unit/tap.h"

#include <math.h>

#define HEAD(id, object)                                                     \
    "{\"id\":\"" id "deadbeef\",\"object\":\"" object "\","                  \
    "\"created\":1750000000,\"model\":\"demo\","                             \
    "\"system_fingerprint\":\"bFINGERPRIN\",\"choices\":["

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
    .name = { 4, "demo" }, .is_default = 1, .max_tokens = -1,
    .created = 1700000000
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


static inline llm_ref_t
put(event_t *e, const char *s, uint32_t len)
{
    llm_ref_t  ref;

    ref.off = (uint32_t) (e->bytes + e->n_bytes - (char *) e);
    ref.len = len;

    memcpy(e->bytes + e->n_bytes, s, len);
    e->n_bytes += len;

    return ref;
}


static inline event_t
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


/* ids of a prompt; more follow in other events */

static inline event_t
prompt_event(uint32_t index, uint32_t more)
{
    event_t  e;

    e = text_event(index, LLM_PART_CONTENT, more, "");
    e.ev.u.text.echo = 1;
    e.ev.u.text.n_tokens = 0;

    return e;
}


/* offsets are from the event's start, so an event may be copied */

static inline void
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


static inline void
add_top(event_t *e, int32_t id, float logprob, const char *bytes)
{
    llm_top_logprob_t  *t;

    t = &e->tops[e->n_tops++];
    t->id = id;
    t->logprob = logprob;
    t->bytes = put(e, bytes, (uint32_t) strlen(bytes));

    e->tokens[e->n_tokens - 1].top.len++;
}


static inline void
add_id(event_t *e, int32_t id)
{
    e->ids[e->n_ids++] = id;
    e->ev.u.text.ids.off = (uint32_t) ((char *) e->ids - (char *) e);
    e->ev.u.text.ids.len = e->n_ids;
}


static inline int
feed(const event_t *e)
{
    return llm_api_event(a, &e->ev, &out, &err);
}


static inline int
feed_text(const char *text)
{
    event_t  e;

    e = text_event(0, LLM_PART_CONTENT, 0, text);

    return feed(&e);
}


static inline int
feed_start(void)
{
    event_t  e;

    memset(&e, 0, sizeof(e));
    e.ev.type = LLM_EV_START;
    e.ev.u.start.prompt_tokens = 11;
    e.ev.u.start.cached_tokens = 8;

    return feed(&e);
}


static inline int
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


static inline int
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


static inline int
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


static inline int
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


static inline void
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


static inline void
end(void)
{
    llm_api_free(a);
    llm_buf_free(&out);
}


/* the fingerprint is ten digits whose value is nobody's business here */

static inline void
is_out(const char *want, const char *name)
{
    char  *p;

    for (p = out.len ? out.data : NULL; p; p++) {
        p = strstr(p, "fingerprint\":\"b");
        if (p == NULL) {
            break;
        }

        if (strspn(p + 15, "0123456789abcdef") == 10) {
            memcpy(p + 15, "FINGERPRIN", 10);
        }
    }

    is_str(out.len ? out.data : "", want, "%s", name);
    out.len = 0;
}

#endif /* LLM_T_SSE_H */
