/*
 * Pieces of llama-server's answers: the members that were asked for, and log
 * probabilities; see llama.h.
 */

#include "engine/api/chat.h"
#include "engine/api/llama.h"

#include <math.h>


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
