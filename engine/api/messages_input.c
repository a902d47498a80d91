/*
 * What a Messages request says to the model: system prompt and messages, in
 * the form of a chat request; messages_tools.c has the tools.
 *
 * A user's message may hold results of tools: they are written first, as
 * tools' messages, and the user's text follows.  Thinking comes back as it was
 * sent; its signature is not checked, because it is only text for the model.
 */

#include "engine/api/messages.h"


/* reads a block of a list of content blocks */
typedef int (*llm_api_mi_block_t)(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_flat_t *type, const llm_api_at_t *at, llm_err_t *err);


static int
llm_api_mi_blocks(llm_api_draft_t *d, const llm_flat_t *blocks,
    const llm_api_at_t *at, llm_api_mi_block_t write, llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *v, *type;
    const llm_api_at_t  *here;

    v = llm_flat_first(blocks);

    for (i = 0; v; i++) {
        here = llm_api_idx(at, i);

        if (llm_api_check_type(err, here, v, LLM_FLAT_OBJECT) != LLM_OK) {
            return LLM_ERROR;
        }

        type = llm_api_need(err, here, v, "type", LLM_FLAT_STRING);

        if (type == NULL || write(d, v, type, here, err) != LLM_OK) {
            return LLM_ERROR;
        }

        v = llm_flat_next(blocks, v);
    }

    return LLM_OK;
}


/* adds a text block, or the text of another block */

static int
llm_api_mi_text(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_flat_t *type, const llm_api_at_t *at, llm_err_t *err)
{
    llm_api_part_at_t  where;

    (void) type;

    llm_api_media_rules(d->rd, &where.rules);
    where.assistant = 0;
    where.old = d->old;
    where.goes_on = d->goes_on;
    where.known = "This model takes text only: content blocks of the type "
                  "'text'.";

    return llm_api_draft_part(d, block, &where, at, err);
}


/* adds a string, or a list of text blocks, to the open message */

static int
llm_api_mi_content(llm_api_draft_t *d, const llm_flat_t *content,
    const llm_api_at_t *at, llm_err_t *err)
{
    if (content->type == LLM_FLAT_STRING) {
        llm_api_draft_text(d, llm_flat_str(content));
        return LLM_OK;
    }

    if (content->type != LLM_FLAT_ARRAY) {
        return llm_api_bad_type(err, at, "a string or an array of objects",
                                content);
    }

    return llm_api_mi_blocks(d, content, at, llm_api_mi_text, err);
}


/* ---- a user's message: results of tools, then what the user says ---- */

static int
llm_api_mi_result(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_flat_t *type, const llm_api_at_t *at, llm_err_t *err)
{
    const llm_flat_t  *id, *content;

    if (!llm_api_str_is(type, "tool_result")) {
        return LLM_OK;
    }

    id = llm_api_need(err, at, block, "tool_use_id", LLM_FLAT_STRING);
    if (id == NULL) {
        return LLM_ERROR;
    }

    llm_api_draft_result(d, llm_flat_str(id));
    content = llm_api_member(block, "content");

    return content ? llm_api_mi_content(d, content,
                                        llm_api_key(at, "content"), err)
                   : LLM_OK;
}


static int
llm_api_mi_said(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_flat_t *type, const llm_api_at_t *at, llm_err_t *err)
{
    if (llm_api_str_is(type, "tool_result")) {
        return LLM_OK;
    }

    if (d->role == NULL || strcmp(d->role, "user") != 0) {
        llm_api_draft_open(d, "user");
    }

    return llm_api_mi_text(d, block, type, at, err);
}


