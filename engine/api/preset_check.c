/*
 * Checks defaults of requests when the configuration is read, by adding them
 * to a small request of each endpoint.  An endpoint that has a member, but not
 * with this value, does not get it: "logprobs" is true for chats and a number
 * for completions.  A member that no endpoint accepts is an error.
 */

#include "engine/api/draft.h"
#include "engine/api/preset.h"


/* smallest request of an endpoint, and the members that it gets where the
   defaults do not have them */
typedef struct {
    const llm_api_endpoint_t  *endpoint;
    const char                *body;
    const char                *rest;
} llm_preset_sample_t;

#define MESSAGES  "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}"

static const llm_preset_sample_t  llm_preset_samples[] = {
    { &llm_api_chat, MESSAGES, "{}" },
    { &llm_api_chat_any, MESSAGES, "{}" },
    { &llm_api_chat_tokens, MESSAGES, "{}" },
    { &llm_api_completions, "{\"prompt\":\"x\"}", "{}" },
    { &llm_api_embeddings, "{\"input\":\"x\"}", "{}" },
    { &llm_api_messages, MESSAGES, "{\"max_tokens\":1000000}" },
    { &llm_api_count_tokens, MESSAGES, "{}" },
    { &llm_api_rerank, "{\"query\":\"x\",\"documents\":[\"x\"]}", "{}" },
    { &llm_api_responses, "{\"input\":\"x\"}", "{}" },
    { &llm_api_input_tokens, "{\"input\":\"x\"}", "{}" },
    { &llm_api_score, "{\"text_1\":\"x\",\"text_2\":\"x\"}", "{}" },
    { &llm_api_tokenize, "{\"prompt\":\"x\"}", "{}" },
    { &llm_api_detokenize, "{\"tokens\":[1]}", "{}" },
    { &llm_api_template, MESSAGES, "{}" },
    { &llm_api_infill, "{\"input_prefix\":\"x\",\"input_suffix\":\"x\"}",
      "{}" },
    { &llm_api_completions_any, "{\"prompt\":\"x\"}", "{}" },
    { &llm_api_completion, "{\"prompt\":\"x\"}", "{}" },
    { &llm_api_embedding, "{\"content\":\"x\"}", "{}" },
    { &llm_api_tei_embed, "{\"inputs\":\"x\"}", "{}" },
    { &llm_api_tei_rerank, "{\"query\":\"x\",\"texts\":[\"x\"]}", "{}" },
    { &llm_api_ollama_chat, MESSAGES, "{}" },
    { &llm_api_ollama_generate, "{\"prompt\":\"x\"}", "{}" },
    { &llm_api_ollama_embed, "{\"input\":\"x\"}", "{}" },
    { &llm_api_ollama_embeddings, "{\"prompt\":\"x\"}", "{}" },
    { &llm_api_ollama_show, "{}", "{}" },
};

/* members that are the request itself, or its model, which llm_model and
   llm_api set */
static const char *const  llm_preset_own[] = {
    "content", "context", "data_1", "data_2", "documents", "input",
    "input_extra", "input_prefix", "input_suffix", "inputs", "items",
    "messages", "model", "previous_response_id", "prompt", "queries",
    "query", "suffix", "text_1", "text_2", "texts", "tokens"
};


/* writes a request of this endpoint with the members in the mask */

static int
llm_preset_text(const llm_api_preset_t *p, const llm_preset_sample_t *sample,
    int stream, uint64_t mask, llm_buf_t *json, llm_err_t *err)
{
    llm_buf_t  flat, rest;

    json->len = 0;
    llm_buf_init(&flat, 0);
    llm_buf_init(&rest, 0);

    if (llm_json_to_flat(sample->body, strlen(sample->body), NULL, &flat, err)
        == LLM_OK
        && llm_json_to_flat(sample->rest, strlen(sample->rest), NULL, &rest,
                            err) == LLM_OK)
    {
        if (stream) {
            llm_flat_add_str(&flat, "stream", 6);
            llm_flat_add_bool(&flat, 1);
            llm_flat_close(&flat, 0,
                           ((const llm_flat_t *) flat.data)->count + 1);
        }

        llm_api_preset_merge((const llm_flat_t *) p->flat.data, mask, &flat);
        llm_api_preset_merge((const llm_flat_t *) rest.data, UINT64_MAX, &flat);
        (void) llm_json_add_flat(json, (const llm_flat_t *) flat.data);

        json->failed |= flat.failed;
    }

    llm_buf_free(&flat);
    llm_buf_free(&rest);

    return json->failed || json->len == 0 ? llm_fail(err, "no memory")
                                          : LLM_OK;
}


