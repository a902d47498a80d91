/*
 * An answer that is not streamed: events are gathered choice by choice and
 * written as one JSON body when the request has ended.
 */

#include "engine/api/api_internal.h"


static void
llm_api_gather_call(llm_api_t *a, llm_api_choice_t *c, const llm_event_t *ev)
{
    llm_buf_t  *b;

    b = &c->calls;

    if (ev->u.text.part == LLM_PART_TOOL_ARGS) {
        if (c->n_calls) {
            llm_api_add_event_text(b, ev);
        }

        return;
    }

    (void) llm_buf_adds(b, c->n_calls++ ? "\"}},{" : "{");
    llm_api_add_call(b, a, ev);
}


void
llm_api_gather(llm_api_t *a, const llm_event_t *ev)
{
    uint32_t           i;
    const char        *text;
    llm_api_choice_t  *c;

    c = &a->choices[ev->index];
    text = llm_ref_data(ev, ev->u.text.text);

    switch (ev->u.text.part) {

    case LLM_PART_CONTENT:
        (void) llm_buf_add(&c->text, text, ev->u.text.text.len);
        break;

    case LLM_PART_REASONING:
        (void) llm_buf_add(&c->reasoning, text, ev->u.text.text.len);
        break;

    default:
        llm_api_gather_call(a, c, ev);
    }

    if (a->n_logprobs >= 0 && ev->u.text.logprobs.len) {
        for (i = 0; i < llm_api_logprob_arrays(a); i++) {
            if (c->logprobs[i].len) {
                (void) llm_buf_addc(&c->logprobs[i], ',');
            }

            llm_api_add_logprob_items(&c->logprobs[i], a, c, ev, i);
        }
    }

    if (a->token_ids && ev->u.text.ids.len) {
        if (c->ids.len) {
            (void) llm_buf_addc(&c->ids, ',');
        }

        llm_api_add_ids(&c->ids, ev);
    }

    llm_api_count_text(c, ev);
}


static void
llm_api_write_message_member(const llm_api_choice_t *c, llm_buf_t *out)
{
    (void) llm_buf_adds(out, ",\"message\":{\"role\":\"assistant\","
                        "\"content\":");

    if (c->text.len == 0 && c->n_calls) {
        (void) llm_buf_adds(out, "null");

    } else {
        (void) llm_json_add_string(out, c->text.data, c->text.len);
    }

    (void) llm_buf_adds(out, ",\"refusal\":null");

    if (c->reasoning.len) {
        (void) llm_buf_adds(out, ",\"reasoning_content\":");
        (void) llm_json_add_string(out, c->reasoning.data, c->reasoning.len);
    }

    if (c->n_calls) {
        (void) llm_buf_adds(out, ",\"tool_calls\":[");
        (void) llm_buf_add(out, c->calls.data, c->calls.len);
        (void) llm_buf_adds(out, "\"}}]");
    }

    (void) llm_buf_addc(out, '}');
}


static int
llm_api_choice_failed(const llm_api_choice_t *c)
{
    int       failed;
    uint32_t  i;

    failed = c->text.failed | c->reasoning.failed | c->calls.failed
             | c->ids.failed;

    for (i = 0; i < LLM_API_LOGPROB_ARRAYS; i++) {
        failed |= c->logprobs[i].failed;
    }

    return failed;
}


int
llm_api_write_body(llm_api_t *a, llm_buf_t *out)
{
    uint32_t                 i;
    const llm_api_choice_t  *c;

    (void) llm_buf_add(out, a->head.data, a->head.len);

    for (i = 0; i < a->n_choices; i++) {
        c = &a->choices[i];

        if (llm_api_choice_failed(c)) {
            return LLM_ERROR;
        }

        if (i) {
            (void) llm_buf_adds(out, ",{\"index\":");
        }

        llm_api_add_uint(out, i);

        if (a->is_chat) {
            llm_api_write_message_member(c, out);

        } else {
            (void) llm_buf_adds(out, ",\"text\":");
            (void) llm_json_add_string(out, c->text.data, c->text.len);
        }

        (void) llm_buf_adds(out, ",\"logprobs\":");
        llm_api_add_logprobs(out, a, c, NULL);
        (void) llm_buf_adds(out, ",\"finish_reason\":\"");
        (void) llm_buf_adds(out, llm_api_finish_name(c->finish));
        (void) llm_buf_addc(out, '"');

        if (a->token_ids) {
            (void) llm_buf_adds(out, ",\"token_ids\":[");
            (void) llm_buf_add(out, c->ids.data, c->ids.len);
            (void) llm_buf_addc(out, ']');
        }

        (void) llm_buf_addc(out, '}');
    }

    (void) llm_buf_adds(out, "],\"usage\":");
    llm_api_add_usage(out, a);
    (void) llm_buf_addc(out, '}');

    return out->failed ? LLM_ERROR : LLM_OK;
}
