/*
 * What llama-server's answers say at their end, and "__verbose" of chats: the
 * prompt's text, the parameters, why and where the answer has ended; see
 * llama.h.
 */

#include "engine/api/llama.h"

#include <math.h>

/* what llama-server shows as the seed of a request that has none */
#define LLM_API_LL_RANDOM  4294967295ull


const char *
llm_api_llama_stop(const llm_api_choice_t *c)
{
    return c->finish == LLM_FINISH_LENGTH ? "limit" : c->hit ? "word" : "eos";
}


/* digits as they were probably written: a float has no more */

#define llm_api_ll_NUMBER(out, name, v)                                      \
    (void) llm_buf_addf(out, ",\"" name "\":%.6g", (double) (v))
#define llm_api_ll_ABOVE  llm_api_ll_NUMBER
#define llm_api_ll_INT(out, name, v)                                         \
    (void) llm_buf_addf(out, ",\"" name "\":%d", (int) (v))


void
llm_api_llama_settings(llm_buf_t *out, const llm_api_reader_t *rd)
{
    uint32_t                 i;
    const llm_request_t     *r;
    const llm_sampling_t    *s;
    const llm_logit_bias_t  *bias;

    r = &rd->r;
    s = &r->sampling;
    bias = (const llm_logit_bias_t *) (rd->msg->data + r->logit_bias.off);

    (void) llm_buf_addf(out, "{\"n_predict\":%d,\"max_tokens\":%d,"
                        "\"stream\":%s,\"ignore_eos\":%s,\"n_probs\":%d,"
                        "\"seed\":%llu", r->max_tokens, r->max_tokens,
                        r->flags & LLM_REQ_STREAM ? "true" : "false",
                        r->flags & LLM_REQ_IGNORE_EOS ? "true" : "false",
                        llm_max(s->n_logprobs, 0),
                        s->has_seed ? (unsigned long long) s->seed
                                    : LLM_API_LL_RANDOM);

#define LLM_PARAM(name, type, otherwise, least, most)                        \
    llm_api_ll_##type(out, #name, s->name);
#define LLM_ALIAS(name, of, type, least, most)                               \
    llm_api_ll_##type(out, #name, s->of);
#include "engine/base/sampling.def"

    (void) llm_buf_adds(out, ",\"adaptive_target\":-1,\"adaptive_decay\":0,"
                             "\"logit_bias\":[");

    for (i = 0; i < r->logit_bias.len; i++) {
        (void) llm_buf_addf(out, "%s{\"token\":%d,\"bias\":", i ? "," : "",
                            bias[i].id);

        if (isinf(bias[i].bias)) {
            (void) llm_buf_adds(out, "null}");

        } else {
            (void) llm_buf_addf(out, "%.6g}", (double) bias[i].bias);
        }
    }

    (void) llm_buf_adds(out, "]}");
}


void
llm_api_llama_prompt(llm_buf_t *out, const llm_api_t *a, uint32_t choice)
{
    const llm_api_piece_t  *p;

    for (p = a->choices[choice / a->n * a->n].shown.first; p; p = p->next) {
        llm_api_add_event_text(out, p->ev);
    }
}


int
llm_api_llama_truncated(const llm_api_t *a, const llm_api_choice_t *c,
    uint32_t n)
{
    return c->finish == LLM_FINISH_LENGTH && n + c->n_tokens >= a->ctx;
}


void
llm_api_llama_verbose(llm_buf_t *out, const llm_api_t *a)
{
    const llm_api_choice_t  *c;

    c = &a->choices[0];

    (void) llm_buf_adds(out, ",\"__verbose\":{\"index\":0,\"prompt\":\"");
    llm_api_llama_prompt(out, a, 0);
    (void) llm_buf_addf(out, "\",\"generation_settings\":%s,"
                        "\"tokens_predicted\":%u,\"tokens_evaluated\":%u,"
                        "\"tokens_cached\":%u,\"truncated\":%s,"
                        "\"stop_type\":\"%s\"}", (const char *) a->own,
                        c->n_tokens, a->usage.prompt_tokens,
                        a->usage.cached_tokens,
                        llm_api_llama_truncated(a, c, a->usage.prompt_tokens)
                        ? "true" : "false", llm_api_llama_stop(c));
}
