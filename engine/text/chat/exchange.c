/*
 * An exchange: a turn's calls, the results after it, and which result belongs
 * to which call; see turns.h.
 */

#include "engine/text/chat/turns.h"

/* most pairs of calls and results in one exchange that are compared; beyond
   it, results belong to calls in order */
#define LLM_TURNS_PAIRS   (1u << 20)
/* calls, before a result that is in no exchange, in which its call is looked
   for */
#define LLM_TURNS_BACK    1024


static const llm_flat_t *
llm_turns_calls_of(const llm_flat_t *msg)
{
    const llm_flat_t  *calls;

    calls = llm_flat_get(msg, "tool_calls");

    return calls && calls->type == LLM_FLAT_ARRAY && calls->count ? calls
                                                                  : NULL;
}


llm_turn_t
llm_turns_kind(const llm_flat_t *msg)
{
    const llm_flat_t  *role;

    if (msg->type != LLM_FLAT_OBJECT) {
        return LLM_TURN_NONE;
    }

    role = llm_flat_get(msg, "role");

    if (llm_chat_is(role, "assistant")) {
        return llm_turns_calls_of(msg) ? LLM_TURN_CALLS : LLM_TURN_ASSISTANT;
    }

    return llm_chat_is(role, "user") ? LLM_TURN_USER
           : llm_chat_is(role, "tool") ? LLM_TURN_RESULT : LLM_TURN_SYSTEM;
}


const llm_flat_t *
llm_turns_function(const llm_flat_t *call)
{
    const llm_flat_t  *f;

    if (call->type != LLM_FLAT_OBJECT) {
        return NULL;
    }

    f = llm_flat_get(call, "function");

    return f && f->type == LLM_FLAT_OBJECT ? f : call;
}


llm_str_t
llm_turns_name(const llm_flat_t *call)
{
    const llm_flat_t  *f;

    f = llm_turns_function(call);

    return llm_turns_text(f ? llm_flat_get(f, "name") : NULL);
}


/* the number N of functions.NAME:N; -1: the id has another form */

static int64_t
llm_turns_id_number(llm_str_t id, llm_str_t name)
{
    size_t   i, head;
    int64_t  n;

    head = sizeof("functions.") - 1 + name.len + 1;

    if (id.len <= head || id.len > head + 6
        || memcmp(id.data, "functions.", sizeof("functions.") - 1) != 0
        || memcmp(id.data + head - 1 - name.len, name.data, name.len) != 0
        || id.data[head - 1] != ':')
    {
        return -1;
    }

    for (i = head, n = 0; i < id.len; i++) {
        if (id.data[i] < '0' || id.data[i] > '9') {
            return -1;
        }

        n = n * 10 + (id.data[i] - '0');
    }

    return n;
}


static void
llm_turns_new_id(llm_turns_t *t, llm_turn_call_t *call)
{
    int64_t    n;
    llm_str_t  name;

    if (!(t->what & LLM_CN_NAME_IDS)) {
        return;
    }

    name = llm_turns_name(call->call);
    call->at = t->ids.len;
    n = (t->what & LLM_CN_TURN_IDS) ? -1 : llm_turns_id_number(call->id, name);

    if (n >= 0) {
        t->number = llm_max(t->number, (uint32_t) n + 1);
        (void) llm_buf_add(&t->ids, call->id.data, call->id.len);

    } else {
        (void) llm_buf_adds(&t->ids, "functions.");
        (void) llm_buf_add(&t->ids, name.data, name.len);
        (void) llm_buf_addf(&t->ids, ":%u", t->number++);
    }

    call->len = t->ids.len - call->at;
}


llm_turn_call_t *
llm_turns_find(const llm_turns_t *t, llm_str_t id)
{
    uint32_t          i, n;
    llm_turn_call_t  *call;

    n = id.len ? llm_turns_n_calls(t) : 0;

    for (i = n; i > 0 && n - i < LLM_TURNS_BACK; i--) {
        call = llm_turns_call_at(t, i - 1);

        if (llm_str_eq(call->id, id)) {
            return call;
        }
    }

    return NULL;
}


int
llm_turns_small(const llm_turns_t *t)
{
    return (uint64_t) (llm_turns_n_calls(t) - t->first)
           * llm_turns_n_results(t) <= LLM_TURNS_PAIRS;
}


/* by id; a second result of a call belongs to that call, too */

static void
llm_turns_match_ids(llm_turns_t *t)
{
    uint32_t            i, k, n, n_results, other;
    llm_str_t           id;
    llm_turn_call_t    *call;
    llm_turn_result_t  *result;

    n = llm_turns_n_calls(t) - t->first;
    n_results = llm_turns_n_results(t);

    if (!llm_turns_small(t)) {
        return;
    }

    for (i = 0; i < n_results; i++) {
        result = llm_turns_result_at(t, i);
        id = llm_turns_text(llm_flat_get(result->msg, "tool_call_id"));
        other = LLM_TURNS_NOBODY;

        for (k = 0; k < n && id.len; k++) {
            call = llm_turns_call_at(t, t->first + k);

            if (!llm_str_eq(call->id, id)) {
                continue;
            }

            if (!call->answered) {
                break;
            }

            other = k;
        }

        result->call = k < n && id.len ? k : other;

        if (result->call != LLM_TURNS_NOBODY) {
            llm_turns_call_at(t, t->first + result->call)->answered = 1;
        }
    }
}


static void
llm_turns_match(llm_turns_t *t)
{
    uint32_t            i, k, n;
    llm_turn_result_t  *result;

    llm_turns_match_ids(t);

    n = llm_turns_n_calls(t) - t->first;

    for (i = 0, k = 0; i < llm_turns_n_results(t); i++) {
        result = llm_turns_result_at(t, i);

        if (result->call != LLM_TURNS_NOBODY) {
            continue;
        }

        while (k < n && llm_turns_call_at(t, t->first + k)->answered) {
            k++;
        }

        if (k < n) {
            result->call = k;
            llm_turns_call_at(t, t->first + k)->answered = 1;
        }
    }
}


const llm_flat_t *
llm_turns_collect(llm_turns_t *t, const llm_flat_t *messages,
    const llm_flat_t *msg)
{
    llm_turn_call_t     call;
    llm_turn_result_t   result;
    const llm_flat_t   *calls, *v;

    t->first = llm_turns_n_calls(t);
    t->results.len = 0;
    t->number = (t->what & LLM_CN_TURN_IDS) ? 0 : t->number;

    calls = llm_turns_calls_of(msg);

    for (v = llm_flat_first(calls); v; v = llm_flat_next(calls, v)) {
        memset(&call, 0, sizeof(call));
        call.call = v;
        call.id = llm_turns_text(v->type == LLM_FLAT_OBJECT
                                 ? llm_flat_get(v, "id") : NULL);
        llm_turns_new_id(t, &call);
        (void) llm_buf_add(&t->calls, &call, sizeof(call));
    }

    result.call = LLM_TURNS_NOBODY;

    for (v = llm_flat_next(messages, msg);
         v && llm_turns_kind(v) == LLM_TURN_RESULT;
         v = llm_flat_next(messages, v))
    {
        result.msg = v;
        (void) llm_buf_add(&t->results, &result, sizeof(result));
    }

    if (t->calls.failed || t->results.failed) {
        t->out->failed = 1;
        return NULL;
    }

    llm_turns_match(t);

    return v;
}
