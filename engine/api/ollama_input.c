/*
 * The messages of an Ollama chat as those of a chat request.  A call of
 * Ollama's need not have an id, and its result names the tool at most: ids are
 * made here, so that templates and the reader of chats find the call of a
 * result.
 */

#include "engine/api/ollama.h"

#include <stdio.h>

/* calls of one message that are told apart, bits of a mask */
#define LLM_API_OL_CALLS  64

/* calls of the last message that had any, which results may belong to */
typedef struct {
    const llm_flat_t  *calls;           /* NULL: there were none */
    uint32_t           first;           /* number of the first, in all
                                           messages */
    uint32_t           n;               /* calls so far, in all messages */
    uint64_t           answered;        /* bit for each call of `calls` */
    char               made[24];        /* id of the open result */
} llm_api_ol_ids_t;


/* the id of a call: the client's, or one made of its number */

static llm_str_t
llm_api_ol_id(const llm_flat_t *call, uint32_t number, char *buf, size_t size)
{
    llm_str_t          s;
    const llm_flat_t  *id;

    id = llm_api_member(call, "id");

    if (id && id->type == LLM_FLAT_STRING && id->count) {
        return llm_flat_str(id);
    }

    s.len = (size_t) snprintf(buf, size, "call_%u", number);
    s.data = buf;

    return s;
}


