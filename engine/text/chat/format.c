/*
 * Learns how a model's answers look from its template: the template renders
 * answers with distinctive words, and what it writes around these words are
 * the marks; see learn.h.
 */

#include "engine/text/chat/learn.h"
#include "engine/text/chat/show.h"


/* ---- reasoning ---- */

/* the tag at the end of s, with what the template may write on the same line
   after it: <think>, <|channel>thought */

static llm_str_t
llm_learn_last_tag(llm_str_t s)
{
    size_t  i;

    s = llm_learn_trim(s);

    for (i = s.len; i > 0 && s.len - i < 40; i--) {
        if (s.data[i - 1] == '\n') {
            break;
        }

        if ((s.data[i - 1] == '<' || s.data[i - 1] == '[')
            && llm_learn_tag(llm_learn_cut(s, i - 1, s.len)).len)
        {
            return llm_learn_cut(s, i - 1, s.len);
        }
    }

    return (llm_str_t) { 0, "" };
}


/* stores how reasoning ends: its close with the white space around it */

static void
llm_learn_ending(llm_format_t *f, llm_str_t close, llm_str_t between)
{
    size_t  end;
    char   *copy;

    if (f->n_reasoning == 0 || close.len == 0) {
        return;
    }

    end = (size_t) (close.data + close.len - between.data);

    while (end < between.len && llm_mark_is_space(between.data[end])) {
        end++;
    }

    copy = llm_arena_dup(&f->arena, between.data, end);

    if (copy) {
        f->reasoning[0].ending = (llm_str_t) { end, copy };
    }
}


static void
llm_learn_reasoning(llm_chat_t *c)
{
    size_t       thought, text;
    llm_str_t    all, open, close;
    llm_show_t   show = { 1, 1, 0 };
    llm_shown_t  s;

    if (llm_show(c, &show, &s) != LLM_OK) {
        return;
    }

    /* the prompt may contain the beginning already */

    all = (llm_str_t) { s.prompt.len + s.text.len, s.prompt.data };
    thought = llm_learn_find(all, LLM_SHOW_THOUGHT, 0);
    text = thought == SIZE_MAX ? SIZE_MAX
           : llm_learn_find(all, LLM_SHOW_TEXT, thought);

    if (text != SIZE_MAX) {
        open = llm_learn_last_tag(llm_learn_cut(all, 0, thought));
        close = llm_learn_tag(llm_learn_trim(
                    llm_learn_cut(all, thought + strlen(LLM_SHOW_THOUGHT),
                                  text)));
        llm_chat_add_pair(&c->format, open, close);
        llm_learn_ending(&c->format, close,
                         llm_learn_cut(all,
                                       thought + strlen(LLM_SHOW_THOUGHT),
                                       text));
    }

    llm_shown_free(&s);
}


/* ---- content ---- */

/* learns what precedes content, and what ends a turn; tail, of LLM_LEARN_MARK
   bytes, gets what follows content */

static void
llm_learn_content(llm_chat_t *c, llm_buf_t *tail)
{
    size_t         at;
    llm_str_t      before, after;
    llm_show_t     show = { 1, 0, 0 };
    llm_shown_t    s;
    llm_format_t  *f;

    if (llm_show(c, &show, &s) != LLM_OK) {
        return;
    }

    f = &c->format;
    at = llm_learn_find(s.text, LLM_SHOW_TEXT, 0);

    if (at != SIZE_MAX) {
        before = llm_learn_behind(f, llm_learn_cut(s.text, 0, at));
        after = llm_learn_cut(s.text, at + strlen(LLM_SHOW_TEXT), s.text.len);

        if (llm_learn_trim(before).len <= LLM_LEARN_MARK / 2) {
            llm_chat_add_mark(f->content, &f->n_content,
                              llm_chat_mark(f, before));
        }

        (void) llm_buf_add(tail, after.data,
                           llm_min(after.len, (size_t) LLM_LEARN_MARK));
    }

    llm_shown_free(&s);
}


/* reading back the calls that a form was learnt from */
typedef struct {
    uint32_t     calls;
    uint32_t     right;                 /* calls read with the right name and
                                           arguments */
    int          text;
} llm_learn_check_t;


