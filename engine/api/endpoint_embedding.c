/*
 * Vectors in other dialects: POST /embedding, llama-server's own, and
 * /embeddings if the body has "content": an array of objects, each with a list
 * of vectors, of which there is one, or one for each token with the pooling
 * type "none".  POST /embed, of Text Embeddings
 * Inference: a plain array of vectors.
 */

#include "engine/api/tei.h"

#define AT(f)  offsetof(llm_api_vectors_t, f)

typedef struct {
    llm_api_body_t     body;

    const llm_flat_t  *content;
    const llm_flat_t  *inputs;
    llm_str_t          truncation_direction;
    int64_t            dimensions;      /* 0: not given */
    int64_t            embd_normalize;
    int                normalize;
    int                truncate;
} llm_api_vectors_t;


static const llm_api_field_t  llm_api_native_rows[] = {
    { "cache_prompt", LLM_FIELD_BOOL, AT(body.cache_prompt), 0, 0 },
    { "content", LLM_FIELD_ANY, AT(content), 0, 0 },
    { "embd_normalize", LLM_FIELD_INT, AT(embd_normalize), -1, 64 },
    { "input", LLM_FIELD_ANY, AT(inputs), 0, 0 },
};

static const llm_api_fields_t  llm_api_native_fields = {
    llm_api_native_rows, llm_nelems(llm_api_native_rows)
};

static const llm_api_name_t  llm_api_native_names[] = {
    { "input", "content" },
    { NULL, NULL }
};

static const llm_api_field_t  llm_api_tei_rows[] = {
    { "dimensions", LLM_FIELD_INT, AT(dimensions), 1, INT32_MAX },
    { "inputs", LLM_FIELD_REQUIRED, AT(inputs), 0, 0 },
    { "normalize", LLM_FIELD_BOOL, AT(normalize), 0, 0 },
    { "prompt_name", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "truncate", LLM_FIELD_BOOL, AT(truncate), 0, 0 },
    { "truncation_direction", LLM_FIELD_STRING, AT(truncation_direction),
      0, 0 },
};

static const llm_api_fields_t  llm_api_tei_fields = {
    llm_api_tei_rows, llm_nelems(llm_api_tei_rows)
};

static const llm_api_name_t  llm_api_tei_names[] = {
    { "input", "inputs" },
    { NULL, NULL }
};


static void
llm_api_vectors_defaults(llm_api_vectors_t *b)
{
    memset(b, 0, sizeof(llm_api_vectors_t));
    llm_api_defaults(&b->body);
    b->normalize = 1;
    b->embd_normalize = LLM_NORMALIZE_L2;
}


/* ---- llama-server's ---- */

static int
llm_api_native_read(llm_api_reader_t *rd, llm_err_t *err)
{
    const char         *param;
    const llm_flat_t   *input;
    llm_api_vectors_t   b;

    llm_api_vectors_defaults(&b);

    if (llm_api_read_body(rd, &b.body, err) != LLM_OK) {
        return LLM_ERROR;
    }

    input = b.content ? b.content : b.inputs;
    param = b.content || b.inputs == NULL ? "content" : "input";

    if (input == NULL) {
        return llm_api_missing(err, llm_api_top(param));
    }

    if (llm_api_read_inputs(rd, &b.body, input, param, LLM_API_MIXED, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    rd->r.normalize = (int32_t) b.embd_normalize;
    rd->r.flags |= LLM_REQ_STATES;

    return llm_buf_addc(&rd->head, '[');
}


static int
llm_api_native_step(llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out)
{
    if (!cur->opened) {
        (void) llm_buf_addf(out, "%s{\"index\":%u,\"embedding\":[[",
                            cur->choice ? "," : "", cur->choice);
        llm_api_first_value(a, cur);
        cur->opened = 1;
    }

    if (llm_api_write_values(cur, NULL, out) == LLM_MORE) {
        return LLM_MORE;
    }

    (void) llm_buf_adds(out, "]]}");
    cur->opened = 0;

    return LLM_OK;
}


static int
llm_api_native_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    int  rc;

    rc = llm_api_write_array(a, a->n_choices, llm_api_native_step, max, out);

    return rc == LLM_OK ? llm_buf_addc(out, ']') : rc;
}


/* ---- Text Embeddings Inference's ---- */

static int
llm_api_tei_read(llm_api_reader_t *rd, llm_err_t *err)
{
    int                left;
    llm_api_vectors_t  b;

    llm_api_vectors_defaults(&b);

    if (llm_api_read_body(rd, &b.body, err) != LLM_OK) {
        return LLM_ERROR;
    }

    /* which end is kept depends on the model: see llm_request_t */

    if (llm_api_tei_direction(b.truncation_direction, &left, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_api_read_inputs(rd, &b.body, b.inputs, "inputs", 0, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    rd->r.dimensions = (uint32_t) b.dimensions;
    rd->r.truncate = b.truncate ? -1 : 0;
    rd->r.normalize = b.normalize ? LLM_NORMALIZE_L2 : LLM_NORMALIZE_NONE;

    return llm_buf_addc(&rd->head, '[');
}


static int
llm_api_tei_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    int  rc;

    rc = llm_api_write_array(a, a->n_choices, llm_api_write_vector, max, out);

    return rc == LLM_OK ? llm_buf_addc(out, ']') : rc;
}


const llm_api_endpoint_t  llm_api_embedding = {
    .task = LLM_TASK_EMBED,
    .fields = &llm_api_native_fields,
    .shared = &llm_api_client_fields,
    .names = llm_api_native_names,
    .read = llm_api_native_read,
    .body = llm_api_native_body,
    .error = llm_api_llama_error
};

const llm_api_endpoint_t  llm_api_tei_embed = {
    .task = LLM_TASK_EMBED,
    .fields = &llm_api_tei_fields,
    .shared = &llm_api_client_fields,
    .names = llm_api_tei_names,
    .read = llm_api_tei_read,
    .body = llm_api_tei_body,
    .error = llm_api_tei_error
};
