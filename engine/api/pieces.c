/*
 * Pieces of JSON that streamed frames and whole bodies have in common.
 */

#include "engine/api/endpoint.h"


const char *
llm_api_finish_name(uint32_t finish)
{
    switch (finish) {

    case LLM_FINISH_LENGTH:
        return "length";

    case LLM_FINISH_TOOL_CALLS:
        return "tool_calls";

    default:
        return "stop";
    }
}


void
llm_api_add_uint(llm_buf_t *out, uint64_t v)
{
    char    digits[20];
    size_t  n;

    n = sizeof(digits);

    do {
        digits[--n] = (char) ('0' + v % 10);
        v /= 10;
    } while (v);

    (void) llm_buf_add(out, digits + n, sizeof(digits) - n);
}


void
llm_api_add_usage(llm_buf_t *out, const llm_api_t *a)
{
    uint64_t  prompt, completion;

    prompt = a->usage.prompt_tokens;
    completion = a->usage.completion_tokens;

    (void) llm_buf_addf(out,
                        "{\"prompt_tokens\":%llu,\"completion_tokens\":%llu,"
                        "\"total_tokens\":%llu,\"prompt_tokens_details\":"
                        "{\"cached_tokens\":%u,\"audio_tokens\":%u},"
                        "\"completion_tokens_details\":{"
                        "\"reasoning_tokens\":%u,\"audio_tokens\":0,"
                        "\"accepted_prediction_tokens\":%u,"
                        "\"rejected_prediction_tokens\":%u}}",
                        (unsigned long long) prompt,
                        (unsigned long long) completion,
                        (unsigned long long) (prompt + completion),
                        a->usage.cached_tokens, a->usage.audio_tokens,
                        a->usage.reasoning_tokens, a->usage.accepted_tokens,
                        a->usage.rejected_tokens);
}


void
llm_api_add_event_text(llm_buf_t *out, const llm_event_t *ev)
{
    (void) llm_json_add_text(out, llm_ref_data(ev, ev->u.text.text),
                             ev->u.text.text.len);
}


int
llm_api_is_prompt(const llm_event_t *ev)
{
    return ev->u.text.echo && ev->u.text.ids.len != 0;
}


void
llm_api_add_prompt_ids(llm_buf_t *out, const llm_api_t *a, uint32_t choice)
{
    int                     first;
    const llm_api_piece_t  *p;

    first = 1;
    (void) llm_buf_adds(out, "\"prompt_token_ids\":[");

    for (p = a->choices[choice / a->n * a->n].echo.first; p; p = p->next) {
        if (llm_api_is_prompt(p->ev)) {
            (void) llm_buf_adds(out, first ? "" : ",");
            llm_api_add_ids(out, p->ev);
            first = 0;
        }
    }

    (void) llm_buf_addc(out, ']');
}


void
llm_api_add_ids(llm_buf_t *out, const llm_event_t *ev)
{
    uint32_t        i;
    const int32_t  *ids;

    ids = llm_ref_data(ev, ev->u.text.ids);

    for (i = 0; i < ev->u.text.ids.len; i++) {
        if (i) {
            (void) llm_buf_addc(out, ',');
        }

        llm_api_add_uint(out, (uint64_t) ids[i]);
    }
}
