/*
 * Turns of an assistant that calls tools, with the results that follow them,
 * in the shape that a template takes; see norm.h.  A turn and its results are
 * an exchange; results belong to calls by their ids, or else by their order.
 *
 * Messages that are none of these are copied.
 */

#include "engine/text/chat/norm.h"
#include "engine/llm.h"

#include <stdio.h>

/* more pairs of calls and results in one exchange are told apart by order */
#define LLM_TURNS_PAIRS   (1u << 20)
/* a result that is in no exchange is looked for in so many calls before it */
#define LLM_TURNS_BACK    1024
#define LLM_TURNS_NOBODY  UINT32_MAX

/* what is said between two turns that may not follow each other */
#define LLM_TURNS_ASSISTANT  "OK."
#define LLM_TURNS_USER       "Continue."

typedef enum {
    LLM_TURN_NONE,
    LLM_TURN_SYSTEM,
    LLM_TURN_USER,
    LLM_TURN_ASSISTANT,
    LLM_TURN_CALLS,
    LLM_TURN_RESULT
} llm_turn_t;

typedef struct {
    const llm_flat_t  *call;
    llm_str_t          id;              /* the request's */
    size_t             at;              /* the new one, in llm_turns_t.ids */
    size_t             len;
    int                answered;
} llm_turn_call_t;

typedef struct {
    const llm_flat_t  *msg;
    uint32_t           call;            /* whose: its place in the exchange */
} llm_turn_result_t;

typedef struct {
    unsigned            what;           /* LLM_CN_... */
    llm_buf_t          *out;
    uint32_t            count;          /* messages written */
    llm_turn_t          last;           /* the last of them */
    llm_turn_t          side;           /* the last of user and assistant
                                           without calls */
    llm_buf_t           ids;
    llm_buf_t           calls;          /* llm_turn_call_t of all */
    llm_buf_t           results;        /* llm_turn_result_t of an exchange */
    uint32_t            first;          /* of calls: the exchange's first */
    uint32_t            number;         /* of the next call's id */
} llm_turns_t;

/* which parts of a turn a message has */
typedef enum {
    LLM_TURNS_ALL,
    LLM_TURNS_TEXT,
    LLM_TURNS_CALLS
} llm_turns_part_t;


static llm_turn_call_t *
llm_turns_call_at(const llm_turns_t *t, uint32_t i)
{
    return (llm_turn_call_t *) t->calls.data + i;
}


static uint32_t
llm_turns_n_calls(const llm_turns_t *t)
{
    return (uint32_t) (t->calls.len / sizeof(llm_turn_call_t));
}


static llm_turn_result_t *
llm_turns_result_at(const llm_turns_t *t, uint32_t i)
{
    return (llm_turn_result_t *) t->results.data + i;
}


static uint32_t
llm_turns_n_results(const llm_turns_t *t)
{
    return (uint32_t) (t->results.len / sizeof(llm_turn_result_t));
}


static void
llm_turns_str(llm_buf_t *out, const char *s)
{
    llm_flat_add_str(out, s, strlen(s));
}


/* text, or NULL with a length of 0 */

static llm_str_t
llm_turns_text(const llm_flat_t *v)
{
    return v && v->type == LLM_FLAT_STRING ? llm_flat_str(v)
                                           : (llm_str_t) { 0, "" };
}


static const llm_flat_t *
llm_turns_calls_of(const llm_flat_t *msg)
{
    const llm_flat_t  *calls;

    calls = llm_flat_get(msg, "tool_calls");

    return calls && calls->type == LLM_FLAT_ARRAY && calls->count ? calls
                                                                  : NULL;
}


static llm_turn_t
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


/* the function of a call, which may be the call itself */

static const llm_flat_t *
llm_turns_function(const llm_flat_t *call)
{
    const llm_flat_t  *f;

    if (call->type != LLM_FLAT_OBJECT) {
        return NULL;
    }

    f = llm_flat_get(call, "function");

    return f && f->type == LLM_FLAT_OBJECT ? f : call;
}


static llm_str_t
llm_turns_name(const llm_flat_t *call)
{
    const llm_flat_t  *f;

    f = llm_turns_function(call);

    return llm_turns_text(f ? llm_flat_get(f, "name") : NULL);
}


/* ---- ids that name the function ---- */

/* the number of functions.NAME:N; -1: it is another id */

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


/* the last call with this id; NULL: there is none */

static llm_turn_call_t *
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


/* ---- an exchange ---- */

static const llm_flat_t *
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

    return v;
}


/* by the id; a second result of a call is its own, too */

