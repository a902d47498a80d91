/*
 * Calls in a model's answer; see answer.h.
 *
 * Where a call may begin it is tried in each of the format's forms, one after
 * the other.  It is handed out when it is whole, or, where a grammar sees to
 * it that it becomes whole, piece by piece.
 */

#include "engine/emit/answer_internal.h"

/* a call longer than this is text */
#define LLM_ANSWER_CALL  (8 << 20)

/* how a call of a form may begin */
typedef enum {
    LLM_ENTRY_OPEN,
    LLM_ENTRY_BEGIN,
    LLM_ENTRY_BETWEEN,
    LLM_ENTRY_BARE,
    LLM_ENTRIES
} llm_entry_t;


/* ---- where one may begin ---- */

/* can its begin alone be told from text? */

static int
llm_answer_stands_out(llm_str_t mark)
{
    return mark.len >= 5 && (memchr(mark.data, '<', mark.len)
                             || memchr(mark.data, '[', mark.len));
}


/* the mark with which a call of this form may begin here; NULL: none may */

static const llm_str_t *
llm_answer_entry(const llm_answer_t *a, const llm_form_t *form,
    llm_entry_t entry)
{
    int        after, fresh;
    static const llm_str_t  none = { 0, "" };

    after = a->state == LLM_STATE_AFTER;
    fresh = after || a->state == LLM_STATE_START
            || a->state == LLM_STATE_FRESH || a->state == LLM_STATE_ENDED;

    switch (entry) {

    case LLM_ENTRY_OPEN:
        return form->open.len ? &form->open : NULL;

    case LLM_ENTRY_BEGIN:
        return form->begin.len
               && (form->open.len == 0 || (after && form == a->form)
                   || llm_answer_stands_out(form->begin))
               ? &form->begin : NULL;

    case LLM_ENTRY_BETWEEN:
        return after && form == a->form && form->between.len ? &form->between
                                                             : NULL;

    default:
        return (fresh && form->bare)
               || (after && form->chain && form == a->form) ? &none : NULL;
    }
}


int
llm_answer_try(llm_answer_t *a, llm_str_t rest, int last)
{
    size_t            len;
    llm_mark_t        rc;
    llm_entry_t       entry;
    const llm_str_t  *mark;
    const llm_form_t *form;

    if (!(a->o.flags & LLM_ANSWER_TOOLS) || a->state == LLM_STATE_REASONING) {
        return LLM_OK;
    }

    for ( /* void */ ; a->entry < a->o.format->n_forms * LLM_ENTRIES;
         a->entry++)
    {
        form = &a->o.format->forms[a->entry / LLM_ENTRIES];
        entry = a->entry % LLM_ENTRIES;
        mark = llm_answer_entry(a, form, entry);

        if (mark == NULL
            || (mark->len == 0 && llm_mark_is_space(rest.data[0])))
        {
            continue;
        }

        rc = llm_mark_match(*mark, rest.data, rest.len, &len);

        if (rc == LLM_MARK_PART && !last) {
            return LLM_MORE;
        }

        if (rc == LLM_MARK_WHOLE) {
            llm_call_start(&a->call, form, a->o.tools, len,
                           entry == LLM_ENTRY_OPEN && form->begin.len
                           ? LLM_CALL_BEGIN : 0,
                           entry == LLM_ENTRY_BARE);
            llm_live_start(&a->live);
            a->named = 0;
            a->n_live = 0;
            a->calling = 1;
            a->entry++;

            return LLM_OK;
        }
    }

    return LLM_OK;
}


/* ---- one that is there ---- */

void
llm_answer_enter(llm_answer_t *a, llm_state_t state, size_t len)
{
    a->state = state;
    a->pos += len;
    a->lead = 1;
    a->space.len = 0;
    a->entry = 0;
    a->failed = 0;
    a->told = 0;
}


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


/* the call ends behind len bytes; rc: LLM_OK, or LLM_STOPPED for the last */

static int
llm_answer_called(llm_answer_t *a, size_t len, int rc)
{
    a->form = a->call.form;
    llm_answer_enter(a, rc == LLM_OK ? LLM_STATE_AFTER : LLM_STATE_OVER, len);

    return rc;
}


/* ---- one that is sure to become whole ---- */

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


/* hands out what is new of the call; LLM_MORE: not even its name is known */

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


/* one that was handed out in part ends where it stops to be one, too: at the
   end of an answer that is cut short */

static int
llm_answer_stands(llm_answer_t *a, llm_str_t rest, int rc, int last)
{
    size_t  len;

    len = rc == LLM_OK ? a->call.at
          : last ? rest.len : llm_max(a->call.at, a->call.scan.pos);

    return llm_answer_called(a, len, (a->o.flags & LLM_ANSWER_SINGLE)
                                     ? LLM_STOPPED : LLM_OK);
}


int
llm_answer_go(llm_answer_t *a, llm_str_t rest, int last)
{
    int  rc, piece;

    if (rest.len > LLM_ANSWER_CALL) {
        rest.len = LLM_ANSWER_CALL;
        last = 1;
    }

    rc = llm_call_run(&a->call, rest, last);
    piece = llm_answer_piece(a, rest, rc == LLM_OK);

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

    a->failed = llm_max(a->failed, llm_min(a->call.at, rest.len));

    return LLM_OK;
}


void
llm_answer_sure(llm_answer_t *a)
{
    a->o.flags |= LLM_ANSWER_SURE;
}


/*
 * Between two pushes all text that waits is at pos 0, and a->entry is the
 * entry whose mark may be there, or the one behind that of the call that is
 * tried.
 */

llm_begun_t
llm_answer_begun(llm_answer_t *a, llm_str_t *rest)
{
    size_t            len;
    uint32_t          entry;
    llm_str_t         mark;
    llm_entry_t       how;
    const llm_form_t  *form;

    if (a->told || a->text.len == 0 || a->o.form == NULL
        || !(a->o.flags & LLM_ANSWER_TOOLS)
        || a->state == LLM_STATE_REASONING || a->state == LLM_STATE_OVER)
    {
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

    if (form != a->o.form || llm_answer_entry(a, form, how) == NULL) {
        return LLM_BEGUN_NOT;
    }

    if (how == LLM_ENTRY_BARE) {
        a->told = a->calling && a->live.tool != NULL;

        return a->told ? LLM_BEGUN_BARE : LLM_BEGUN_NOT;
    }

    if (how == LLM_ENTRY_BETWEEN) {
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
