/*
 * Items of a Responses request that another server has recorded: calls of
 * tools other than functions that OpenAI's clients and servers have, outputs
 * of these calls, and items that only hold the state of a conversation on that
 * server.
 *
 * A conversation is sent again as a whole with each turn, so an item that is
 * refused ends it for good.  Items that a model can read become a call and its
 * result; the rest are skipped.  Items are not validated: missing members
 * count as empty.
 */

#include "engine/api/responses.h"

/* what an item becomes */
typedef enum {
    LLM_API_RC_NOTHING = 0,
    LLM_API_RC_CALL,                    /* a call, whose output is another
                                           item */
    LLM_API_RC_BOTH,                    /* a call that includes its output */
    LLM_API_RC_OUTPUT,
    LLM_API_RC_TOOLS,                   /* an output: tools that a search has
                                           found */
    LLM_API_RC_VERDICT,                 /* a verdict on a call that asks for
                                           approval */
    LLM_API_RC_SUMMARY                  /* a summary of the earlier
                                           conversation */
} llm_api_rc_way_t;

typedef struct {
    const char        *type;
    llm_api_rc_way_t   way;
    const char        *name;            /* name of the call; NULL: the item's
                                           own */
    const char        *input;           /* member with its arguments */
    const char        *output;          /* member with its output */
} llm_api_recorded_t;

static const llm_api_recorded_t  llm_api_recorded[] = {
    { "additional_tools", LLM_API_RC_NOTHING, NULL, NULL, NULL },
    { "apply_patch_call", LLM_API_RC_CALL, "apply_patch", "operation", NULL },
    { "apply_patch_call_output", LLM_API_RC_OUTPUT, NULL, NULL, "output" },
    { "code_interpreter_call", LLM_API_RC_BOTH, "code_interpreter", "code",
      "outputs" },
    { "compaction", LLM_API_RC_SUMMARY, NULL, NULL, NULL },
    { "compaction_summary", LLM_API_RC_SUMMARY, NULL, NULL, NULL },
    { "compaction_trigger", LLM_API_RC_NOTHING, NULL, NULL, NULL },
    { "computer_call", LLM_API_RC_CALL, "computer", "action", NULL },
    { "computer_call_output", LLM_API_RC_OUTPUT, NULL, NULL, "output" },
    { "configuration_update", LLM_API_RC_NOTHING, NULL, NULL, NULL },
    { "context_compaction", LLM_API_RC_SUMMARY, NULL, NULL, NULL },
    { "file_search_call", LLM_API_RC_BOTH, "file_search", "queries",
      "results" },
    { "ghost_snapshot", LLM_API_RC_NOTHING, NULL, NULL, NULL },
    { "image_generation_call", LLM_API_RC_BOTH, "image_generation",
      "revised_prompt", NULL },
    { "local_shell_call", LLM_API_RC_CALL, "local_shell", "action", NULL },
    { "local_shell_call_output", LLM_API_RC_OUTPUT, NULL, NULL, "output" },
    { "mcp_approval_request", LLM_API_RC_CALL, NULL, "arguments", NULL },
    { "mcp_approval_response", LLM_API_RC_VERDICT, NULL, NULL, NULL },
    { "mcp_call", LLM_API_RC_BOTH, NULL, "arguments", "output" },
    { "mcp_list_tools", LLM_API_RC_NOTHING, NULL, NULL, NULL },
    { "program", LLM_API_RC_CALL, "program", "code", NULL },
    { "program_output", LLM_API_RC_OUTPUT, NULL, NULL, "result" },
    { "shell_call", LLM_API_RC_CALL, "shell", "action", NULL },
    { "shell_call_output", LLM_API_RC_OUTPUT, NULL, NULL, "output" },
    { "tool_search_call", LLM_API_RC_CALL, "tool_search", "arguments", NULL },
    { "tool_search_output", LLM_API_RC_TOOLS, NULL, NULL, NULL },

    /* the message that follows has what the search found */

    { "web_search_call", LLM_API_RC_NOTHING, NULL, NULL, NULL }
};


/* a member that is a non-empty string, or NULL */

static const llm_flat_t *
llm_api_rc_string(const llm_flat_t *v, const char *key)
{
    v = llm_api_member(v, key);

    return v && v->type == LLM_FLAT_STRING && v->count ? v : NULL;
}


/* the id that a call and its output share; some outputs have it as their own
   id */

static llm_str_t
llm_api_rc_id(const llm_flat_t *item)
{
    const llm_flat_t  *v;

    v = llm_api_rc_string(item, "call_id");
    v = v ? v : llm_api_rc_string(item, "id");

    return v ? llm_flat_str(v) : llm_str("call");
}


/* writes an object as it is, also one given as text; any other value as
   {"member": value} */