static int
llm_learn_part(void *data, llm_part_t part, uint32_t call, llm_str_t text)
{
    llm_learn_check_t      *k;
    const llm_show_call_t  *want;

    k = data;
    want = &llm_show_calls[llm_min(call, 1u)];

    switch (part) {

    case LLM_PART_TOOL_NAME:
        k->calls++;
        k->right += llm_str_is(text, want->name);
        break;

    case LLM_PART_TOOL_ARGS:
        k->right += llm_learn_find(text, want->key, 0) != SIZE_MAX
                    && llm_learn_find(text, want->value, 0) != SIZE_MAX
                    && llm_learn_find(text, want->number, 0) != SIZE_MAX
                    && memmem(text.data, text.len, "\\\"", 2) == NULL;
        break;

    case LLM_PART_CONTENT:
        k->text = 1;
        break;

    default:
        break;
    }

    return LLM_OK;
}


static int
llm_learn_reads(llm_chat_t *c, const llm_tools_t *tools, uint32_t calls)
{
    int                 rc;
    llm_show_t          show = { 0, 0, calls };
    llm_shown_t         s;
    llm_answer_t       *a;
    llm_answer_opts_t   o;
    llm_learn_check_t   k;

    if (llm_show(c, &show, &s) != LLM_OK) {
        return calls > 1;               /* some templates allow only one call */
    }

    memset(&k, 0, sizeof(k));
    o.format = &c->format;
    o.tools = tools;
    o.flags = LLM_ANSWER_REASONING|LLM_ANSWER_TOOLS;
    o.open = llm_answer_open(&c->format, s.prompt);
    o.form = NULL;

    a = llm_answer_create(&o, llm_learn_part, &k);
    rc = a ? llm_answer_push(a, s.text) : LLM_ERROR;

    if (rc == LLM_OK) {
        rc = llm_answer_end(a, LLM_TEXT_DONE);
    }

    llm_answer_free(a);

    /* a second call that the template does not show need not be read back */

    if (calls == 2 && llm_learn_find(s.text, llm_show_calls[1].name, 0)
                      == SIZE_MAX)
    {
        calls = 1;
    }

    llm_shown_free(&s);

    return rc == LLM_OK && k.calls == calls && k.right == 2 * calls;
}


static void
llm_learn_calls(llm_chat_t *c, llm_str_t tail)
{
    llm_buf_t      b;
    llm_form_t     form;
    llm_tools_t    tools;
    llm_format_t  *f;

    f = &c->format;
    memset(&form, 0, sizeof(form));
    llm_learn_form(c, tail, &form);

    if (form.kind == 0) {
        return;
    }

    f->forms[0] = form;
    f->n_forms = 1;

    llm_buf_init(&b, 0);
    llm_show_tools(&b);

    if (b.failed
        || llm_tools_init(&tools, (const llm_flat_t *) b.data) != LLM_OK)
    {
        f->n_forms = 0;

    } else {
        if (!llm_learn_reads(c, &tools, 1) || !llm_learn_reads(c, &tools, 2)) {
            f->n_forms = 0;
        }

        llm_tools_free(&tools);
    }

    llm_buf_free(&b);
}


/* what follows content: a tag, or else a word that stands for none */

static llm_str_t
llm_learn_turn_end(llm_str_t tail)
{
    size_t     i;
    llm_str_t  tag, none = { 0, NULL };

    tag = llm_learn_tag_in(tail, none);

    if (tag.len) {
        return tag;
    }

    tail = llm_learn_trim(tail);

    for (i = 0; i < tail.len && !llm_mark_is_space(tail.data[i]); i++) {
        if ((tail.data[i] | 0x20) >= 'a' && (tail.data[i] | 0x20) <= 'z') {
            continue;
        }

        tag = llm_learn_cut(tail, 0, i + 1);
    }

    return tag.len < 3 ? none : tag;    /* a full stop is no mark */
}


void
llm_chat_learn(llm_chat_t *c, llm_str_t src)
{
    llm_buf_t      tail;
    llm_str_t      end;
    llm_format_t  *f;

    f = &c->format;
    llm_buf_init(&tail, 0);

    llm_learn_reasoning(c);
    llm_chat_family_reasoning(f, src);
    llm_learn_content(c, &tail);

    end = (llm_str_t) { tail.len, tail.len ? tail.data : "" };

    llm_learn_calls(c, end);

    if (f->turn_end.len == 0) {
        f->turn_end = llm_chat_mark(f, llm_learn_turn_end(end));
    }

    /* content with a mark before it also has a mark after it, if that differs
       from the end of the turn */

    end = llm_learn_tag(llm_learn_trim(end));

    if (f->n_content && end.len && !llm_str_eq(end, f->turn_end)) {
        llm_chat_add_mark(f->content_end, &f->n_content_end,
                          llm_chat_mark(f, end));
    }

    llm_buf_free(&tail);
}
