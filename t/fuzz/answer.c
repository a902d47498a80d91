/*
 * Any bytes as a model's answer, by the formats of small templates or of one
 * that the input brings: however it is cut it says the same; calls come in
 * order, with names of tools and JSON for arguments, unless they are handed
 * out before they are whole, or have been cut; and where there is no mark in
 * it, it is content, byte for byte.
 *
 * The first byte chooses the template, the second what is looked for, the
 * third seeds the cuts; the rest is the text.  With a template of its own the
 * text begins behind the first zero byte.
 */

#include "engine/api/json.h"
#include "engine/base/utf8.h"
#include "engine/emit/answer.h"
#include "engine/serve/engine.h"
#include "engine/text/chat/chat.h"

#include <stdlib.h>

#define FUZZ_HEAD  3

#define TEMPLATE(answer)                                                     \
    "{% for m in messages %}{% if m.role == 'user' %}<|u|>{{ m.content }}"   \
    "{% else %}<|a|>" answer "<|end|>{% endif %}{% endfor %}"                \
    "{% if add_generation_prompt %}<|a|>{% endif %}"
#define EACH(call)                                                           \
    "{% for c in m.tool_calls or [] %}" call "{% endfor %}"
#define NAME   "{{ c.function.name }}"
#define ARGS   "{{ c.function.arguments | tojson }}"
#define EVERY(param)                                                         \
    "{% for k, v in c.function.arguments.items() %}" param "{% endfor %}"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static const char *const  fuzz_templates[] = {
    TEMPLATE("{{ m.content }}"),
    TEMPLATE("<think>{{ m.reasoning_content }}</think>{{ m.content }}"
             EACH("<tool_call>{\"name\": \"" NAME "\", \"arguments\": " ARGS
                  "}</tool_call>")),
    TEMPLATE("{{ m.content }}" EACH("[TOOL_CALLS]" NAME "[ARGS]" ARGS)),
    TEMPLATE("{{ m.content }}" EACH("<c><f=" NAME ">\n"
             EVERY("<p={{ k }}>\n{{ v }}\n</p>\n") "</f></c>")),
    TEMPLATE("{{ m.content }}{% if m.tool_calls %}<x>" EACH("<c>" NAME
             EVERY("<k>{{ k }}</k><v>{{ v }}</v>") "</c>")
             "</x>{% endif %}"),
    TEMPLATE("{{ m.content }}" EACH("<|c>" NAME "{% raw %}{{% endraw %}"
             EVERY("{{ k }}:<|q|>{{ v }}<|q|>,") "{% raw %}}{% endraw %}"
             "<c|>")),
    TEMPLATE("{{ m.content }}" EACH("<|c|>[" NAME "("
             EVERY("{{ k }}={{ v | tojson }}"
                   "{% if not loop.last %}, {% endif %}") ")]<|/c|>")),
    TEMPLATE("{% if m.tool_calls %}" EACH("{\"name\": \"" NAME
             "\", \"parameters\": " ARGS "}")
             "{% else %}{{ m.content }}{% endif %}"),
    TEMPLATE("{# <|channel|> <|message|> analysis #}{{ m.content }}"),
    TEMPLATE("{# <|python_tag|> #}{{ m.content }}")
};

typedef struct {
    llm_buf_t    content;
    llm_buf_t    reasoning;
    llm_buf_t    calls;
    uint32_t     n_calls;
    int          sure;
    int          ending;                /* arguments may have been cut */
} heard_t;


static int
fuzz_part(void *data, llm_part_t part, uint32_t call, llm_str_t text)
{
    heard_t    *h;
    llm_buf_t   flat;
    llm_err_t   err;

    h = data;

    switch (part) {

    case LLM_PART_CONTENT:
        return llm_buf_add(&h->content, text.data, text.len);

    case LLM_PART_REASONING:
        return llm_buf_add(&h->reasoning, text.data, text.len);

    case LLM_PART_TOOL_NAME:
        if (call != h->n_calls++) {
            abort();
        }

        return llm_buf_add(&h->calls, text.data, text.len);

    default:
        break;
    }

    if (call + 1 != h->n_calls) {
        abort();
    }

    /* what the wire format refuses beside what is not JSON: half characters,
       zeros, endless numbers, bytes that are no text */

    llm_buf_init(&flat, 0);

    if (!h->sure && !h->ending && text.len < 60
        && memmem(text.data, text.len, "\\u", 2) == NULL
        && llm_utf8_valid(text.data, text.len) == text.len
        && memchr(text.data, 'e', text.len) == NULL
        && memchr(text.data, 'E', text.len) == NULL
        && llm_json_to_flat(text.data, text.len, NULL, &flat, &err) != LLM_OK)
    {
        abort();
    }

    llm_buf_free(&flat);

    return llm_buf_add(&h->calls, text.data, text.len);
}