static int
llm_preset_try(const llm_api_preset_t *p, const llm_preset_sample_t *sample,
    int stream, uint64_t mask, llm_err_t *err)
{
    llm_api_t        *a;
    llm_buf_t         json, msg;
    llm_api_conf_t    conf;
    llm_api_model_t   model;

    memset(&model, 0, sizeof(model));
    model.name = llm_str("model");
    model.is_default = 1;
    model.max_tokens = -1;

    memset(&conf, 0, sizeof(conf));
    conf.models = &model;
    conf.n_models = 1;
    conf.allowed = 1;
    conf.fallback = -1;
    conf.cap = -1;
    conf.id = llm_str("x");

    a = NULL;
    llm_buf_init(&json, 0);
    llm_buf_init(&msg, 0);

    if (llm_preset_text(p, sample, stream, mask, &json, err) == LLM_OK) {
        a = llm_api_parse(sample->endpoint, &conf, json.data, json.len, &msg,
                          err);
    }

    llm_api_free(a);
    llm_buf_free(&json);
    llm_buf_free(&msg);

    return a ? LLM_OK : LLM_ERROR;
}


/* the index of the member that an error is about, found by trying: without
   that member there is no error, or with it alone there is one; n: the error
   is about no single member */

static uint32_t
llm_preset_culprit(const llm_api_preset_t *p,
    const llm_preset_sample_t *sample, int stream, uint64_t mask)
{
    uint32_t   i;
    uint64_t   bit;
    llm_err_t  err;

    for (i = p->n; i-- > 0; /* void */ ) {
        bit = (uint64_t) 1 << i;

        if ((mask & bit)
            && llm_preset_try(p, sample, stream, mask & ~bit, &err)
               == LLM_OK)
        {
            return i;
        }
    }

    for (i = 0; i < p->n; i++) {
        bit = (uint64_t) 1 << i;

        if ((mask & bit)
            && llm_preset_try(p, sample, stream, bit, &err) != LLM_OK)
        {
            return i;
        }
    }

    return p->n;
}


/* the mask of members that the endpoint accepts, and why it does not accept
   others */

static uint64_t
llm_preset_taken(const llm_api_preset_t *p, const llm_preset_sample_t *sample,
    int stream, uint64_t mask, llm_err_t *why)
{
    uint32_t   i;
    llm_err_t  err;

    while (mask
           && llm_preset_try(p, sample, stream, mask, &err) != LLM_OK)
    {
        i = llm_preset_culprit(p, sample, stream, mask);

        if (i == p->n) {
            *why = err;
            return 0;
        }

        why[i] = err;
        (void) llm_preset_try(p, sample, stream, (uint64_t) 1 << i,
                              &why[i]);
        mask &= ~((uint64_t) 1 << i);
    }

    return mask;
}


/* how the endpoint treats a member; an endpoint with drafts has the chat's
   fields, too */

static llm_api_known_t
llm_preset_knows(const llm_api_endpoint_t *ep, llm_str_t name)
{
    llm_api_known_t  known;

    known = llm_api_knows(ep, name);

    if (known == LLM_API_UNKNOWN && ep->shared == &llm_api_draft_fields) {
        known = llm_api_knows(&llm_api_chat, name);

        if (ep->task >= LLM_TASK_TOKENIZE) {
            known = llm_min(known, LLM_API_READ);
        }
    }

    return known;
}


/* the mask of members that the endpoint treats as `least` or better */

static uint64_t
llm_preset_known(const llm_api_preset_t *p, const llm_api_endpoint_t *ep,
    llm_api_known_t least)
{
    uint32_t           i;
    uint64_t           mask;
    const llm_flat_t  *root, *key;

    root = (const llm_flat_t *) p->flat.data;
    mask = 0;

    for (key = llm_flat_first(root), i = 0; key; i++) {
        mask |= (uint64_t) (llm_preset_knows(ep, llm_flat_str(key)) >= least)
                << i;
        key = llm_flat_next(root, llm_flat_next(root, key));
    }

    return mask;
}


/* reports a member that no endpoint has, or whose value is accepted by none of
   the endpoints where it has the most effect */

