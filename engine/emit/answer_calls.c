/*
 * Reads calls in a model's answer; see answer.h.
 *
 * Where a call may begin, each of the format's forms is tried, one after the
 * other: first strictly, then as a call that is almost in its form (loose.h).
 * A call is handed out when it is complete, or piece by piece where a grammar
 * makes sure that it will be.
 *
 * A call inside reasoning is held back until the reasoning is closed: then the
 * call was only quoted.  If the reasoning is not closed and the turn ends with
 * the call, it is a real call.
 */

#include "engine/emit/answer_internal.h"

/* a call longer than this is text */
#define LLM_ANSWER_CALL  (8 << 20)


/* ---- complete calls ---- */

static int
llm_answer_call(void *data, llm_str_t name, llm_str_t args)
{
    int            rc;
    uint32_t       call;
    llm_answer_t  *a;

    a = data;
    call = a->n_calls++;
    rc = a->put(a->data, LLM_PART_TOOL_NAME, call, name);

    if (rc == LLM_OK) {
        rc = a->put(a->data, LLM_PART_TOOL_ARGS, call, args);
    }

    return rc == LLM_OK && (a->o.flags & LLM_ANSWER_SINGLE) ? LLM_STOPPED
                                                            : rc;
}


int
llm_answer_called(llm_answer_t *a, size_t len, int rc)
{
    a->calling = 0;
    a->form = a->call.form;
    a->unended = !a->call.ended && llm_mark_tag(a->form->end).len;
    llm_answer_enter(a, rc == LLM_OK ? LLM_STATE_AFTER : LLM_STATE_OVER, len);

    return rc;
}


/* ---- calls that a grammar completes ---- */

static int
llm_answer_name(llm_answer_t *a, llm_str_t name)
{
    if (a->named) {
        return LLM_OK;
    }

    if (a->n_live && (a->o.flags & LLM_ANSWER_SINGLE)) {
        return LLM_STOPPED;
    }

    a->named = 1;
    a->n_live++;

    return a->put(a->data, LLM_PART_TOOL_NAME, a->n_calls++, name);
}


/* hands out the new part of the call; LLM_MORE: its name is not complete yet */

static int
llm_answer_piece(llm_answer_t *a, llm_str_t rest, int whole)
{
    int                rc;
    const llm_tool_t  *tool;

    if (a->call.form != a->o.form) {
        return LLM_MORE;
    }

    do {
        tool = llm_live_tool(&a->live, &a->call, rest);

        if (tool == NULL || !(a->o.flags & LLM_ANSWER_SURE)) {
            return a->n_live ? LLM_OK : LLM_MORE;
        }

        rc = llm_answer_name(a, tool->name);

        if (rc != LLM_OK) {
            return rc;
        }

        a->piece.len = 0;
        rc = llm_live_args(&a->live, &a->call, rest, whole, &a->piece);

        if (rc == LLM_OK && a->piece.len) {
            rc = a->put(a->data, LLM_PART_TOOL_ARGS, a->n_calls - 1,
                        (llm_str_t) { a->piece.len, a->piece.data });
        }

        if (rc != LLM_OK) {
            return rc;
        }

        a->named = !llm_live_next(&a->live, &a->call, rest);

    } while (!a->named);

    return LLM_OK;
}


/* ends a call that was handed out in part, also where its text stops being a
   call: at the end of an answer that is cut short */

static int
llm_answer_stands(llm_answer_t *a, llm_str_t rest, int rc, int last)
{
    size_t  len;

    len = rc == LLM_OK ? a->call.at
          : last ? rest.len : llm_max(a->call.at, a->call.scan.pos);

    return llm_answer_called(a, len, (a->o.flags & LLM_ANSWER_SINGLE)
                                     ? LLM_STOPPED : LLM_OK);
}


/* ---- calls in reasoning ---- */

/* the offset, from *from on, of the mark that closes the reasoning; SIZE_MAX:
   not yet.  Sets *from to where the next search begins */

