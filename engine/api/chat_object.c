/*
 * Writes a chat request's messages, tools and template arguments as the flat
 * object for llm_chat_render(); chat_messages.c has checked them.
 *
 * On the way, null and empty members of a message are left out (clients send
 * them, and templates test for "defined" only), except that content may be
 * null; parts of other types become text parts (parts.c); parts with reasoning
 * become `reasoning_content`, and so does `reasoning`; the arguments of calls
 * are read (arguments.c); calls and results of "functions" become calls and
 * results of tools.
 */

#include "engine/api/arguments.h"
#include "engine/api/chat.h"

/* the place of a message */
typedef struct {
    uint32_t  index;
    int       old;                      /* see llm_api_part_at_t */
} llm_api_mat_t;


static void
llm_api_add_key(llm_buf_t *out, const char *key)
{
    llm_flat_add_str(out, key, strlen(key));
}


/* writes content parts in the form that templates know; parts with reasoning
   are added to reasoning instead */

static int
llm_api_write_parts(llm_api_reader_t *rd, const llm_flat_t *parts,
    const llm_api_part_at_t *where, const llm_api_at_t *at,
    llm_buf_t *reasoning, llm_err_t *err)
{
    int                rc;
    size_t             handle, inner;
    uint32_t           i, n;
    llm_buf_t         *out;
    llm_api_part_t     p;
    const llm_flat_t  *part;

    n = 0;
    rc = LLM_OK;
    out = rd->msg;
    part = llm_flat_first(parts);
    llm_api_part_init(&p);
    handle = llm_flat_open(out, LLM_FLAT_ARRAY);

    for (i = 0; part && rc == LLM_OK; part = llm_flat_next(parts, part), i++) {
        rc = llm_api_part_read(&p, part, where, llm_api_idx(at, i), err);

        if (rc != LLM_OK || p.kind == LLM_API_PART_NOTHING) {
            continue;
        }

        if (p.kind == LLM_API_PART_MEDIA) {
            rc = llm_api_media_take(rd, &p.media, llm_api_idx(at, i), err);
            llm_api_media_write(&p.media, out);
            n++;
            continue;
        }

        if (p.kind == LLM_API_PART_REASONING) {
            if (reasoning->len) {
                (void) llm_buf_addc(reasoning, '\n');
            }

            (void) llm_buf_add(reasoning, p.text.data, p.text.len);
            continue;
        }

        n++;

        if (llm_api_str_is(llm_flat_get(part, "type"), "text")) {
            llm_flat_add_node(out, part);
            continue;
        }

        inner = llm_flat_open(out, LLM_FLAT_OBJECT);
        llm_api_add_key(out, "type");
        llm_api_add_key(out, "text");
        llm_api_add_key(out, "text");
        llm_flat_add_str(out, p.text.data, p.text.len);
        llm_flat_close(out, inner, 2);
    }

    llm_flat_close(out, handle, n);
    llm_api_part_free(&p);

    if (n == 0 && parts->count && !out->failed) {
        out->len = handle;              /* there is only reasoning */
        llm_flat_add_str(out, "", 0);
    }

    return rc;
}


/* writes the id of a function's call: an older call has no id, so one is made
   of the function's name */

static void
llm_api_add_call_id(const llm_flat_t *name, llm_buf_t *out)
{
    llm_buf_t  id;
    llm_str_t  s;

    s = llm_flat_str(name);
    llm_buf_init(&id, 0);

    if (llm_buf_addf(&id, "call_%.*s", (int) s.len, s.data) != LLM_OK) {
        out->failed = 1;

    } else {
        llm_flat_add_str(out, id.data, id.len);
    }

    llm_buf_free(&id);
}


/* writes function_call as tool_calls with one call */

static int
llm_api_write_call(llm_api_reader_t *rd, const llm_flat_t *function,
    llm_err_t *err)
{
    int        rc;
    size_t     array, call;
    llm_buf_t  b;

    llm_buf_init(&b, 0);

    array = llm_flat_open(&b, LLM_FLAT_ARRAY);
    call = llm_flat_open(&b, LLM_FLAT_OBJECT);
    llm_api_add_key(&b, "id");
    llm_api_add_call_id(llm_flat_get(function, "name"), &b);
    llm_api_add_key(&b, "type");
    llm_api_add_key(&b, "function");
    llm_api_add_key(&b, "function");
    llm_flat_add_node(&b, function);
    llm_flat_close(&b, call, 3);
    llm_flat_close(&b, array, 1);

    llm_api_add_key(rd->msg, "tool_calls");

    rc = b.failed ? llm_fail(err, "no memory for the request")
         : llm_args_add_calls((const llm_flat_t *) b.data, &rd->limits,
                              rd->msg, err);

    llm_buf_free(&b);

    return rc;
}