static void
llm_api_rc_arguments(const char *member, const llm_flat_t *v, llm_buf_t *out)
{
    size_t     i;
    llm_str_t  s;

    if (v == NULL) {
        (void) llm_buf_adds(out, "{}");
        return;
    }

    if (v->type == LLM_FLAT_OBJECT) {
        (void) llm_json_add_flat(out, v);
        return;
    }

    if (v->type == LLM_FLAT_STRING) {
        s = llm_flat_str(v);

        for (i = 0; i < s.len && memchr(" \t\r\n", s.data[i], 4); i++) {
            /* void */
        }

        if (i < s.len && s.data[i] == '{' && strcmp(member, "arguments") == 0)
        {
            (void) llm_buf_add(out, s.data, s.len);
            return;
        }
    }

    (void) llm_buf_addf(out, "{\"%s\":", member);
    (void) llm_json_add_flat(out, v);
    (void) llm_buf_addc(out, '}');
}


static void
llm_api_rc_call(llm_api_draft_t *d, const llm_api_recorded_t *rec,
    const llm_flat_t *item)
{
    llm_buf_t          json;
    llm_str_t          name;
    const llm_flat_t  *v;

    v = llm_api_rc_string(item, "name");

    if (rec->name) {
        name.data = rec->name;
        name.len = strlen(rec->name);

    } else {
        name = v ? llm_flat_str(v) : llm_str("tool");
    }

    /* a computer's call may have several actions */

    v = llm_api_member(item, rec->input);
    v = v ? v : llm_api_member(item, "actions");

    llm_buf_init(&json, 0);
    llm_api_rc_arguments(rec->input, v, &json);

    llm_api_draft_open(d, "assistant");
    llm_api_draft_call(d, llm_api_rc_id(item), name,
                       (llm_str_t) { json.len, json.data });

    d->out.failed |= json.failed;
    llm_buf_free(&json);
}


/* parts of a content have a type; a shell's output has none */

static int
llm_api_rc_is_content(const llm_flat_t *v)
{
    const llm_flat_t  *first;

    if (v->type == LLM_FLAT_STRING) {
        return 1;
    }

    first = v->type == LLM_FLAT_ARRAY ? llm_flat_first(v) : NULL;

    return first && first->type == LLM_FLAT_OBJECT
           && llm_api_rc_string(first, "type") != NULL;
}


/* adds a code interpreter's output, logs and images: {"type": "logs", "logs":
   ...} */

static void
llm_api_rc_outputs(llm_api_draft_t *d, const llm_flat_t *list)
{
    const llm_flat_t  *v, *logs;

    for (v = llm_flat_first(list); v; v = llm_flat_next(list, v)) {
        logs = llm_api_rc_string(v, "logs");

        if (logs) {
            llm_api_draft_text(d, llm_flat_str(logs));

        } else if (llm_api_str_is(llm_api_member(v, "type"), "image")) {
            llm_api_draft_text(d, llm_str(LLM_API_PART_IMAGE));
        }
    }
}


/* adds an output: a text, parts, or any value as JSON; without these, the
   call's status */

static int
llm_api_rc_output(llm_api_draft_t *d, const llm_api_recorded_t *rec,
    const llm_flat_t *item, const llm_api_at_t *at, llm_err_t *err)
{
    const llm_flat_t    *v;
    llm_api_part_at_t    where;
    const llm_api_at_t  *here;

    llm_api_draft_result(d, llm_api_rc_id(item));

    v = llm_api_member(item, rec->output ? rec->output : "error");

    if (v == NULL && rec->output) {
        v = llm_api_member(item, "error");
        v = v ? v : llm_api_rc_string(item, "status");
    }

    if (v == NULL) {
        if (llm_api_rc_string(item, "result")) {
            llm_api_draft_text(d, llm_str(LLM_API_PART_IMAGE));
        }

        return LLM_OK;
    }

    here = llm_api_key(at, rec->output ? rec->output : "error");

    if (v->type == LLM_FLAT_ARRAY && rec->way == LLM_API_RC_BOTH
        && llm_api_str_is(llm_api_member(item, "type"),
                          "code_interpreter_call"))
    {
        llm_api_rc_outputs(d, v);
        return LLM_OK;
    }

    if (llm_api_rc_is_content(v)) {
        return llm_api_responses_content(d, v, here, err);
    }

    if (llm_api_str_is(llm_api_member(v, "type"), "computer_screenshot")) {
        llm_api_responses_where(d, 0, &where);
        return llm_api_draft_part(d, v, &where, here, err);
    }

    llm_api_draft_json(d, v);

    return LLM_OK;
}


/* adds the names of tools that a search has found; the tools themselves are in
   the request */

static void
llm_api_rc_tools(llm_api_draft_t *d, const llm_flat_t *item)
{
    llm_buf_t          text;
    llm_str_t          s;
    const llm_flat_t  *list, *v, *name;

    llm_buf_init(&text, 0);
    list = llm_api_member(item, "tools");
    v = list && list->type == LLM_FLAT_ARRAY ? llm_flat_first(list) : NULL;

    for ( /* void */ ; v; v = llm_flat_next(list, v)) {
        name = llm_api_rc_string(v, "name");

        if (name) {
            s = llm_flat_str(name);
            (void) llm_buf_adds(&text, text.len ? ", " : "Tools found: ");
            (void) llm_buf_add(&text, s.data, s.len);
        }
    }

    if (text.len == 0) {
        (void) llm_buf_adds(&text, "No tools found.");
    }

    llm_api_draft_result(d, llm_api_rc_id(item));
    llm_api_draft_text(d, (llm_str_t) { text.len, text.data });
    d->out.failed |= text.failed;
    llm_buf_free(&text);
}


