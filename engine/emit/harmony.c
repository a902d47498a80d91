/*
 * Answers in the harmony format (gpt-oss): messages with headers.
 *
 *     <|start|>assistant<|channel|>commentary to=functions.f
 *         <|constrain|>json<|message|>{"a": 1}<|call|>
 *
 * A header has a role, a channel, a recipient and the type of the message's
 * text.  Models leave some of it out, write it in another order or between
 * other marks, or put junk into it.  So a header is read as words, up to the
 * mark of the message.  A message to one of the tools is a call; a message to
 * any other recipient, or in the analysis channel, is reasoning; the rest is
 * content.
 *
 * These marks are control tokens: outside of headers they are dropped, except
 * where a text quotes them.
 */

#include "engine/emit/harmony.h"


static int
llm_harmony_is_nobody(llm_str_t to)
{
    return to.len == 0 || llm_str_is(to, "user") || llm_str_is(to, "assistant")
           || llm_str_is(to, "all") || llm_str_is(to, "final");
}


/* begins the text of a message, whose header ends after len bytes */

static int
llm_harmony_enter(llm_answer_t *a, const llm_harmony_header_t *h,
    llm_str_t rest)
{
    int  rc;

    if (!h->analysis && llm_harmony_is_nobody(h->to)) {
        llm_answer_enter(a, LLM_STATE_CONTENT, h->len);
        return LLM_OK;
    }

    if (a->o.flags & LLM_ANSWER_REASONING) {
        llm_answer_enter(a, LLM_STATE_REASONING, h->len);
        a->open = 0;
        return LLM_OK;
    }

    /* clients that want reasoning as it is written get its marks, too */

    rc = llm_harmony_is_nobody(h->to)
         ? llm_answer_plain(a, rest.data, h->len,
                            llm_answer_place(a, rest.data))
         : LLM_OK;
    llm_answer_enter(a, LLM_STATE_CONTENT, h->len);
    a->lead = 0;

    return rc;
}


/* offset of the end of a message's text; SIZE_MAX: not yet known */

static size_t
llm_harmony_end(llm_str_t s, size_t from, int last)
{
    const char          *p;
    llm_harmony_mark_t   mark;

    while (from < s.len
           && (p = memchr(s.data + from, '<', s.len - from)) != NULL)
    {
        from = (size_t) (p - s.data);
        mark = llm_harmony_mark(p, s.len - from);

        if (mark != LLM_HARMONY_NONE && mark != LLM_HARMONY_PART) {
            return from;
        }

        from++;
    }

    return last ? s.len : SIZE_MAX;
}


/* skips marks of a header at the beginning of a message's text */

static size_t
llm_harmony_again(llm_str_t s, size_t at)
{
    size_t              i;
    llm_harmony_mark_t  mark;

    for ( ;; ) {
        for (i = at; i < s.len && llm_mark_is_space(s.data[i]); i++) {
            /* void */
        }

        mark = llm_harmony_mark(s.data + i, s.len - i);

        if (mark != LLM_HARMONY_MESSAGE && mark != LLM_HARMONY_CONSTRAIN) {
            return at;
        }

        at = i + llm_harmony_marks[mark].len;
    }
}


/* reads a message to a tool: first strictly, then loosely all of its text;
   what cannot be read is content */

static int
llm_harmony_call(llm_answer_t *a, const llm_harmony_header_t *h,
    const llm_tool_t *tool, llm_str_t rest, int last)
{
    int          rc;
    size_t       start, end;
    const char  *name;

    if (a->entry == 0) {
        name = memmem(h->to.data, h->to.len, tool->name.data, tool->name.len);
        a->entry = 1;
        a->state = LLM_STATE_FRESH;
        llm_answer_start(a, &a->o.format->forms[0], h->len, LLM_CALL_ARGS, 0);
        a->call.name.off = (size_t) (name - rest.data);
        a->call.name.len = tool->name.len;

        return LLM_OK;
    }

    a->failed = 0;
    start = llm_harmony_again(rest, h->len);
    end = llm_harmony_end(rest, llm_max(start, a->close), last);

    if (end == SIZE_MAX) {
        a->close = rest.len - llm_min(rest.len, LLM_HARMONY_MARK);
        return LLM_MORE;
    }

    rc = llm_answer_body(a, tool, (llm_str_t) { end - start,
                                                rest.data + start },
                         end < rest.len ? LLM_TEXT_GOES_ON : last);

    if (rc == LLM_OK || rc == LLM_STOPPED) {
        return llm_answer_called(a, end, rc);
    }

    if (a->call.params.failed) {
        return LLM_ERROR;
    }

    llm_answer_enter(a, LLM_STATE_CONTENT, h->len);

    return LLM_OK;
}


static const llm_tool_t *
llm_harmony_tool(const llm_answer_t *a, llm_str_t *to)
{
    while (to->len && strchr(",:;.", to->data[to->len - 1])) {
        to->len--;
    }

    return a->o.flags & LLM_ANSWER_TOOLS ? llm_tools_named(a->o.tools, *to)
                                         : NULL;
}


/* drops a mark that begins no header, and words of a header after it */

