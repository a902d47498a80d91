/*
 * Answers of Responses: what the engine says as a response, a list of output
 * items, or as the typed events of its stream.
 *
 * The same functions write both: first the request's settings (a->head,
 * written when the request was read), then the answer.
 */

#include "engine/api/chat.h"
#include "engine/api/responses.h"

#include <time.h>

#define add_lit(out, lit)   (void) llm_buf_add(out, lit, sizeof(lit) - 1)


/* ---- items ---- */

/* ids are made from the request's id, so that they are the same each time */

static void
llm_api_responses_id(llm_buf_t *out, const llm_api_t *a,
    const llm_api_item_t *it)
{
    (void) llm_buf_adds(out, it->part == LLM_PART_CONTENT ? "\"msg_"
                             : it->part == LLM_PART_REASONING ? "\"rs_"
                             : "\"fc_");
    (void) llm_json_add_text(out, a->id.data, a->id.len);
    add_lit(out, "_");
    llm_api_add_uint(out, it->index);
    add_lit(out, "\"");
}


static const char *
llm_api_responses_status(const llm_api_t *a, const llm_api_item_t *it)
{
    const llm_api_output_t  *o;

    o = &a->output;

    if (it == o->open) {
        return "in_progress";
    }

    if (it != o->last || a->choices[0].finish == LLM_FINISH_STOP
        || a->choices[0].finish == LLM_FINISH_TOOL_CALLS)
    {
        return "completed";
    }

    return "incomplete";
}


/* writes an item up to its content */

static void
llm_api_responses_item(llm_buf_t *out, const llm_api_t *a,
    const llm_api_item_t *it)
{
    llm_str_t  name, space;

    add_lit(out, "{\"id\":");
    llm_api_responses_id(out, a, it);
    (void) llm_buf_addf(out, ",\"type\":\"%s\",\"status\":\"%s\"",
                        it->part == LLM_PART_CONTENT ? "message"
                        : it->part == LLM_PART_REASONING ? "reasoning"
                        : "function_call", llm_api_responses_status(a, it));

    if (it->part == LLM_PART_CONTENT) {
        add_lit(out, ",\"role\":\"assistant\",\"content\":[");

    } else if (it->part == LLM_PART_TOOL_NAME) {
        add_lit(out, ",\"call_id\":\"call_");
        (void) llm_json_add_text(out, a->id.data, a->id.len);
        name = it->name;
        space = llm_api_responses_space(a, &name);
        (void) llm_buf_addf(out, "_%u\",\"name\":", it->call);
        (void) llm_json_add_string(out, name.data, name.len);

        if (space.len) {
            add_lit(out, ",\"namespace\":");
            (void) llm_json_add_string(out, space.data, space.len);
        }

        add_lit(out, ",\"arguments\":\"");
    }
}


static void
llm_api_responses_open_part(llm_buf_t *out, const llm_api_t *a,
    const llm_api_item_t *it)
{
    (void) llm_buf_adds(out, it->part == LLM_PART_CONTENT
                             ? "{\"type\":\"output_text\",\"annotations\":[],"
                               "\"text\":\""
                             : (a->options & LLM_API_OUT_SUMMARY)
                             ? "{\"type\":\"summary_text\",\"text\":\""
                             : "{\"type\":\"reasoning_text\",\"text\":\"");
}


static int
llm_api_responses_reasoning_span(const llm_api_t *a,
    const llm_api_item_t *it, uint32_t i, llm_api_span_t *span,
    llm_buf_t *out)
{
    int  summary;

    summary = (a->options & LLM_API_OUT_SUMMARY) != 0;
    span->text = &it->text;

    switch (i) {

    case 0:
        llm_api_responses_item(out, a, it);
        (void) llm_buf_adds(out, summary ? ",\"summary\":["
                                         : ",\"summary\":[],\"content\":[");
        llm_api_responses_open_part(out, a, it);
        span->as = LLM_API_AS_STRING;
        return LLM_MORE;

    case 1:
        if (a->options & LLM_API_OUT_SEALED) {
            add_lit(out, "\"}],\"encrypted_content\":\"");
            span->as = LLM_API_AS_SEALED;
            return LLM_MORE;
        }

        add_lit(out, "\"}]}");
        return LLM_OK;

    default:
        add_lit(out, "\"}");
        return LLM_OK;
    }
}