/* writes a message's role; a function's result gets the role of a tool's
   result, with the id of the call */

static uint32_t
llm_api_write_role(const llm_flat_t *msg, const llm_flat_t *role,
    llm_buf_t *out)
{
    if (!llm_api_str_is(role, "function")) {
        llm_flat_add_node(out, role);
        return 0;
    }

    llm_api_add_key(out, "tool");
    llm_api_add_key(out, "tool_call_id");
    llm_api_add_call_id(llm_flat_get(msg, "name"), out);

    return 1;
}


/* writes the message's reasoning under the name that templates know, and
   returns 1 if there is any; parts: reasoning found in the content */

static uint32_t
llm_api_write_reasoning(const llm_flat_t *msg, const llm_buf_t *parts,
    llm_buf_t *out)
{
    const llm_flat_t  *v;

    if (llm_api_member(msg, "reasoning_content")) {
        return 0;
    }

    v = llm_api_member(msg, "reasoning");

    if (v == NULL && parts->len == 0) {
        return 0;
    }

    llm_api_add_key(out, "reasoning_content");

    if (v) {
        llm_flat_add_node(out, v);

    } else {
        llm_flat_add_str(out, parts->data, parts->len);
    }

    return 1;
}


/* writes a pair of a message, changed where templates need another form */

static int
llm_api_write_member(llm_api_reader_t *rd, const llm_flat_t *msg,
    const llm_flat_t *k, const llm_flat_t *v, const llm_api_mat_t *at,
    llm_buf_t *reasoning, llm_err_t *err)
{
    llm_api_part_at_t  where;

    if (llm_api_str_is(k, "content") && v->type == LLM_FLAT_ARRAY) {
        llm_api_chat_where(rd, msg, at->old, &where);
        return llm_api_write_parts(rd, v, &where,
                                   llm_api_key(llm_api_idx(
                                       llm_api_top("messages"), at->index),
                                       "content"), reasoning, err);
    }

    if (llm_api_str_is(k, "tool_calls")) {
        return llm_args_add_calls(v, &rd->limits, rd->msg, err);
    }

    llm_flat_add_node(rd->msg, v);

    return LLM_OK;
}


