/*
 * Turns what a template does not support into text of the two sides that every
 * template has.  Tool calls become the assistant's content, results a user's
 * message, and so do system messages.  Empty turns are left out.  Messages of
 * one side that become neighbours by this are joined, for templates that want
 * the sides to alternate; with LLM_CN_SIDES also messages that were neighbours
 * before.
 */

#include "engine/text/chat/norm.h"

/* a message that is being written */
typedef struct {
    uint64_t           what;            /* LLM_CN_... */
    const llm_chat_told_t  *tell;       /* messages whose calls become text;
                                           NULL: all */
    uint32_t           n;               /* messages written */
    uint32_t           index;           /* index of the message being read */
    int                left_out;        /* 1: the message before it was left
                                           out */
    const llm_flat_t  *msg;             /* source of the open message's other
                                           members; NULL: no message is open */
    const char        *role;            /* NULL: the message's own role */
    llm_buf_t          text;
    int                told;            /* 1: the text is generated, not
                                           content */
} llm_ctt_t;


int
llm_chat_add_call(llm_buf_t *out, const llm_flat_t *call)
{
    llm_str_t          s;
    const llm_flat_t  *f, *name, *args;

    f = llm_flat_get(call, "function");
    f = f ? f : call;
    name = llm_flat_get(f, "name");
    args = llm_flat_get(f, "arguments");

    (void) llm_buf_adds(out, out->len ? "\n<tool_call>\n{\"name\": "
                                      : "<tool_call>\n{\"name\": ");

    if (name) {
        (void) llm_chat_add_json(out, name);

    } else {
        (void) llm_buf_adds(out, "null");
    }

    (void) llm_buf_adds(out, ", \"arguments\": ");

    if (args && args->type == LLM_FLAT_STRING && args->count) {
        s = llm_flat_str(args);
        (void) llm_buf_add(out, s.data, s.len);

    } else if (args && args->type == LLM_FLAT_OBJECT) {
        (void) llm_chat_add_json(out, args);

    } else {
        (void) llm_buf_adds(out, "{}");
    }

    return llm_buf_adds(out, "}\n</tool_call>");
}


static int
llm_ctt_add_result(llm_buf_t *out, const llm_flat_t *content)
{
    (void) llm_buf_adds(out, out->len ? "\n<tool_response>\n"
                                      : "<tool_response>\n");

    if (content && content->type == LLM_FLAT_OBJECT) {
        (void) llm_chat_add_json(out, content);

    } else {
        (void) llm_chat_add_text(out, content);
    }

    return llm_buf_adds(out, "\n</tool_response>");
}


/* writes the open message, if any; returns how many were written, 0 or 1 */

static uint32_t
llm_ctt_flush(llm_ctt_t *t, llm_buf_t *out)
{
    size_t             handle;
    uint32_t           count;
    const llm_flat_t  *k, *v;

    if (t->msg == NULL) {
        return 0;
    }

    if (!t->told) {
        llm_flat_add_node(out, t->msg);

    } else {
        handle = llm_flat_open(out, LLM_FLAT_OBJECT);
        count = 2;

        llm_flat_add_str(out, "role", 4);
        llm_flat_add_str(out, t->role, strlen(t->role));
        llm_flat_add_str(out, "content", 7);
        llm_flat_add_str(out, t->text.len ? t->text.data : "", t->text.len);

        for (k = llm_flat_first(t->msg); k; k = llm_flat_next(t->msg, v)) {
            v = llm_flat_next(t->msg, k);

            if (llm_chat_is(k, "role") || llm_chat_is(k, "content")
                || llm_chat_is(k, "tool_calls")
                || llm_chat_is(k, "tool_call_id") || llm_chat_is(k, "name"))
            {
                continue;
            }

            llm_flat_add_node(out, k);
            llm_flat_add_node(out, v);
            count++;
        }

        llm_flat_close(out, handle, count);
    }

    t->msg = NULL;
    t->text.len = 0;

    return 1;
}


static int
llm_ctt_is_system(const llm_flat_t *role)
{
    return llm_chat_is(role, "system") || llm_chat_is(role, "developer");
}


/* do the message's calls and results become text? */

static int
llm_ctt_tells(const llm_ctt_t *t)
{
    uint32_t  i;

    if (!(t->what & LLM_CN_TOOL_TEXT) || t->tell == NULL) {
        return (t->what & LLM_CN_TOOL_TEXT) != 0;
    }

    i = t->index + t->tell->n - t->n;

    return i < t->tell->n && t->tell->v[i];
}


/* is it an assistant's turn without text and calls that is not left open? */

