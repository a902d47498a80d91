/*
 * Brings the turns of an assistant that calls tools, and the results after
 * them, into the form that a template takes; see norm.h.  A turn and its
 * results are an exchange.  Results belong to calls by id, or otherwise by
 * order.
 *
 * Other messages are copied.
 */

#include "engine/text/chat/turns.h"

/* said between two turns that must not follow each other */
#define LLM_TURNS_ASSISTANT  "OK."
#define LLM_TURNS_USER       "Continue."


/* adds the results of one call; LLM_TURNS_NOBODY: results that belong to
   none */

static void
llm_turns_add_results(llm_turns_t *t, uint32_t call)
{
    uint32_t            i;
    llm_turn_result_t  *result;

    for (i = 0; i < llm_turns_n_results(t); i++) {
        result = llm_turns_result_at(t, i);

        if (result->call == call) {
            llm_turns_add_result(t, result->msg, call == LLM_TURNS_NOBODY
                                 ? NULL
                                 : llm_turns_call_at(t, t->first + call));
        }
    }
}


static void
llm_turns_add_in_order(llm_turns_t *t, uint32_t n)
{
    uint32_t            i;
    llm_turn_result_t  *result;

    if ((t->what & LLM_CN_ORDER) && llm_turns_small(t)) {
        for (i = 0; i < n; i++) {
            llm_turns_add_results(t, i);
        }

        llm_turns_add_results(t, LLM_TURNS_NOBODY);
        return;
    }

    for (i = 0; i < llm_turns_n_results(t); i++) {
        result = llm_turns_result_at(t, i);
        llm_turns_add_result(t, result->msg,
                             result->call == LLM_TURNS_NOBODY ? NULL
                             : llm_turns_call_at(t, t->first + result->call));
    }
}


static const llm_flat_t *
llm_turns_exchange(llm_turns_t *t, const llm_flat_t *messages,
    const llm_flat_t *msg)
{
    int                whole;
    uint32_t           i, n;
    llm_turns_part_t   part;
    const llm_flat_t  *next;

    next = llm_turns_collect(t, messages, msg);

    if (t->out->failed) {
        return NULL;
    }

    n = llm_turns_n_calls(t) - t->first;
    part = LLM_TURNS_ALL;
    whole = (t->what & LLM_CN_RESPONSES) && !(t->what & LLM_CN_ONE_CALL)
            && llm_turns_n_results(t) && llm_turns_small(t);

    if ((whole || (t->what & (LLM_CN_TEXT_TURN | LLM_CN_NO_CONTENT)))
        && llm_turns_says(llm_flat_get(msg, "content")))
    {
        llm_turns_add_turn(t, msg, LLM_TURNS_TEXT, 0, 0);
        part = LLM_TURNS_CALLS;
    }

    if (whole) {
        if (next == NULL || llm_turns_kind(next) != LLM_TURN_ASSISTANT) {
            llm_turns_add_whole(t, msg, NULL);
            return next;
        }

        llm_turns_add_whole(t, msg, next);

        return llm_flat_next(messages, next);
    }

    if (!(t->what & LLM_CN_ONE_CALL) || !llm_turns_small(t)) {
        llm_turns_add_turn(t, msg, part, 0, n);
        llm_turns_add_in_order(t, n);

        return next;
    }

    for (i = 0; i < n; i++) {
        llm_turns_add_turn(t, msg, i ? LLM_TURNS_CALLS : part, i, 1);
        llm_turns_add_results(t, i);
    }

    llm_turns_add_results(t, LLM_TURNS_NOBODY);

    return next;
}


/* ---- words between turns ---- */

static void
llm_turns_say(llm_turns_t *t, const char *role, const char *text)
{
    size_t  handle;

    handle = llm_flat_open(t->out, LLM_FLAT_OBJECT);
    llm_turns_str(t->out, "role");
    llm_turns_str(t->out, role);
    llm_turns_str(t->out, "content");
    llm_turns_str(t->out, text);
    llm_flat_close(t->out, handle, 2);
    t->count++;
}


/*
 * Adds a word between calls, or their results, and what follows them.
 * Templates that want user and assistant to alternate do not count turns with
 * calls; others want an answer after each result.
 */

static void
llm_turns_fill(llm_turns_t *t, llm_turn_t kind)
{
    int  called;

    called = t->last == LLM_TURN_CALLS || t->last == LLM_TURN_RESULT;

    if (kind == LLM_TURN_USER && called
        && ((t->what & LLM_CN_FILL_ALL)
            || ((t->what & LLM_CN_FILL) && t->side == LLM_TURN_USER)))
    {
        llm_turns_say(t, "assistant", LLM_TURNS_ASSISTANT);

    } else if ((kind == LLM_TURN_ASSISTANT && called
                && (t->what & LLM_CN_FILL) && t->side == LLM_TURN_ASSISTANT)
               || (kind > LLM_TURN_USER && t->last <= LLM_TURN_SYSTEM
                   && t->side == LLM_TURN_NONE
                   && (t->what & LLM_CN_FIRST)))
    {
        llm_turns_say(t, "user", LLM_TURNS_USER);
        t->side = LLM_TURN_USER;
    }
}


static const llm_flat_t *
llm_turns_message(llm_turns_t *t, const llm_flat_t *messages,
    const llm_flat_t *msg)
{
    llm_turn_t         kind;
    const llm_flat_t  *next;

    next = llm_flat_next(messages, msg);
    kind = llm_turns_kind(msg);
    llm_turns_fill(t, kind);

    /* a message that is left open must stay the last */

    if (kind == LLM_TURN_CALLS && (next || !(t->what & LLM_CN_TAG))) {
        return llm_turns_exchange(t, messages, msg);
    }

    if (kind == LLM_TURN_RESULT) {
        llm_turns_add_result(t, msg, llm_turns_find(t,
                             llm_turns_text(llm_flat_get(msg,
                                                         "tool_call_id"))));
        return next;
    }

    llm_flat_add_node(t->out, msg);
    t->count++;
    t->last = kind;

    if (kind == LLM_TURN_USER || kind == LLM_TURN_ASSISTANT) {
        t->side = kind;
    }

    return next;
}


int
llm_chat_turns(const llm_flat_t *messages, uint64_t what, llm_buf_t *out,
    llm_err_t *err)
{
    size_t             handle;
    llm_turns_t        t;
    const llm_flat_t  *msg;

    memset(&t, 0, sizeof(t));
    t.what = what;
    t.out = out;
    llm_buf_init(&t.ids, 0);
    llm_buf_init(&t.calls, 0);
    llm_buf_init(&t.results, 0);

    handle = llm_flat_open(out, LLM_FLAT_ARRAY);

    for (msg = llm_flat_first(messages); msg;
         msg = llm_turns_message(&t, messages, msg))
    {
        /* void */
    }

    llm_flat_close(out, handle, t.count);
    out->failed |= t.ids.failed;

    llm_buf_free(&t.ids);
    llm_buf_free(&t.calls);
    llm_buf_free(&t.results);

    return out->failed ? llm_fail(err, "the messages are too large") : LLM_OK;
}