static void
fuzz_listen(const llm_answer_opts_t *o, llm_str_t text, int how,
    unsigned seed, heard_t *h)
{
    size_t         i, n;
    llm_str_t      rest;
    llm_answer_t  *a;

    memset(h, 0, sizeof(*h));
    h->sure = (o->flags & LLM_ANSWER_SURE) != 0;
    llm_buf_init(&h->content, 0);
    llm_buf_init(&h->reasoning, 0);
    llm_buf_init(&h->calls, 0);

    a = llm_answer_create(o, fuzz_part, h);

    for (i = 0; a && i < text.len; i += n) {
        seed = seed * 1103515245u + 12345u;
        n = seed >> 16 ? 1 + (seed >> 16) % 7 : text.len;
        n = llm_min(n, text.len - i);

        if (llm_answer_push(a, (llm_str_t) { n, text.data + i })
            == LLM_STOPPED)
        {
            break;
        }

        if (llm_answer_begun(a, &rest) != LLM_BEGUN_NOT
            && (rest.len > text.len
                || memmem(text.data, i + n, rest.data, rest.len) == NULL))
        {
            abort();
        }
    }

    if (a) {
        h->ending = 1;
        (void) llm_answer_end(a, how);
    }

    llm_answer_free(a);
}


static int
fuzz_same(const llm_buf_t *a, const llm_buf_t *b)
{
    return a->len == b->len && (a->len == 0
                                || memcmp(a->data, b->data, a->len) == 0);
}


static void
fuzz_heard_free(heard_t *h)
{
    llm_buf_free(&h->content);
    llm_buf_free(&h->reasoning);
    llm_buf_free(&h->calls);
}


static int
fuzz_has(llm_str_t text, llm_str_t mark)
{
    return mark.len && memchr(text.data, mark.data[0], text.len) != NULL;
}


/* is there the beginning of a mark? */

static int
fuzz_marked(const llm_format_t *f, llm_str_t text)
{
    int       marked;
    uint32_t  i;

    marked = fuzz_has(text, f->turn_end);

    for (i = 0; i < f->n_reasoning; i++) {
        marked |= fuzz_has(text, f->reasoning[i].open);
    }

    for (i = 0; i < f->n_content; i++) {
        marked |= fuzz_has(text, f->content[i]);
    }

    for (i = 0; i < f->n_skipped; i++) {
        marked |= fuzz_has(text, f->skipped[i]);
    }

    for (i = 0; i < f->n_forms; i++) {
        marked |= fuzz_has(text, f->forms[i].open)
                  || fuzz_has(text, f->forms[i].begin);
    }

    return marked || f->harmony;
}


static void
fuzz_read(const llm_chat_t *chat, const uint8_t *data, llm_str_t text)
{
    int                how;
    heard_t            whole, cut;
    llm_tool_t         tool[2] = { { { 1, "f" }, NULL, 0, 0 },
                                   { { 3, "fun" }, NULL, 1, 0 } };
    llm_tools_t        tools = { 2, tool };
    llm_answer_opts_t  o;

    o.format = llm_chat_format(chat);
    o.tools = &tools;
    o.flags = data[1] & 63;
    o.open = (data[1] & 64) && o.format->n_reasoning ? 0 : -1;
    o.form = llm_calls_form(o.format);

    how = data[1] & 128 ? LLM_TEXT_DONE : LLM_TEXT_CUT;

    fuzz_listen(&o, text, how, 0, &whole);
    fuzz_listen(&o, text, how, data[2] + 1u, &cut);

    if (!fuzz_same(&whole.content, &cut.content)
        || !fuzz_same(&whole.reasoning, &cut.reasoning)
        || !fuzz_same(&whole.calls, &cut.calls))
    {
        abort();
    }

    if (whole.n_calls == 0 && o.open < 0 && !fuzz_marked(o.format, text)
        && (whole.content.len != text.len
            || (text.len && memcmp(whole.content.data, text.data, text.len))))
    {
        abort();
    }

    fuzz_heard_free(&whole);
    fuzz_heard_free(&cut);
}


static llm_chat_t *
fuzz_chat(llm_str_t src)
{
    llm_err_t  err;

    return llm_chat_create(src, llm_str("<s>"), llm_str("</s>"), &err);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t        i;
    llm_str_t     src, text;
    const char   *zero;
    llm_chat_t   *chat;

    static llm_chat_t  *chats[llm_nelems(fuzz_templates)];

    if (size < FUZZ_HEAD) {
        return 0;
    }

    text.data = (const char *) data + FUZZ_HEAD;
    text.len = size - FUZZ_HEAD;
    i = data[0] % (llm_nelems(fuzz_templates) + 1);

    if (i < llm_nelems(fuzz_templates)) {
        if (chats[i] == NULL) {
            src.data = fuzz_templates[i];
            src.len = strlen(src.data);
            chats[i] = fuzz_chat(src);
        }

        if (chats[i] == NULL) {
            abort();
        }

        fuzz_read(chats[i], data, text);

        return 0;
    }

    zero = memchr(text.data, '\0', text.len);

    if (zero) {
        src = (llm_str_t) { (size_t) (zero - text.data), text.data };
        text.len -= src.len + 1;
        text.data = zero + 1;
        chat = fuzz_chat(src);

        if (chat) {
            fuzz_read(chat, data, text);
            llm_chat_free(chat);
        }
    }

    return 0;
}