static size_t
llm_answer_closed(const llm_answer_t *a, llm_str_t rest, size_t *from)
{
    size_t       len;
    llm_str_t    close;
    llm_mark_t   rc;
    const char  *p;

    close = a->o.format->reasoning[a->open].close;

    while (close.len && *from < rest.len) {
        p = memchr(rest.data + *from, close.data[0], rest.len - *from);

        if (p == NULL) {
            *from = rest.len;
            break;
        }

        *from = (size_t) (p - rest.data);
        rc = llm_mark_match(close, p, rest.len - *from, &len);

        if (rc == LLM_MARK_WHOLE) {
            return *from;
        }

        if (rc == LLM_MARK_PART) {
            break;
        }

        (*from)++;
    }

    return SIZE_MAX;
}


/* does nothing but white space, or the mark of a call, follow? */

static int
llm_answer_last_words(const llm_answer_t *a, llm_str_t rest, size_t at)
{
    size_t             len;
    uint32_t           i;
    llm_str_t          s;
    const llm_form_t  *f;

    while (at < rest.len && llm_mark_is_space(rest.data[at])) {
        at++;
    }

    s = (llm_str_t) { rest.len - at, rest.data + at };

    if (s.len == 0) {
        return 1;
    }

    for (i = 0; i < a->o.format->n_forms; i++) {
        f = &a->o.format->forms[i];

        if ((f->close.len && llm_mark_match(f->close, s.data, s.len, &len)
                             != LLM_MARK_NO)
            || (f->begin.len && llm_mark_match(f->begin, s.data, s.len, &len)
                                != LLM_MARK_NO))
        {
            return 1;
        }
    }

    return 0;
}


/* LLM_OK: a call; LLM_MORE; LLM_ERROR: a part of the reasoning */

static int
llm_answer_unclosed(llm_answer_t *a, llm_str_t rest, int last)
{
    int     rc;
    size_t  from, closed;

    rc = a->whole ? LLM_OK : llm_call_run(&a->call, rest, last);

    if (rc == LLM_MORE) {
        return rc;
    }

    if (rc == LLM_OK && !a->whole) {
        a->whole = 1;
        a->close = a->call.at;
    }

    from = rc == LLM_OK ? a->close : 0;
    closed = llm_answer_closed(a, rest, &from);
    a->close = from;

    if (rc == LLM_OK && closed == SIZE_MAX) {
        if (!last) {
            return LLM_MORE;
        }

        if (last == LLM_TEXT_DONE
            || llm_answer_last_words(a, rest, a->call.at))
        {
            return LLM_OK;
        }
    }

    /* the text that is skipped must not include the mark that closes the
       reasoning */

    a->call.at = llm_min(a->call.at, closed);

    return LLM_ERROR;
}


/* ---- calls that are almost in their form ---- */

/* length of a call's mark that begins at s, or 0 */

static size_t
llm_answer_inner_mark(const llm_form_t *f, llm_str_t s)
{
    size_t     i, len;
    llm_str_t  marks[11];

    marks[0] = llm_mark_tag(f->begin);
    marks[1] = llm_form_inner(f);
    marks[2] = f->name_end;
    marks[3] = f->key;
    marks[4] = f->key_end;
    marks[5] = f->key_end_text;
    marks[6] = f->value_end;
    marks[7] = f->quote;
    marks[8] = llm_mark_tag(f->key_end);
    marks[9] = llm_mark_last_tag(f->key_end);
    marks[10] = llm_mark_last_tag(f->end);

    for (i = 0; i < llm_nelems(marks); i++) {
        if (marks[i].len > 2 && marks[i].data[0] != LLM_MARK_ANY
            && llm_mark_match(marks[i], s.data, s.len, &len) == LLM_MARK_WHOLE)
        {
            return len;
        }
    }

    s.len = llm_min(s.len, llm_mark_last_tag(f->name_end).len);

    return s.len && llm_str_eq(s, llm_mark_last_tag(f->name_end)) ? s.len : 0;
}