static int
llm_api_responses_span(const llm_api_t *a, const llm_api_item_t *it,
    uint32_t i, llm_api_span_t *span, llm_buf_t *out)
{
    if (it->part == LLM_PART_REASONING) {
        return llm_api_responses_reasoning_span(a, it, i, span, out);
    }

    if (i == 0) {
        llm_api_responses_item(out, a, it);

        if (it->part == LLM_PART_CONTENT) {
            llm_api_responses_open_part(out, a, it);
        }

        span->text = &it->text;
        span->as = LLM_API_AS_STRING;
        return LLM_MORE;
    }

    if (it->part == LLM_PART_TOOL_NAME) {
        add_lit(out, "\"}");
        return LLM_OK;
    }

    if (i == 1) {
        add_lit(out, "\",\"logprobs\":[");
        span->text = &it->logprobs;
        span->as = LLM_API_AS_IS;
        return LLM_MORE;
    }

    add_lit(out, "]}]}");

    return LLM_OK;
}


/* ---- the response ---- */

static void
llm_api_responses_usage(llm_buf_t *out, const llm_api_t *a)
{
    uint64_t  input, output;

    input = a->usage.prompt_tokens;
    output = a->usage.completion_tokens;

    (void) llm_buf_addf(out, "],\"usage\":{\"input_tokens\":%llu,"
                        "\"input_tokens_details\":{\"cached_tokens\":%u,"
                        "\"cache_write_tokens\":0},"
                        "\"output_tokens\":%llu,\"output_tokens_details\":"
                        "{\"reasoning_tokens\":%u},\"total_tokens\":%llu}}",
                        (unsigned long long) input, a->usage.cached_tokens,
                        (unsigned long long) output, a->usage.reasoning_tokens,
                        (unsigned long long) (input + output));
}


static void
llm_api_responses_open(llm_buf_t *out, const llm_api_t *a,
    const char *status, const llm_err_t *err)
{
    (void) llm_buf_add(out, a->head.data, a->head.len);
    (void) llm_buf_addf(out, ",\"status\":\"%s\",\"completed_at\":", status);

    if (strcmp(status, "completed") == 0) {
        (void) llm_buf_addf(out, "%lld", (long long) time(NULL));

    } else {
        add_lit(out, "null");
    }

    add_lit(out, ",\"error\":");

    if (err) {
        (void) llm_buf_addf(out, "{\"code\":\"%s\",\"message\":",
                            err->status == 429 ? "rate_limit_exceeded"
                                               : "server_error");
        (void) llm_json_add_string(out, err->msg, strlen(err->msg));
        (void) llm_buf_addc(out, '}');

    } else {
        add_lit(out, "null");
    }

    (void) llm_buf_adds(out, strcmp(status, "incomplete") == 0
                             ? ",\"incomplete_details\":{\"reason\":"
                               "\"max_output_tokens\"},\"output\":["
                             : ",\"incomplete_details\":null,\"output\":[");
}


static const char *
llm_api_responses_end(const llm_api_t *a)
{
    return a->choices[0].finish == LLM_FINISH_LENGTH ? "incomplete"
                                                     : "completed";
}


int
llm_api_responses_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    int  rc;

    if (!a->output.walk.begun) {
        llm_api_responses_open(out, a, llm_api_responses_end(a), NULL);
    }

    rc = llm_api_write_items(a, llm_api_responses_span, max, out);

    if (rc == LLM_OK) {
        llm_api_responses_usage(out, a);
    }

    return out->failed ? LLM_ERROR : rc;
}


/* ---- keeping ---- */