static int
llm_ctt_is_empty(llm_ctt_t *t, const llm_flat_t *msg)
{
    int                rc;
    size_t             i;
    llm_buf_t          text;
    const llm_flat_t  *calls;

    calls = llm_flat_get(msg, "tool_calls");

    if (!(t->what & LLM_CN_EMPTY)
        || !llm_chat_is(llm_flat_get(msg, "role"), "assistant")
        || (calls && calls->count)
        || (t->index + 1 == t->n && (t->what & LLM_CN_TAG)))
    {
        return 0;
    }

    llm_buf_init(&text, 0);
    rc = llm_chat_add_text(&text, llm_flat_get(msg, "content")) == LLM_OK;

    for (i = 0; i < text.len && rc; i++) {
        rc = strchr(" \t\r\n", text.data[i]) != NULL && text.data[i];
    }

    llm_buf_free(&text);

    return rc;
}


/* the side of a message once it has become text; NULL: it stays unchanged */

static const char *
llm_ctt_side(const llm_ctt_t *t, const llm_flat_t *msg)
{
    uint64_t           needed;
    const llm_flat_t  *role, *calls;

    role = llm_flat_get(msg, "role");
    calls = llm_flat_get(msg, "tool_calls");

    if (llm_ctt_is_system(role)) {
        needed = t->index ? LLM_CN_SIDES | LLM_CN_NO_SYSTEM
                          : LLM_CN_NO_SYSTEM;

        return (t->what & needed) ? "user" : NULL;
    }

    if (!llm_ctt_tells(t)
        && (llm_chat_is(role, "tool") || (calls && calls->count)))
    {
        return NULL;
    }

    if (llm_chat_is(role, "assistant")) {
        return "assistant";
    }

    return llm_chat_is(role, "user") || llm_chat_is(role, "tool") ? "user"
                                                                  : NULL;
}


/* appends the message's text to the open message */

static int
llm_ctt_append(llm_ctt_t *t, const llm_flat_t *msg)
{
    size_t             before;
    const llm_flat_t  *content, *calls, *call;

    content = llm_flat_get(msg, "content");

    if (llm_chat_is(llm_flat_get(msg, "role"), "tool")) {
        t->told = 1;
        return llm_ctt_add_result(&t->text, content);
    }

    before = t->text.len;

    if (before) {
        (void) llm_buf_addc(&t->text, '\n');
    }

    if (llm_chat_add_text(&t->text, content) != LLM_OK) {
        return LLM_ERROR;
    }

    if (before && t->text.len == before + 1) {
        t->text.len = before;
    }

    calls = llm_flat_get(msg, "tool_calls");

    if (calls == NULL || calls->type != LLM_FLAT_ARRAY) {
        return LLM_OK;
    }

    for (call = llm_flat_first(calls); call;
         call = llm_flat_next(calls, call))
    {
        t->told = 1;

        if (llm_chat_add_call(&t->text, call) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_ctt_message(llm_ctt_t *t, const llm_flat_t *msg, llm_buf_t *out,
    uint32_t *count)
{
    int                told, left_out;
    const char        *side;
    const llm_flat_t  *role;

    if (msg->type == LLM_FLAT_OBJECT && llm_ctt_is_empty(t, msg)) {
        t->index++;
        t->left_out = 1;

        return LLM_OK;
    }

    side = msg->type == LLM_FLAT_OBJECT ? llm_ctt_side(t, msg) : NULL;
    left_out = t->left_out;
    t->index++;
    t->left_out = 0;

    if (side == NULL) {
        *count += llm_ctt_flush(t, out);
        llm_flat_add_node(out, msg);
        (*count)++;

        return LLM_OK;
    }

    role = llm_flat_get(msg, "role");
    told = llm_chat_is(role, "tool") || llm_ctt_is_system(role);

    if (t->msg && strcmp(t->role, side) == 0
        && (t->told || told || left_out || (t->what & LLM_CN_SIDES)))
    {
        t->told = 1;
        return llm_ctt_append(t, msg);
    }

    *count += llm_ctt_flush(t, out);
    t->msg = msg;
    t->role = side;
    t->told = told;

    return llm_ctt_append(t, msg);
}


int
llm_chat_as_text(const llm_flat_t *messages, uint64_t what,
    const llm_chat_told_t *told, llm_buf_t *out, llm_err_t *err)
{
    int                rc;
    size_t             handle;
    uint32_t           count;
    llm_ctt_t          t;
    const llm_flat_t  *msg;

    memset(&t, 0, sizeof(t));
    t.what = what;
    t.tell = told;
    t.n = messages->count;
    llm_buf_init(&t.text, 0);

    rc = LLM_OK;
    count = 0;
    handle = llm_flat_open(out, LLM_FLAT_ARRAY);

    for (msg = llm_flat_first(messages); msg && rc == LLM_OK;
         msg = llm_flat_next(messages, msg))
    {
        rc = llm_ctt_message(&t, msg, out, &count);
    }

    count += llm_ctt_flush(&t, out);
    llm_flat_close(out, handle, count);

    if (t.text.failed || out->failed) {
        rc = LLM_ERROR;
    }

    llm_buf_free(&t.text);

    return rc == LLM_OK ? LLM_OK : llm_fail(err, "the messages are too large");
}