/* stores in a->text what is left of a call that cannot be read: its text, with
   a space in place of each mark */

static int
llm_answer_left(llm_answer_t *a, llm_str_t text)
{
    int          rc;
    size_t       i, n, at;
    const char  *from;

    rc = LLM_OK;
    at = llm_answer_place(a, text.data);
    from = text.data;

    for (i = 0; i < text.len && rc == LLM_OK; i += n ? n : 1) {
        n = llm_answer_inner_mark(a->call.form, (llm_str_t) { text.len - i,
                                                              text.data + i });
        if (n == 0) {
            continue;
        }

        if (from < text.data + i) {
            rc = llm_answer_plain(a, from, (size_t) (text.data + i - from),
                                  llm_answer_place(a, from));

            if (rc == LLM_OK && !llm_mark_is_space(text.data[i - 1])) {
                rc = llm_answer_plain(a, " ", 1, at + i);
            }
        }

        from = text.data + i + n;
    }

    if (rc != LLM_OK) {
        return rc;
    }

    return llm_answer_plain(a, from, (size_t) (text.data + text.len - from),
                            llm_answer_place(a, from));
}


static int
llm_answer_loose(llm_answer_t *a, llm_str_t rest, int last)
{
    int        rc;
    llm_cut_t  left;

    rc = llm_loose_run(&a->call, rest, last, llm_answer_call, a);

    if (rc == LLM_OK || rc == LLM_STOPPED) {
        a->call.ended = 1;
        return llm_answer_called(a, a->call.at, rc);
    }

    if (rc == LLM_ABSENT && !a->call.bare) {
        left = a->call.args;
        a->lead |= a->space.len == 0;
        rc = llm_answer_left(a, (llm_str_t) { left.len,
                                              rest.data + left.off });

        return rc == LLM_OK ? llm_answer_called(a, a->call.at, rc) : rc;
    }

    if (rc == LLM_ERROR || rc == LLM_ABSENT) {
        a->calling = 0;
        rc = a->call.params.failed ? LLM_ERROR : LLM_OK;
    }

    return rc;
}


int
llm_answer_body(llm_answer_t *a, const llm_tool_t *tool, llm_str_t body,
    int last)
{
    return llm_loose_body(&a->call, tool, body, last, llm_answer_call, a);
}


/* ---- all calls ---- */

int
llm_answer_go(llm_answer_t *a, llm_str_t rest, int last)
{
    int  rc, piece;

    if (rest.len > LLM_ANSWER_CALL) {
        rest.len = LLM_ANSWER_CALL;
        last = LLM_TEXT_CUT;
    }

    if (a->call.loose) {
        return llm_answer_loose(a, rest, last);
    }

    if (a->state == LLM_STATE_REASONING) {
        rc = llm_answer_unclosed(a, rest, last);
        piece = LLM_MORE;

    } else {
        rc = llm_call_run(&a->call, rest, last);
        piece = llm_answer_piece(a, rest, rc == LLM_OK);
    }

    if (piece == LLM_STOPPED) {
        return llm_answer_called(a, rest.len, LLM_STOPPED);
    }

    if (piece == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (rc == LLM_MORE) {
        return LLM_MORE;
    }

    a->calling = 0;

    if (a->call.params.failed) {
        return LLM_ERROR;
    }

    if (piece == LLM_OK) {
        return llm_answer_stands(a, rest, rc, last);
    }

    if (rc == LLM_OK) {
        rest.len = a->call.at;
        rc = llm_call_read(&a->call, rest, llm_answer_call, a);

        if (rc == LLM_OK || rc == LLM_STOPPED) {
            return llm_answer_called(a, rest.len, rc);
        }
    }

    /* text that only looked like a call may contain marks */

    if (!a->call.bare) {
        a->failed = llm_max(a->failed, llm_min(a->call.at, rest.len));
    }

    return LLM_OK;
}


void
llm_answer_sure(llm_answer_t *a)
{
    a->o.flags |= LLM_ANSWER_SURE;
}
