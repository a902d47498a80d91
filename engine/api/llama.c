/*
 * Pieces of llama-server's answers; see llama.h.
 */

#include "engine/api/chat.h"
#include "engine/api/llama.h"

#include <math.h>


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
                        (unsigned long long) s->seed);

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


/* ---- response_fields ---- */

/* the value at a path: "generation_settings/n_predict".  No member has an empty
   name, so the object itself, or a value by several paths, is not found */

static const llm_flat_t *
llm_api_ll_at(const llm_flat_t *v, const char *path)
{
    char         name[64];
    size_t       len;
    const char  *p;

    for (p = path; v; p += len + 1) {
        len = strcspn(p, "/");

        if (len >= sizeof(name)) {
            return NULL;
        }

        memcpy(name, p, len);
        name[len] = '\0';
        v = llm_flat_get(v, name);

        if (p[len] == '\0') {
            break;
        }
    }

    return v;
}


void
llm_api_llama_filter(llm_buf_t *out, size_t start, const char *names,
    size_t len)
{
    llm_buf_t          flat;
    llm_err_t          err;
    const char        *name, *some;
    const llm_flat_t  *v;

    if (out->failed) {
        return;
    }

    llm_buf_init(&flat, 0);

    if (llm_json_to_flat(out->data + start, out->len - start, NULL, &flat,
                         &err)
        == LLM_OK)
    {
        out->len = start;
        some = "{";

        for (name = names; name < names + len; name += strlen(name) + 1) {
            v = llm_api_ll_at((const llm_flat_t *) flat.data, name);

            if (v) {
                (void) llm_buf_adds(out, some);
                (void) llm_json_add_string(out, name, strlen(name));
                (void) llm_buf_addc(out, ':');
                (void) llm_json_add_flat(out, v);
                some = ",";
            }
        }

        (void) llm_buf_adds(out, *some == '{' ? "{}" : "}");
    }

    out->failed |= flat.failed;
    llm_buf_free(&flat);
}


/* ---- logprobs ---- */

static void
llm_api_ll_entry(llm_buf_t *out, const llm_api_t *a, int32_t id,
    float logprob, llm_ref_t bytes, const llm_event_t *ev)
{
    (void) llm_buf_adds(out, "{\"id\":");
    llm_api_add_uint(out, (uint64_t) id);
    (void) llm_buf_addc(out, ',');
    llm_api_add_entry(out, a, id, logprob, bytes, ev);
}


/* the same with the probability, which is above 0 */

static void
llm_api_ll_entry_prob(llm_buf_t *out, const llm_api_t *a, int32_t id,
    float logprob, llm_ref_t bytes, const llm_event_t *ev)
{
    (void) llm_buf_adds(out, "{\"id\":");
    llm_api_add_uint(out, (uint64_t) id);
    (void) llm_buf_addc(out, ',');
    llm_api_add_entry_token(out, a, id, bytes, ev);
    (void) llm_buf_addf(out, ",\"prob\":%.9g", exp((double) logprob));
    llm_api_add_entry_bytes(out, bytes, ev);
}


/* as many of the most likely tokens as were asked for: the engine adds the
   sampled one if it is not among them */

static void
llm_api_ll_token(llm_buf_t *out, const llm_api_t *a, const llm_event_t *ev,
    const llm_token_logprob_t *t, const char *top_name,
    void (*entry)(llm_buf_t *out, const llm_api_t *a, int32_t id,
                  float logprob, llm_ref_t bytes, const llm_event_t *ev))
{
    uint32_t                  i, n;
    const llm_top_logprob_t  *top;

    entry(out, a, t->id, t->logprob, t->bytes, ev);
    (void) llm_buf_addf(out, ",\"%s\":[", top_name);

    top = llm_ref_data(ev, t->top);
    n = llm_min(t->top.len, (uint32_t) llm_max(a->n_logprobs, 0));

    for (i = 0; i < n; i++) {
        (void) llm_buf_adds(out, i ? "," : "");
        entry(out, a, top[i].id, top[i].logprob, top[i].bytes, ev);
        (void) llm_buf_addc(out, '}');
    }

    (void) llm_buf_adds(out, "]}");
}


static void
llm_api_ll_item(llm_buf_t *out, const llm_api_t *a,
    const llm_api_place_t *place, const llm_event_t *ev, uint32_t array,
    const llm_token_logprob_t *t)
{
    (void) place;
    (void) array;

    llm_api_ll_token(out, a, ev, t, "top_logprobs", llm_api_ll_entry);
}


static void
llm_api_ll_item_prob(llm_buf_t *out, const llm_api_t *a,
    const llm_api_place_t *place, const llm_event_t *ev, uint32_t array,
    const llm_token_logprob_t *t)
{
    (void) place;
    (void) array;

    llm_api_ll_token(out, a, ev, t, "top_probs", llm_api_ll_entry_prob);
}


static const char *const  llm_api_ll_arrays[] = { "[" };

const llm_api_logprobs_t  llm_api_llama_logprobs = {
    1, -1, llm_api_ll_arrays, "]", llm_api_ll_item
};

const llm_api_logprobs_t  llm_api_llama_probs = {
    1, -1, llm_api_ll_arrays, "]", llm_api_ll_item_prob
};
