/*
 * Reads a model's answer to its parts; see answer.h.
 *
 * The text is read mark by mark.  Where a call may begin, answer_calls.c tries
 * to read one.  If that fails, the text is content and no call begins inside
 * it, so that every byte is looked at a bounded number of times.
 */

#include "engine/emit/answer_internal.h"


llm_answer_t *
llm_answer_create(const llm_answer_opts_t *o, llm_answer_put_pt put,
    void *data)
{
    llm_answer_t  *a;

    a = calloc(1, sizeof(*a));
    if (a == NULL) {
        return NULL;
    }

    a->o = *o;
    a->put = put;
    a->data = data;
    a->state = LLM_STATE_START;
    a->open = -1;

    if (o->open >= 0 && (o->flags & LLM_ANSWER_REASONING)) {
        a->state = LLM_STATE_REASONING;
        a->open = o->open;
        a->lead = 1;
    }

    llm_buf_init(&a->text, 0);
    llm_buf_init(&a->space, 0);
    llm_buf_init(&a->piece, 0);
    llm_call_init(&a->call);

    return a;
}


void
llm_answer_free(llm_answer_t *a)
{
    if (a) {
        llm_buf_free(&a->text);
        llm_buf_free(&a->space);
        llm_buf_free(&a->piece);
        llm_call_free(&a->call);
        free(a);
    }
}


int
llm_answer_is_reasoning(const llm_answer_t *a)
{
    return a->state == LLM_STATE_REASONING;
}


int
llm_answer_pair(const llm_answer_t *a)
{
    return a->open;
}


uint32_t
llm_answer_calls(const llm_answer_t *a)
{
    return a->n_calls;
}


size_t
llm_answer_bytes(const llm_answer_t *a)
{
    return sizeof(*a) + a->text.cap + a->space.cap + a->piece.cap
           + a->call.params.cap;
}


size_t
llm_answer_at(const llm_answer_t *a)
{
    return a->at;
}


size_t
llm_answer_decided(const llm_answer_t *a)
{
    return a->space.len ? a->space_at : a->base;
}


/* ---- marks ---- */

/* tries one mark; *held: the mark may be complete when more text has come */

static int
llm_answer_mark(llm_str_t mark, llm_str_t rest,
    int last, size_t *len, int *held)
{
    llm_mark_t  rc;

    if (mark.len == 0) {
        return 0;
    }

    rc = llm_mark_match(mark, rest.data, rest.len, len);
    *held |= rc == LLM_MARK_PART && last != LLM_TEXT_DONE;

    return rc == LLM_MARK_WHOLE;
}


/* looks for a mark that begins a part; returns 1 after changing the state */

static int
llm_answer_part(llm_answer_t *a, llm_str_t rest, int last, int *held)
{
    size_t               len;
    uint32_t             i;
    const llm_format_t  *f;

    f = a->o.format;

    for (i = 0; i < f->n_reasoning && (a->o.flags & LLM_ANSWER_REASONING);
         i++)
    {
        if (llm_answer_mark(f->reasoning[i].open, rest, last, &len, held)) {
            llm_answer_enter(a, LLM_STATE_REASONING, len);
            a->open = (int) i;
            return 1;
        }
    }

    for (i = 0; i < f->n_content; i++) {
        if (llm_answer_mark(f->content[i], rest, last, &len, held)) {
            llm_answer_enter(a, LLM_STATE_CONTENT, len);
            return 1;
        }
    }

    for (i = 0; i < f->n_skipped; i++) {
        if (llm_answer_mark(f->skipped[i], rest, last, &len, held)) {
            llm_answer_enter(a, LLM_STATE_FRESH, len);
            return 1;
        }
    }

    return 0;
}


static int
llm_answer_blank(llm_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len && llm_mark_is_space(s.data[i]); i++) {
        /* void */
    }

    return i == s.len;
}


/* looks for the end of the turn: after a call, or after content that has an
   end mark, the turn is over whatever follows; otherwise only if nothing
   follows */

static int
llm_answer_over(llm_answer_t *a, llm_str_t rest, int last, int *held)
{
    size_t  len;

    if (!llm_answer_mark(a->o.format->turn_end, rest, last, &len, held)) {
        return 0;
    }

    if (a->state != LLM_STATE_AFTER && a->state != LLM_STATE_ENDED) {
        rest.data += len;
        rest.len -= len;

        if (!llm_answer_blank(rest)) {
            return 0;
        }

        if (!last) {
            *held = 1;
            return 0;
        }
    }

    llm_answer_enter(a, LLM_STATE_OVER, len);

    return 1;
}


/* marks that may follow a call without need: the end of its block, or the last
   or only tag of the call's own end */

static int
llm_answer_end_mark(const llm_form_t *form, llm_str_t rest, int last,
    size_t *len, int *held)
{
    return llm_answer_mark(form->close, rest, last, len, held)
           || llm_answer_mark(llm_mark_last_tag(form->end), rest, last, len,
                              held)
           || llm_answer_mark(llm_mark_tag(form->end), rest, last, len, held);
}


/* reads a mark at a->pos: 1 if there was one */

