/*
 * What answers mean that are almost in their form, by the cases of
 * toolcalls_near.jsonl: calls with mistakes, in odd headers, in thinking that
 * is not closed, without marks, of tools that there are not, and text that
 * only names marks.  Each is read whole, in pieces, and cut behind every byte.
 *
 * A line with "family" has a template, the end of its prompt, marks that must
 * not be seen, and the real templates that its cases are true of, which are
 * tried where the shared fixtures are.  A line with "raw" is a case of the
 * family above it: "calls", unless any will do, and "content", unless any
 * without those marks will do.
 */

#include "engine/base/file.h"
#include "engine/text/chat/learn.h"
#include "t/unit/heard.h"

#include <limits.h>

#define NEAR_TOOLS                                                           \
    "[{\"type\":\"function\",\"function\":{\"name\":\"run\",\"parameters\":" \
    "{\"type\":\"object\",\"properties\":{\"cmd\":{\"type\":\"string\"},"    \
    "\"items\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"        \
    "\"n\":{\"type\":\"integer\"}},\"required\":[]}}}]"

#define CHATS  4

/* the family of the cases */
typedef struct {
    uint32_t      n;
    llm_chat_t   *chats[CHATS];
    char          names[CHATS][256];
    llm_buf_t     line;                 /* flat */
    unsigned      n_cases;
    llm_tools_t   tools;
} near_t;


static llm_str_t
text_of(const llm_flat_t *line, const char *key)
{
    const llm_flat_t  *v;

    v = llm_flat_get(line, key);

    return v ? llm_flat_str(v) : llm_str("");
}


static void
add_chat(near_t *f, llm_str_t name, llm_str_t src)
{
    snprintf(f->names[f->n], sizeof(f->names[0]), "%.*s", (int) name.len,
             name.data);
    f->chats[f->n] = chat(f->names[f->n], src.data, src.len);

    if (ok(f->chats[f->n] != NULL, "%s: the template", f->names[f->n])) {
        f->n++;
    }
}


static void
leave(near_t *f)
{
    while (f->n) {
        llm_chat_free(f->chats[--f->n]);
    }

    llm_buf_free(&f->line);
}


static void
enter(near_t *f, const llm_buf_t *flat)
{
    char               path[PATH_MAX];
    llm_buf_t          b;
    llm_err_t          err;
    llm_str_t          s;
    const char        *dir;
    const llm_flat_t  *line, *v, *files;

    leave(f);
    llm_buf_init(&f->line, 0);
    (void) llm_buf_add(&f->line, flat->data, flat->len);

    line = (const llm_flat_t *) f->line.data;
    add_chat(f, text_of(line, "family"), text_of(line, "source"));

    dir = tap_fixtures();
    files = llm_flat_get(line, "files");

    for (v = dir && files ? llm_flat_first(files) : NULL; v && f->n < CHATS;
         v = llm_flat_next(files, v))
    {
        s = llm_flat_str(v);
        snprintf(path, sizeof(path), "%s/chat-templates/%.*s", dir,
                 (int) s.len, s.data);
        llm_buf_init(&b, 0);

        if (llm_file_read(path, &b, &err) == LLM_OK) {
            add_chat(f, s, (llm_str_t) { b.len, b.data });
        }

        llm_buf_free(&b);
    }
}


/* [[name, arguments], ...] against the names and the JSON of the calls */

static int
calls_are(const llm_buf_t *got, const llm_flat_t *want)
{
    int                same;
    llm_buf_t          flat;
    llm_err_t          err;
    llm_lit_t          r;
    llm_str_t          name;
    const char        *p, *end;
    const llm_flat_t  *call, *v;

    p = got->len ? got->data : "";
    end = p + got->len;

    for (call = llm_flat_first(want); call; call = llm_flat_next(want, call)) {
        v = llm_flat_first(call);
        name = llm_flat_str(v);

        if ((size_t) (end - p) < name.len
            || memcmp(p, name.data, name.len) != 0)
        {
            return 0;
        }

        p += name.len;
        llm_lit_init(&r, (llm_str_t) { (size_t) (end - p), p }, llm_str(""),
                     NULL);

        if (llm_lit_value(&r) != LLM_OK) {
            return 0;
        }

        llm_buf_init(&flat, 0);
        same = llm_json_to_flat(p, (size_t) (r.p - p), NULL, &flat, &err)
               == LLM_OK
               && equal((const llm_flat_t *) flat.data,
                        llm_flat_next(call, v));
        llm_buf_free(&flat);

        if (!same) {
            return 0;
        }

        p = r.p;
    }

    return p == end;
}


/* its content, or that there is no mark in it */

