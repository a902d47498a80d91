/*
 * Parts of an answer: reasoning, content and calls as they are emitted, with
 * stop strings, in a ring of any window.
 */

#include "t/unit/emit_ring.h"


static const char *const  part_tokens[] = {
    "<|t|>", "<|/t|>", "<|c|>", "<|/c|>", "<|pad|>", "\nY", "e."
};

#define T  "\1"
#define U  "\2"
#define C  "\3"
#define D  "\4"
#define P  "\5"
#define LINE_Y  "\6"
#define E_DOT  "\7"

static const llm_format_t  part_format = {
    .n_reasoning = 1,
    .reasoning = { { .open = { 5, "<|t|>" }, .close = { 6, "<|/t|>" } } },
    .n_forms = 1,
    .forms = { { .kind = LLM_FORM_OBJECT, .begin = { 5, "<|c|>" },
                 .end = { 6, "<|/c|>" } } }
};

typedef struct {
    char         text[4][256];          /* by part */
    uint32_t     calls;
    uint32_t     tokens;
    uint32_t     probs;
    char         tokens_text[256];      /* of those with a probability */
    uint32_t     ids;
    int          wrong;
} parts_t;


static void
take_probs(parts_t *p, const llm_event_t *ev)
{
    uint32_t                    i;
    const llm_token_logprob_t  *t;

    t = llm_ref_data(ev, ev->u.text.logprobs);
    p->probs += ev->u.text.logprobs.len;

    for (i = 0; i < ev->u.text.logprobs.len; i++) {
        strncat(p->tokens_text, llm_ref_data(ev, t[i].bytes), t[i].bytes.len);
    }
}


static void
take_parts(parts_t *p)
{
    const llm_event_t  *ev;

    (void) llm_ring_publish(&port.ring);

    while ((ev = (const llm_event_t *) llm_ring_next(&up))) {
        strncat(p->text[ev->u.text.part], llm_ref_data(ev, ev->u.text.text),
                ev->u.text.text.len);
        p->tokens += ev->u.text.n_tokens;
        take_probs(p, ev);
        p->ids += ev->u.text.ids.len;

        if (ev->u.text.part == LLM_PART_TOOL_NAME) {
            p->wrong |= ev->u.text.call != p->calls++
                        || ev->u.text.text.len == 0;

        } else if (ev->u.text.part == LLM_PART_TOOL_ARGS) {
            p->wrong |= ev->u.text.call + 1 != p->calls;
        }
    }

    llm_ring_release(&up);
}


/* each byte of the answer is a token; returns their number */

static uint32_t
run_parts(const char *answer, const llm_stops_t *stops, uint32_t flags,
    unsigned reads, parts_t *p, llm_emit_t *e)
{
    int                rc;
    uint32_t           n;
    llm_tool_t         tool = { { 1, "f" }, NULL, 0, 0 };
    llm_tools_t        tools = { 1, &tool };
    llm_sampled_t      t;
    llm_answer_opts_t  o = { &part_format, &tools, reads, -1,
                             part_format.forms };

    memset(p, 0, sizeof(*p));
    memset(&t, 0, sizeof(t));

    llm_emit_init(e, vocab, stops, flags, 0, 0);
    llm_emit_read(e, &o);
    rc = LLM_OK;

    for (n = 0; answer[n] && rc == LLM_OK; n++) {
        t.id = answer[n] < 8 ? 256 + answer[n] : answer[n];
        rc = llm_emit_push(e, &t, 1);
        (void) llm_emit_write(e, &to, 0, 0);
        take_parts(p);
    }

    p->wrong |= rc == LLM_ERROR || llm_emit_end(e, 0) != LLM_OK;
    to.unread = 0;

    while (llm_emit_write(e, &to, 0, 1) != LLM_OK) {
        take_parts(p);
        to.unread = 0;
    }

    take_parts(p);

    return n;
}


