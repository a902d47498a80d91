/*
 * Writes a chat request for another endpoint; see draft.h.
 */

#include "engine/api/chat.h"
#include "engine/api/draft.h"

/* most bytes of tool names that are searched for duplicates, in all */
#define LLM_API_MAX_LOOK  (64 << 20)


/* these endpoints answer with one choice */

static const llm_api_field_t  llm_api_draft_rows[] = {
    { "best_of", LLM_FIELD_INT, LLM_FIELD_NOWHERE, 1, 1 },
    { "logprobs", LLM_FIELD_ANY, LLM_FIELD_NOWHERE, 0, 0 },
    { "n", LLM_FIELD_INT, LLM_FIELD_NOWHERE, 1, 1 },
    { "return_token_ids", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "stream_options", LLM_FIELD_OBJECT, LLM_FIELD_NOWHERE, 0, 0 },
};

const llm_api_fields_t  llm_api_draft_fields = {
    llm_api_draft_rows, llm_nelems(llm_api_draft_rows)
};


static void
llm_api_draft_pair(llm_buf_t *out, const char *key, llm_str_t s)
{
    llm_flat_add_str(out, key, strlen(key));
    llm_flat_add_str(out, s.data, s.len);
}


static void
llm_api_draft_copy(llm_buf_t *out, uint32_t *n, const char *key,
    const llm_flat_t *v)
{
    if (v) {
        llm_flat_add_str(out, key, strlen(key));
        llm_flat_add_node(out, v);
        (*n)++;
    }
}


static int
llm_api_draft_names(const llm_api_fields_t *fields, const llm_flat_t *key)
{
    uint32_t  i;

    for (i = 0; fields && i < fields->n; i++) {
        if (llm_api_str_is(key, fields->rows[i].name)) {
            return 1;
        }
    }

    return 0;
}


/* may the answer continue the last message?  A chat may unless it says
   otherwise */

static int
llm_api_draft_goes_on(const llm_flat_t *root)
{
    const llm_flat_t  *prompt, *final;

    prompt = llm_api_member(root, "add_generation_prompt");
    final = llm_api_member(root, "continue_final_message");

    return (prompt == NULL || prompt->type != LLM_FLAT_BOOL
            || !llm_flat_int(prompt))
           && (final == NULL || final->type != LLM_FLAT_BOOL
               || llm_flat_int(final));
}


static void
llm_api_draft_begin(llm_api_draft_t *d, llm_api_reader_t *rd)
{
    const llm_flat_t  *k, *v;

    memset(d, 0, sizeof(llm_api_draft_t));
    d->rd = rd;
    llm_buf_init(&d->out, 0);
    llm_buf_init(&d->parts, 0);
    llm_buf_init(&d->calls, 0);
    llm_buf_init(&d->reasoning, 0);
    llm_buf_init(&d->names, 0);
    llm_buf_init(&d->schemas, 0);
    d->goes_on = llm_api_draft_goes_on(rd->root);

    (void) llm_flat_open(&d->out, LLM_FLAT_OBJECT);

    for (k = llm_flat_first(rd->root); k; k = llm_flat_next(rd->root, v)) {
        v = llm_flat_next(rd->root, k);

        if (!llm_api_draft_names(rd->endpoint->fields, k)
            && !llm_api_draft_names(rd->endpoint->shared, k))
        {
            llm_flat_add_node(&d->out, k);
            llm_flat_add_node(&d->out, v);
            d->n++;
        }
    }
}


static void
llm_api_draft_free(llm_api_draft_t *d)
{
    llm_buf_free(&d->out);
    llm_buf_free(&d->parts);
    llm_buf_free(&d->calls);
    llm_buf_free(&d->reasoning);
    llm_buf_free(&d->names);
    llm_buf_free(&d->schemas);
}


/* closes the draft and reads it as a chat request to the message */

