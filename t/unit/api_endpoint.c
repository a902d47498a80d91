/*
 * One more endpoint is one file and one row: this file is the former, and
 * the table below, which is linked in the place of engine/api/endpoints.c,
 * has the latter.  Routing, reading, frames and bodies are the library's,
 * and know nothing of it.
 *
 * The endpoint takes {"input": TEXT, "loud": BOOL} beside what all others
 * take, and answers with a list of the texts that it was told.  In bodies
 * ' stands for ".
 */

#include "engine/api/endpoint.h"
#include "t/unit/tap.h"

#define AT(f)  offsetof(words_t, f)


/* ---- the file ---- */

typedef struct {
    llm_api_body_t   body;

    llm_str_t        input;
    int64_t          most;
    int              loud;
} words_t;


static const llm_api_field_t  words_rows[] = {
    { "input", LLM_FIELD_STRING, AT(input), 0, 0 },
    { "loud", LLM_FIELD_BOOL, AT(loud), 0, 0 },
    { "max_tokens", LLM_FIELD_INT, AT(most), 1, 7 },
    { "zeal", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 }
};

static const llm_api_fields_t  words_fields = {
    words_rows, llm_nelems(words_rows)
};


static int
words_read(llm_api_reader_t *rd, llm_err_t *err)
{
    words_t           w;
    llm_prompt_ref_t  p;

    memset(&w, 0, sizeof(w));
    memset(&p, 0, sizeof(p));
    llm_api_defaults(&w.body);

    if (llm_api_read_body(rd, &w.body, err) != LLM_OK
        || llm_api_read_sampling(rd, &w.body, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    p.ref.off = (uint32_t) rd->msg->len;
    p.ref.len = (uint32_t) w.input.len;
    (void) llm_buf_add(rd->msg, w.input.data, w.input.len);
    (void) llm_buf_pad(rd->msg);

    rd->r.kind = LLM_KIND_COMPLETION;
    rd->r.prompts.off = (uint32_t) rd->msg->len;
    rd->r.prompts.len = 1;
    (void) llm_buf_add(rd->msg, &p, sizeof(p));
    (void) llm_buf_pad(rd->msg);

    rd->r.max_tokens = (int32_t) w.most;
    rd->n_choices = 1;
    (void) llm_buf_adds(&rd->head, w.loud ? "LOUD " : "");

    return LLM_OK;
}


static void
words_event(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    if (ev->type == LLM_EV_TEXT) {
        (void) llm_buf_adds(out, "data: ");
        (void) llm_buf_add(out, a->head.data, a->head.len);
        llm_api_add_event_text(out, ev);
        (void) llm_buf_adds(out, "\n\n");
    }
}


static int
words_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    const llm_api_piece_t  *piece;

    (void) max;
    (void) llm_buf_adds(out, "{\"words\":[");

    for (piece = a->choices[0].own.first; piece; piece = piece->next) {
        (void) llm_buf_addc(out, '"');
        llm_api_add_event_text(out, piece->ev);
        (void) llm_buf_adds(out, piece->next ? "\"," : "\"");
    }

    return llm_buf_adds(out, "]}");
}


static const llm_api_endpoint_t  words = {
    .task = LLM_TASK_SCORE,
    .fields = &words_fields,
    .shared = &llm_api_shared_fields,
    .read = words_read,
    .event = words_event,
    .body = words_body
};


static int
count_answer(const llm_api_conf_t *conf, llm_str_t rest, llm_buf_t *out,
    llm_err_t *err)
{
    if (rest.len) {
        return llm_fail_with(err, 404, NULL, NULL, "no such word");
    }

    return llm_buf_addf(out, "{\"models\":%u}", conf->n_models);
}

static const llm_api_endpoint_t  count = { .answer = count_answer };


/* ---- the rows, behind those that there are ---- */

const llm_api_row_t  llm_api_endpoints[] = {
    { "chat/completions", "POST",      &llm_api_chat,
      LLM_SCOPE_GENERATE },
    { "completions",      "POST",      &llm_api_completions,
      LLM_SCOPE_GENERATE },
    { "models",           "GET, HEAD", &llm_api_models,
      LLM_SCOPE_MODELS },
    { "models/",          "GET, HEAD", &llm_api_models,
      LLM_SCOPE_MODELS },
    { "words/of",         "POST",      &words,
      LLM_SCOPE_GENERATE },
    { "words/of",         "GET",       &count,
      LLM_SCOPE_GENERATE },
    { "words/in/",        "DELETE",    &count,
      LLM_SCOPE_MODELS },
    { NULL,               NULL,        NULL, 0 }
};


/* ---- what the library makes of it ---- */

static const llm_api_model_t  models[] = {
    { .name = { 4, "demo" }, .is_default = 1, .max_tokens = -1,
      .created = 1700000000 }
};

static const llm_api_conf_t  conf = {
    .models = models, .n_models = 1, .allowed = 1, .fallback = -1,
    .cap = -1, .id = { 4, "test" }, .now = 1750000000
};

static llm_buf_t  msg;
static llm_buf_t  out;
static llm_err_t  err;


static int
route(const char *method, const char *path, llm_api_route_t *to)
{
    llm_str_t  m, p;

    m.data = method;
    m.len = strlen(method);
    p.data = path;
    p.len = strlen(path);

    return llm_api_route(p, m, to);
}


static void
test_route(void)
{
    llm_api_route_t  to;

    ok(route("POST", "v1/words/of", &to) == LLM_OK && to.endpoint == &words,
       "a path and a method");
    ok(!llm_api_answers(to.endpoint), "for the engine");
    ok(route("GET", "words/of", &to) == LLM_OK && to.endpoint == &count,
       "another method");
    ok(llm_api_answers(to.endpoint), "that is answered at once");

    llm_buf_init(&out, 0);
    is_int(llm_api_answer(to.endpoint, &conf, to.rest, &out, &err), LLM_OK,
           "its answer");
    is_str(out.data, "{\"models\":1}", "says what it says");

    ok(route("PUT", "words/of", &to) == LLM_ERROR, "not for all methods");
    is_str(to.allow, "POST, GET", "but for those of both rows");
    ok(route("POST", "words", &to) == LLM_ERROR && to.allow[0] == '\0',
       "half a path is none");

    ok(route("DELETE", "words/in/x/y", &to) == LLM_OK && to.rest.len == 3
       && memcmp(to.rest.data, "x/y", 3) == 0, "a path that takes more");
    ok(llm_api_answer(to.endpoint, &conf, to.rest, &out, &err) == LLM_ERROR
       && err.status == 404, "may be unknown");
    ok(route("GET", "models", &to) == LLM_OK
       && to.endpoint == &llm_api_models, "the others are where they were");

    llm_buf_free(&out);
}


static llm_api_t *
parse(const char *text)
{
    char             body[256], *p;
    llm_api_t       *a;
    llm_api_route_t  to;

    snprintf(body, sizeof(body), "%s", text);

    for (p = body; *p; p++) {
        *p = (*p == '\'') ? '"' : *p;
    }

    memset(&err, 0, sizeof(err));
    llm_buf_init(&msg, 0);

    (void) route("POST", "words/of", &to);
    a = llm_api_parse(to.endpoint, &conf, body, strlen(body), &msg, &err);

    return a;
}


static void
test_fields(void)
{
    llm_api_t               *a;
    const llm_request_t     *r;
    const llm_prompt_ref_t  *p;

    a = parse("{'input':'hi','temperature':0.5,'max_tokens':6,'seed':3}");
    r = (const llm_request_t *) msg.data;

    ok(a != NULL, "a body is taken: %s", err.msg);
    is_int(r->task, LLM_TASK_SCORE, "its task");
    is_int(r->max_tokens, 6, "a field of its own, of a shared one's name");
    ok(r->sampling.temperature == 0.5f && r->sampling.seed == 3,
       "shared fields");

    p = llm_ref_data(r, r->prompts);
    ok(r->head.size == msg.len && p->ref.len == 2
       && memcmp(llm_ref_data(r, p->ref), "hi", 2) == 0,
       "what its reader wrote");

    llm_api_free(a);
    llm_buf_free(&msg);

    ok(parse("{'input':1}") == NULL && strcmp(err.param, "input") == 0
       && strcmp(err.code, "invalid_type") == 0, "a wrong field is named");
    llm_buf_free(&msg);
    ok(parse("{'max_tokens':8}") == NULL
       && strcmp(err.param, "max_tokens") == 0, "with its own bounds");
    llm_buf_free(&msg);
    ok(parse("{'zeal':1,'top_p':7}") == NULL
       && strcmp(err.param, "zeal") == 0, "of two the endpoint's own");
    llm_buf_free(&msg);
    ok(parse("{'zeal':1}") == NULL && strcmp(err.param, "zeal") == 0,
       "the last one");
    llm_buf_free(&msg);
}


static void
say(llm_api_t *a, llm_event_type_t type, const char *text)
{
    struct {
        llm_event_t  ev;
        char         text[16];
    } e;

    memset(&e, 0, sizeof(e));
    e.ev.size = sizeof(e);
    e.ev.type = type;

    if (type == LLM_EV_TEXT) {
        e.ev.u.text.n_tokens = 1;
        e.ev.u.text.text.off = (uint32_t) (e.text - (char *) &e);
        e.ev.u.text.text.len = (uint32_t) strlen(text);
        memcpy(e.text, text, e.ev.u.text.text.len);
    }

    is_int(llm_api_event(a, &e.ev, &out, &err), LLM_OK, "an event");
}


static void
test_answer(const char *body, const char *want)
{
    llm_api_t        *a;
    llm_api_usage_t   u;

    llm_buf_init(&out, 0);
    a = parse(body);

    say(a, LLM_EV_START, NULL);
    say(a, LLM_EV_TEXT, "one");
    say(a, LLM_EV_TEXT, "\"two\"");
    llm_api_usage(a, &u);
    is_int(u.completion_tokens, 2, "what was told is counted for it");
    say(a, LLM_EV_DONE, NULL);

    if (!llm_api_is_stream(a)) {
        is_int(out.len, 0, "kept until the end");
        is_int(llm_api_body_next(a, 1000, &out), LLM_OK, "then its body");
    }

    is_str(out.data, want, "%s", body);

    llm_api_free(a);
    llm_buf_free(&msg);
    llm_buf_free(&out);
}


int
main(void)
{
    test_route();
    test_fields();
    test_answer("{'input':'hi'}", "{\"words\":[\"one\",\"\\\"two\\\"\"]}");
    test_answer("{'input':'hi','stream':true,'loud':true}",
                "data: LOUD one\n\ndata: LOUD \\\"two\\\"\n\n");

    return done_testing();
}
