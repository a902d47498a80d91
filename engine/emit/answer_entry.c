/*
 * Where calls may begin in a model's answer; see answer.h.
 *
 * Each way in which a call of a form may begin is an entry.  All entries are
 * tried one after the other, first strictly, then loosely.
 */

#include "engine/emit/answer_internal.h"

/* how a call of a form may begin */
typedef enum {
    LLM_ENTRY_OPEN,
    LLM_ENTRY_BEGIN,
    LLM_ENTRY_INNER,                    /* with the last tag of the begin; an
                                           object without any mark before it,
                                           if its end mark follows */
    LLM_ENTRY_BETWEEN,
    LLM_ENTRY_NEXT,                     /* after another call in the same
                                           block */
    LLM_ENTRY_BARE,
    LLM_ENTRIES
} llm_entry_t;


/* can the mark alone be told from ordinary text? */

static int
llm_answer_stands_out(llm_str_t mark)
{
    return mark.len >= 5 && (memchr(mark.data, '<', mark.len)
                             || memchr(mark.data, '[', mark.len));
}


/* is pos at the beginning of a line? */

static int
llm_answer_at_line(const llm_answer_t *a)
{
    return (a->state != LLM_STATE_CONTENT && a->state != LLM_STATE_REASONING)
           || (a->space.len
               && memchr(a->space.data, '\n', a->space.len) != NULL);
}


/* is the text at pos quoted, like `this`? */

static int
llm_answer_quotes(const llm_answer_t *a)
{
    return a->ticks == 1 && a->spans % 2 && a->space.len == 0;
}


/* the mark with which a call of this form may begin here; NULL: no call may */

static const llm_str_t *
llm_answer_entry(const llm_answer_t *a, const llm_form_t *form,
    llm_entry_t entry, llm_str_t *inner)
{
    int        after, fresh, stands;
    static const llm_str_t  none = { 0, "" };

    after = a->state == LLM_STATE_AFTER;
    fresh = after || a->state == LLM_STATE_START
            || a->state == LLM_STATE_FRESH || a->state == LLM_STATE_ENDED;
    stands = a->state == LLM_STATE_REASONING;

    switch (entry) {

    case LLM_ENTRY_OPEN:
        return form->open.len && (!stands || llm_answer_stands_out(form->open))
               ? &form->open : NULL;

    case LLM_ENTRY_BEGIN:
        return form->begin.len
               && ((!stands && (form->open.len == 0
                                || (after && form == a->form)))
                   || llm_answer_stands_out(form->begin))
               ? &form->begin : NULL;

    case LLM_ENTRY_INNER:
        if (a->fenced || (a->space.len == 0 && !llm_answer_at_line(a))) {
            return NULL;
        }

        *inner = llm_form_inner(form);

        return inner->len ? inner
               : form->kind == LLM_FORM_OBJECT && form->begin.len
                 && llm_mark_tag(form->end).len ? &none : NULL;

    case LLM_ENTRY_BETWEEN:
        return after && form == a->form && form->between.len ? &form->between
                                                             : NULL;

    case LLM_ENTRY_NEXT:
        return after && form == a->form
               && (form->kind == LLM_FORM_OBJECT
                   || form->kind == LLM_FORM_PYTHON)
               ? &none : NULL;

    default:
        return (fresh && form->bare)
               || (after && form->chain && form == a->form) ? &none : NULL;
    }
}


/* matches the mark and, before an object that follows another one, their
   separator */

static llm_mark_t
llm_answer_entry_match(llm_entry_t entry, llm_form_kind_t kind, llm_str_t mark,
    llm_str_t rest, size_t *len)
{
    size_t  i;

    if (entry == LLM_ENTRY_INNER && mark.len == 0) {
        *len = 0;
        return rest.data[0] == '{' ? LLM_MARK_WHOLE : LLM_MARK_NO;
    }

    if (entry != LLM_ENTRY_NEXT) {
        return mark.len == 0 && llm_mark_is_space(rest.data[0]) ? LLM_MARK_NO
               : llm_mark_match(mark, rest.data, rest.len, len);
    }

    i = rest.data[0] == ';' || rest.data[0] == ',';

    while (i < rest.len && i < LLM_MARK_MOST
           && llm_mark_is_space(rest.data[i]))
    {
        i++;
    }

    *len = i;

    return i == rest.len ? LLM_MARK_PART
           : (kind == LLM_FORM_OBJECT
              ? rest.data[i] == '{'
              : rest.data[i] == '[' || llm_mark_is_word(rest.data[i]))
           ? LLM_MARK_WHOLE : LLM_MARK_NO;
}


/* is there a separator followed by the mark of another call?  *len: offset of
   that mark */

