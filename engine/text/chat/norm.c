/*
 * Adapts messages to a template, one message at a time; see norm.h.
 */

#include "engine/text/chat/norm.h"
#include "engine/llm.h"

#define LLM_CN_ID_LEN      9


static void
llm_cn_key(llm_buf_t *out, const char *key)
{
    llm_flat_add_str(out, key, strlen(key));
}


/* content */

static int
llm_cn_joins(const llm_flat_t *msg, uint64_t what)
{
    const llm_flat_t  *role;

    role = llm_flat_get(msg, "role");

    if (llm_chat_is(role, "system") || llm_chat_is(role, "developer")) {
        return (what & LLM_CN_JOIN_SYSTEM) != 0;
    }

    if (llm_chat_is(role, "assistant")) {
        return (what & LLM_CN_JOIN_ASSISTANT) != 0;
    }

    if (llm_chat_is(role, "tool")) {
        return (what & LLM_CN_JOIN_TOOL) != 0;
    }

    return (what & LLM_CN_JOIN_USER) != 0;
}


/* adds the text as a string; tag: with LLM_CHAT_TAG after it */

static void
llm_cn_string(llm_buf_t *out, llm_str_t s, int tag)
{
    llm_buf_t  b;

    if (!tag) {
        llm_flat_add_str(out, s.data, s.len);
        return;
    }

    llm_buf_init(&b, 0);

    if (llm_buf_add(&b, s.data, s.len) != LLM_OK
        || llm_buf_adds(&b, LLM_CHAT_TAG) != LLM_OK)
    {
        out->failed = 1;

    } else {
        llm_flat_add_str(out, b.data, b.len);
    }

    llm_buf_free(&b);
}


static void
llm_cn_part(llm_buf_t *out, llm_str_t s, int tag)
{
    size_t  handle;

    handle = llm_flat_open(out, LLM_FLAT_OBJECT);
    llm_cn_key(out, "type");
    llm_cn_key(out, "text");
    llm_cn_key(out, "text");
    llm_cn_string(out, s, tag);
    llm_flat_close(out, handle, 2);
}


/* adds the parts unchanged, with the tag after the last text */

static void
llm_cn_tagged_parts(llm_buf_t *out, const llm_flat_t *content)
{
    size_t             handle, inner;
    const llm_flat_t  *part, *last, *k, *v;

    last = NULL;

    for (part = llm_flat_first(content); part;
         part = llm_flat_next(content, part))
    {
        v = llm_flat_get(part, "text");
        last = v && v->type == LLM_FLAT_STRING ? part : last;
    }

    handle = llm_flat_open(out, LLM_FLAT_ARRAY);

    for (part = llm_flat_first(content); part;
         part = llm_flat_next(content, part))
    {
        if (part != last) {
            llm_flat_add_node(out, part);
            continue;
        }

        inner = llm_flat_open(out, LLM_FLAT_OBJECT);

        for (k = llm_flat_first(part); k; k = llm_flat_next(part, v)) {
            v = llm_flat_next(part, k);
            llm_flat_add_node(out, k);

            if (llm_chat_is(k, "text") && v->type == LLM_FLAT_STRING) {
                llm_cn_string(out, llm_flat_str(v), 1);

            } else {
                llm_flat_add_node(out, v);
            }
        }

        llm_flat_close(out, inner, part->count);
    }

    llm_flat_close(out, handle, content->count);
}