static int
llm_preset_judge(const llm_api_preset_t *p, const llm_err_t *why,
    const uint64_t *known, const uint64_t *taken, llm_err_t *err)
{
    uint32_t           i, most;
    uint64_t           bit;
    llm_str_t          s;
    const llm_flat_t  *root, *key, *v;

    root = (const llm_flat_t *) p->flat.data;

    for (key = llm_flat_first(root), i = 0;
         key;
         key = llm_flat_next(root, v), i++)
    {
        v = llm_flat_next(root, key);
        s = llm_flat_str(key);

        bit = (uint64_t) 1 << i;

        for (most = LLM_API_RUN; most && !(known[most] & bit); most--)
        { /* void */ }

        if (most == LLM_API_UNKNOWN) {
            return llm_fail(err, "requests have no member \"%.*s\"",
                            (int) llm_min(s.len, (size_t) 60), s.data);
        }

        if (!(taken[most] & bit)) {
            return llm_fail(err, "\"%.*s\": %.400s", (int) s.len, s.data,
                            why[i].msg);
        }
    }

    return LLM_OK;
}


static int
llm_preset_check(llm_api_preset_t *p, llm_err_t *why, llm_err_t *err)
{
    uint32_t                    k, n;
    uint64_t                    mask, has;
    uint64_t                    known[LLM_API_RUN + 1] = { 0 };
    uint64_t                    taken[LLM_API_RUN + 1] = { 0 };
    const llm_api_endpoint_t   *ep;
    const llm_preset_sample_t  *sample;

    for (k = 0; k < llm_nelems(llm_preset_samples); k++) {
        sample = &llm_preset_samples[k];
        ep = sample->endpoint;
        mask = llm_preset_known(p, ep, LLM_API_CHECKED);
        mask = llm_preset_taken(p, sample, 0, mask, why);
        mask = llm_preset_taken(p, sample, 1, mask, why);

        p->endpoints[p->n_endpoints].endpoint = ep;
        p->endpoints[p->n_endpoints++].mask = mask;

        for (n = LLM_API_CHECKED; n <= LLM_API_RUN; n++) {
            has = llm_preset_known(p, ep, n);
            known[n] |= has;
            taken[n] |= has & mask;
        }
    }

    return llm_preset_judge(p, why, known, taken, err);
}


/* reads the text: an object, of members that may be defaults */

static int
llm_preset_read(llm_api_preset_t *p, const char *text, size_t len,
    llm_err_t *err)
{
    size_t             i;
    llm_str_t          s;
    const llm_flat_t  *root, *key, *v;

    if (llm_json_to_flat(text, len, NULL, &p->flat, err) != LLM_OK) {
        return llm_json_refuse(err);
    }

    root = (const llm_flat_t *) p->flat.data;

    if (root->type != LLM_FLAT_OBJECT) {
        return llm_fail(err, "it is not an object");
    }

    p->n = root->count;

    if (p->n > LLM_PRESET_MEMBERS) {
        return llm_fail(err, "it has more than %d members",
                        LLM_PRESET_MEMBERS);
    }

    for (key = llm_flat_first(root); key; key = llm_flat_next(root, v)) {
        v = llm_flat_next(root, key);
        s = llm_flat_str(key);

        for (i = 0; i < llm_nelems(llm_preset_own); i++) {
            if (llm_str_is(s, llm_preset_own[i])) {
                return llm_fail(err, "\"%s\" cannot have a default",
                                llm_preset_own[i]);
            }
        }

        if (v->type == LLM_FLAT_NULL) {
            return llm_fail(err, "\"%.*s\" is null, which is no value",
                            (int) llm_min(s.len, (size_t) 60), s.data);
        }
    }

    return LLM_OK;
}


llm_api_preset_t *
llm_api_preset_create(const char *text, size_t len, llm_err_t *err)
{
    llm_err_t         *why;
    llm_api_preset_t  *p;

    p = calloc(1, sizeof(*p));
    why = calloc(LLM_PRESET_MEMBERS, sizeof(*why));

    if (p == NULL || why == NULL) {
        (void) llm_fail(err, "no memory");
        goto failed;
    }

    llm_buf_init(&p->flat, 0);

    if (llm_preset_read(p, text, len, err) != LLM_OK
        || llm_preset_check(p, why, err) != LLM_OK)
    {
        goto failed;
    }

    free(why);

    return p;

failed:

    free(why);
    llm_api_preset_free(p);

    return NULL;
}
