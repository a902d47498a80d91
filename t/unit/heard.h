/*
 * What is heard of an answer: each is read whole, byte by byte and in random
 * pieces, which must give the same.  And what the templates of these tests
 * are made of.
 */

#ifndef LLM_T_HEARD_H
#define LLM_T_HEARD_H

#include "engine/api/json.h"
#include "engine/emit/answer.h"
#include "engine/serve/engine.h"
#include "engine/text/chat/chat.h"
#include "t/unit/tap.h"

#define TOOLS                                                                \
    "[{\"type\":\"function\",\"function\":{\"name\":\"get\",\"parameters\":" \
    "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"},"   \
    "\"days\":{\"type\":\"integer\"},\"note\":{\"type\":[\"string\","        \
    "\"null\"]},\"deep\":{\"type\":\"object\"},\"any\":{},\"yes\":"          \
    "{\"anyOf\":[{\"type\":\"boolean\"},{\"type\":\"null\"}]}}}}},"          \
    "{\"type\":\"function\",\"function\":{\"name\":\"get_all\"}},"           \
    "{\"name\":\"now\"}]"

/* the part that templates have in common: H before an answer, E behind it */
#define TEMPLATE(answer)                                                     \
    "{% for m in messages %}{% if m.role == 'user' %}"                       \
    "<|user|>{{ m.content }}<|end|>"                                         \
    "{% else %}<|assistant|>" answer "<|end|>{% endif %}{% endfor %}"        \
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"

#define CALLS(each, between)                                                 \
    "{% for c in m.tool_calls or [] %}" each "{% if not loop.last %}"        \
    between "{% endif %}{% endfor %}"

#define NAME    "{{ c.function.name }}"
#define ARGS    "{{ c.function.arguments | tojson }}"
#define OBJECT  "{\"name\": \"" NAME "\", \"arguments\": " ARGS "}"
#define PARAMS(before, behind, end)                                          \
    "{% for k, v in c.function.arguments.items() %}" before "{{ k }}"        \
    behind "{{ v if v is string else v | tojson }}" end "{% endfor %}"

typedef struct {
    llm_buf_t    content;
    llm_buf_t    reasoning;
    llm_buf_t    calls;
    uint32_t     n_calls;
    int          wrong;                 /* a call out of order */
} heard_t;


static int       hear_cut;              /* answers are cut, not ended */
static unsigned  n_sure;                /* cases that sure_agrees() has
                                           tried */


static inline int
hear(void *data, llm_part_t part, uint32_t call, llm_str_t text)
{
    heard_t    *h;
    llm_buf_t  *b;

    h = data;
    b = part == LLM_PART_CONTENT ? &h->content
        : part == LLM_PART_REASONING ? &h->reasoning : &h->calls;

    if (part == LLM_PART_TOOL_NAME) {
        h->wrong |= call != h->n_calls++;

    } else if (part == LLM_PART_TOOL_ARGS) {
        h->wrong |= call + 1 != h->n_calls;
    }

    return llm_buf_add(b, text.data, text.len);
}


static inline void
heard_free(heard_t *h)
{
    llm_buf_free(&h->content);
    llm_buf_free(&h->reasoning);
    llm_buf_free(&h->calls);
}


/* reads raw in pieces of at most `most` bytes, of random lengths if it is
   negative */

static inline void
listen(const llm_answer_opts_t *o, llm_str_t raw, int most, heard_t *h)
{
    size_t         i, n;
    llm_answer_t  *a;

    memset(h, 0, sizeof(*h));
    llm_buf_init(&h->content, 0);
    llm_buf_init(&h->reasoning, 0);
    llm_buf_init(&h->calls, 0);

    a = llm_answer_create(o, hear, h);

    for (i = 0; a && i < raw.len; i += n) {
        n = most > 0 ? (size_t) most : 1 + (size_t) rand() % (size_t) -most;
        n = llm_min(n, raw.len - i);
        h->wrong |= llm_answer_push(a, (llm_str_t) { n, raw.data + i });
    }

    h->wrong |= a == NULL || llm_answer_end(a, hear_cut ? LLM_TEXT_CUT
                                                   : LLM_TEXT_DONE) != LLM_OK
                || llm_answer_calls(a) != h->n_calls;
    llm_answer_free(a);
}


static inline int
same(const llm_buf_t *a, const llm_buf_t *b)
{
    return a->len == b->len && (a->len == 0
                                || memcmp(a->data, b->data, a->len) == 0);
}


static inline int
is(const llm_buf_t *b, const char *want)
{
    if (b->len == strlen(want) && memcmp(b->data ? b->data : "", want, b->len)
                                  == 0)
    {
        return 1;
    }

    printf("# got  '%s'\n# want '%s'\n", b->len ? b->data : "", want);

    return 0;
}


/* 1 if all ways to cut it give what is in h */

static inline int
cuts_agree(const llm_answer_opts_t *o, llm_str_t raw, const heard_t *h)
{
    int      i, good;
    heard_t  cut;

    static const int  most[] = { 1, 2, 3, -5, -5, -9, -17, -40 };

    for (i = 0, good = 1; i < (int) llm_nelems(most) && good; i++) {
        listen(o, raw, most[i], &cut);

        good = !cut.wrong && same(&h->content, &cut.content)
               && same(&h->reasoning, &cut.reasoning)
               && same(&h->calls, &cut.calls);

        if (!good) {
            printf("# in pieces of %d: calls '%.*s', content '%.*s'\n",
                   most[i], (int) cut.calls.len,
                   cut.calls.len ? cut.calls.data : "",
                   (int) cut.content.len,
                   cut.content.len ? cut.content.data : "");
        }

        heard_free(&cut);
    }

    return good;
}