static void
llm_turns_match_ids(llm_turns_t *t)
{
    uint32_t            i, k, n, n_results, other;
    llm_str_t           id;
    llm_turn_call_t    *call;
    llm_turn_result_t  *result;

    n = llm_turns_n_calls(t) - t->first;
    n_results = llm_turns_n_results(t);

    if ((uint64_t) n * n_results > LLM_TURNS_PAIRS) {
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


/* ---- what is written of it ---- */

/* arguments as an object: what the text says, or the text as its only
   member */

static void
llm_turns_add_object(const llm_flat_t *args, llm_buf_t *out)
{
    size_t    handle;
    uint32_t  n;

    n = args != NULL && args->type != LLM_FLAT_NULL
        && !(args->type == LLM_FLAT_STRING && args->count == 0);

    handle = llm_flat_open(out, LLM_FLAT_OBJECT);

    if (n) {
        llm_turns_str(out, "arguments");
        llm_flat_add_node(out, args);
    }

    llm_flat_close(out, handle, n);
}


static void
llm_turns_add_function(const llm_flat_t *f, llm_buf_t *out)
{
    size_t             handle;
    uint32_t           n;
    const llm_flat_t  *args;

    args = llm_flat_get(f, "arguments");

    if ((args && args->type == LLM_FLAT_OBJECT)
        || llm_flat_get(f, LLM_CHAT_ARGS))
    {
        llm_flat_add_node(out, f);
        return;
    }

    handle = llm_flat_open(out, LLM_FLAT_OBJECT);
    n = llm_chat_add_members(out, f, args ? NULL : "arguments", NULL);

    if (args == NULL) {
        llm_turns_str(out, "arguments");
        llm_turns_add_object(NULL, out);
        n++;

    } else {
        llm_turns_str(out, LLM_CHAT_ARGS);
        llm_turns_add_object(args, out);
        n++;
    }

    llm_flat_close(out, handle, n);
}


static void
llm_turns_add_id(const llm_turns_t *t, const char *key,
    const llm_turn_call_t *call, llm_buf_t *out)
{
    llm_turns_str(out, key);
    llm_flat_add_str(out, t->ids.failed ? "" : t->ids.data + call->at,
                     t->ids.failed ? 0 : call->len);
}


static void
llm_turns_add_call(const llm_turns_t *t, const llm_turn_call_t *call)
{
    int                named, bare;
    size_t             handle;
    uint32_t           n;
    llm_buf_t         *out;
    const llm_flat_t  *f;

    out = t->out;
    f = llm_turns_function(call->call);

    if (f == NULL || !(t->what & (LLM_CN_NAME_IDS | LLM_CN_OBJECTS))) {
        llm_flat_add_node(out, call->call);
        return;
    }

    named = (t->what & LLM_CN_NAME_IDS) != 0;
    bare = f != call->call && (t->what & LLM_CN_OBJECTS);

    handle = llm_flat_open(out, LLM_FLAT_OBJECT);
    n = llm_chat_add_members(out, call->call, named ? "id" : NULL,
                             bare ? "function" : NULL);

    if (named) {
        llm_turns_add_id(t, "id", call, out);
        n++;
    }

    if (bare) {
        llm_turns_str(out, "function");
        llm_turns_add_function(f, out);
        n++;
    }

    llm_flat_close(out, handle, n);
}


/* is it text, or parts? */

static int
llm_turns_says(const llm_flat_t *content)
{
    return content && (content->type == LLM_FLAT_STRING
                       || content->type == LLM_FLAT_ARRAY) && content->count;
}


static int
llm_turns_is_reasoning(const llm_flat_t *key)
{
    return llm_chat_is(key, "reasoning_content")
           || llm_chat_is(key, "reasoning") || llm_chat_is(key, "thinking");
}


static int
llm_turns_reasons(const llm_flat_t *msg)
{
    return llm_turns_says(llm_flat_get(msg, "reasoning_content"))
           || llm_turns_says(llm_flat_get(msg, "reasoning"))
           || llm_turns_says(llm_flat_get(msg, "thinking"));
}


/* content, with the calls [from, from + n) told in it */

static void
llm_turns_add_told(llm_turns_t *t, const llm_flat_t *content, uint32_t from,
    uint32_t n)
{
    uint32_t   i;
    llm_buf_t  text;

    llm_buf_init(&text, 0);
    (void) llm_chat_add_text(&text, content);

    for (i = from; i < from + n; i++) {
        (void) llm_chat_add_call(&text, llm_turns_call_at(t, t->first
                                                          + i)->call);
    }

    llm_turns_str(t->out, "content");
    llm_flat_add_str(t->out, text.len ? text.data : "", text.len);
    t->out->failed |= text.failed;
    llm_buf_free(&text);
}


/* a part of the turn, with the calls [from, from + n) of the exchange */

static void
llm_turns_add_turn(llm_turns_t *t, const llm_flat_t *msg,
    llm_turns_part_t part, uint32_t from, uint32_t n)
{
    int                silent, told;
    size_t             handle, array;
    uint32_t           count, i;
    llm_buf_t         *out;
    const llm_flat_t  *k, *v;

    out = t->out;
    count = 0;
    silent = part == LLM_TURNS_CALLS
             || ((t->what & LLM_CN_ONE_VOICE) && llm_turns_reasons(msg));

    told = (t->what & LLM_CN_CALL_TEXT) && part != LLM_TURNS_TEXT;
    handle = llm_flat_open(out, LLM_FLAT_OBJECT);

    if (told) {
        llm_turns_add_told(t, silent ? NULL : llm_flat_get(msg, "content"),
                           from, n);
        count++;
    }

    for (k = llm_flat_first(msg); k; k = llm_flat_next(msg, v)) {
        v = llm_flat_next(msg, k);

        if ((llm_chat_is(k, "tool_calls")
             && (told || part == LLM_TURNS_TEXT))
            || (llm_chat_is(k, "content") && told)
            || (llm_turns_is_reasoning(k)
                && (part == LLM_TURNS_TEXT || from)))
        {
            continue;
        }

        llm_flat_add_node(out, k);
        count++;

        if (llm_chat_is(k, "content") && silent && llm_turns_says(v)) {
            llm_turns_str(out, "");

        } else if (llm_chat_is(k, "tool_calls")) {
            array = llm_flat_open(out, LLM_FLAT_ARRAY);

            for (i = from; i < from + n; i++) {
                llm_turns_add_call(t, llm_turns_call_at(t, t->first + i));
            }

            llm_flat_close(out, array, n);

        } else {
            llm_flat_add_node(out, v);
        }
    }

    llm_flat_close(out, handle, count);
    t->count++;
    t->last = part == LLM_TURNS_TEXT ? LLM_TURN_ASSISTANT : LLM_TURN_CALLS;
    t->side = part == LLM_TURNS_TEXT ? LLM_TURN_ASSISTANT : t->side;
}


/* call: whose result it is; NULL: nobody's */

static void
llm_turns_add_result(llm_turns_t *t, const llm_flat_t *msg,
    const llm_turn_call_t *call)
{
    int        named, told;
    size_t     handle;
    uint32_t   n;
    llm_str_t  name;

    t->count++;
    t->last = LLM_TURN_RESULT;

    named = call && (t->what & LLM_CN_NAME_IDS);
    name = call ? llm_turns_name(call->call) : (llm_str_t) { 0, "" };
    told = name.len && (t->what & LLM_CN_RESULT_NAMES)
           && llm_turns_text(llm_flat_get(msg, "name")).len == 0;

    if (!named && !told) {
        llm_flat_add_node(t->out, msg);
        return;
    }

    handle = llm_flat_open(t->out, LLM_FLAT_OBJECT);
    n = llm_chat_add_members(t->out, msg, named ? "tool_call_id" : NULL,
                             told ? "name" : NULL);

    if (named) {
        llm_turns_add_id(t, "tool_call_id", call, t->out);
        n++;
    }

    if (told) {
        llm_turns_str(t->out, "name");
        llm_flat_add_str(t->out, name.data, name.len);
        n++;
    }

    llm_flat_close(t->out, handle, n);
}


/* the results of one call; LLM_TURNS_NOBODY: of none */

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

    if ((t->what & LLM_CN_ORDER)
        && (uint64_t) n * llm_turns_n_results(t) <= LLM_TURNS_PAIRS)
    {
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
    uint32_t           i, n;
    llm_turns_part_t   part;
    const llm_flat_t  *next;

    next = llm_turns_collect(t, messages, msg);

    if (t->calls.failed || t->results.failed) {
        t->out->failed = 1;
        return NULL;
    }

    llm_turns_match(t);

    n = llm_turns_n_calls(t) - t->first;
    part = LLM_TURNS_ALL;

    if ((t->what & LLM_CN_TEXT_TURN)
        && llm_turns_says(llm_flat_get(msg, "content")))
    {
        llm_turns_add_turn(t, msg, LLM_TURNS_TEXT, 0, 0);
        part = LLM_TURNS_CALLS;
    }

    if (!(t->what & LLM_CN_ONE_CALL)
        || (uint64_t) n * llm_turns_n_results(t) > LLM_TURNS_PAIRS)
    {
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


/* ---- what may not follow each other ---- */

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
 * Between calls, or their results, and what follows them.  Templates that
 * want user and assistant to alternate count no turns with calls; others want
 * an answer behind each result.
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

    /* a message that is left open stays the last */

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
llm_chat_turns(const llm_flat_t *messages, unsigned what, llm_buf_t *out,
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
