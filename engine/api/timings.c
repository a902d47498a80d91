/*
 * "timings" of an answer, and "prompt_progress" before it, as llama-server has
 * them; see llama.h.
 */

#include "engine/api/llama.h"


/* of n tokens, which steps steps computed */

static void
llm_api_ll_rate(llm_buf_t *out, const char *what, uint32_t n, uint32_t steps,
    uint64_t us)
{
    double  ms;

    ms = (double) us / 1000;

    (void) llm_buf_addf(out, ",\"%s_n\":%u,\"%s_ms\":%.3f,"
                        "\"%s_per_token_ms\":%.15g,"
                        "\"%s_per_second\":%.15g",
                        what, n, what, ms, what, steps ? ms / steps : 0.0,
                        what, us ? steps * 1000.0 / ms : 0.0);
}


/* n prompt tokens were computed; the step that computes the last one gives the
   first token of the answer */

static void
llm_api_ll_timings(llm_buf_t *out, const llm_api_t *a, uint32_t n,
    uint64_t prompt_us, uint64_t predicted_us)
{
    uint32_t  predicted, drafted;

    predicted = a->usage.completion_tokens;
    drafted = a->usage.accepted_tokens + a->usage.rejected_tokens;

    (void) llm_buf_addf(out, "\"timings\":{\"cache_n\":%u",
                        llm_min(a->usage.cached_tokens,
                                a->usage.prompt_tokens));
    llm_api_ll_rate(out, "prompt", n, n, prompt_us);
    llm_api_ll_rate(out, "predicted", predicted,
                    predicted - llm_min(predicted, a->n_choices),
                    predicted_us);

    if (drafted) {
        (void) llm_buf_addf(out, ",\"draft_n\":%u,\"draft_n_accepted\":%u",
                            drafted, a->usage.accepted_tokens);
    }

    (void) llm_buf_addc(out, '}');
}


static uint32_t
llm_api_ll_computed(const llm_api_t *a)
{
    return a->usage.prompt_tokens - llm_min(a->usage.cached_tokens,
                                            a->usage.prompt_tokens);
}


void
llm_api_llama_now(llm_buf_t *out, const llm_api_t *a)
{
    uint64_t  now, first;

    now = llm_now_us();
    first = a->first_us ? a->first_us : now;

    llm_api_ll_timings(out, a, llm_api_ll_computed(a), first - a->start_us,
                       now - first);
}


void
llm_api_llama_progress(llm_buf_t *out, const llm_api_t *a,
    const llm_event_t *ev, int timings)
{
    uint32_t  n;
    uint64_t  us;

    us = llm_now_us() - a->start_us;
    n = ev->u.progress.processed;

    (void) llm_buf_addf(out, "\"prompt_progress\":{\"total\":%u,\"cache\":%u,"
                        "\"processed\":%u,\"time_ms\":%llu}",
                        a->usage.prompt_tokens, a->usage.cached_tokens, n,
                        (unsigned long long) us / 1000);

    if (timings) {
        n -= llm_min(n, a->usage.cached_tokens);
        (void) llm_buf_addc(out, ',');
        llm_api_ll_timings(out, a, n, n ? us : 0, 0);
    }
}


void
llm_api_llama_timed(llm_buf_t *out, const llm_api_t *a)
{
    uint64_t  first, queue, total;

    total = a->usage.total_us;
    first = llm_min(a->usage.ttft_us, total);
    queue = llm_min(a->usage.queue_us, first);

    llm_api_ll_timings(out, a, llm_api_ll_computed(a), first - queue,
                       total - first);
}


void
llm_api_add_timings(llm_buf_t *out, const llm_api_t *a)
{
    if (a->options & LLM_API_TIMINGS) {
        (void) llm_buf_addc(out, ',');
        llm_api_llama_timed(out, a);
    }
}
