/*
 * Answers of Ollama's chats and generated texts: the lines of a stream, a body,
 * and errors.
 *
 * A stream needs of what it has sent only the calls' arguments, which are sent
 * whole, and the text if the answer ends with a context.
 */

#include "engine/api/chat.h"
#include "engine/api/ollama.h"

#define add_lit(out, lit)   (void) llm_buf_add(out, lit, sizeof(lit) - 1)


/* ---- keeping ---- */

int
llm_api_ollama_keep(llm_api_t *a, const llm_event_t *ev, llm_err_t *err)
{
    int              text;
    llm_api_item_t  *last;

    if (a->options & LLM_API_OL_LOAD) {
        return LLM_OK;
    }

    last = a->output.last;
    text = !a->stream || (a->options & LLM_API_OL_CONTEXT)
           || (ev->type == LLM_EV_TEXT
               && ev->u.text.part == LLM_PART_TOOL_ARGS);

    if (llm_api_output_keep(a, ev, text, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (!a->stream && ev->type == LLM_EV_TEXT
        && ev->u.text.part == LLM_PART_CONTENT
        && llm_api_output_logprobs(a, ev, llm_api_chat_logprobs.item, err)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    return last && last->part == LLM_PART_TOOL_NAME && last->text.first
           && (ev->type == LLM_EV_FINISH || last != a->output.last)
           ? llm_api_output_object(a, last, err) : LLM_OK;
}


/* ---- pieces ---- */

/* adds the members about time: "total_duration" ... */

static void
llm_api_ollama_durations(const llm_api_t *a, llm_buf_t *out)
{
    uint64_t                total, first, queue;
    const llm_api_usage_t  *u;

    u = &a->usage;
    total = u->total_us;
    first = llm_min(u->ttft_us, total);
    queue = llm_min(u->queue_us, first);

    (void) llm_buf_addf(out, "\"total_duration\":%llu000,"
                        "\"load_duration\":%llu000,"
                        "\"prompt_eval_count\":%u,"
                        "\"prompt_eval_duration\":%llu000,"
                        "\"eval_count\":%u,\"eval_duration\":%llu000",
                        (unsigned long long) total, (unsigned long long) queue,
                        u->prompt_tokens, (unsigned long long) (first - queue),
                        u->completion_tokens,
                        (unsigned long long) (total - first));
}


/* arguments on one line: the model may have written them on several */

static void
llm_api_ol_arguments(const llm_api_item_t *it, llm_buf_t *out)
{
    llm_buf_t  json, flat;
    llm_err_t  err;

    llm_buf_init(&json, 0);
    llm_buf_init(&flat, 0);
    llm_api_write_text_of(&it->text, LLM_API_AS_IS, &json);

    if (json.len && llm_json_to_flat(json.data, json.len, NULL, &flat, &err)
                    == LLM_OK)
    {
        (void) llm_json_add_flat(out, (const llm_flat_t *) flat.data);

    } else {
        add_lit(out, "{}");
    }

    out->failed |= json.failed | flat.failed;
    llm_buf_free(&json);
    llm_buf_free(&flat);
}


static void
llm_api_ol_call(const llm_api_t *a, const llm_api_item_t *it, llm_buf_t *out)
{
    add_lit(out, "{\"id\":\"call_");
    (void) llm_json_add_text(out, a->id.data, a->id.len);
    (void) llm_buf_addf(out, "_%u\",\"function\":{\"index\":%u,\"name\":",
                        it->call, it->call);
    (void) llm_json_add_string(out, it->name.data, it->name.len);
    add_lit(out, ",\"arguments\":");
    llm_api_ol_arguments(it, out);
    add_lit(out, "}}");
}


/* the members that end an answer */

static void
llm_api_ol_end(const llm_api_t *a, llm_buf_t *out)
{
    if (a->options & LLM_API_OL_LOAD) {
        add_lit(out, ",\"done\":true,\"done_reason\":\"");
        (void) llm_buf_adds(out, a->options & LLM_API_OL_UNLOAD ? "unload\"}"
                                                                : "load\"}");
        return;
    }

    add_lit(out, ",\"done\":true,\"done_reason\":\"");
    (void) llm_buf_adds(out, a->choices[0].finish == LLM_FINISH_LENGTH
                             ? "length\"," : "stop\",");

    if (a->options & LLM_API_OL_CONTEXT) {
        add_lit(out, "\"context\":[");
        llm_api_ollama_remember(a, out);
        add_lit(out, "],");
    }

    llm_api_ollama_durations(a, out);
    add_lit(out, "}");
}


/* ---- a stream ---- */

/* begins a line, up to the text */

static void
llm_api_ol_open(const llm_api_t *a, llm_buf_t *out)
{
    (void) llm_buf_add(out, a->head.data, a->head.len);

    if (a->options & LLM_API_OL_CHAT) {
        add_lit(out, ",\"message\":{\"role\":\"assistant\",\"content\":\"");

    } else {
        add_lit(out, ",\"response\":\"");
    }
}


/* ends the text's object, if it is in one */

static void
llm_api_ol_shut(const llm_api_t *a, llm_buf_t *out)
{
    if (a->options & LLM_API_OL_CHAT) {
        (void) llm_buf_addc(out, '}');
    }
}


static void
llm_api_ol_text(const llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    uint32_t                    i, n;
    const llm_token_logprob_t  *t;

    llm_api_ol_open(a, out);

    if (ev->u.text.part == LLM_PART_REASONING) {
        add_lit(out, "\",\"thinking\":\"");
    }

    llm_api_add_event_text(out, ev);
    (void) llm_buf_addc(out, '"');
    llm_api_ol_shut(a, out);

    n = a->n_logprobs >= 0 ? ev->u.text.logprobs.len : 0;

    if (n) {
        t = llm_ref_data(ev, ev->u.text.logprobs);
        add_lit(out, ",\"logprobs\":[");

        for (i = 0; i < n; i++) {
            (void) llm_buf_adds(out, i ? "," : "");
            llm_api_chat_logprobs.item(out, a, NULL, ev, 0, &t[i]);
        }

        (void) llm_buf_addc(out, ']');
    }

    add_lit(out, ",\"done\":false}\n");
}


/* sends the call that has ended */

static void
llm_api_ol_close(llm_api_t *a, llm_buf_t *out)
{
    const llm_api_item_t  *it;

    it = a->output.open;
    a->output.open = NULL;

    if (it == NULL || it->part != LLM_PART_TOOL_NAME) {
        return;
    }

    llm_api_ol_open(a, out);
    add_lit(out, "\",\"tool_calls\":[");
    llm_api_ol_call(a, it, out);
    (void) llm_buf_addc(out, ']');
    llm_api_ol_shut(a, out);
    add_lit(out, ",\"done\":false}\n");
}


void
llm_api_ollama_event(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    switch (ev->type) {

    case LLM_EV_TEXT:
        if (a->output.open != a->output.last) {
            llm_api_ol_close(a, out);
            a->output.open = a->output.last;
        }

        if (ev->u.text.part <= LLM_PART_REASONING && llm_api_has_frame(a, ev))
        {
            llm_api_ol_text(a, ev, out);
        }

        break;

    case LLM_EV_FINISH:
        llm_api_ol_close(a, out);
        break;

    case LLM_EV_DONE:
        llm_api_ol_open(a, out);
        (void) llm_buf_addc(out, '"');
        llm_api_ol_shut(a, out);
        llm_api_ol_end(a, out);
        (void) llm_buf_addc(out, '\n');
        break;
    }
}


void
llm_api_ollama_heartbeat(const llm_api_t *a, llm_buf_t *out)
{
    llm_api_ol_open(a, out);
    (void) llm_buf_addc(out, '"');
    llm_api_ol_shut(a, out);
    add_lit(out, ",\"done\":false}\n");
}


/* ---- a body ---- */

/* writes a little of the texts of all items of a part; LLM_OK at their end */

static int
llm_api_ol_texts(llm_api_t *a, llm_part_t part, size_t max, llm_buf_t *out)
{
    llm_api_walk_t  *w;

    w = &a->output.walk;

    for ( ;; ) {

        while (w->chunk) {
            if (out->len >= max) {
                return LLM_MORE;
            }

            (void) llm_json_add_text(out, w->chunk->data, w->chunk->len);
            w->chunk = w->chunk->next;
        }

        w->item = w->begun ? w->item->next : a->output.first;
        w->begun = 1;

        while (w->item && w->item->part != (uint32_t) part) {
            w->item = w->item->next;
        }

        if (w->item == NULL) {
            w->begun = 0;
            return LLM_OK;
        }

        w->chunk = w->item->text.first;
    }
}


static const llm_api_item_t *
llm_api_ol_first(const llm_api_t *a, uint32_t part)
{
    const llm_api_item_t  *it;

    for (it = a->output.first; it && it->part != part; it = it->next) {
        /* void */
    }

    return it;
}


static void
llm_api_ol_calls(const llm_api_t *a, llm_buf_t *out)
{
    int                    some;
    const llm_api_item_t  *it;

    some = 0;

    for (it = a->output.first; it; it = it->next) {
        if (it->part == LLM_PART_TOOL_NAME) {
            (void) llm_buf_adds(out, some ? "," : ",\"tool_calls\":[");
            llm_api_ol_call(a, it, out);
            some = 1;
        }
    }

    (void) llm_buf_adds(out, some ? "]" : "");
}


static void
llm_api_ol_logprobs(const llm_api_t *a, llm_buf_t *out)
{
    int                    some;
    const llm_api_item_t  *it;

    some = 0;

    for (it = a->output.first; it && a->n_logprobs >= 0; it = it->next) {
        if (it->logprobs.first) {
            (void) llm_buf_adds(out, some ? "," : ",\"logprobs\":[");
            llm_api_write_text_of(&it->logprobs, LLM_API_AS_IS, out);
            some = 1;
        }
    }

    (void) llm_buf_adds(out, some ? "]" : "");
}


/* the parts of a body, in order: cursor.member */
enum {
    LLM_API_OL_HEAD = 0,
    LLM_API_OL_TEXT,
    LLM_API_OL_THINK,
    LLM_API_OL_THOUGHTS,
    LLM_API_OL_END
};


int
llm_api_ollama_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    llm_api_cursor_t  *cur;

    cur = &a->cursor;

    for ( /* void */ ; !out->failed; cur->member++) {

        switch (cur->member) {

        case LLM_API_OL_HEAD:
            llm_api_ol_open(a, out);
            break;

        case LLM_API_OL_TEXT:
            if (llm_api_ol_texts(a, LLM_PART_CONTENT, max, out) != LLM_OK) {
                return LLM_MORE;
            }

            (void) llm_buf_addc(out, '"');
            break;

        case LLM_API_OL_THINK:
            if (llm_api_ol_first(a, LLM_PART_REASONING) == NULL) {
                cur->member++;
                break;
            }

            add_lit(out, ",\"thinking\":\"");
            break;

        case LLM_API_OL_THOUGHTS:
            if (llm_api_ol_texts(a, LLM_PART_REASONING, max, out) != LLM_OK) {
                return LLM_MORE;
            }

            (void) llm_buf_addc(out, '"');
            break;

        case LLM_API_OL_END:
            llm_api_ol_calls(a, out);
            llm_api_ol_shut(a, out);
            llm_api_ol_logprobs(a, out);
            llm_api_ol_end(a, out);

            return out->failed ? LLM_ERROR : LLM_OK;
        }
    }

    return LLM_ERROR;
}


/* ---- errors ---- */

void
llm_api_ollama_error(const llm_err_t *err, llm_str_t id, llm_buf_t *out)
{
    (void) id;

    add_lit(out, "{\"error\":\"");
    llm_api_error_text(err, out);
    add_lit(out, "\"}");
}


void
llm_api_ollama_fail(llm_api_t *a, const llm_err_t *err, llm_buf_t *out)
{
    llm_api_ollama_error(err, a->id, out);
    (void) llm_buf_addc(out, '\n');
}