static llm_mark_t
llm_answer_separator(const llm_format_t *f, llm_str_t rest, size_t *len)
{
    size_t      n;
    uint32_t    i;
    llm_str_t   s;
    llm_mark_t  rc, best;

    if (rest.data[0] != ';' && rest.data[0] != ',') {
        return LLM_MARK_NO;
    }

    for (*len = 1; *len < rest.len && *len < LLM_MARK_MOST
         && llm_mark_is_space(rest.data[*len]); (*len)++)
    {
        /* void */
    }

    s = (llm_str_t) { rest.len - *len, rest.data + *len };
    best = LLM_MARK_NO;

    for (i = 0; i < f->n_forms; i++) {
        if (f->forms[i].begin.len) {
            rc = llm_mark_match(f->forms[i].begin, s.data, s.len, &n);
            best = llm_max(rc, best);
        }
    }

    return best;
}


void
llm_answer_start(llm_answer_t *a, const llm_form_t *form, size_t at,
    llm_call_step_t step, int bare)
{
    llm_call_start(&a->call, form, a->o.tools, at, step, bare);
    llm_live_start(&a->live);
    a->named = 0;
    a->n_live = 0;
    a->calling = 1;
    a->whole = 0;
    a->close = 0;
}


/* a begin without the word in it, as in <call>functions. */

static llm_str_t
llm_mark_short(llm_str_t mark)
{
    llm_str_t  tag;

    tag = llm_mark_tag(mark);

    return tag.len && memchr(mark.data + tag.len, '<', mark.len - tag.len)
                      == NULL ? tag : mark;
}


/* number of entries to try here: in reasoning calls are read strictly only */

static uint32_t
llm_answer_entries(const llm_answer_t *a)
{
    uint32_t  n;

    n = a->o.format->n_forms * LLM_ENTRIES;

    return a->state == LLM_STATE_REASONING ? n : 2 * n;
}


/* does the text end in a mark?  Clients must not get the beginning of a mark
   that was cut, nor its first tag */

static int
llm_answer_tagged(llm_entry_t entry, llm_str_t mark, llm_str_t rest, int last)
{
    size_t     len;
    llm_str_t  tag;

    if (entry != LLM_ENTRY_OPEN && entry != LLM_ENTRY_BEGIN) {
        return 0;
    }

    tag = llm_mark_tag(mark);

    return last == LLM_TEXT_CUT
           || (tag.len && llm_mark_match(tag, rest.data, rest.len, &len)
                          == LLM_MARK_WHOLE);
}


/* stores the mark of an entry, as it is tried here, in *mark; 0: the entry is
   not tried */

static int
llm_answer_tries(const llm_answer_t *a, const llm_form_t *form,
    llm_entry_t entry, int loose, int last, llm_str_t *mark)
{
    llm_str_t         inner;
    const llm_str_t  *own;

    own = loose && entry == LLM_ENTRY_BETWEEN ? NULL
          : llm_answer_entry(a, form, entry, &inner);

    /* read loosely, a call without its opening mark counts only if the text
       ends with it and it begins a line */

    if (own == NULL
        || (loose && entry == LLM_ENTRY_INNER
            && (!last || own->len == 0 || !llm_answer_at_line(a))))
    {
        return 0;
    }

    *mark = loose && entry == LLM_ENTRY_BEGIN ? llm_mark_short(*own) : *own;

    return 1;
}


/* begins a call with this entry, after len bytes */

static void
llm_answer_start_at(llm_answer_t *a, const llm_form_t *form, llm_entry_t entry,
    llm_str_t mark, int loose, size_t len)
{
    llm_answer_start(a, form, len,
                     entry == LLM_ENTRY_OPEN && form->begin.len
                     ? LLM_CALL_BEGIN : 0,
                     entry == LLM_ENTRY_BARE || entry == LLM_ENTRY_NEXT
                     || (entry == LLM_ENTRY_INNER && mark.len == 0));

    a->call.needs_end = entry == LLM_ENTRY_INNER
                        && (a->call.bare || !llm_answer_at_line(a));
    a->call.loose = loose;
    a->call.cut = loose && entry == LLM_ENTRY_INNER;
}


/* tries one entry: LLM_OK: a call has begun, marks were skipped, or there is
   no call; LLM_MORE */