static int
content_is(const near_t *f, const llm_buf_t *got, const llm_flat_t *want)
{
    llm_str_t          a, b;
    const llm_flat_t  *v, *marks;

    a = llm_learn_trim((llm_str_t) { got->len, got->len ? got->data : "" });

    if (want) {
        b = llm_flat_str(want);
        return llm_str_eq(a, b);
    }

    marks = llm_flat_get((const llm_flat_t *) f->line.data, "marks");

    for (v = llm_flat_first(marks); v; v = llm_flat_next(marks, v)) {
        b = llm_flat_str(v);

        if (memmem(a.data, a.len, b.data, b.len)) {
            return 0;
        }
    }

    return 1;
}


static void
one_case(near_t *f, const llm_flat_t *line, uint32_t i)
{
    int                 good, strict;
    heard_t             h;
    llm_str_t           raw, kind, prompt;
    llm_answer_opts_t   o;
    const llm_flat_t   *calls, *content;

    raw = text_of(line, "raw");
    kind = text_of(line, "kind");
    calls = llm_flat_get(line, "calls");
    content = llm_flat_get(line, "content");
    prompt = text_of((const llm_flat_t *) f->line.data, "prompt");

    o.format = llm_chat_format(f->chats[i]);
    o.tools = &f->tools;
    o.form = NULL;
    o.flags = LLM_ANSWER_REASONING|LLM_ANSWER_TOOLS;
    o.open = llm_answer_open(o.format, prompt);

    listen(&o, raw, (int) raw.len, &h);

    good = !h.wrong && (calls == NULL || calls_are(&h.calls, calls))
           && content_is(f, &h.content, content) && cuts_agree(&o, raw, &h);

    /* arguments that are right are cut where they are cut */

    strict = llm_str_is(kind, "right") || llm_str_is(kind, "header")
             || llm_str_is(kind, "ids") || llm_str_is(kind, "section");

    /* where marks are part of a text or a value, one that is cut may be seen */

    if (good && !llm_str_is(kind, "quote") && !llm_str_is(kind, "value")
        && !llm_str_is(kind, "unknown tool"))
    {
        good = cut_anywhere(&o, raw, &h, strict);
    }

    if (good && llm_str_is(kind, "right")) {
        good = sure_agrees(&o, raw, &h);
    }

    ok(good, "%s, %.*s: %.*s", f->names[i], (int) kind.len, kind.data,
       (int) llm_min(raw.len, 60u), raw.data);

    if (!good) {
        printf("# calls '%.*s', content '%.*s'\n", (int) h.calls.len,
               h.calls.len ? h.calls.data : "", (int) h.content.len,
               h.content.len ? h.content.data : "");
    }

    heard_free(&h);
}


static void
one_line(near_t *f, const char *p, size_t len)
{
    uint32_t           i;
    llm_buf_t          flat;
    llm_err_t          err;
    const llm_flat_t  *line;

    llm_buf_init(&flat, 0);

    if (llm_json_to_flat(p, len, NULL, &flat, &err) != LLM_OK) {
        ok(0, "a line that is not JSON: %.*s", (int) len, p);
        return;
    }

    line = (const llm_flat_t *) flat.data;

    if (llm_flat_get(line, "family")) {
        enter(f, &flat);

    } else {
        for (i = 0; i < f->n; i++) {
            one_case(f, line, i);
        }

        f->n_cases++;
    }

    llm_buf_free(&flat);
}


int
main(void)
{
    char         path[PATH_MAX];
    near_t       f;
    llm_buf_t    all, tools;
    llm_err_t    err;
    const char  *p, *end, *root;

    srand(1);
    memset(&f, 0, sizeof(f));
    llm_buf_init(&all, 0);
    llm_buf_init(&tools, 0);

    root = getenv("LLM_ROOT");
    snprintf(path, sizeof(path), "%s/t/unit/toolcalls_near.jsonl",
             root ? root : ".");

    if (llm_file_read(path, &all, &err) != LLM_OK
        || llm_json_to_flat(NEAR_TOOLS, strlen(NEAR_TOOLS), NULL, &tools, &err)
           != LLM_OK
        || llm_tools_init(&f.tools, (const llm_flat_t *) tools.data) != LLM_OK)
    {
        ok(0, "the cases: %s", err.msg);
        return done_testing();
    }

    for (p = all.data; p < all.data + all.len; p = end + 1) {
        end = memchr(p, '\n', (size_t) (all.data + all.len - p));
        end = end ? end : all.data + all.len;
        one_line(&f, p, (size_t) (end - p));
    }

    ok(f.n_cases > 0, "%u cases", f.n_cases);

    leave(&f);
    llm_tools_free(&f.tools);
    llm_buf_free(&all);
    llm_buf_free(&tools);

    return done_testing();
}
