/*
 * POST /chat/completions: messages in, a message for each choice out.
 * chat_messages.c, chat_tools.c and chat_thinking.c check messages, tools and
 * the fields about thinking; chat_object.c writes them for the template.
 */

#include "engine/api/chat.h"
#include "engine/api/llama.h"
#include "engine/base/utf8.h"

#define AT(f)               offsetof(llm_api_chat_t, f)

#define add_lit(out, lit)   (void) llm_buf_add(out, lit, sizeof(lit) - 1)


static const llm_api_field_t  llm_api_chat_rows[] = {
    { "add_generation_prompt", LLM_FIELD_BOOL, AT(add_generation_prompt),
      0, 0 },
    { "audio", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "chat_template", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "chat_template_kwargs", LLM_FIELD_OBJECT, AT(chat_template_kwargs),
      0, 0 },
    { "continue_final_message", LLM_FIELD_BOOL, AT(continue_final_message),
      0, 0 },
    { "documents", LLM_FIELD_ARRAY, AT(documents), 0, 0 },
    { "enable_thinking", LLM_FIELD_BOOL, AT(enable_thinking), 0, 0 },
    { "function_call", LLM_FIELD_ANY, AT(function_call), 0, 0 },
    { "functions", LLM_FIELD_ARRAY, AT(functions), 0, 0 },
    { "include_reasoning", LLM_FIELD_BOOL, AT(include_reasoning), 0, 0 },
    { "json_instruction", LLM_FIELD_STRING, AT(json_instruction), 0, 0 },
    { "max_completion_tokens", LLM_FIELD_INT, AT(max_completion_tokens),
      -1, INT32_MAX },
    { "messages", LLM_FIELD_REQUIRED, AT(messages), 0, 0 },
    { "modalities", LLM_FIELD_ARRAY, AT(modalities), 0, 0 },
    { "parallel_tool_calls", LLM_FIELD_BOOL, AT(parallel_tool_calls), 0, 0 },
    { "prediction", LLM_FIELD_OBJECT, AT(prediction), 0, 0 },
    { "reasoning", LLM_FIELD_OBJECT, AT(reasoning), 0, 0 },
    { "reasoning_budget", LLM_FIELD_INT, AT(thinking_budget),
      -1, INT32_MAX },
    { "reasoning_effort", LLM_FIELD_STRING, AT(reasoning_effort), 0, 0 },
    { "reasoning_format", LLM_FIELD_STRING, AT(reasoning_format), 0, 0 },
    { "return_progress", LLM_FIELD_BOOL, AT(return_progress), 0, 0 },
    { "thinking", LLM_FIELD_ANY, AT(thinking), 0, 0 },
    { "thinking_budget", LLM_FIELD_INT, AT(thinking_budget), -1, INT32_MAX },
    { "thinking_budget_tokens", LLM_FIELD_INT, AT(thinking_budget),
      -1, INT32_MAX },
    { "thinking_token_budget", LLM_FIELD_INT, AT(thinking_budget),
      -1, INT32_MAX },
    { "timings_per_token", LLM_FIELD_BOOL, AT(timings_per_token), 0, 0 },
    { "tool_choice", LLM_FIELD_ANY, AT(tool_choice), 0, 0 },
    { "tools", LLM_FIELD_ARRAY, AT(tools), 0, 0 },
    { "top_logprobs", LLM_FIELD_INT, AT(top_logprobs), 0, 20 },
    { "verbose", LLM_FIELD_BOOL, AT(verbose), 0, 0 },
    { "verbosity", LLM_FIELD_STRING, LLM_FIELD_NOWHERE, 0, 0 },
    { "web_search_options", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
};

const llm_api_fields_t  llm_api_chat_fields = {
    llm_api_chat_rows, llm_nelems(llm_api_chat_rows)
};


/* ---- the reader ---- */

static int
llm_api_chat_modalities(const llm_api_chat_t *b, llm_err_t *err)
{
    const llm_flat_t  *v;

    if (b->modalities == NULL) {
        return LLM_OK;
    }

    for (v = llm_flat_first(b->modalities); v;
         v = llm_flat_next(b->modalities, v))
    {
        if (!llm_api_str_is(v, "text")) {
            return llm_api_unsupported(err, llm_api_top("modalities"),
                                       "only 'text' can be served");
        }
    }

    return LLM_OK;
}


static int
llm_api_chat_n_logprobs(const llm_api_chat_t *b, int32_t *n, llm_err_t *err)
{
    int                  on;
    const llm_flat_t    *v;
    const llm_api_at_t  *at;

    at = llm_api_top("logprobs");
    v = b->body.logprobs;
    *n = -1;

    if (v && llm_api_check_type(err, at, v, LLM_FLAT_BOOL) != LLM_OK) {
        return LLM_ERROR;
    }

    on = v && llm_flat_int(v);

    /* some clients send "top_logprobs": 0 without logprobs */

    if (!on && b->top_logprobs > 0) {
        return llm_api_bad_value(err, llm_api_top("top_logprobs"),
                                 "The 'top_logprobs' parameter is only "
                                 "allowed when 'logprobs' is enabled.");
    }

    if (on) {
        *n = (int32_t) llm_max(b->top_logprobs, 0);
    }

    return LLM_OK;
}


static int
llm_api_chat_limits(llm_api_reader_t *rd, const llm_api_chat_t *b,
    llm_err_t *err)
{
    int64_t      max;
    const char  *param;

    param = "max_tokens";
    max = b->body.max_tokens;

    if (b->max_completion_tokens != LLM_API_UNSET) {
        param = "max_completion_tokens";
        max = b->max_completion_tokens;
    }

    if (max == 0) {
        return llm_fail_with(err, 400, "integer_below_min_value", param,
                             "Invalid '%s': integer below minimum value. "
                             "Expected a value >= 1, but got 0 instead.",
                             param);
    }

    return llm_api_read_limits(rd, &b->body, param, max, -1, err);
}


void
llm_api_chat_defaults(llm_api_chat_t *b)
{
    memset(b, 0, sizeof(llm_api_chat_t));
    llm_api_defaults(&b->body);

    b->max_completion_tokens = LLM_API_UNSET;
    b->top_logprobs = -1;
    b->enable_thinking = -1;
    b->thinking_budget = -1;
    b->include_reasoning = -1;
    b->parallel_tool_calls = -1;
    b->add_generation_prompt = -1;
    b->continue_final_message = -1;
}


static int
llm_api_chat_parse(llm_api_reader_t *rd, llm_api_chat_t *b, llm_err_t *err)
{
    size_t  start;

    llm_api_chat_defaults(b);

    start = rd->msg->len;
    rd->r.kind = LLM_KIND_CHAT;

    if (llm_api_read_body(rd, &b->body, err) != LLM_OK
        || llm_api_chat_modalities(b, err) != LLM_OK
        || llm_api_read_sampling(rd, &b->body, err) != LLM_OK
        || llm_api_chat_n_logprobs(b, &rd->r.sampling.n_logprobs, err)
           != LLM_OK
        || llm_api_chat_limits(rd, b, err) != LLM_OK
        || llm_api_read_priority(rd, &b->body, err) != LLM_OK
        || llm_api_check_messages(rd, b->messages, err) != LLM_OK
        || llm_api_check_tools(b, err) != LLM_OK
        || llm_api_chat_thinking(b, err) != LLM_OK
        || llm_api_chat_reasons(rd, b, err) != LLM_OK
        || llm_api_write_chat(rd, b, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    rd->r.chat.off = (uint32_t) start;
    rd->r.chat.len = (uint32_t) (rd->msg->len - start);
    rd->n_choices = rd->r.n;

    if (llm_api_write_choice(rd, b, err) != LLM_OK
        || llm_api_write_prediction(rd, b, err) != LLM_OK
        || llm_api_write_lists(rd, &b->body, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_api_write_rule(rd, &b->body, err);
}


int
llm_api_read_chat(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_api_chat_t  b;

    return llm_api_chat_parse(rd, &b, err);
}


static int
llm_api_chat_read(llm_api_reader_t *rd, llm_err_t *err)
{
    int             stream;
    llm_api_chat_t  b;

    if (llm_api_chat_parse(rd, &b, err) != LLM_OK) {
        return LLM_ERROR;
    }

    stream = (rd->r.flags & LLM_REQ_STREAM) != 0;

    if (b.timings_per_token) {
        rd->options |= LLM_API_TIMINGS;
    }

    if (rd->endpoint == &llm_api_chat_any) {
        rd->options |= LLM_API_LLAMA;
    }

    if (b.return_progress && stream) {
        rd->r.flags |= LLM_REQ_PROGRESS;
    }

    if (b.verbose && !stream) {
        rd->r.flags |= LLM_REQ_SHOW;
        rd->options |= LLM_API_VERBOSE;
        llm_api_llama_settings(&rd->own, rd);
        (void) llm_buf_addc(&rd->own, '\0');
    }

    llm_api_write_head(rd, "chatcmpl-", "chat.completion",
                       "chat.completion.chunk");

    return LLM_OK;
}


/* ---- logprobs: objects {token, logprob, bytes, top_logprobs} ---- */

/* text that is not valid UTF-8 is shown by its bytes: "\xe2\x80" */

static void
llm_api_add_chat_token(llm_buf_t *out, const char *s, size_t len)
{
    size_t  i, n;

    if (llm_utf8_valid(s, len) == len) {
        (void) llm_json_add_string(out, s, len);
        return;
    }

    (void) llm_buf_addc(out, '"');

    for (i = 0; i < len; i += n) {
        n = llm_utf8_decode(s + i, len - i, NULL);

        if (n) {
            (void) llm_json_add_text(out, s + i, n);

        } else {
            n = 1;
            (void) llm_buf_addf(out, "\\\\x%02x", (unsigned char) s[i]);
        }
    }

    (void) llm_buf_addc(out, '"');
}


void
llm_api_add_entry_token(llm_buf_t *out, const llm_api_t *a, int32_t id,
    llm_ref_t bytes, const llm_event_t *ev)
{
    (void) llm_buf_adds(out, "\"token\":");

    if (a->as_ids) {
        llm_api_add_token_id(out, id);

    } else {
        llm_api_add_chat_token(out, llm_ref_data(ev, bytes), bytes.len);
    }
}


void
llm_api_add_entry_bytes(llm_buf_t *out, llm_ref_t bytes,
    const llm_event_t *ev)
{
    size_t       i;
    const char  *s;

    s = llm_ref_data(ev, bytes);
    (void) llm_buf_adds(out, ",\"bytes\":[");

    for (i = 0; i < bytes.len; i++) {
        if (i) {
            (void) llm_buf_addc(out, ',');
        }

        llm_api_add_uint(out, (unsigned char) s[i]);
    }

    (void) llm_buf_addc(out, ']');
}


void
llm_api_add_entry(llm_buf_t *out, const llm_api_t *a, int32_t id,
    float logprob, llm_ref_t bytes, const llm_event_t *ev)
{
    llm_api_add_entry_token(out, a, id, bytes, ev);
    (void) llm_buf_adds(out, ",\"logprob\":");
    llm_api_add_logprob(out, logprob);
    llm_api_add_entry_bytes(out, bytes, ev);
}


/*
 * The engine sends the n most likely tokens, followed by the sampled one if
 * it is not among them.  A chat lists n, the sampled one included.
 */

static void
llm_api_chat_item(llm_buf_t *out, const llm_api_t *a,
    const llm_api_place_t *place, const llm_event_t *ev, uint32_t array,
    const llm_token_logprob_t *t)
{
    int                       first;
    uint32_t                  i, n;
    const llm_top_logprob_t  *top;

    (void) place;
    (void) array;

    (void) llm_buf_addc(out, '{');
    llm_api_add_entry(out, a, t->id, t->logprob, t->bytes, ev);
    (void) llm_buf_adds(out, ",\"top_logprobs\":[");

    top = llm_ref_data(ev, t->top);
    n = (uint32_t) a->n_logprobs;
    first = 1;

    for (i = 0; i < t->top.len; i++) {
        if (t->top.len > n && i + 1 == n) {
            continue;
        }

        (void) llm_buf_adds(out, first ? "{" : ",{");
        llm_api_add_entry(out, a, top[i].id, top[i].logprob, top[i].bytes,
                          ev);
        (void) llm_buf_addc(out, '}');
        first = 0;
    }

    (void) llm_buf_adds(out, "]}");
}


static const char *const  llm_api_chat_arrays[] = { "{\"content\":[" };

const llm_api_logprobs_t  llm_api_chat_logprobs = {
    1, -1, llm_api_chat_arrays, "],\"refusal\":null}", llm_api_chat_item
};


/* ---- the event writer ---- */

/* {"index":0,"id":"call_...","type":"function","function":{"name":"x",
   "arguments":" left open; bodies have no index */

static void
llm_api_add_call(llm_buf_t *out, const llm_api_t *a, const llm_event_t *ev)
{
    /* the id of a call consists of the request's id, the choice and the call,
       so it is the same with and without streaming */

    (void) llm_buf_adds(out, "\"id\":\"call_");
    (void) llm_json_add_text(out, a->id.data, a->id.len);
    (void) llm_buf_addf(out, "_%u_%u\",\"type\":\"function\",\"function\":"
                        "{\"name\":\"", ev->index, ev->u.text.call);
    llm_api_add_event_text(out, ev);
    (void) llm_buf_adds(out, "\",\"arguments\":\"");
}


/* sends the role of every choice, as soon as the request is known to be valid
   and, if they were asked for, the ids of its prompt have come */

static void
llm_api_role_frames(llm_api_t *a, llm_buf_t *out)
{
    uint32_t  i;

    for (i = 0; i < a->n_choices; i++) {
        llm_api_open_frame(a, i, out);
        (void) llm_buf_addf(out, ",\"delta\":{\"role\":\"assistant\","
                            "\"content\":%s,\"refusal\":null},"
                            "\"logprobs\":null,\"finish_reason\":null",
                            a->options & LLM_API_LLAMA ? "null" : "\"\"");

        if (i || !a->token_ids) {
            llm_api_close_frame(a, out);
            continue;
        }

        add_lit(out, "}],");
        llm_api_add_prompt_ids(out, a, i);
        llm_api_end_frame(a, out);
    }
}


static void
llm_api_delta(const llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    switch (ev->u.text.part) {

    case LLM_PART_CONTENT:
        add_lit(out, ",\"delta\":{\"content\":\"");
        llm_api_add_event_text(out, ev);
        add_lit(out, "\"}");
        break;

    case LLM_PART_REASONING:
        add_lit(out, ",\"delta\":{\"reasoning_content\":\"");
        llm_api_add_event_text(out, ev);
        add_lit(out, "\",\"reasoning\":\"");
        llm_api_add_event_text(out, ev);
        add_lit(out, "\"}");
        break;

    case LLM_PART_TOOL_NAME:
        add_lit(out, ",\"delta\":{\"tool_calls\":[{\"index\":");
        llm_api_add_uint(out, ev->u.text.call);
        add_lit(out, ",");
        llm_api_add_call(out, a, ev);
        add_lit(out, "\"}}]}");
        break;

    default:
        add_lit(out, ",\"delta\":{\"tool_calls\":[{\"index\":");
        llm_api_add_uint(out, ev->u.text.call);
        add_lit(out, ",\"function\":{\"arguments\":\"");
        llm_api_add_event_text(out, ev);
        add_lit(out, "\"}}]}");
    }
}


static void
llm_api_chat_event(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    switch (ev->type) {

    case LLM_EV_START:
        a->due = a->token_ids;

        if (!a->due) {
            llm_api_role_frames(a, out);
        }

        break;

    case LLM_EV_PROGRESS:
        llm_api_progress_frame(a, ev, "\"delta\":{}", out);
        break;

    case LLM_EV_TEXT:
        if (a->due) {
            a->due = 0;
            llm_api_role_frames(a, out);
        }

        if (!llm_api_is_prompt(ev) && llm_api_has_frame(a, ev)) {
            llm_api_open_frame(a, ev->index, out);
            llm_api_delta(a, ev, out);
            llm_api_close_text(a, ev, &llm_api_chat_logprobs, out);
        }

        break;

    case LLM_EV_FINISH:
        llm_api_open_frame(a, ev->index, out);
        add_lit(out, ",\"delta\":{}");
        llm_api_finish_frame(a, ev, "null", out);
        break;

    case LLM_EV_DONE:
        llm_api_last_frames(a, out);
        break;
    }
}


/* ---- the body ---- */

static int
llm_api_chat_open_content(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    const llm_api_choice_t  *c;

    c = &a->choices[cur->choice];

    (void) llm_buf_adds(out, ",\"message\":{\"role\":\"assistant\","
                        "\"content\":");

    if (!c->has_content && c->n_calls) {
        (void) llm_buf_adds(out, "null,\"refusal\":null");
        return LLM_OK;
    }

    (void) llm_buf_addc(out, '"');

    return LLM_MORE;
}


static int
llm_api_chat_content(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    return llm_api_write_text(a, cur, LLM_PART_CONTENT, out);
}


/* writes the reasoning under both names that clients read */

static int
llm_api_chat_named_reasoning(const llm_api_t *a, llm_api_cursor_t *cur,
    const char *name, llm_buf_t *out)
{
    if (!a->choices[cur->choice].has_reasoning) {
        return LLM_OK;
    }

    (void) llm_buf_addf(out, ",\"%s\":\"", name);

    return LLM_MORE;
}


static int
llm_api_chat_open_reasoning(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    return llm_api_chat_named_reasoning(a, cur, "reasoning_content", out);
}


static int
llm_api_chat_open_thoughts(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    return llm_api_chat_named_reasoning(a, cur, "reasoning", out);
}


static int
llm_api_chat_reasoning(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    return llm_api_write_text(a, cur, LLM_PART_REASONING, out);
}


static int
llm_api_chat_open_calls(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    if (a->choices[cur->choice].n_calls == 0) {
        return LLM_OK;
    }

    (void) llm_buf_adds(out, ",\"tool_calls\":[");

    return LLM_MORE;
}


/* writes one event of the tool calls; the last call is left open */

static int
llm_api_chat_call(const llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out)
{
    const llm_event_t  *ev;

    if (cur->piece == NULL) {
        return LLM_OK;
    }

    ev = cur->piece->ev;

    if (ev->u.text.part == LLM_PART_TOOL_NAME) {
        (void) llm_buf_adds(out, cur->some ? "\"}},{" : "{");
        llm_api_add_call(out, a, ev);
        cur->some = 1;

    } else if (ev->u.text.part == LLM_PART_TOOL_ARGS && cur->some) {
        llm_api_add_event_text(out, ev);
    }

    llm_api_next_piece(a, cur);

    return LLM_MORE;
}


static int
llm_api_chat_open_logprobs(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    (void) cur;
    (void) llm_buf_adds(out, "},\"logprobs\":");

    return llm_api_open_logprobs(a, &llm_api_chat_logprobs, out);
}


static int
llm_api_chat_logprob(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    return llm_api_write_logprob(a, &llm_api_chat_logprobs, cur, out);
}


static const llm_api_member_t  llm_api_chat_members[] = {
    { llm_api_chat_open_content,   llm_api_chat_content,
      "\",\"refusal\":null" },
    { llm_api_chat_open_reasoning, llm_api_chat_reasoning, "\"" },
    { llm_api_chat_open_thoughts,  llm_api_chat_reasoning, "\"" },
    { llm_api_chat_open_calls,     llm_api_chat_call,      "\"}}]" },
    { llm_api_chat_open_logprobs,  llm_api_chat_logprob,   "" },
    { llm_api_open_finish,         NULL,                   NULL },
    { llm_api_open_ids,            llm_api_write_id,       "]" }
};


static int
llm_api_chat_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    static const llm_api_member_t  prompt = {
        llm_api_open_prompt_ids, llm_api_write_prompt_id, "]"
    };

    return llm_api_write_choices(a, llm_api_chat_members,
                                 llm_nelems(llm_api_chat_members), &prompt,
                                 max, out);
}


const llm_api_endpoint_t  llm_api_chat = {
    .task = LLM_TASK_GENERATE,
    .fields = &llm_api_chat_fields,
    .shared = &llm_api_shared_fields,
    .read = llm_api_chat_read,
    .event = llm_api_chat_event,
    .body = llm_api_chat_body
};

/* without "v1/" the path is llama-server's, too */

const llm_api_endpoint_t  llm_api_chat_any = {
    .task = LLM_TASK_GENERATE,
    .fields = &llm_api_chat_fields,
    .shared = &llm_api_shared_fields,
    .read = llm_api_chat_read,
    .event = llm_api_chat_event,
    .body = llm_api_chat_body,
    .error = llm_api_llama_error,
    .v1 = &llm_api_chat
};