static int
llm_api_ol_call(llm_api_draft_t *d, const llm_flat_t *call, uint32_t number,
    const llm_api_at_t *at, llm_err_t *err)
{
    char                 id[24];
    llm_buf_t            json;
    const llm_flat_t    *function, *name, *args;
    const llm_api_at_t  *in;

    if (llm_api_check_type(err, at, call, LLM_FLAT_OBJECT) != LLM_OK) {
        return LLM_ERROR;
    }

    in = llm_api_key(at, "function");
    function = llm_api_need(err, at, call, "function", LLM_FLAT_OBJECT);
    name = function ? llm_api_need(err, in, function, "name", LLM_FLAT_STRING)
                    : NULL;

    if (name == NULL) {
        return LLM_ERROR;
    }

    if (name->count == 0) {
        return llm_api_bad_value(err, llm_api_key(in, "name"),
                                 "Invalid name of a function: empty string.");
    }

    args = llm_api_member(function, "arguments");

    if (args && llm_api_check_type(err, llm_api_key(in, "arguments"), args,
                                   LLM_FLAT_OBJECT)
                != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_buf_init(&json, 0);

    if (args) {
        (void) llm_json_add_flat(&json, args);

    } else {
        (void) llm_buf_adds(&json, "{}");
    }

    d->out.failed |= json.failed;
    llm_api_draft_call(d, llm_api_ol_id(call, number, id, sizeof(id)),
                       llm_flat_str(name),
                       (llm_str_t) { json.len, json.data });
    llm_buf_free(&json);

    return LLM_OK;
}


static int
llm_api_ol_calls(llm_api_draft_t *d, const llm_flat_t *calls,
    llm_api_ol_ids_t *ids, const llm_api_at_t *at, llm_err_t *err)
{
    uint32_t           i;
    const llm_flat_t  *call;

    if (calls == NULL || calls->count == 0) {
        return LLM_OK;
    }

    if (llm_api_check_type(err, at, calls, LLM_FLAT_ARRAY) != LLM_OK) {
        return LLM_ERROR;
    }

    ids->calls = calls;
    ids->first = ids->n;
    ids->answered = 0;
    call = llm_flat_first(calls);

    for (i = 0; call; i++) {
        if (llm_api_ol_call(d, call, ids->n++, llm_api_idx(at, i), err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        call = llm_flat_next(calls, call);
    }

    return LLM_OK;
}


static int
llm_api_ol_is_named(const llm_flat_t *call, const llm_flat_t *name)
{
    const llm_flat_t  *own;

    own = llm_api_member(llm_api_member(call, "function"), "name");

    return name == NULL || name->type != LLM_FLAT_STRING
           || (own && own->type == LLM_FLAT_STRING
               && llm_str_eq(llm_flat_str(own), llm_flat_str(name)));
}


/* opens the message of a result: of the call that it names by its id, or of the
   first call without a result that has its tool's name, or of the first one
   without a result */

static void
llm_api_ol_result(llm_api_draft_t *d, const llm_flat_t *msg,
    llm_api_ol_ids_t *ids)
{
    uint32_t           i, found, named;
    const llm_flat_t  *id, *name, *call, *of;

    llm_api_draft_end_message(d);
    id = llm_api_member(msg, "tool_call_id");

    if (id && id->type == LLM_FLAT_STRING && id->count) {
        llm_api_draft_result(d, llm_flat_str(id));
        return;
    }

    name = llm_api_member(msg, "tool_name");
    name = name ? name : llm_api_member(msg, "name");
    of = NULL;
    found = 0;
    named = 0;
    call = ids->calls ? llm_flat_first(ids->calls) : NULL;

    for (i = 0; call && i < LLM_API_OL_CALLS && !named; i++) {
        if (!(ids->answered & (uint64_t) 1 << i)) {
            named = (uint32_t) llm_api_ol_is_named(call, name);

            if (of == NULL || named) {
                of = call;
                found = i;
            }
        }

        call = llm_flat_next(ids->calls, call);
    }

    if (of) {
        ids->answered |= (uint64_t) 1 << found;
    }

    llm_api_draft_result(d, llm_api_ol_id(of, of ? ids->first + found : ids->n,
                                          ids->made, sizeof(ids->made)));
}


int
llm_api_ollama_images(llm_api_draft_t *d, const llm_flat_t *images, int old,
    const llm_api_at_t *at, llm_err_t *err)
{
    int                    rc;
    uint32_t               i;
    llm_api_media_t        m;
    const llm_flat_t      *v;
    const llm_api_at_t    *here;
    llm_api_media_rules_t  rules;

    if (images == NULL || images->count == 0) {
        return LLM_OK;
    }

    if (llm_api_check_type(err, at, images, LLM_FLAT_ARRAY) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_api_media_rules(d->rd, &rules);

    if (!(rules.takes & LLM_MEDIUM_IMAGE) && !old && !rules.conf->media.skip) {
        return llm_api_unsupported(err, at, "this model takes text only");
    }

    v = llm_flat_first(images);

    for (i = 0; v; v = llm_flat_next(images, v), i++) {
        here = llm_api_idx(at, i);

        rc = rules.takes & LLM_MEDIUM_IMAGE
             ? llm_api_media_image(v, &rules, here, &m, err) : LLM_END;

        if (rc == LLM_OK) {
            if (llm_api_draft_media(d, &m, here, err) != LLM_OK) {
                return LLM_ERROR;
            }

        } else if (rc == LLM_ERROR && !old) {
            return LLM_ERROR;

        } else {
            llm_api_draft_text(d, llm_str(LLM_API_PART_IMAGE));
        }
    }

    return LLM_OK;
}


/* a member that is text, or absent */

static int
llm_api_ol_text(const llm_flat_t *msg, const char *key, llm_str_t *text,
    const llm_api_at_t *at, llm_err_t *err)
{
    const llm_flat_t  *v;

    *text = llm_str("");
    v = llm_api_member(msg, key);

    if (v == NULL) {
        return LLM_OK;
    }

    if (llm_api_check_type(err, llm_api_key(at, key), v, LLM_FLAT_STRING)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    *text = llm_flat_str(v);

    return LLM_OK;
}


static int
llm_api_ol_message(llm_api_draft_t *d, const llm_flat_t *msg, int old,
    llm_api_ol_ids_t *ids, const llm_api_at_t *at, llm_err_t *err)
{
    int                said;
    llm_str_t          text, thinking;
    const llm_flat_t  *role;

    if (llm_api_check_type(err, at, msg, LLM_FLAT_OBJECT) != LLM_OK) {
        return LLM_ERROR;
    }

    role = llm_api_need(err, at, msg, "role", LLM_FLAT_STRING);

    if (role == NULL
        || llm_api_ol_text(msg, "content", &text, at, err) != LLM_OK
        || llm_api_ol_text(msg, "thinking", &thinking, at, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    said = llm_api_str_is(role, "assistant");

    if (llm_api_str_is(role, "tool")) {
        llm_api_ol_result(d, msg, ids);

    } else if (said || llm_api_str_is(role, "user")
               || llm_api_str_is(role, "system"))
    {
        llm_api_draft_end_message(d);
        llm_api_draft_open(d, said ? "assistant"
                              : llm_api_str_is(role, "user") ? "user"
                              : "system");

    } else {
        return llm_api_bad_word(err, llm_api_key(at, "role"),
                                llm_flat_str(role), "Supported values are: "
                                "'system', 'user', 'assistant', and 'tool'.");
    }

    if (llm_api_ollama_images(d, llm_api_member(msg, "images"), old,
                              llm_api_key(at, "images"), err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (text.len) {
        llm_api_draft_text(d, text);
    }

    if (said && thinking.len) {
        llm_api_draft_reasoning(d, thinking);
    }

    return said ? llm_api_ol_calls(d, llm_api_member(msg, "tool_calls"), ids,
                                   llm_api_key(at, "tool_calls"), err)
                : LLM_OK;
}


int
llm_api_ollama_messages(const llm_api_ollama_t *b, llm_api_draft_t *d,
    llm_err_t *err)
{
    uint32_t             i, old;
    const llm_flat_t    *msg;
    const llm_api_at_t  *at;
    llm_api_ol_ids_t     ids;

    at = llm_api_top("messages");
    memset(&ids, 0, sizeof(ids));
    llm_api_draft_messages(d);

    msg = llm_flat_first(b->messages);
    old = llm_api_old_messages(b->messages);

    for (i = 0; msg; i++) {
        if (llm_api_ol_message(d, msg, i < old, &ids, llm_api_idx(at, i), err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        msg = llm_flat_next(b->messages, msg);
    }

    llm_api_draft_messages_end(d);

    return LLM_OK;
}