static int
llm_api_write_members(llm_api_reader_t *rd, const llm_flat_t *msg,
    const llm_api_mat_t *at, llm_buf_t *reasoning, llm_err_t *err)
{
    size_t             handle;
    uint32_t           count;
    llm_buf_t         *out;
    const llm_flat_t  *k, *v, *content;

    out = rd->msg;
    content = llm_flat_get(msg, "content");
    handle = llm_flat_open(out, LLM_FLAT_OBJECT);
    count = 0;

    for (k = llm_flat_first(msg); k; k = llm_flat_next(msg, v)) {
        v = llm_flat_next(msg, k);

        if (v != content
            && (v->type == LLM_FLAT_NULL
                || (v->type == LLM_FLAT_ARRAY && v->count == 0)))
        {
            continue;
        }

        count++;

        if (llm_api_str_is(k, "function_call")) {
            if (llm_api_write_call(rd, v, err) != LLM_OK) {
                return LLM_ERROR;
            }

            continue;
        }

        llm_flat_add_node(out, k);

        if (llm_api_str_is(k, "role")) {
            count += llm_api_write_role(msg, v, out);

        } else if (llm_api_write_member(rd, msg, k, v, at, reasoning, err)
                   != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    if (content == NULL) {
        llm_api_add_key(out, "content");
        llm_flat_add_null(out);
        count++;
    }

    count += llm_api_write_reasoning(msg, reasoning, out);
    llm_flat_close(out, handle, count);

    return LLM_OK;
}


static int
llm_api_write_message(llm_api_reader_t *rd, const llm_flat_t *msg,
    const llm_api_mat_t *at, llm_err_t *err)
{
    int        rc;
    llm_buf_t  reasoning;

    llm_buf_init(&reasoning, 0);
    rc = llm_api_write_members(rd, msg, at, &reasoning, err);
    rd->msg->failed |= reasoning.failed;
    llm_buf_free(&reasoning);

    return rc;
}


/* the number of system messages at the beginning */

static uint32_t
llm_api_n_system(const llm_flat_t *messages)
{
    uint32_t           n;
    const llm_flat_t  *msg, *role;

    n = 0;

    for (msg = llm_flat_first(messages); msg;
         msg = llm_flat_next(messages, msg))
    {
        role = llm_flat_get(msg, "role");

        if (!llm_api_str_is(role, "system")
            && !llm_api_str_is(role, "developer"))
        {
            break;
        }

        n++;
    }

    return n;
}


/* writes json_instruction as a further system message */

static void
llm_api_write_instruction(const llm_api_chat_t *b, llm_buf_t *out)
{
    size_t  handle;

    handle = llm_flat_open(out, LLM_FLAT_OBJECT);
    llm_api_add_key(out, "role");
    llm_api_add_key(out, "system");
    llm_api_add_key(out, "content");
    llm_flat_add_str(out, b->json_instruction.data, b->json_instruction.len);
    llm_flat_close(out, handle, 2);
}


/* returns the last message; NULL: *err says what is wrong */

static const llm_flat_t *
llm_api_write_messages(llm_api_reader_t *rd, const llm_api_chat_t *b,
    llm_err_t *err)
{
    size_t             handle;
    uint32_t           i, old, at;
    const llm_flat_t  *msg, *last, *messages;

    last = NULL;
    messages = b->messages;
    old = llm_api_old_messages(messages);
    at = b->json_instruction.len && llm_api_wants_json(&b->body)
         ? llm_api_n_system(messages) : UINT32_MAX;

    llm_api_add_key(rd->msg, "messages");
    handle = llm_flat_open(rd->msg, LLM_FLAT_ARRAY);

    msg = llm_flat_first(messages);

    for (i = 0; msg; i++) {
        if (i == at) {
            llm_api_write_instruction(b, rd->msg);
        }

        if (llm_api_write_message(rd, msg, &(llm_api_mat_t) { i, i < old },
                                  err) != LLM_OK)
        {
            return NULL;
        }

        last = msg;
        msg = llm_flat_next(messages, msg);
    }

    if (i == at) {
        llm_api_write_instruction(b, rd->msg);
    }

    llm_flat_close(rd->msg, handle,
                   messages->count + (at != UINT32_MAX));

    return last;
}


/* has the message a text other than reasoning? */

static int
llm_api_has_text(const llm_api_reader_t *rd, const llm_flat_t *msg,
    const llm_flat_t *content)
{
    int                 found;
    llm_err_t           err;
    llm_api_part_t      p;
    const llm_flat_t   *part;
    llm_api_part_at_t   where;

    if (content->type != LLM_FLAT_ARRAY) {
        return content->count != 0;
    }

    found = 0;
    llm_api_part_init(&p);
    llm_api_chat_where(rd, msg, 0, &where);

    for (part = llm_flat_first(content); part && !found;
         part = llm_flat_next(content, part))
    {
        found = llm_api_part_read(&p, part, &where, llm_api_top("messages"),
                                  &err)
                == LLM_OK
                && p.kind == LLM_API_PART_TEXT;
    }

    llm_api_part_free(&p);

    return found;
}


/* is it an assistant's message with text and without tool calls? */

static int
llm_api_can_continue(const llm_api_reader_t *rd, const llm_flat_t *msg)
{
    const llm_flat_t  *calls, *content;

    calls = llm_api_member(msg, "tool_calls");
    content = llm_api_member(msg, "content");

    return llm_api_str_is(llm_flat_get(msg, "role"), "assistant")
           && (calls == NULL || calls->count == 0)
           && content && llm_api_has_text(rd, msg, content);
}


/* a trailing assistant message is continued unless the request forbids it */

static int
llm_api_write_turn(llm_api_reader_t *rd, const llm_api_chat_t *b,
    const llm_flat_t *last, llm_err_t *err)
{
    int                  prefill;
    llm_buf_t           *out;
    const llm_api_at_t  *at;

    out = rd->msg;
    at = llm_api_top("continue_final_message");
    prefill = b->continue_final_message;

    if (prefill == 1 && b->add_generation_prompt == 1) {
        return llm_api_bad_value(err, at,
                                 "'continue_final_message' and "
                                 "'add_generation_prompt' cannot both be "
                                 "true.");
    }

    if (prefill == 1
        && (!llm_api_str_is(llm_flat_get(last, "role"), "assistant")
            || llm_api_member(last, "content") == NULL))
    {
        return llm_api_bad_value(err, at,
                                 "'continue_final_message' needs an "
                                 "assistant message with content at the end "
                                 "of 'messages'.");
    }

    if (prefill == -1) {
        prefill = llm_api_can_continue(rd, last)
                  && b->add_generation_prompt != 1;
    }

    if (prefill
        && llm_api_check_goes_on(rd, b->messages, last, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_api_add_key(out, "add_generation_prompt");
    llm_flat_add_bool(out, !prefill && b->add_generation_prompt != 0);
    llm_api_add_key(out, "continue_final_message");
    llm_flat_add_bool(out, prefill);

    return LLM_OK;
}


/* copies the template's arguments; clients may not set those that the server
   sets */

static int
llm_api_copy_kwargs(const llm_flat_t *kwargs, llm_buf_t *out,
    uint32_t *count, llm_err_t *err)
{
    size_t             i;
    const llm_flat_t  *k, *v;

    static const char *const  ours[] = {
        "messages", "tools", "documents", "add_generation_prompt",
        "continue_final_message", "bos_token", "eos_token"
    };

    if (kwargs == NULL) {
        return LLM_OK;
    }

    for (k = llm_flat_first(kwargs); k; k = llm_flat_next(kwargs, v)) {
        v = llm_flat_next(kwargs, k);

        for (i = 0; i < llm_nelems(ours); i++) {
            if (llm_api_str_is(k, ours[i])) {
                return llm_api_bad_value(err,
                                         llm_api_top("chat_template_kwargs"),
                                         "'chat_template_kwargs' may not "
                                         "set '%s'.", ours[i]);
            }
        }

        llm_flat_add_node(out, k);
        llm_flat_add_node(out, v);
        (*count)++;
    }

    return LLM_OK;
}


static int
llm_api_write_kwargs(const llm_api_chat_t *b, llm_buf_t *out, llm_err_t *err)
{
    int                thinking;
    size_t             handle;
    uint32_t           count;
    llm_str_t          effort;
    const llm_flat_t  *kwargs;

    count = 0;
    kwargs = b->chat_template_kwargs;

    llm_api_add_key(out, "chat_template_kwargs");
    handle = llm_flat_open(out, LLM_FLAT_OBJECT);

    if (llm_api_copy_kwargs(kwargs, out, &count, err) != LLM_OK) {
        return LLM_ERROR;
    }

    thinking = b->enable_thinking;
    effort = b->reasoning_effort;

    if (effort.len) {
        if (thinking == -1 && llm_str_is(effort, "none")) {
            thinking = 0;
        }

        if (llm_flat_get(kwargs, "reasoning_effort") == NULL) {
            llm_api_add_key(out, "reasoning_effort");
            llm_flat_add_str(out, effort.data, effort.len);
            count++;
        }
    }

    if (thinking != -1 && llm_flat_get(kwargs, "enable_thinking") == NULL) {
        llm_api_add_key(out, "enable_thinking");
        llm_flat_add_bool(out, thinking);
        count++;
    }

    llm_flat_close(out, handle, count);

    return LLM_OK;
}


int
llm_api_write_chat(llm_api_reader_t *rd, const llm_api_chat_t *b,
    llm_err_t *err)
{
    size_t             handle;
    uint32_t           count;
    llm_buf_t         *msg;
    const llm_flat_t  *last;

    msg = rd->msg;
    handle = llm_flat_open(msg, LLM_FLAT_OBJECT);

    /* contents, calls and reasoning are adapted to what the template
       supports */

    llm_api_add_key(msg, "lenient");
    llm_flat_add_bool(msg, 1);

    last = llm_api_write_messages(rd, b, err);

    if (last == NULL || llm_api_write_turn(rd, b, last, err) != LLM_OK
        || llm_api_write_kwargs(b, msg, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    count = 5 + (uint32_t) llm_api_write_tools(b, msg);

    if (b->documents && b->documents->count) {
        llm_api_add_key(msg, "documents");
        llm_flat_add_node(msg, b->documents);
        count++;
    }

    llm_flat_close(msg, handle, count);

    return LLM_OK;
}