static int
llm_api_draft_read(llm_api_draft_t *d, llm_api_reader_t *rd, llm_err_t *err)
{
    int                        rc;
    const llm_flat_t          *root;
    const llm_api_endpoint_t  *endpoint;

    llm_flat_close(&d->out, 0, d->n);

    if (d->out.failed || d->parts.failed || d->calls.failed
        || d->reasoning.failed || d->names.failed || d->schemas.failed)
    {
        return llm_fail_with(err, 413, NULL, NULL,
                             "The request is too large for this server.");
    }

    llm_buf_free(&rd->schemas);
    rd->schemas = d->schemas;
    llm_buf_init(&d->schemas, 0);

    root = rd->root;
    endpoint = rd->endpoint;

    rd->root = (const llm_flat_t *) d->out.data;
    rd->endpoint = d->as ? d->as : &llm_api_chat;
    rd->drafted = 1;

    rc = d->as ? d->as->read(rd, err) : llm_api_read_chat(rd, err);

    rd->root = root;
    rd->endpoint = endpoint;

    if (rc != LLM_OK) {
        llm_api_own_names(endpoint, err);
    }

    return rc;
}


int
llm_api_draft_message(llm_api_reader_t *rd, void *body, llm_api_draft_pt write,
    llm_err_t *err)
{
    int              rc;
    llm_api_draft_t  d;

    if (llm_api_read_fields(rd, body, err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_api_draft_begin(&d, rd);

    rc = write(rd, body, &d, err);

    if (rc == LLM_OK) {
        rc = llm_api_draft_read(&d, rd, err);
    }

    llm_api_draft_free(&d);

    return rc;
}


void
llm_api_draft_key(llm_api_draft_t *d, const char *key)
{
    llm_flat_add_str(&d->out, key, strlen(key));
    d->n++;
}


void
llm_api_draft_string(llm_api_draft_t *d, const char *key, llm_str_t s)
{
    llm_api_draft_pair(&d->out, key, s);
    d->n++;
}


void
llm_api_draft_node(llm_api_draft_t *d, const char *key, const llm_flat_t *v)
{
    llm_api_draft_copy(&d->out, &d->n, key, v);
}


/* ---- messages ---- */

void
llm_api_draft_messages(llm_api_draft_t *d)
{
    llm_api_draft_key(d, "messages");
    d->list = llm_flat_open(&d->out, LLM_FLAT_ARRAY);
}


/* a single text is written as a string, which every template accepts */

static void
llm_api_draft_content(llm_api_draft_t *d)
{
    size_t             handle;
    const llm_flat_t  *text;

    llm_flat_add_str(&d->out, "content", 7);

    if (d->n_parts == 0) {
        if (d->n_calls) {
            llm_flat_add_null(&d->out);

        } else {
            llm_flat_add_str(&d->out, "", 0);
        }

        return;
    }

    text = d->n_parts == 1 && !d->parts.failed
           ? llm_flat_get((const llm_flat_t *) d->parts.data, "text") : NULL;

    if (text) {
        llm_flat_add_node(&d->out, text);
        return;
    }

    handle = llm_flat_open(&d->out, LLM_FLAT_ARRAY);
    (void) llm_buf_add(&d->out, d->parts.data, d->parts.len);
    llm_flat_close(&d->out, handle, d->n_parts);
}


void
llm_api_draft_end_message(llm_api_draft_t *d)
{
    size_t     handle, calls;
    uint32_t   n;
    llm_str_t  s;

    if (d->role == NULL) {
        return;
    }

    s = (llm_str_t) { strlen(d->role), d->role };
    n = 2;

    handle = llm_flat_open(&d->out, LLM_FLAT_OBJECT);
    llm_api_draft_pair(&d->out, "role", s);
    llm_api_draft_content(d);

    if (d->call_id.data) {
        llm_api_draft_pair(&d->out, "tool_call_id", d->call_id);
        n++;
    }

    if (d->reasoning.len) {
        s = (llm_str_t) { d->reasoning.len, d->reasoning.data };
        llm_api_draft_pair(&d->out, "reasoning_content", s);
        n++;
    }

    if (d->n_calls) {
        llm_flat_add_str(&d->out, "tool_calls", 10);
        calls = llm_flat_open(&d->out, LLM_FLAT_ARRAY);
        (void) llm_buf_add(&d->out, d->calls.data, d->calls.len);
        llm_flat_close(&d->out, calls, d->n_calls);
        n++;
    }

    llm_flat_close(&d->out, handle, n);

    d->n_messages++;
    d->role = NULL;
    d->call_id.data = NULL;
    d->parts.len = 0;
    d->n_parts = 0;
    d->calls.len = 0;
    d->n_calls = 0;
    d->reasoning.len = 0;
}


void
llm_api_draft_open(llm_api_draft_t *d, const char *role)
{
    if (d->role && strcmp(d->role, role) == 0
        && (strcmp(role, "assistant") == 0 || strcmp(role, "system") == 0))
    {
        return;
    }

    llm_api_draft_end_message(d);
    d->role = role;
}


void
llm_api_draft_result(llm_api_draft_t *d, llm_str_t call_id)
{
    llm_api_draft_open(d, "tool");
    d->call_id = call_id;
}


void
llm_api_draft_text(llm_api_draft_t *d, llm_str_t text)
{
    size_t  handle;

    handle = llm_flat_open(&d->parts, LLM_FLAT_OBJECT);
    llm_api_draft_pair(&d->parts, "type", llm_str("text"));
    llm_api_draft_pair(&d->parts, "text", text);
    llm_flat_close(&d->parts, handle, 2);

    d->n_parts++;
}


int
llm_api_draft_media(llm_api_draft_t *d, llm_api_media_t *m,
    const llm_api_at_t *at, llm_err_t *err)
{
    if (llm_api_media_take(d->rd, m, at, err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_api_media_write(m, &d->parts);
    d->n_parts++;

    return LLM_OK;
}


int
llm_api_draft_part(llm_api_draft_t *d, const llm_flat_t *part,
    const llm_api_part_at_t *where, const llm_api_at_t *at, llm_err_t *err)
{
    int             rc;
    llm_api_part_t  p;

    llm_api_part_init(&p);
    rc = llm_api_part_read(&p, part, where, at, err);

    if (rc == LLM_OK && p.kind == LLM_API_PART_TEXT) {
        llm_api_draft_text(d, p.text);

    } else if (rc == LLM_OK && p.kind == LLM_API_PART_REASONING) {
        llm_api_draft_reasoning(d, p.text);

    } else if (rc == LLM_OK && p.kind == LLM_API_PART_MEDIA) {
        rc = llm_api_draft_media(d, &p.media, at, err);
    }

    llm_api_part_free(&p);

    return rc;
}


void
llm_api_draft_json(llm_api_draft_t *d, const llm_flat_t *v)
{
    llm_buf_t  json;

    llm_buf_init(&json, 0);
    (void) llm_json_add_flat(&json, v);

    llm_api_draft_text(d, (llm_str_t) { json.len, json.data });
    d->out.failed |= json.failed;
    llm_buf_free(&json);
}


void
llm_api_draft_reasoning(llm_api_draft_t *d, llm_str_t text)
{
    if (d->reasoning.len) {
        (void) llm_buf_addc(&d->reasoning, '\n');
    }

    (void) llm_buf_add(&d->reasoning, text.data, text.len);
}


void
llm_api_draft_call(llm_api_draft_t *d, llm_str_t id, llm_str_t name,
    llm_str_t arguments)
{
    size_t      handle, function;
    llm_buf_t  *out;

    out = &d->calls;

    handle = llm_flat_open(out, LLM_FLAT_OBJECT);
    llm_api_draft_pair(out, "id", id);
    llm_api_draft_pair(out, "type", llm_str("function"));

    llm_flat_add_str(out, "function", 8);
    function = llm_flat_open(out, LLM_FLAT_OBJECT);
    llm_api_draft_pair(out, "name", name);
    llm_api_draft_pair(out, "arguments", arguments);
    llm_flat_close(out, function, 2);

    llm_flat_close(out, handle, 3);

    d->n_calls++;
}


void
llm_api_draft_messages_end(llm_api_draft_t *d)
{
    llm_api_draft_end_message(d);
    llm_flat_close(&d->out, d->list, d->n_messages);
}


/* ---- tools ---- */

size_t
llm_api_draft_tools_begin(llm_api_draft_t *d)
{
    d->n_tools = 0;
    d->names.len = 0;
    d->once = 0;

    return llm_flat_open(&d->out, LLM_FLAT_ARRAY);
}


int
llm_api_draft_tools_of(llm_api_draft_t *d, const llm_flat_t *list,
    const llm_api_at_t *at, llm_api_draft_tool_pt read, llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *tool;
    const llm_api_at_t  *here;

    tool = llm_flat_first(list);

    for (i = 0; tool; i++) {
        here = llm_api_idx(at, i);

        if (llm_api_check_type(err, here, tool, LLM_FLAT_OBJECT) != LLM_OK
            || read(d, tool, here, err) != LLM_OK)
        {
            return LLM_ERROR;
        }

        tool = llm_flat_next(list, tool);
    }

    return LLM_OK;
}


void
llm_api_draft_tools_end(llm_api_draft_t *d, size_t handle)
{
    llm_flat_close(&d->out, handle, d->n_tools);
}


int
llm_api_draft_tools(llm_api_draft_t *d, const llm_flat_t *list,
    const llm_api_at_t *at, llm_api_draft_tool_pt read, llm_err_t *err)
{
    int     rc;
    size_t  handle;

    handle = llm_api_draft_tools_begin(d);
    rc = llm_api_draft_tools_of(d, list, at, read, err);
    llm_api_draft_tools_end(d, handle);

    return rc;
}


/* is there a tool of this name?  After LLM_API_MAX_LOOK bytes the search
   stops, and the model may be told of a tool twice */

static int
llm_api_draft_has_tool(llm_api_draft_t *d, llm_str_t name)
{
    int        found;
    size_t     before;
    llm_buf_t  *b;

    b = &d->names;
    before = b->len;

    if (before == 0) {
        (void) llm_buf_addc(b, '\0');
        before = b->len;
    }

    (void) llm_buf_add(b, name.data, name.len);
    (void) llm_buf_addc(b, '\0');

    if (b->failed || !d->once || d->looked > LLM_API_MAX_LOOK) {
        return 0;
    }

    d->looked += before;
    found = memmem(b->data, before, b->data + before - 1, name.len + 2)
            != NULL;

    if (found) {
        b->len = before;
    }

    return found;
}


void
llm_api_draft_tool(llm_api_draft_t *d, llm_str_t name,
    const llm_flat_t *description, const llm_flat_t *parameters,
    const llm_flat_t *strict, const llm_api_at_t *at)
{
    char        path[64];
    size_t      handle, function;
    uint32_t    n;
    llm_buf_t  *out;

    out = &d->out;
    n = 1;

    if (llm_api_draft_has_tool(d, name)) {
        return;
    }

    handle = llm_flat_open(out, LLM_FLAT_OBJECT);
    llm_api_draft_pair(out, "type", llm_str("function"));

    llm_flat_add_str(out, "function", 8);
    function = llm_flat_open(out, LLM_FLAT_OBJECT);
    llm_api_draft_pair(out, "name", name);
    llm_api_draft_copy(out, &n, "description", description);
    llm_api_draft_copy(out, &n, "parameters", parameters);
    llm_api_draft_copy(out, &n, "strict", strict);
    llm_flat_close(out, function, n);

    llm_flat_close(out, handle, 2);

    llm_api_at_text(at, path, sizeof(path));
    (void) llm_buf_add(&d->schemas, path, strlen(path) + 1);

    d->n_tools++;
}


void
llm_api_draft_choose(llm_api_draft_t *d, llm_str_t name)
{
    size_t  handle, function;

    llm_api_draft_key(d, "tool_choice");
    handle = llm_flat_open(&d->out, LLM_FLAT_OBJECT);
    llm_api_draft_pair(&d->out, "type", llm_str("function"));

    llm_flat_add_str(&d->out, "function", 8);
    function = llm_flat_open(&d->out, LLM_FLAT_OBJECT);
    llm_api_draft_pair(&d->out, "name", name);
    llm_flat_close(&d->out, function, 1);

    llm_flat_close(&d->out, handle, 2);
}


void
llm_api_draft_schema(llm_api_draft_t *d, const llm_flat_t *name,
    const llm_flat_t *schema, const llm_flat_t *strict)
{
    uint32_t  n;
    size_t    handle, inner;

    n = 0;

    llm_api_draft_key(d, "response_format");
    handle = llm_flat_open(&d->out, LLM_FLAT_OBJECT);
    llm_api_draft_pair(&d->out, "type", llm_str("json_schema"));

    llm_flat_add_str(&d->out, "json_schema", 11);
    inner = llm_flat_open(&d->out, LLM_FLAT_OBJECT);
    llm_api_draft_copy(&d->out, &n, "name", name);
    llm_api_draft_copy(&d->out, &n, "schema", schema);
    llm_api_draft_copy(&d->out, &n, "strict", strict);
    llm_flat_close(&d->out, inner, n);

    llm_flat_close(&d->out, handle, 2);
}