static int
llm_api_mi_user(llm_api_draft_t *d, const llm_flat_t *content,
    const llm_api_at_t *at, llm_err_t *err)
{
    uint32_t  before;

    if (content->type != LLM_FLAT_ARRAY) {
        llm_api_draft_open(d, "user");
        return llm_api_mi_content(d, content, at, err);
    }

    llm_api_draft_end_message(d);
    before = d->n_messages;

    if (llm_api_mi_blocks(d, content, at, llm_api_mi_result, err) != LLM_OK
        || llm_api_mi_blocks(d, content, at, llm_api_mi_said, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (d->role == NULL && d->n_messages == before) {
        llm_api_draft_open(d, "user");  /* for an empty list */
    }

    return LLM_OK;
}


/* ---- an assistant's message ---- */

static int
llm_api_mi_call(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_api_at_t *at, llm_err_t *err)
{
    llm_buf_t          json;
    const llm_flat_t  *id, *name, *input;

    id = llm_api_need(err, at, block, "id", LLM_FLAT_STRING);
    name = id ? llm_api_need(err, at, block, "name", LLM_FLAT_STRING) : NULL;
    input = name ? llm_api_need(err, at, block, "input", LLM_FLAT_OBJECT)
                 : NULL;

    if (input == NULL) {
        return LLM_ERROR;
    }

    if (name->count == 0) {
        return llm_api_bad_value(err, llm_api_key(at, "name"),
                                 "Invalid name of a tool: empty string.");
    }

    llm_buf_init(&json, 0);
    (void) llm_json_add_flat(&json, input);

    d->out.failed |= json.failed;
    llm_api_draft_call(d, llm_flat_str(id), llm_flat_str(name),
                       (llm_str_t) { json.len, json.data });
    llm_buf_free(&json);

    return LLM_OK;
}


/* adds the result of a tool that runs on another server: texts, pages found,
   or an object */

static int
llm_api_mi_served(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_api_at_t *at, llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *content, *v, *url;
    const llm_api_at_t  *here;
    llm_api_part_at_t    where;

    llm_api_media_rules(d->rd, &where.rules);
    where.assistant = 1;
    where.old = 1;
    where.goes_on = 0;
    where.known = "";

    here = llm_api_key(at, "content");
    content = llm_api_member(block, "content");

    if (content == NULL) {
        return LLM_OK;
    }

    if (content->type == LLM_FLAT_OBJECT) {
        v = llm_api_member(content, "content");

        if (v && llm_api_str_is(llm_api_member(v, "type"), "document")) {
            return llm_api_draft_part(d, v, &where, here, err);
        }

        llm_api_draft_json(d, content);

        return LLM_OK;
    }

    if (content->type != LLM_FLAT_ARRAY) {
        return llm_api_mi_content(d, content, here, err);
    }

    v = llm_flat_first(content);

    for (i = 0; v; i++) {
        url = llm_api_member(v, "url");

        if (url && url->type == LLM_FLAT_STRING) {
            llm_api_draft_text(d, llm_flat_str(url));

        } else if (llm_api_draft_part(d, v, &where, llm_api_idx(here, i), err)
                   != LLM_OK)
        {
            return LLM_ERROR;
        }

        v = llm_flat_next(content, v);
    }

    return LLM_OK;
}


/* does the type's name end with `end`? */

static int
llm_api_mi_ends(const llm_flat_t *type, const char *end)
{
    size_t     n;
    llm_str_t  s;

    n = strlen(end);
    s = llm_flat_str(type);

    return s.len >= n && memcmp(s.data + s.len - n, end, n) == 0;
}


static int
llm_api_mi_answer(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_flat_t *type, const llm_api_at_t *at, llm_err_t *err)
{
    const llm_flat_t   *id, *content;
    llm_api_part_at_t   where;

    /* calls of tools that run on another server, and their results */

    if (llm_api_mi_ends(type, "tool_result")) {
        id = llm_api_need(err, at, block, "tool_use_id", LLM_FLAT_STRING);
        if (id == NULL) {
            return LLM_ERROR;
        }

        llm_api_draft_result(d, llm_flat_str(id));

        return llm_api_mi_served(d, block, at, err);
    }

    llm_api_draft_open(d, "assistant");

    if (llm_api_mi_ends(type, "tool_use")) {
        return llm_api_mi_call(d, block, at, err);
    }

    if (llm_api_str_is(type, "thinking")
        && llm_api_need(err, at, block, "thinking", LLM_FLAT_STRING) == NULL)
    {
        return LLM_ERROR;
    }

    /* a summary of the earlier conversation, made by a server */

    if (llm_api_str_is(type, "compaction")) {
        content = llm_api_member(block, "content");

        return content ? llm_api_mi_content(d, content,
                                            llm_api_key(at, "content"), err)
                       : LLM_OK;
    }

    llm_api_media_rules(d->rd, &where.rules);
    where.assistant = 1;
    where.old = 1;
    where.goes_on = d->goes_on;
    where.known = "The answer goes on from this message, so it has content "
                  "blocks of the type 'text'.";

    return llm_api_draft_part(d, block, &where, at, err);
}


/* has each call in the message a result?  Then an answer can continue the
   message */

static int
llm_api_mi_is_open(const llm_flat_t *content)
{
    int                called;
    const llm_flat_t  *v, *type;

    called = 0;
    v = content->type == LLM_FLAT_ARRAY ? llm_flat_first(content) : NULL;

    for ( /* void */ ; v; v = llm_flat_next(content, v)) {
        type = llm_api_member(v, "type");

        if (type && type->type == LLM_FLAT_STRING) {
            called = llm_api_mi_ends(type, "tool_use")
                     || (called && !llm_api_mi_ends(type, "tool_result"));
        }
    }

    return !called;
}


/* ---- messages ---- */

static int
llm_api_mi_message(llm_api_draft_t *d, const llm_flat_t *msg,
    const llm_api_at_t *at, llm_err_t *err)
{
    const llm_flat_t  *role, *content;

    if (llm_api_check_type(err, at, msg, LLM_FLAT_OBJECT) != LLM_OK) {
        return LLM_ERROR;
    }

    role = llm_api_need(err, at, msg, "role", LLM_FLAT_STRING);
    if (role == NULL) {
        return LLM_ERROR;
    }

    content = llm_api_member(msg, "content");
    if (content == NULL) {
        return llm_api_missing(err, llm_api_key(at, "content"));
    }

    if (llm_api_str_is(role, "user")) {
        return llm_api_mi_user(d, content, llm_api_key(at, "content"), err);
    }

    if (llm_api_str_is(role, "assistant")) {
        llm_api_draft_open(d, "assistant");
        d->goes_on = d->goes_on && llm_api_mi_is_open(content);

        return content->type == LLM_FLAT_ARRAY
               ? llm_api_mi_blocks(d, content, llm_api_key(at, "content"),
                                   llm_api_mi_answer, err)
               : llm_api_mi_content(d, content, llm_api_key(at, "content"),
                                    err);
    }

    if (llm_api_str_is(role, "system")) {
        llm_api_draft_open(d, "system");
        return llm_api_mi_content(d, content, llm_api_key(at, "content"),
                                  err);
    }

    return llm_api_bad_word(err, llm_api_key(at, "role"), llm_flat_str(role),
                            "Supported values are: 'user', 'assistant', and "
                            "'system'.");
}


/*
 * Claude Code's first system block is a header for Anthropic's accounts.  It
 * means nothing to the model, and it changes with the client's version and
 * with how the client was started.  It is left out: otherwise prompts that
 * differ only in it would not share the prefix cache.
 */

static int
llm_api_mi_system_block(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_flat_t *type, const llm_api_at_t *at, llm_err_t *err)
{
    llm_str_t          s;
    const llm_flat_t  *text;

    static const char  header[] = "x-anthropic-billing-header:";

    text = llm_flat_get(block, "text");

    if (text && text->type == LLM_FLAT_STRING) {
        s = llm_flat_str(text);

        if (s.len >= sizeof(header) - 1
            && memcmp(s.data, header, sizeof(header) - 1) == 0)
        {
            return LLM_OK;
        }
    }

    llm_api_draft_open(d, "system");

    return llm_api_mi_text(d, block, type, at, err);
}


static int
llm_api_mi_system(llm_api_draft_t *d, const llm_flat_t *system,
    llm_err_t *err)
{
    const llm_api_at_t  *at;

    at = llm_api_top("system");

    if (system->type == LLM_FLAT_ARRAY) {
        return llm_api_mi_blocks(d, system, at, llm_api_mi_system_block, err);
    }

    if (system->type == LLM_FLAT_STRING && system->count == 0) {
        return LLM_OK;
    }

    llm_api_draft_open(d, "system");

    return llm_api_mi_content(d, system, at, err);
}


int
llm_api_messages_input(const llm_api_messages_t *b, llm_api_draft_t *d,
    llm_err_t *err)
{
    int                  goes_on;
    uint32_t             i, old;
    const llm_flat_t    *msg;
    const llm_api_at_t  *at;

    at = llm_api_top("messages");
    goes_on = d->goes_on;

    if (b->messages->type != LLM_FLAT_ARRAY) {
        return llm_api_bad_type(err, at, "an array of objects", b->messages);
    }

    if (b->messages->count == 0) {
        return llm_api_empty(err, at);
    }

    llm_api_draft_messages(d);
    d->goes_on = 0;

    if (b->system && llm_api_mi_system(d, b->system, err) != LLM_OK) {
        return LLM_ERROR;
    }

    msg = llm_flat_first(b->messages);
    old = llm_api_old_messages(b->messages);

    for (i = 0; msg; i++) {
        d->old = i < old;
        d->goes_on = goes_on && i + 1 == b->messages->count
                     && llm_api_str_is(llm_api_member(msg, "role"),
                                       "assistant");

        if (llm_api_mi_message(d, msg, llm_api_idx(at, i), err) != LLM_OK) {
            return LLM_ERROR;
        }

        msg = llm_flat_next(b->messages, msg);
    }

    d->goes_on = 0;
    llm_api_draft_messages_end(d);

    return LLM_OK;
}
