/*
 * GET /slots, llama-server's: a slot for each sequence that a model can run at
 * once.  A sequence has no slot of its own here, so the first ones are busy, as
 * many as run; nothing of a request is shown.  A model that is not loaded has
 * none, and is not loaded for this.
 */

#include "engine/api/endpoint.h"

typedef struct {
    llm_str_t          model;
} llm_api_slots_t;

/* what the writer needs of the model's state */
typedef struct {
    uint32_t           running;
} llm_api_slots_own_t;


static const llm_api_field_t  llm_api_slots_rows[] = {
    { "model", LLM_FIELD_STRING, offsetof(llm_api_slots_t, model), 0, 0 }
};

static const llm_api_fields_t  llm_api_slots_fields = {
    llm_api_slots_rows, llm_nelems(llm_api_slots_rows)
};


static int
llm_api_slots_read(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_api_slots_t      b;
    llm_api_slots_own_t  own;
    llm_model_status_t   st;

    b.model = rd->conf->model;
    rd->r.flags = LLM_REQ_PROBE;
    rd->r.kind = LLM_KIND_NONE;
    rd->n_choices = 1;

    if (llm_api_read_plain(rd, &b, &b.model, err) != LLM_OK) {
        return LLM_ERROR;
    }

    memset(&st, 0, sizeof(st));

    if (rd->conf->zone) {
        llm_zone_status(rd->conf->zone, rd->r.model, &st);
    }

    own.running = st.running;
    (void) llm_buf_add(&rd->own, &own, sizeof(own));

    return LLM_OK;
}


static int
llm_api_slots_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    int64_t                     i, n, ctx;
    llm_buf_t                   flat;
    const llm_flat_t           *props, *v;
    const llm_api_slots_own_t  *own = a->own;

    (void) max;

    if (a->choices[0].own.first == NULL) {
        return llm_buf_adds(out, "[]");
    }

    if (llm_api_kept_flat(a, &flat) != LLM_OK) {
        return LLM_ERROR;
    }

    props = (const llm_flat_t *) flat.data;
    v = llm_flat_get(props, "total_slots");
    n = v ? llm_flat_int(v) : 0;
    v = llm_flat_get(llm_flat_get(props, "default_generation_settings"),
                     "n_ctx");
    ctx = v ? llm_flat_int(v) : 0;
    llm_buf_free(&flat);

    (void) llm_buf_addc(out, '[');

    for (i = 0; i < n; i++) {
        (void) llm_buf_addf(out, "%s{\"id\":%lld,\"n_ctx\":%lld,"
                            "\"speculative\":false,\"is_processing\":%s}",
                            i ? "," : "", (long long) i, (long long) ctx,
                            i < own->running ? "true" : "false");
    }

    return llm_buf_addc(out, ']');
}


const llm_api_endpoint_t  llm_api_slots = {
    .task = LLM_TASK_PROPS,
    .bodiless = 1,
    .fields = &llm_api_slots_fields,
    .read = llm_api_slots_read,
    .body = llm_api_slots_body
};
