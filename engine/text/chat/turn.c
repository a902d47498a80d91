/*
 * Writes turns with calls, and results, as messages; see turns.h.
 */

#include "engine/text/chat/turns.h"


/* adds arguments as an object: the parsed text, or the text as its only
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


int
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


/* adds content, with the calls [from, from + n) told in it */

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


void
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

        if (llm_chat_is(k, "content") && (t->what & LLM_CN_NO_CONTENT)
            && part != LLM_TURNS_TEXT)
        {
            llm_flat_add_null(out);

        } else if (llm_chat_is(k, "content") && silent
                   && llm_turns_says(v))
        {
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

    if ((t->what & LLM_CN_NO_CONTENT) && !told && part != LLM_TURNS_TEXT
        && llm_flat_get(msg, "content") == NULL)
    {
        llm_turns_str(out, "content");
        llm_flat_add_null(out);
        count++;
    }

    llm_flat_close(out, handle, count);
    t->count++;
    t->last = part == LLM_TURNS_TEXT ? LLM_TURN_ASSISTANT : LLM_TURN_CALLS;
    t->side = part == LLM_TURNS_TEXT ? LLM_TURN_ASSISTANT : t->side;
}


/* adds the results of a call, or those that belong to none, as responses;
   returns their number */

static uint32_t
llm_turns_add_responses(llm_turns_t *t, uint32_t call)
{
    size_t              handle;
    uint32_t            i, n;
    llm_buf_t           text;
    llm_str_t           name;
    llm_turn_result_t  *result;

    llm_buf_init(&text, 0);

    for (i = 0, n = 0; i < llm_turns_n_results(t); i++) {
        result = llm_turns_result_at(t, i);

        if (result->call != call) {
            continue;
        }

        name = call == LLM_TURNS_NOBODY
               ? llm_turns_text(llm_flat_get(result->msg, "name"))
               : llm_turns_name(llm_turns_call_at(t, t->first + call)->call);
        name = name.len ? name : llm_str("unknown");
        text.len = 0;
        (void) llm_chat_add_text(&text, llm_flat_get(result->msg, "content"));

        handle = llm_flat_open(t->out, LLM_FLAT_OBJECT);
        llm_turns_str(t->out, "name");
        llm_flat_add_str(t->out, name.data, name.len);
        llm_turns_str(t->out, "response");
        llm_flat_add_str(t->out, text.len ? text.data : "", text.len);
        llm_flat_close(t->out, handle, 2);
        n++;
    }

    t->out->failed |= text.failed;
    llm_buf_free(&text);

    return n;
}


void
llm_turns_add_whole(llm_turns_t *t, const llm_flat_t *msg,
    const llm_flat_t *answer)
{
    size_t             handle, array;
    uint32_t           i, n, count, responses;
    const llm_flat_t  *content;

    n = llm_turns_n_calls(t) - t->first;
    content = answer ? llm_flat_get(answer, "content") : NULL;

    handle = llm_flat_open(t->out, LLM_FLAT_OBJECT);
    count = llm_chat_add_members(t->out, msg, "content", "tool_calls");

    llm_turns_str(t->out, "tool_calls");
    array = llm_flat_open(t->out, LLM_FLAT_ARRAY);

    for (i = 0; i < n; i++) {
        llm_turns_add_call(t, llm_turns_call_at(t, t->first + i));
    }

    llm_flat_close(t->out, array, n);

    llm_turns_str(t->out, "tool_responses");
    array = llm_flat_open(t->out, LLM_FLAT_ARRAY);

    for (i = 0, responses = 0; i < n; i++) {
        responses += llm_turns_add_responses(t, i);
    }

    responses += llm_turns_add_responses(t, LLM_TURNS_NOBODY);
    llm_flat_close(t->out, array, responses);

    llm_turns_str(t->out, "content");

    if (llm_turns_says(content)) {
        llm_flat_add_node(t->out, content);

    } else {
        llm_turns_str(t->out, "");
    }

    llm_flat_close(t->out, handle, count + 3);

    t->count++;
    t->last = answer ? LLM_TURN_ASSISTANT : LLM_TURN_RESULT;
    t->side = answer ? LLM_TURN_ASSISTANT : t->side;
}


void
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
