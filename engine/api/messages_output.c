/*
 * Answers of Messages: what the engine says as content blocks, in a body or in
 * the events of a stream, and errors in Anthropic's form.
 *
 * A stream does not need what it has sent, so only a body keeps texts.
 */

#include "engine/api/messages.h"

#define add_lit(out, lit)   (void) llm_buf_add(out, lit, sizeof(lit) - 1)


/* ---- pieces ---- */

/* input_tokens are those of the prompt that were not in the cache */

static void
llm_api_mo_usage(llm_buf_t *out, const llm_api_t *a)
{
    uint32_t  cached;

    cached = a->usage.cached_tokens;

    if (cached && cached >= a->usage.prompt_tokens) {
        cached = a->usage.prompt_tokens - 1;    /* clients expect at least one
                                                   token of input */
    }

    (void) llm_buf_addf(out, "\"usage\":{\"input_tokens\":%u,"
                        "\"cache_creation_input_tokens\":0,"
                        "\"cache_read_input_tokens\":%u,"
                        "\"output_tokens\":%u,\"output_tokens_details\":"
                        "{\"thinking_tokens\":%u},"
                        "\"service_tier\":\"standard\"}",
                        a->usage.prompt_tokens - cached, cached,
                        a->usage.completion_tokens, a->usage.reasoning_tokens);
}


/* "stop_reason":…,"stop_sequence":… */

static void
llm_api_mo_stop(llm_buf_t *out, const llm_api_t *a)
{
    llm_str_t    stop;
    const char  *reason;

    stop = (llm_str_t) { 0, NULL };

    switch (a->choices[0].finish) {

    case LLM_FINISH_LENGTH:
        reason = "max_tokens";
        break;

    case LLM_FINISH_TOOL_CALLS:
        reason = "tool_use";
        break;

    default:
        stop = a->output.stop;
        reason = stop.len ? "stop_sequence" : "end_turn";
    }

    (void) llm_buf_addf(out, "\"stop_reason\":\"%s\",\"stop_sequence\":",
                        reason);

    if (stop.len) {
        (void) llm_json_add_string(out, stop.data, stop.len);

    } else {
        add_lit(out, "null");
    }
}


/* writes a call up to its input */

static void
llm_api_mo_call(llm_buf_t *out, const llm_api_t *a, const llm_api_item_t *it)
{
    add_lit(out, "{\"type\":\"tool_use\",\"id\":\"toolu_");
    (void) llm_json_add_text(out, a->id.data, a->id.len);
    (void) llm_buf_addf(out, "_%u\",\"name\":", it->call);
    (void) llm_json_add_string(out, it->name.data, it->name.len);
    add_lit(out, ",\"input\":");
}


/* writes the signature that clients send back with the thinking; it is not
   checked */

static void
llm_api_mo_signature(llm_buf_t *out, const llm_api_t *a)
{
    add_lit(out, "\"signature\":\"sig_");
    (void) llm_json_add_text(out, a->id.data, a->id.len);
    add_lit(out, "\"}");
}


/* ---- keeping ---- */