static int
llm_answer_try_entry(llm_answer_t *a, const llm_form_t *form,
    llm_entry_t entry, int loose, llm_str_t rest, int last)
{
    size_t      len;
    llm_str_t   mark;
    llm_mark_t  rc;

    if (!llm_answer_tries(a, form, entry, loose, last, &mark)) {
        return LLM_OK;
    }

    rc = entry == LLM_ENTRY_NEXT ? llm_answer_separator(a->o.format, rest,
                                                        &len)
                                 : LLM_MARK_NO;

    if (rc == LLM_MARK_WHOLE) {
        llm_answer_enter(a, LLM_STATE_AFTER, len);
        return LLM_OK;
    }

    if (rc == LLM_MARK_NO) {
        rc = llm_answer_entry_match(entry, form->kind, mark, rest, &len);
    }

    if (rc == LLM_MARK_WHOLE) {
        llm_answer_start_at(a, form, entry, mark, loose, len);

    } else if (rc == LLM_MARK_PART && !last) {
        return LLM_MORE;

    } else if (rc == LLM_MARK_PART && a->state != LLM_STATE_REASONING
               && llm_answer_tagged(entry, mark, rest, last))
    {
        llm_answer_enter(a, LLM_STATE_AFTER, rest.len);
    }

    return LLM_OK;
}


int
llm_answer_try(llm_answer_t *a, llm_str_t rest, int last)
{
    int                rc;
    size_t             pos;
    uint32_t           n;
    const llm_form_t  *form;

    if (!(a->o.flags & LLM_ANSWER_TOOLS) || llm_answer_quotes(a)) {
        return LLM_OK;
    }

    n = a->o.format->n_forms * LLM_ENTRIES;
    pos = a->pos;

    for ( /* void */ ; a->entry < llm_answer_entries(a); a->entry++) {
        form = &a->o.format->forms[a->entry % n / LLM_ENTRIES];
        rc = llm_answer_try_entry(a, form, a->entry % LLM_ENTRIES,
                                  a->entry >= n, rest, last);

        if (a->calling) {
            a->entry++;
        }

        if (rc != LLM_OK || a->calling || a->pos != pos) {
            return rc;
        }
    }

    return LLM_OK;
}


/* the call of an answer in messages, whose form has only one way to begin */

static int
llm_answer_begun_message(const llm_answer_t *a, llm_str_t *rest)
{
    size_t     len;
    llm_str_t  mark;

    mark = a->o.form->begin;
    mark.len = llm_answer_sign(a->o.format, mark);

    if (llm_mark_match(mark, a->text.data, a->text.len, &len)
        != LLM_MARK_WHOLE)
    {
        return 0;
    }

    rest->data = a->text.data + len;
    rest->len = a->text.len - len;

    return 1;
}


/*
 * Between two pushes the waiting text begins at pos 0.  a->entry is the entry
 * whose mark may be there or, while a call is being tried, the entry after
 * that of the call.
 */

llm_begun_t
llm_answer_begun(llm_answer_t *a, llm_str_t *rest)
{
    size_t            len;
    uint32_t          entry;
    llm_str_t         mark, inner;
    llm_entry_t       how;
    const llm_form_t  *form;

    if (a->told || a->text.len == 0 || a->o.form == NULL
        || !(a->o.flags & LLM_ANSWER_TOOLS)
        || a->state == LLM_STATE_REASONING || a->state == LLM_STATE_OVER)
    {
        return LLM_BEGUN_NOT;
    }

    if (a->o.format->harmony) {
        a->told = llm_answer_begun_message(a, rest);

        return a->told ? LLM_BEGUN_BEGIN : LLM_BEGUN_NOT;
    }

    if (llm_answer_quotes(a)) {
        return LLM_BEGUN_NOT;
    }

    entry = a->calling ? a->entry - 1 : a->entry;
    how = entry % LLM_ENTRIES;
    rest->data = a->text.data;
    rest->len = a->text.len;

    if (entry / LLM_ENTRIES >= a->o.format->n_forms) {
        return LLM_BEGUN_NOT;
    }

    form = &a->o.format->forms[entry / LLM_ENTRIES];

    if (form != a->o.form || llm_answer_entry(a, form, how, &inner) == NULL) {
        return LLM_BEGUN_NOT;
    }

    if (how == LLM_ENTRY_BARE) {
        a->told = a->calling && a->live.tool != NULL;

        return a->told ? LLM_BEGUN_BARE : LLM_BEGUN_NOT;
    }

    if (how != LLM_ENTRY_OPEN && how != LLM_ENTRY_BEGIN) {
        return LLM_BEGUN_NOT;
    }

    mark = how == LLM_ENTRY_OPEN ? form->open : form->begin;
    mark.len = llm_answer_sign(a->o.format, mark);

    if (llm_mark_match(mark, rest->data, rest->len, &len) != LLM_MARK_WHOLE) {
        return LLM_BEGUN_NOT;
    }

    rest->data += len;
    rest->len -= len;
    a->told = 1;

    return how == LLM_ENTRY_OPEN ? LLM_BEGUN_OPEN : LLM_BEGUN_BEGIN;
}
