/*
 * The line of the log when a request arrives: what it asks of the engine, and
 * which of its sampling parameters have no effect.  None of the request's text
 * is in it.
 *
 * Unusual values are not reported: only parameters that have no effect, or the
 * opposite of what they say.
 */

#include "engine/api/api_internal.h"


/* has a client given the parameter, with a value that does not turn it off? */

#define llm_said(s, name)  ((s)->said >> LLM_PARAM_ID_##name & 1)


static void
llm_api_arrival_params(const llm_sampling_t *s, llm_buf_t *out)
{
#define LLM_PARAM(name, type, otherwise, least, most)                        \
    if (llm_said(s, name)) {                                                 \
        (void) llm_buf_addf(out, ", " #name " %g", (double) s->name);        \
    }
#include "engine/base/sampling.def"
}


/* stages that cut the list of tokens have no effect if the most likely token
   is always taken */

static void
llm_api_arrival_greedy(const llm_sampling_t *p, llm_buf_t *out)
{
    uint32_t  cuts, n;

    enum { LLM_IS_EDIT, LLM_IS_PENALTY, LLM_IS_CUT };

    cuts = 0;
    n = 0;

#define LLM_STAGE(name, kind, when, where, parameters)                       \
    n++;                                                                     \
    cuts |= LLM_IS_##kind == LLM_IS_CUT && (when) ? 1u << n : 0;
#include "engine/base/sampling.def"

    /* temperature's own bit is always set */

    if (p->temperature == 0 && (cuts & (cuts - 1))) {
        (void) llm_buf_adds(out, "; temperature 0 takes the most likely token"
                                 " whatever else is said of sampling");
    }
}


void
llm_api_arrival(const llm_request_t *msg, llm_buf_t *out)
{
    const llm_sampling_t  *s;

    s = &msg->sampling;

    if (msg->flags & LLM_REQ_STREAM) {
        (void) llm_buf_adds(out, ", stream");
    }

    if (msg->task != LLM_TASK_GENERATE) {
        return;
    }

    if (msg->max_tokens >= 0) {
        (void) llm_buf_addf(out, ", max_tokens %d", msg->max_tokens);
    }

    if (msg->n > 1) {
        (void) llm_buf_addf(out, ", n %u", msg->n);
    }

    if (msg->rule_kind != LLM_RULE_NONE) {
        (void) llm_buf_addf(out, ", constrained by %.*s",
                            (int) msg->rule_name.len,
                            (const char *) msg + msg->rule_name.off);
    }

    llm_api_arrival_params(s, out);
    llm_api_arrival_greedy(s, out);

    if (s->temperature == 0 && msg->n > 1) {
        (void) llm_buf_addf(out, "; with temperature 0 all of n %u answers are"
                            " the same", msg->n);
    }

    if (s->xtc_probability > 0 && s->xtc_threshold > 0.5f) {
        (void) llm_buf_adds(out, "; xtc_threshold above 0.5 turns XTC off");
    }

    if (s->dry_multiplier > 0
        && (s->dry_base < 1 || s->dry_penalty_last_n == 0))
    {
        (void) llm_buf_addf(out, "; %s turns DRY off", s->dry_base < 1
                            ? "dry_base below 1" : "dry_penalty_last_n 0");
    }

    if (s->repeat_last_n == 0
        && (s->repetition_penalty != 1 || s->frequency_penalty != 0
            || s->presence_penalty != 0))
    {
        (void) llm_buf_adds(out, "; repeat_last_n 0 turns the penalties off");
    }

    if (s->repetition_penalty < 1 || s->frequency_penalty < 0
        || s->presence_penalty < 0)
    {
        (void) llm_buf_adds(out, "; a repetition_penalty below 1, or another "
                                 "one below 0, asks for repetitions");
    }

    if (s->dynatemp_range > s->temperature) {
        (void) llm_buf_adds(out, "; dynatemp_range is larger than "
                                 "temperature");
    }

    if (msg->max_tokens >= 0 && msg->min_tokens > msg->max_tokens) {
        (void) llm_buf_addf(out, "; min_tokens %d is more than max_tokens",
                            msg->min_tokens);
    }
}