static void
test_parts(void)
{
    size_t       i, k;
    uint32_t     n;
    parts_t      p;
    llm_str_t    stop;
    llm_emit_t   e;
    llm_stops_t  stops;

#define CALL(args)  C "{\"name\": \"f\", \"arguments\": " args "}" D

    static const struct {
        const char  *answer;
        unsigned     reads;
        const char  *stop;
        const char  *text[4];           /* of content, reasoning, names,
                                           arguments */
        uint32_t     calls;
        uint32_t     thought;           /* tokens */
        uint32_t     said;              /* those that gave content, what a
                                           stop string cut off included */
    } cases[] = {
        { T "Hm\n" U "\nYes." P "\n" CALL("{\"a\": 1}") CALL("{}"),
          LLM_ANSWER_REASONING|LLM_ANSWER_TOOLS, "Hm",
          { "Yes.", "Hm", "ff", "{\"a\": 1}{}" }, 2, 4, 4 },
        { T "Hm" U "Yes.", LLM_ANSWER_REASONING, "es",
          { "Y", "Hm", "", "" }, 0, 3, 3 },
        { "A\n" CALL("{}") "B", LLM_ANSWER_TOOLS, "\nB",
          { "AB", "", "f", "{}" }, 1, 0, 2 },
        { "A\n" C "B", LLM_ANSWER_TOOLS, "|>",
          { "A\n<|c", "", "", "" }, 0, 0, 3 },
        { "A\n", LLM_ANSWER_TOOLS, "\n", { "A", "", "", "" }, 0, 0, 2 },
        { "A" CALL("{}"), LLM_ANSWER_REASONING, "x",
          { "A{\"name\": \"f\", \"arguments\": {}}", "", "", "" }, 0, 0, 33 },
        { T "Hm" U "Yes.", LLM_ANSWER_REASONING|LLM_ANSWER_HIDE, "x",
          { "Yes.", "", "", "" }, 0, 3, 4 },
        { T "Hm" U "Yes.", LLM_ANSWER_MARKED, "x",
          { "<|t|>Hm<|/t|>Yes.", "", "", "" }, 0, 0, 8 },
        { "A" C "{\"name\": \"g\", \"arguments\": {}}" D,
          LLM_ANSWER_TOOLS, "x",
          { "A{\"name\": \"g\", \"arguments\": {}}", "", "", "" }, 0, 0, 31 },
        { "A" C "{\"name\": \"g\"} " C "[x y] " C "{\"name\": \"g\"}" D
          CALL("{}"), LLM_ANSWER_TOOLS, "Q",
          { "A{\"name\": \"g\"}[x y]{\"name\": \"g\"}", "", "f", "{}" }, 1,
          0, 32 },
        { P "Y" P P "es" P, LLM_ANSWER_REASONING|LLM_ANSWER_TOOLS, "x",
          { "Yes", "", "", "" }, 0, 0, 7 },
        { T "Hm" U LINE_Y "es.", LLM_ANSWER_REASONING, "x",
          { "Yes.", "Hm", "", "" }, 0, 3, 4 },
        { "Y" E_DOT, LLM_ANSWER_REASONING, ".",
          { "Ye", "", "", "" }, 0, 0, 2 }
    };

    static const uint32_t  flags[] = {
        0, LLM_EMIT_STREAM, LLM_EMIT_STREAM|LLM_EMIT_PROBS|LLM_EMIT_IDS,
        LLM_EMIT_PROBS
    };

    for (i = 0; i < llm_nelems(cases) * llm_nelems(flags); i++) {
        k = i / llm_nelems(flags);
        stop = (llm_str_t) { strlen(cases[k].stop), cases[k].stop };
        (void) llm_stops_init(&stops, &stop, 1);
        to.max_unread = i % 3 ? 0 : 300;
        to.unread = 0;

        n = run_parts(cases[k].answer, &stops,
                      flags[i % llm_nelems(flags)], cases[k].reads, &p, &e);

        ok(!p.wrong && strcmp(p.text[LLM_PART_CONTENT], cases[k].text[0]) == 0
           && strcmp(p.text[LLM_PART_REASONING], cases[k].text[1]) == 0
           && strcmp(p.text[LLM_PART_TOOL_NAME], cases[k].text[2]) == 0
           && strcmp(p.text[LLM_PART_TOOL_ARGS], cases[k].text[3]) == 0,
           "parts, %zu with flags %u: '%s' '%s' '%s' '%s'", k,
           flags[i % llm_nelems(flags)], p.text[0], p.text[1], p.text[2],
           p.text[3]);
        ok(p.tokens == n && llm_emit_calls(&e) == cases[k].calls
           && e.n_reasoning == cases[k].thought, "its tokens and calls");
        ok((!(flags[i % llm_nelems(flags)] & LLM_EMIT_PROBS)
            || p.probs == cases[k].said)
           && (!(flags[i % llm_nelems(flags)] & LLM_EMIT_IDS) || p.ids == n),
           "a probability of each token of content (%u), an id of each",
           p.probs);
        ok(!(flags[i % llm_nelems(flags)] & LLM_EMIT_PROBS)
           || strcmp(p.tokens_text, p.text[0]) == 0,
           "whose texts are the content: '%s'", p.tokens_text);

        llm_emit_free(&e);
        llm_stops_free(&stops);
    }

    to.max_unread = 0;
}


/* without an answer to read all is content: but for control tokens, and for
   the space that a tokenizer puts before a text */

static void
test_bare(void)
{
    uint32_t       i;
    parts_t        p;
    llm_emit_t     e;
    llm_stops_t    stops;
    llm_sampled_t  t;

    static const int32_t  ids[] = { 261, ' ', 'a', 261, ' ', 'b', 261 };

    memset(&p, 0, sizeof(p));
    memset(&t, 0, sizeof(t));
    memset(&stops, 0, sizeof(stops));

    llm_emit_init(&e, vocab, &stops, LLM_EMIT_STREAM|LLM_EMIT_PROBS, 0, 0);
    e.detok.started = 0;                /* as where there is such a space */

    for (i = 0; i < llm_nelems(ids); i++) {
        t.id = ids[i];
        (void) llm_emit_push(&e, &t, 1);
        (void) llm_emit_write(&e, &to, 0, 0);
        take_parts(&p);
    }

    (void) llm_emit_end(&e, 0);
    (void) llm_emit_write(&e, &to, 0, 1);
    take_parts(&p);

    is_str(p.text[LLM_PART_CONTENT], "a b", "what is content");
    is_str(p.tokens_text, "a b", "is what its tokens say");
    is_int(p.probs, llm_nelems(ids), "each of which has a probability");
    is_int(p.tokens, llm_nelems(ids), "and counts");

    llm_emit_free(&e);
}


int
main(void)
{
    size_t     lens[llm_nelems(part_tokens)];
    uint32_t   i;
    llm_err_t  err;

    zone_open(1 << 17);

    for (i = 0; i < llm_nelems(part_tokens); i++) {
        lens[i] = strlen(part_tokens[i]);
    }

    if (tv_open(&tiny, part_tokens, lens, llm_nelems(part_tokens), &err)
        != LLM_OK)
    {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }

    vocab = tiny.vocab;
    test_parts();
    test_bare();
    tv_close(&tiny);

    munmap(mem, llm_zone_size(1, 1, 1 << 17));

    return done_testing();
}