int
llm_api_responses_keep(llm_api_t *a, const llm_event_t *ev, llm_err_t *err)
{
    if (llm_api_output_keep(a, ev, 1, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (ev->type == LLM_EV_TEXT && ev->u.text.part == LLM_PART_CONTENT) {
        return llm_api_output_logprobs(a, ev, llm_api_chat_logprobs.item, err);
    }

    /* there must be an item: an answer without text is an empty message */

    if (ev->type == LLM_EV_FINISH && a->output.first == NULL
        && llm_api_output_begin(a, LLM_PART_CONTENT, err) == NULL)
    {
        return LLM_ERROR;
    }

    return LLM_OK;
}


/* ---- the event writer ---- */

static void
llm_api_responses_event_of(llm_api_t *a, const char *type, llm_buf_t *out)
{
    add_lit(out, "event: response.");
    (void) llm_buf_adds(out, type);
    add_lit(out, "\ndata: {\"type\":\"response.");
    (void) llm_buf_adds(out, type);
    add_lit(out, "\",\"sequence_number\":");
    llm_api_add_uint(out, a->output.sequence++);
}


/* writes an event with a whole response that has no items yet */

static void
llm_api_responses_bare(llm_api_t *a, const char *type, llm_buf_t *out)
{
    llm_api_responses_event_of(a, type, out);
    add_lit(out, ",\"response\":");
    llm_api_responses_open(out, a, "in_progress", NULL);
    add_lit(out, "],\"usage\":null}}\n\n");
}


/* begins an event about an item; the caller adds the event's own members */

static void
llm_api_responses_about(llm_api_t *a, const char *type,
    const llm_api_item_t *it, llm_buf_t *out)
{
    llm_api_responses_event_of(a, type, out);
    add_lit(out, ",\"item_id\":");
    llm_api_responses_id(out, a, it);
    add_lit(out, ",\"output_index\":");
    llm_api_add_uint(out, it->index);

    if (it->part != LLM_PART_TOOL_NAME) {
        (void) llm_buf_adds(out, it->part == LLM_PART_REASONING
                                 && (a->options & LLM_API_OUT_SUMMARY)
                                 ? ",\"summary_index\":0"
                                 : ",\"content_index\":0");
    }
}


/* names of events about an item's part and its text */

typedef struct {
    const char  *part_added;            /* NULL: it has no parts */
    const char  *delta;
    const char  *done;
    const char  *part_done;
} llm_api_responses_types_t;


static const llm_api_responses_types_t *
llm_api_responses_types(const llm_api_t *a, const llm_api_item_t *it)
{
    static const llm_api_responses_types_t  text = {
        "content_part.added", "output_text.delta", "output_text.done",
        "content_part.done"
    };

    static const llm_api_responses_types_t  reasoning = {
        "content_part.added", "reasoning_text.delta", "reasoning_text.done",
        "content_part.done"
    };

    static const llm_api_responses_types_t  summary = {
        "reasoning_summary_part.added", "reasoning_summary_text.delta",
        "reasoning_summary_text.done", "reasoning_summary_part.done"
    };

    static const llm_api_responses_types_t  call = {
        NULL, "function_call_arguments.delta", "function_call_arguments.done",
        NULL
    };

    if (it->part == LLM_PART_CONTENT) {
        return &text;
    }

    if (it->part == LLM_PART_TOOL_NAME) {
        return &call;
    }

    return (a->options & LLM_API_OUT_SUMMARY) ? &summary : &reasoning;
}


static void
llm_api_responses_begin(llm_api_t *a, llm_api_item_t *it, llm_buf_t *out)
{
    const llm_api_responses_types_t  *types;

    a->output.open = it;
    types = llm_api_responses_types(a, it);

    llm_api_responses_event_of(a, "output_item.added", out);
    (void) llm_buf_addf(out, ",\"output_index\":%u,\"item\":", it->index);
    llm_api_responses_item(out, a, it);
    (void) llm_buf_adds(out, it->part == LLM_PART_CONTENT ? "]}}\n\n"
                             : it->part == LLM_PART_REASONING
                             ? ",\"summary\":[],\"content\":[]}}\n\n"
                             : "\"}}\n\n");

    if (types->part_added == NULL) {
        return;
    }

    llm_api_responses_about(a, types->part_added, it, out);
    add_lit(out, ",\"part\":");
    llm_api_responses_open_part(out, a, it);
    (void) llm_buf_adds(out, it->part == LLM_PART_CONTENT
                             ? "\",\"logprobs\":[]}}\n\n" : "\"}}\n\n");
}


static void
llm_api_responses_delta(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    uint32_t                    i;
    const llm_api_item_t       *it;
    const llm_token_logprob_t  *t;

    it = a->output.open;

    llm_api_responses_about(a, llm_api_responses_types(a, it)->delta, it,
                            out);
    add_lit(out, ",\"delta\":\"");
    llm_api_add_event_text(out, ev);
    add_lit(out, "\"");

    if (it->part == LLM_PART_CONTENT) {
        add_lit(out, ",\"logprobs\":[");
        t = llm_ref_data(ev, ev->u.text.logprobs);

        for (i = 0; a->n_logprobs >= 0 && i < ev->u.text.logprobs.len; i++) {
            (void) llm_buf_adds(out, i ? "," : "");
            llm_api_chat_logprobs.item(out, a, NULL, ev, 0, &t[i]);
        }

        add_lit(out, "]");
    }

    add_lit(out, "}\n\n");
}


static void
llm_api_responses_close(llm_api_t *a, llm_buf_t *out)
{
    llm_str_t                         name;
    const llm_api_item_t             *it;
    const llm_api_responses_types_t  *types;

    it = a->output.open;

    if (it == NULL) {
        return;
    }

    a->output.open = NULL;
    types = llm_api_responses_types(a, it);

    llm_api_responses_about(a, types->done, it, out);

    if (it->part == LLM_PART_TOOL_NAME) {
        name = it->name;
        (void) llm_api_responses_space(a, &name);
        add_lit(out, ",\"name\":");
        (void) llm_json_add_string(out, name.data, name.len);
        add_lit(out, ",\"arguments\":\"");

    } else {
        add_lit(out, ",\"text\":\"");
    }

    llm_api_write_text_of(&it->text, LLM_API_AS_STRING, out);
    add_lit(out, "\"");

    if (it->part == LLM_PART_CONTENT) {
        add_lit(out, ",\"logprobs\":[");
        llm_api_write_text_of(&it->logprobs, LLM_API_AS_IS, out);
        add_lit(out, "]");
    }

    add_lit(out, "}\n\n");

    if (types->part_done) {
        llm_api_responses_about(a, types->part_done, it, out);
        add_lit(out, ",\"part\":");
        llm_api_responses_open_part(out, a, it);
        llm_api_write_text_of(&it->text, LLM_API_AS_STRING, out);

        if (it->part == LLM_PART_CONTENT) {
            add_lit(out, "\",\"logprobs\":[");
            llm_api_write_text_of(&it->logprobs, LLM_API_AS_IS, out);
            add_lit(out, "]}}\n\n");

        } else {
            add_lit(out, "\"}}\n\n");
        }
    }

    llm_api_responses_event_of(a, "output_item.done", out);
    (void) llm_buf_addf(out, ",\"output_index\":%u,\"item\":", it->index);
    llm_api_write_item(a, it, llm_api_responses_span, out);
    add_lit(out, "}\n\n");
}


void
llm_api_responses_event(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    switch (ev->type) {

    case LLM_EV_START:
        llm_api_responses_bare(a, "created", out);
        llm_api_responses_bare(a, "in_progress", out);
        break;

    case LLM_EV_TEXT:
    case LLM_EV_FINISH:

        if (a->output.open != a->output.last) {
            llm_api_responses_close(a, out);
            llm_api_responses_begin(a, a->output.last, out);
        }

        if (ev->type == LLM_EV_FINISH) {
            llm_api_responses_close(a, out);

        } else if (a->output.open && ev->u.text.part != LLM_PART_TOOL_NAME
                   && ev->u.text.text.len)
        {
            llm_api_responses_delta(a, ev, out);
        }

        break;

    case LLM_EV_DONE:
        llm_api_responses_event_of(a, llm_api_responses_end(a), out);
        add_lit(out, ",\"response\":");
        (void) llm_api_responses_body(a, SIZE_MAX, out);
        add_lit(out, "}\n\n");
        break;
    }
}


/* a stream that fails ends with the items so far */

void
llm_api_responses_fail(llm_api_t *a, const llm_err_t *err, llm_buf_t *out)
{
    a->output.open = NULL;

    llm_api_responses_event_of(a, "failed", out);
    add_lit(out, ",\"response\":");
    llm_api_responses_open(out, a, "failed", err);
    (void) llm_api_write_items(a, llm_api_responses_span, SIZE_MAX, out);
    llm_api_responses_usage(out, a);
    add_lit(out, "}\n\n");
}