int
llm_api_messages_keep(llm_api_t *a, const llm_event_t *ev, llm_err_t *err)
{
    llm_api_item_t  *it;

    if (llm_api_output_keep(a, ev, !a->stream, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (ev->type != LLM_EV_FINISH) {
        return LLM_OK;
    }

    for (it = a->output.first; it; it = it->next) {
        if (it->part == LLM_PART_TOOL_NAME && it->text.first
            && llm_api_output_object(a, it, err) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* ---- the body ---- */

static int
llm_api_mo_call_span(const llm_api_t *a, const llm_api_item_t *it,
    uint32_t i, llm_api_span_t *span, llm_buf_t *out)
{
    if (i) {
        (void) llm_buf_addc(out, '}');
        return LLM_OK;
    }

    llm_api_mo_call(out, a, it);

    if (it->text.first == NULL) {
        add_lit(out, "{}}");
        return LLM_OK;
    }

    span->text = &it->text;
    span->as = LLM_API_AS_IS;

    return LLM_MORE;
}


static int
llm_api_mo_span(const llm_api_t *a, const llm_api_item_t *it, uint32_t i,
    llm_api_span_t *span, llm_buf_t *out)
{
    if (it->part == LLM_PART_TOOL_NAME) {
        return llm_api_mo_call_span(a, it, i, span, out);
    }

    if (i == 0) {
        (void) llm_buf_adds(out, it->part == LLM_PART_REASONING
                                 ? "{\"type\":\"thinking\",\"thinking\":\""
                                 : "{\"type\":\"text\",\"text\":\"");
        span->text = &it->text;
        span->as = LLM_API_AS_STRING;
        return LLM_MORE;
    }

    if (it->part == LLM_PART_REASONING) {
        add_lit(out, "\",");
        llm_api_mo_signature(out, a);

    } else {
        add_lit(out, "\"}");
    }

    return LLM_OK;
}


int
llm_api_messages_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    int  rc;

    if (!a->output.walk.begun) {
        (void) llm_buf_add(out, a->head.data, a->head.len);
        add_lit(out, ",\"content\":[");
    }

    rc = llm_api_write_items(a, llm_api_mo_span, max, out);

    if (rc == LLM_OK) {
        add_lit(out, "],");
        llm_api_mo_stop(out, a);
        add_lit(out, ",");
        llm_api_mo_usage(out, a);
        add_lit(out, "}");
    }

    return out->failed ? LLM_ERROR : rc;
}


/* ---- the event writer ---- */

static void
llm_api_mo_start(const llm_api_t *a, llm_buf_t *out)
{
    add_lit(out, "event: message_start\n"
            "data: {\"type\":\"message_start\",\"message\":");
    (void) llm_buf_add(out, a->head.data, a->head.len);
    add_lit(out, ",\"content\":[],\"stop_reason\":null,"
            "\"stop_sequence\":null,");
    llm_api_mo_usage(out, a);
    add_lit(out, "}}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n");
}


static void
llm_api_mo_block(llm_api_t *a, llm_buf_t *out)
{
    const llm_api_item_t  *it;

    it = a->output.open = a->output.last;

    (void) llm_buf_addf(out, "event: content_block_start\n"
                        "data: {\"type\":\"content_block_start\","
                        "\"index\":%u,\"content_block\":", it->index);

    if (it->part == LLM_PART_TOOL_NAME) {
        llm_api_mo_call(out, a, it);
        add_lit(out, "{}}}\n\n");

    } else if (it->part == LLM_PART_REASONING) {
        add_lit(out, "{\"type\":\"thinking\",\"thinking\":\"\","
                "\"signature\":\"\"}}\n\n");

    } else {
        add_lit(out, "{\"type\":\"text\",\"text\":\"\"}}\n\n");
    }
}


static void
llm_api_mo_open_delta(const llm_api_t *a, llm_buf_t *out)
{
    add_lit(out, "event: content_block_delta\n"
            "data: {\"type\":\"content_block_delta\",\"index\":");
    llm_api_add_uint(out, a->output.open->index);
    add_lit(out, ",\"delta\":{\"type\":");
}


static void
llm_api_mo_delta(const llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    llm_api_mo_open_delta(a, out);

    switch (a->output.open->part) {

    case LLM_PART_TOOL_NAME:
        add_lit(out, "\"input_json_delta\",\"partial_json\":\"");
        break;

    case LLM_PART_REASONING:
        add_lit(out, "\"thinking_delta\",\"thinking\":\"");
        break;

    default:
        add_lit(out, "\"text_delta\",\"text\":\"");
    }

    llm_api_add_event_text(out, ev);
    add_lit(out, "\"}}\n\n");
}


static void
llm_api_mo_close(llm_api_t *a, llm_buf_t *out)
{
    const llm_api_item_t  *it;

    it = a->output.open;

    if (it == NULL) {
        return;
    }

    if (it->part == LLM_PART_REASONING) {
        llm_api_mo_open_delta(a, out);
        add_lit(out, "\"signature_delta\",");
        llm_api_mo_signature(out, a);
        add_lit(out, "}\n\n");
    }

    (void) llm_buf_addf(out, "event: content_block_stop\n"
                        "data: {\"type\":\"content_block_stop\","
                        "\"index\":%u}\n\n", it->index);

    a->output.open = NULL;
}


void
llm_api_messages_event(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    switch (ev->type) {

    case LLM_EV_START:
        llm_api_mo_start(a, out);
        break;

    case LLM_EV_TEXT:

        if (a->output.open != a->output.last) {
            llm_api_mo_close(a, out);
            llm_api_mo_block(a, out);
        }

        if (a->output.open && ev->u.text.part != LLM_PART_TOOL_NAME
            && ev->u.text.text.len)
        {
            llm_api_mo_delta(a, ev, out);
        }

        break;

    case LLM_EV_FINISH:
        llm_api_mo_close(a, out);
        break;

    case LLM_EV_DONE:
        add_lit(out, "event: message_delta\n"
                "data: {\"type\":\"message_delta\",\"delta\":{");
        llm_api_mo_stop(out, a);
        add_lit(out, "},");
        llm_api_mo_usage(out, a);
        add_lit(out, "}\n\nevent: message_stop\n"
                "data: {\"type\":\"message_stop\"}\n\n");
        break;
    }
}


/* ---- errors ---- */

static const char *
llm_api_mo_error_type(int status)
{
    switch (status) {

    case 401:
        return "authentication_error";

    case 403:
        return "permission_error";

    case 404:
        return "not_found_error";

    case 413:
        return "request_too_large";

    case 429:
        return "rate_limit_error";

    case 503:
        return "overloaded_error";

    case 504:
        return "timeout_error";

    default:
        return status < 500 ? "invalid_request_error" : "api_error";
    }
}


void
llm_api_messages_error(const llm_err_t *err, llm_str_t id, llm_buf_t *out)
{
    /* on these words agents shorten the conversation */

    static const char  words[] = "prompt is too long: ";

    (void) llm_buf_addf(out, "{\"type\":\"error\",\"error\":{\"type\":\"%s\","
                        "\"message\":\"%s",
                        llm_api_mo_error_type(err->status),
                        strcmp(err->code, "context_length_exceeded") == 0
                        ? words : "");

    llm_api_error_text(err, out);
    add_lit(out, "\"},\"request_id\":\"");
    (void) llm_json_add_text(out, id.data, id.len);
    add_lit(out, "\"}");
}


void
llm_api_messages_fail(llm_api_t *a, const llm_err_t *err, llm_buf_t *out)
{
    add_lit(out, "event: error\ndata: ");
    llm_api_messages_error(err, a->id, out);
    add_lit(out, "\n\n");
}