/* ---- answers that are cut ---- */

/* does text have this mark, which all does not have? */

static inline int
has_mark(const llm_buf_t *text, const llm_buf_t *all, llm_str_t mark)
{
    return mark.len > 2 && text->len
           && memmem(text->data, text->len, mark.data, mark.len)
           && (all->len == 0
               || memmem(all->data, all->len, mark.data, mark.len) == NULL);
}


/* a mark of calls in the content, which there is not in all of it */

static inline int
shows_marks(const llm_format_t *f, const heard_t *h, const heard_t *all)
{
    uint32_t           i, k;
    llm_str_t          marks[5];
    const llm_form_t  *m;

    for (i = 0; i < f->n_forms; i++) {
        m = &f->forms[i];
        marks[0] = llm_mark_tag(m->open);
        marks[1] = llm_mark_tag(m->begin);
        marks[2] = llm_mark_last_tag(m->end);
        marks[3] = llm_mark_last_tag(m->close);
        marks[4] = llm_mark_tag(m->key);

        for (k = 0; k < llm_nelems(marks); k++) {
            if (has_mark(&h->content, &all->content, marks[k])) {
                printf("# a mark is shown: '%s'\n", h->content.data);
                return 1;
            }
        }
    }

    return 0;
}


/*
 * Cut behind every byte it shows no marks, and if it is strictly in its form
 * it says no other calls than it says as a whole, as far as they go.
 */

static inline int
cut_anywhere(const llm_answer_opts_t *o, llm_str_t raw, const heard_t *all,
    int strict)
{
    int      good;
    size_t   n;
    heard_t  h;

    good = 1;
    hear_cut = 1;

    for (n = 1; n < raw.len && good; n++) {
        listen(o, (llm_str_t) { n, raw.data }, (int) n, &h);

        good = !h.wrong && !shows_marks(o->format, &h, all)
               && (!strict
                   || (h.calls.len <= all->calls.len
                       && (h.calls.len == 0
                           || memcmp(h.calls.data, all->calls.data,
                                     h.calls.len) == 0)));

        if (!good) {
            printf("# cut behind '%.*s': calls '%.*s', content '%.*s'\n",
                   (int) n, raw.data, (int) h.calls.len,
                   h.calls.len ? h.calls.data : "", (int) h.content.len,
                   h.content.len ? h.content.data : "");
        }

        heard_free(&h);

        /* who does not know that it was cut sees no marks either */

        hear_cut = 0;
        listen(o, (llm_str_t) { n, raw.data }, (int) n, &h);
        good &= !strict || (!h.wrong && !shows_marks(o->format, &h, all));
        heard_free(&h);
        hear_cut = 1;
    }

    hear_cut = 0;

    return good;
}


/* ---- values ---- */

static inline int
equal(const llm_flat_t *a, const llm_flat_t *b)
{
    const llm_flat_t  *k, *v, *w;

    if (a->type != b->type || a->count != b->count) {
        return (a->type == LLM_FLAT_INT || a->type == LLM_FLAT_DOUBLE)
               && (b->type == LLM_FLAT_INT || b->type == LLM_FLAT_DOUBLE)
               && llm_flat_double(a) == llm_flat_double(b);
    }

    if (a->type == LLM_FLAT_OBJECT) {
        for (k = llm_flat_first(a); k; k = llm_flat_next(a, v)) {
            v = llm_flat_next(a, k);
            w = llm_flat_get(b, llm_flat_str(k).data);

            if (w == NULL || !equal(v, w)) {
                return 0;
            }
        }

        return 1;
    }

    if (a->type == LLM_FLAT_ARRAY) {
        v = llm_flat_first(a);
        w = llm_flat_first(b);

        for ( /* void */ ; v; v = llm_flat_next(a, v)) {
            if (!equal(v, w)) {
                return 0;
            }

            w = llm_flat_next(b, w);
        }

        return 1;
    }

    return a->size == b->size && memcmp(a, b, a->size) == 0;
}


static inline llm_chat_t *
chat(const char *name, const char *src, size_t len)
{
    llm_err_t    err;
    llm_chat_t  *c;

    c = llm_chat_create((llm_str_t) { len, src }, llm_str(""), llm_str(""),
                        &err);

    if (c == NULL) {
        printf("# %s: %s\n", name, err.msg);
    }

    return c;
}


/* does it say the same piece by piece, as if a grammar had written it?  That
   writes arguments as objects and no ids */

static inline int
sure_agrees(const llm_answer_opts_t *o, llm_str_t raw, const heard_t *h)
{
    int                good;
    heard_t            sure;
    llm_answer_opts_t  so;

    so = *o;
    so.form = llm_calls_form(o->format);
    so.flags |= LLM_ANSWER_SURE;

    if (so.form == NULL || h->n_calls == 0
        || memmem(raw.data, raw.len, "\": \"{", 5)
        || memmem(raw.data, raw.len, "\"id\"", 4))
    {
        return 1;
    }

    n_sure++;
    listen(&so, raw, (int) raw.len, &sure);

    good = !sure.wrong && same(&h->content, &sure.content)
           && same(&h->reasoning, &sure.reasoning)
           && same(&h->calls, &sure.calls) && cuts_agree(&so, raw, &sure);

    if (!good) {
        printf("# sure: '%s'\n", sure.calls.len ? sure.calls.data : "");
    }

    heard_free(&sure);

    return good;
}

#endif /* LLM_T_HEARD_H */