static void
llm_api_rc_verdict(llm_api_draft_t *d, const llm_flat_t *item)
{
    const llm_flat_t  *v;

    v = llm_api_rc_string(item, "approval_request_id");
    llm_api_draft_result(d, v ? llm_flat_str(v) : llm_api_rc_id(item));

    v = llm_api_member(item, "approve");
    llm_api_draft_text(d, v && v->type == LLM_FLAT_BOOL && llm_flat_int(v)
                          ? llm_str("Approved.") : llm_str("Not approved."));

    v = llm_api_rc_string(item, "reason");

    if (v) {
        llm_api_draft_text(d, llm_flat_str(v));
    }
}


/* a sealed summary can only be read by the server that wrote it */

static void
llm_api_rc_summary(llm_api_draft_t *d, const llm_flat_t *item)
{
    size_t             i;
    llm_buf_t          text;
    const llm_flat_t  *v;

    static const char *const  members[] = { "summary", "content", "text" };

    llm_buf_init(&text, 0);

    for (i = 0; i < llm_nelems(members) && text.len == 0; i++) {
        v = llm_api_rc_string(item, members[i]);

        if (v) {
            (void) llm_buf_add(&text, llm_flat_str(v).data, v->count);

        } else {
            (void) llm_api_responses_texts(&text,
                                           llm_api_member(item, members[i]));
        }
    }

    if (text.len) {
        llm_api_draft_open(d, "user");
        llm_api_draft_text(d, (llm_str_t) { text.len, text.data });
    }

    d->out.failed |= text.failed;
    llm_buf_free(&text);
}


static const llm_api_recorded_t *
llm_api_rc_find(const llm_flat_t *type)
{
    size_t  i;

    for (i = 0; i < llm_nelems(llm_api_recorded); i++) {
        if (llm_api_str_is(type, llm_api_recorded[i].type)) {
            return &llm_api_recorded[i];
        }
    }

    return NULL;
}


int
llm_api_responses_recorded(llm_api_draft_t *d, const llm_flat_t *item,
    const llm_flat_t *type, const llm_api_at_t *at, llm_err_t *err)
{
    size_t                     i;
    const llm_api_recorded_t  *rec;

    static const char *const  says[] = {
        "role", "content", "text", "output"
    };

    rec = llm_api_rc_find(type);

    if (rec == NULL) {

        /* an item of a newer type is skipped, unless it has text that has not
           been answered yet */

        for (i = 0; i < llm_nelems(says) && !d->old; i++) {
            if (llm_api_member(item, says[i])) {
                return LLM_END;
            }
        }

        return LLM_OK;
    }

    switch (rec->way) {

    case LLM_API_RC_CALL:
        llm_api_rc_call(d, rec, item);
        return LLM_OK;

    case LLM_API_RC_BOTH:
        llm_api_rc_call(d, rec, item);
        return llm_api_rc_output(d, rec, item, at, err);

    case LLM_API_RC_OUTPUT:
        return llm_api_rc_output(d, rec, item, at, err);

    case LLM_API_RC_TOOLS:
        llm_api_rc_tools(d, item);
        return LLM_OK;

    case LLM_API_RC_VERDICT:
        llm_api_rc_verdict(d, item);
        return LLM_OK;

    case LLM_API_RC_SUMMARY:
        llm_api_rc_summary(d, item);
        return LLM_OK;

    default:
        return LLM_OK;
    }
}


int
llm_api_responses_is_said(const llm_flat_t *item)
{
    const llm_flat_t          *type;
    const llm_api_recorded_t  *rec;

    type = llm_api_member(item, "type");

    if (type == NULL || llm_api_str_is(type, "message")) {
        return llm_api_str_is(llm_api_member(item, "role"), "assistant");
    }

    if (llm_api_str_is(type, "function_call")
        || llm_api_str_is(type, "custom_tool_call")
        || llm_api_str_is(type, "reasoning"))
    {
        return 1;
    }

    rec = llm_api_rc_find(type);

    return rec && (rec->way == LLM_API_RC_CALL || rec->way == LLM_API_RC_BOTH
                   || llm_api_str_is(type, "web_search_call"));
}


/* the tools of an item, a value of any type; NULL: none */

const llm_flat_t *
llm_api_responses_brought(const llm_flat_t *item)
{
    const llm_flat_t  *type;

    type = item->type == LLM_FLAT_OBJECT ? llm_api_member(item, "type") : NULL;

    if (!llm_api_str_is(type, "additional_tools")
        && !llm_api_str_is(type, "tool_search_output"))
    {
        return NULL;
    }

    return llm_api_member(item, "tools");
}