static int
llm_cn_content(const llm_flat_t *msg, const llm_flat_t *content,
    uint64_t what, int tag, llm_buf_t *out)
{
    int        rc;
    size_t     handle;
    llm_buf_t  text;
    llm_str_t  s;

    if (content == NULL || content->type == LLM_FLAT_NULL) {
        if (content && !(what & LLM_CN_NULL)) {
            llm_flat_add_null(out);
            return LLM_OK;
        }

        s = (llm_str_t) { 0, "" };

    } else if (content->type == LLM_FLAT_STRING) {
        s = llm_flat_str(content);

    } else if (content->type == LLM_FLAT_ARRAY && llm_cn_joins(msg, what)) {
        llm_buf_init(&text, 0);
        rc = llm_chat_add_text(&text, content);

        if (rc == LLM_OK) {
            llm_cn_string(out, (llm_str_t) { text.len, text.len ? text.data
                                                                : "" }, tag);
        }

        llm_buf_free(&text);

        return rc;

    } else if (content->type == LLM_FLAT_ARRAY && tag) {
        llm_cn_tagged_parts(out, content);
        return LLM_OK;

    } else {
        llm_flat_add_node(out, content);
        return LLM_OK;
    }

    if (!(what & LLM_CN_PARTS)) {
        llm_cn_string(out, s, tag);
        return LLM_OK;
    }

    handle = llm_flat_open(out, LLM_FLAT_ARRAY);
    llm_cn_part(out, s, tag);
    llm_flat_close(out, handle, 1);

    return LLM_OK;
}


/* tool calls */

/* ids of nine letters and digits stay; others are hashed into nine (FNV-1a,
   base 62) */