static int
llm_answer_marks(llm_answer_t *a, llm_str_t rest, int last, int *held)
{
    size_t               len;
    uint32_t             i;
    const llm_format_t  *f;

    f = a->o.format;

    switch (a->state) {

    case LLM_STATE_REASONING:
        if (llm_answer_mark(f->reasoning[a->open].close, rest, last, &len,
                            held))
        {
            llm_answer_enter(a, LLM_STATE_FRESH, len);
            return 1;
        }

        return 0;

    case LLM_STATE_CONTENT:
        if (a->unended
            && llm_answer_end_mark(a->form, rest, last, &len, held))
        {
            a->unended = 0;
            llm_answer_enter(a, LLM_STATE_AFTER, len);
            return 1;
        }

        for (i = 0; i < f->n_content_end; i++) {
            if (llm_answer_mark(f->content_end[i], rest, last, &len, held)) {
                llm_answer_enter(a, LLM_STATE_ENDED, len);
                return 1;
            }
        }

        return llm_answer_over(a, rest, last, held);

    case LLM_STATE_AFTER:
        for (i = 0; i < f->n_forms; i++) {
            if (llm_answer_end_mark(&f->forms[i], rest, last, &len, held)) {
                llm_answer_enter(a, LLM_STATE_AFTER, len);
                return 1;
            }
        }

        /* fall through */

    default:
        return llm_answer_over(a, rest, last, held)
               || llm_answer_part(a, rest, last, held);
    }
}


/* ---- the text ---- */

/* bytes at the beginning of rest that cannot belong to a mark, whatever
   follows */

static size_t
llm_answer_run(const llm_answer_t *a, llm_str_t rest)
{
    char                 c;
    size_t               i;
    uint32_t             k;
    llm_str_t            first[4 * LLM_FORMAT_FORMS + LLM_FORMAT_TEXTS + 4];
    uint32_t             n;
    const llm_format_t  *f;

    if (a->state != LLM_STATE_REASONING && a->state != LLM_STATE_CONTENT) {
        return 1;
    }

    f = a->o.format;
    n = 0;

    if (a->state == LLM_STATE_REASONING) {
        first[n++] = f->reasoning[a->open].close;

    } else {
        first[n++] = f->turn_end;

        if (a->unended) {
            first[n++] = a->form->end;
            first[n++] = a->form->close;
        }

        for (k = 0; k < f->n_content_end; k++) {
            first[n++] = f->content_end[k];
        }
    }

    for (k = 0; k < f->n_forms && (a->o.flags & LLM_ANSWER_TOOLS); k++) {
        first[n++] = f->forms[k].open;
        first[n++] = f->forms[k].begin;
        first[n++] = llm_form_inner(&f->forms[k]);

        if (f->forms[k].kind == LLM_FORM_OBJECT && f->forms[k].begin.len) {
            first[n++] = llm_str("{");
        }
    }

    for (i = 1; i < rest.len; i++) {
        c = rest.data[i];

        for (k = 0; k < n; k++) {
            if (first[k].len && first[k].data[0] == c) {
                return i;
            }
        }
    }

    return i;
}


/* reads one mark, one call, or a run of text; LLM_MORE if the text is too
   short to tell */

static int
llm_answer_next(llm_answer_t *a, int last)
{
    int        rc, held;
    size_t     n;
    llm_str_t  rest;

    rest.data = a->text.data + a->pos;
    rest.len = a->text.len - a->pos;

    if (a->calling) {
        return llm_answer_go(a, rest, last);
    }

    if (a->state == LLM_STATE_OVER) {
        a->pos = a->text.len;
        return LLM_OK;
    }

    if (a->o.format->harmony) {
        return llm_harmony_next(a, rest, last);
    }

    n = a->pos;
    rc = llm_answer_try(a, rest, last);

    if (rc != LLM_OK || a->calling || a->pos != n) {
        return rc;
    }

    held = 0;

    if (llm_answer_marks(a, rest, last, &held)) {
        return LLM_OK;
    }

    if (held && !last) {
        return LLM_MORE;
    }

    /* a mark that was cut counts as text */

    if (held) {
        a->pos = a->text.len;
        return LLM_OK;
    }

    n = a->failed ? a->failed : llm_answer_run(a, rest);
    a->pos += n;
    a->entry = 0;
    a->failed = 0;
    a->told = 0;

    return llm_answer_plain(a, rest.data, n, llm_answer_place(a, rest.data));
}


static int
llm_answer_read(llm_answer_t *a, int last)
{
    int  rc;

    rc = LLM_OK;

    while (rc == LLM_OK && a->pos < a->text.len) {
        rc = llm_answer_next(a, last);
    }

    a->text.len -= a->pos;

    if (a->pos && a->text.len) {
        memmove(a->text.data, a->text.data + a->pos, a->text.len);
    }

    a->base += a->pos;
    a->pos = 0;

    if (a->text.failed || a->space.failed) {
        return LLM_ERROR;
    }

    return rc == LLM_MORE ? LLM_OK : rc;
}


int
llm_answer_push(llm_answer_t *a, llm_str_t text)
{
    (void) llm_buf_add(&a->text, text.data, text.len);

    return llm_answer_read(a, 0);
}


int
llm_answer_end(llm_answer_t *a, int how)
{
    int  rc;

    rc = llm_answer_read(a, how);

    if (rc == LLM_OK
        && (a->state == LLM_STATE_CONTENT || a->state == LLM_STATE_START))
    {
        rc = llm_answer_put(a, a->space.data, a->space.len, a->space_at);
    }

    a->space.len = 0;

    return rc;
}
