/*
 * "timings" of an answer, and "prompt_progress" before it, as llama-server has
 * them; see llama.h.
 */

#include "engine/api/llama.h"


static void
llm_api_ll_rate(llm_buf_t *out, const char *what, uint32_t n, uint64_t us)
{
    (void) llm_buf_addf(out, ",\"%s_n\":%u,\"%s_ms\":%.3f,"
                        "\"%s_per_token_ms\":%.3f,\"%s_per_second\":%.3f",
                        what, n, what, (double) us / 1000,
                        what, n ? (double) us / 1000 / n : 0.0,
                        what, us ? (double) n * 1e6 / (double) us : 0.0);
}


void
llm_api_llama_timings(llm_buf_t *out, const llm_api_t *a, uint64_t prompt_us,
    uint64_t predicted_us)
{
    uint32_t  cached;

    cached = llm_min(a->usage.cached_tokens, a->usage.prompt_tokens);

    (void) llm_buf_addf(out, "\"timings\":{\"cache_n\":%u", cached);
    llm_api_ll_rate(out, "prompt", a->usage.prompt_tokens - cached, prompt_us);
    llm_api_ll_rate(out, "predicted", a->usage.completion_tokens,
                    predicted_us);
    (void) llm_buf_addc(out, '}');
}


void
llm_api_llama_progress(llm_buf_t *out, const llm_api_t *a,
    const llm_event_t *ev)
{
    (void) llm_buf_addf(out, "\"prompt_progress\":{\"total\":%u,\"cache\":%u,"
                        "\"processed\":%u,\"time_ms\":%llu}",
                        a->usage.prompt_tokens, a->usage.cached_tokens,
                        ev->u.progress.processed,
                        (unsigned long long) (llm_now_us() - a->start_us)
                        / 1000);
}


void
llm_api_llama_timed(llm_buf_t *out, const llm_api_t *a)
{
    uint64_t  first, queue, total;

    total = a->usage.total_us;
    first = llm_min(a->usage.ttft_us, total);
    queue = llm_min(a->usage.queue_us, first);

    llm_api_llama_timings(out, a, first - queue, total - first);
}


void
llm_api_add_timings(llm_buf_t *out, const llm_api_t *a)
{
    if (a->options & LLM_API_TIMINGS) {
        (void) llm_buf_addc(out, ',');
        llm_api_llama_timed(out, a);
    }
}