static void
llm_cn_id(const llm_flat_t *v, uint64_t what, llm_buf_t *out)
{
    char                buf[LLM_CN_ID_LEN];
    size_t              i, good;
    uint64_t            h;
    llm_str_t           s;
    static const char   digits[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    if (!(what & LLM_CN_IDS) || v->type != LLM_FLAT_STRING) {
        llm_flat_add_node(out, v);
        return;
    }

    s = llm_flat_str(v);
    h = 0xcbf29ce484222325u;

    for (i = 0, good = 0; i < s.len; i++) {
        h = (h ^ (unsigned char) s.data[i]) * 0x100000001b3u;
        good += s.data[i] && strchr(digits, s.data[i]);
    }

    if (s.len == LLM_CN_ID_LEN && good == s.len) {
        llm_flat_add_node(out, v);
        return;
    }

    for (i = 0; i < LLM_CN_ID_LEN; i++) {
        buf[i] = digits[h % 62];
        h /= 62;
    }

    llm_flat_add_str(out, buf, LLM_CN_ID_LEN);
}


/*
 * Adds a call, or the function in it.  Both may have arguments, and the object
 * that engine/api has read from them, which replaces them if the template
 * wants that.
 */

static void
llm_cn_call(const llm_flat_t *call, uint64_t what, int depth, llm_buf_t *out)
{
    size_t             handle;
    uint32_t           count;
    const llm_flat_t  *k, *v, *args;

    if (call->type != LLM_FLAT_OBJECT) {
        llm_flat_add_node(out, call);
        return;
    }

    args = (what & LLM_CN_ARGS) ? llm_flat_get(call, LLM_CHAT_ARGS) : NULL;
    count = 0;
    handle = llm_flat_open(out, LLM_FLAT_OBJECT);

    for (k = llm_flat_first(call); k; k = llm_flat_next(call, v)) {
        v = llm_flat_next(call, k);

        if (llm_chat_is(k, LLM_CHAT_ARGS)) {
            continue;
        }

        llm_flat_add_node(out, k);
        count++;

        if (llm_chat_is(k, "arguments") && args) {
            llm_flat_add_node(out, args);

        } else if (llm_chat_is(k, "id") && depth == 0) {
            llm_cn_id(v, what, out);

        } else if (llm_chat_is(k, "function") && depth == 0) {
            llm_cn_call(v, what, 1, out);

        } else {
            llm_flat_add_node(out, v);
        }
    }

    llm_flat_close(out, handle, count);
}


static void
llm_cn_calls(const llm_flat_t *calls, uint64_t what, llm_buf_t *out)
{
    size_t             handle;
    const llm_flat_t  *call;

    if (calls->type != LLM_FLAT_ARRAY) {
        llm_flat_add_node(out, calls);
        return;
    }

    handle = llm_flat_open(out, LLM_FLAT_ARRAY);

    for (call = llm_flat_first(calls); call;
         call = llm_flat_next(calls, call))
    {
        llm_cn_call(call, what, 0, out);
    }

    llm_flat_close(out, handle, calls->count);
}


/* messages */

static int
llm_cn_message(const llm_flat_t *msg, uint64_t what, int tag, llm_buf_t *out)
{
    size_t             handle;
    uint32_t           count;
    const llm_flat_t  *k, *v, *reasoning;

    handle = llm_flat_open(out, LLM_FLAT_OBJECT);
    count = msg->count;

    for (k = llm_flat_first(msg); k; k = llm_flat_next(msg, v)) {
        v = llm_flat_next(msg, k);
        llm_flat_add_node(out, k);

        if (llm_chat_is(k, "content")) {
            if (llm_cn_content(msg, v, what, tag, out) != LLM_OK) {
                return LLM_ERROR;
            }

        } else if (llm_chat_is(k, "role") && llm_chat_is(v, "developer")
                   && (what & LLM_CN_DEVELOPER))
        {
            llm_cn_key(out, "system");

        } else if (llm_chat_is(k, "tool_calls")) {
            llm_cn_calls(v, what, out);

        } else if (llm_chat_is(k, "tool_call_id")) {
            llm_cn_id(v, what, out);

        } else {
            llm_flat_add_node(out, v);
        }
    }

    if (llm_flat_get(msg, "content") == NULL && (what & LLM_CN_NULL)) {
        llm_cn_key(out, "content");
        count++;

        if (llm_cn_content(msg, NULL, what, tag, out) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    reasoning = llm_flat_get(msg, "reasoning_content");

    if (reasoning && (what & LLM_CN_THINKING)
        && llm_flat_get(msg, "thinking") == NULL)
    {
        llm_cn_key(out, "thinking");
        llm_flat_add_node(out, reasoning);
        count++;
    }

    llm_flat_close(out, handle, count);

    return LLM_OK;
}


static int
llm_cn_messages(const llm_flat_t *messages, uint64_t what, llm_buf_t *out,
    llm_err_t *err)
{
    int                tag;
    size_t             handle;
    const llm_flat_t  *msg, *next;

    handle = llm_flat_open(out, LLM_FLAT_ARRAY);

    for (msg = llm_flat_first(messages); msg; msg = next) {
        next = llm_flat_next(messages, msg);
        tag = next == NULL && (what & LLM_CN_TAG);

        if (msg->type != LLM_FLAT_OBJECT) {
            llm_flat_add_node(out, msg);

        } else if (llm_cn_message(msg, what, tag, out) != LLM_OK) {
            return llm_fail(err, "the messages are too large");
        }
    }

    llm_flat_close(out, handle, messages->count);

    return out->failed ? llm_fail(err, "the messages are too large") : LLM_OK;
}


int
llm_chat_normalise(const llm_flat_t *messages, uint64_t what,
    const llm_chat_told_t *told, llm_buf_t *out, llm_err_t *err)
{
    int        rc;
    llm_buf_t  plain, turns;

    llm_buf_init(&plain, 0);
    llm_buf_init(&turns, 0);
    rc = LLM_OK;

    if (what & LLM_CN_AS_TEXT) {
        rc = llm_chat_as_text(messages, what, told, &plain, err);
        messages = (const llm_flat_t *) plain.data;
    }

    if (rc == LLM_OK && (what & LLM_CN_TURNS)) {
        rc = llm_chat_turns(messages, what, &turns, err);
        messages = (const llm_flat_t *) turns.data;
    }

    if (rc == LLM_OK) {
        rc = llm_cn_messages(messages, what, out, err);
    }

    llm_buf_free(&plain);
    llm_buf_free(&turns);

    return rc;
}