static void
llm_harmony_drop(llm_answer_t *a, llm_str_t rest, llm_harmony_mark_t mark)
{
    size_t                i, n;
    llm_harmony_header_t  h;

    for (i = llm_harmony_marks[mark].len; i < rest.len; i += n) {
        for (n = 0; i + n < rest.len && !llm_mark_is_space(rest.data[i + n])
             && rest.data[i + n] != '<'; n++)
        {
            /* void */
        }

        if (n && !llm_harmony_plain_header((llm_str_t) { n, rest.data + i })) {
            break;
        }

        if (n == 0) {
            if (rest.data[i] == '<') {
                break;
            }

            n = 1;
        }
    }

    memset(&h, 0, sizeof(h));
    h.analysis = llm_harmony_channel((llm_str_t) { i, rest.data }) == 2;
    h.len = i;
    (void) llm_harmony_enter(a, &h, rest);
}


/* skips a role that stands alone before the mark of the channel: LLM_OK;
   LLM_MORE; LLM_ERROR: it does not stand alone */

static int
llm_harmony_role(llm_answer_t *a, llm_str_t rest, int last)
{
    size_t       n;
    const char  *p;

    n = llm_harmony_marks[LLM_HARMONY_START].len;
    p = memchr(rest.data + n, '<', rest.len - n);

    if (p == NULL
        || memmem(rest.data, (size_t) (p - rest.data), "to=", 3)
        || !llm_harmony_plain_header((llm_str_t) { (size_t) (p - rest.data),
                                                   rest.data }))
    {
        return LLM_ERROR;
    }

    n = (size_t) (p - rest.data);

    switch (llm_harmony_mark(p, rest.len - n)) {

    case LLM_HARMONY_CHANNEL:
        llm_answer_enter(a, LLM_STATE_FRESH, n);
        return LLM_OK;

    case LLM_HARMONY_PART:
        return last ? LLM_ERROR : LLM_MORE;

    default:
        return LLM_ERROR;
    }
}


/* LLM_OK: a header was read, or marks were dropped; LLM_MORE; LLM_ERROR: the
   text is no header (or there is no memory: a->call.params.failed) */

static int
llm_harmony_header(llm_answer_t *a, llm_str_t rest, int last,
    llm_harmony_mark_t mark)
{
    int                    rc, in_text;
    const llm_tool_t      *tool;
    llm_harmony_header_t   h;

    in_text = a->state == LLM_STATE_REASONING || a->state == LLM_STATE_CONTENT;
    rc = llm_harmony_read(rest, &h);

    /* a text may quote the mark; a header has nothing else before it */

    if (in_text && !llm_harmony_plain_header((llm_str_t) {
                       llm_min(h.len, rest.len), rest.data }))
    {
        return LLM_ERROR;
    }

    if (rc == LLM_MORE && !last) {
        return LLM_MORE;
    }

    if (rc == LLM_OK) {
        if (mark == LLM_HARMONY_START
            && llm_harmony_role(a, rest, last) == LLM_OK)
        {
            return LLM_OK;
        }

        tool = llm_harmony_tool(a, &h.to);

        return tool ? llm_harmony_call(a, &h, tool, rest, last)
                    : llm_harmony_enter(a, &h, rest);
    }

    if (rc == LLM_MORE && llm_harmony_plain_header(rest)
        && (mark != LLM_HARMONY_NONE || h.to.data))
    {
        llm_answer_enter(a, LLM_STATE_FRESH, rest.len);
        return LLM_OK;
    }

    if (in_text || mark == LLM_HARMONY_NONE) {
        return LLM_ERROR;
    }

    llm_harmony_drop(a, rest, mark);

    return LLM_OK;
}


/* ---- marks and headers ---- */

/* reads a mark at rest, or a header without one; as llm_harmony_header() */

static int
llm_harmony_at(llm_answer_t *a, llm_str_t rest, int last,
    llm_harmony_mark_t mark)
{
    int  begins;

    switch (mark) {

    case LLM_HARMONY_PART:
        if (last == LLM_TEXT_CUT) {
            a->pos = a->text.len;
            return LLM_OK;
        }

        return last ? LLM_ERROR : LLM_MORE;

    case LLM_HARMONY_END:
    case LLM_HARMONY_CALL:
    case LLM_HARMONY_RETURN:
        llm_answer_enter(a, LLM_STATE_FRESH, llm_harmony_marks[mark].len);
        return LLM_OK;

    case LLM_HARMONY_START:
        begins = llm_harmony_role(a, rest, last);

        return begins == LLM_ERROR ? llm_harmony_header(a, rest, last, mark)
                                   : begins;

    case LLM_HARMONY_CHANNEL:
        return llm_harmony_header(a, rest, last, mark);

    default:
        break;
    }

    if (a->state == LLM_STATE_REASONING || a->state == LLM_STATE_CONTENT) {
        if (mark == LLM_HARMONY_NONE || !a->lead) {
            return LLM_ERROR;
        }

        a->pos += llm_harmony_marks[mark].len;

        return LLM_OK;
    }

    begins = mark == LLM_HARMONY_NONE ? llm_harmony_begins(rest) : 1;

    return begins > 0 ? llm_harmony_header(a, rest, last, mark)
           : begins < 0 && !last ? LLM_MORE : LLM_ERROR;
}


int
llm_harmony_next(llm_answer_t *a, llm_str_t rest, int last)
{
    int          rc;
    size_t       n;
    const char  *p;

    rc = llm_harmony_at(a, rest, last, llm_harmony_mark(rest.data, rest.len));

    if (rc != LLM_ERROR || a->call.params.failed) {
        return rc;
    }

    p = rest.len > 1 ? memchr(rest.data + 1, '<', rest.len - 1) : NULL;
    n = p ? (size_t) (p - rest.data) : rest.len;
    a->pos += n;
    a->entry = 0;
    a->failed = 0;
    a->told = 0;

    return llm_answer_plain(a, rest.data, n, llm_answer_place(a, rest.data));
}
