/*
 * POST /api/embed, and its older form POST /api/embeddings, which takes one
 * text and does not normalise its vector.  Without a text the model is loaded,
 * as by a chat without messages.
 */

#include "engine/api/ollama.h"

#define AT(f)  offsetof(llm_api_ol_embed_t, f)

/* options of an answer */
#define LLM_API_OL_ONE   1              /* one vector, and nothing else */
#define LLM_API_OL_NONE  2              /* there was no input */

typedef struct {
    llm_api_body_t     body;

    const llm_flat_t  *input;
    const llm_flat_t  *keep_alive;
    const llm_flat_t  *options;
    int64_t            dimensions;      /* 0: not given */
    int                truncate;
} llm_api_ol_embed_t;


static const llm_api_field_t  llm_api_ol_embed_rows[] = {
    { "dimensions", LLM_FIELD_INT, AT(dimensions), 0, INT32_MAX },
    { "input", LLM_FIELD_ANY, AT(input), 0, 0 },
    { "keep_alive", LLM_FIELD_ANY, AT(keep_alive), 0, 0 },
    { "options", LLM_FIELD_OBJECT, AT(options), 0, 0 },
    { "truncate", LLM_FIELD_BOOL, AT(truncate), 0, 0 },
};

static const llm_api_fields_t  llm_api_ol_embed_fields = {
    llm_api_ol_embed_rows, llm_nelems(llm_api_ol_embed_rows)
};

static const llm_api_field_t  llm_api_ol_embeddings_rows[] = {
    { "keep_alive", LLM_FIELD_ANY, AT(keep_alive), 0, 0 },
    { "options", LLM_FIELD_OBJECT, AT(options), 0, 0 },
    { "prompt", LLM_FIELD_ANY, AT(input), 0, 0 },
};

static const llm_api_fields_t  llm_api_ol_embeddings_fields = {
    llm_api_ol_embeddings_rows, llm_nelems(llm_api_ol_embeddings_rows)
};

static const llm_api_name_t  llm_api_ol_embeddings_names[] = {
    { "input", "prompt" },
    { NULL, NULL }
};


/* ---- the readers ---- */

static int
llm_api_ol_embed_body(llm_api_reader_t *rd, llm_api_ol_embed_t *b,
    const char *param, llm_err_t *err)
{
    memset(b, 0, sizeof(llm_api_ol_embed_t));
    llm_api_defaults(&b->body);
    b->truncate = 1;

    if (llm_api_read_body(rd, &b->body, err) != LLM_OK
        || llm_api_ollama_keep_alive(b->keep_alive, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (b->input && b->input->type != LLM_FLAT_STRING
        && b->input->type != LLM_FLAT_ARRAY)
    {
        return llm_api_bad_type(err, llm_api_top(param),
                                "a string or an array of strings", b->input);
    }

    if (b->input == NULL || b->input->count == 0) {
        rd->r.task = LLM_TASK_PROPS;
        rd->r.kind = LLM_KIND_NONE;
        rd->r.sampling.n_logprobs = -1;
        rd->n_choices = 1;
        rd->options |= LLM_API_OL_NONE;
        return LLM_OK;
    }

    if (llm_api_read_inputs(rd, &b->body, b->input, param, 0, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    rd->r.truncate = b->truncate ? -1 : 0;
    rd->r.dimensions = (uint32_t) b->dimensions;

    return LLM_OK;
}


static int
llm_api_ol_embed_read(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_str_t           name;
    llm_api_ol_embed_t  b;

    if (llm_api_ol_embed_body(rd, &b, "input", err) != LLM_OK) {
        return LLM_ERROR;
    }

    name = rd->conf->models[rd->r.model].name;
    (void) llm_buf_adds(&rd->head, "{\"model\":");
    (void) llm_json_add_string(&rd->head, name.data, name.len);
    (void) llm_buf_adds(&rd->head, ",\"embeddings\":[");

    return LLM_OK;
}


static int
llm_api_ol_embeddings_read(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_api_ol_embed_t  b;

    rd->options = LLM_API_OL_ONE;

    if (llm_api_ol_embed_body(rd, &b, "prompt", err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (!(rd->options & LLM_API_OL_NONE)) {
        if (b.input->type != LLM_FLAT_STRING) {
            return llm_api_bad_type(err, llm_api_top("prompt"), "a string",
                                    b.input);
        }

        rd->r.normalize = LLM_NORMALIZE_NONE;
    }

    (void) llm_buf_adds(&rd->head, rd->options & LLM_API_OL_NONE
                                   ? "{\"embedding\":[]" : "{\"embedding\":");

    return LLM_OK;
}


/* ---- the body ---- */

/* a request without an input gets a description, which is not sent */

static int
llm_api_ol_embed_write(llm_api_t *a, size_t max, llm_buf_t *out)
{
    int  rc;

    rc = llm_api_write_array(a, a->options & LLM_API_OL_NONE ? 0
                                                            : a->n_choices,
                             llm_api_write_vector, max, out);

    if (rc != LLM_OK) {
        return rc;
    }

    if (!(a->options & LLM_API_OL_ONE)) {
        (void) llm_buf_addf(out, "],\"total_duration\":%llu000,"
                            "\"load_duration\":%llu000,"
                            "\"prompt_eval_count\":%u",
                            (unsigned long long) a->usage.total_us,
                            (unsigned long long) a->usage.queue_us,
                            a->options & LLM_API_OL_NONE
                            ? 0 : a->usage.prompt_tokens);
    }

    return llm_buf_addc(out, '}');
}


const llm_api_endpoint_t  llm_api_ollama_embed = {
    .task = LLM_TASK_EMBED,
    .fields = &llm_api_ol_embed_fields,
    .shared = &llm_api_client_fields,
    .read = llm_api_ol_embed_read,
    .body = llm_api_ol_embed_write,
    .error = llm_api_ollama_error
};

const llm_api_endpoint_t  llm_api_ollama_embeddings = {
    .task = LLM_TASK_EMBED,
    .fields = &llm_api_ol_embeddings_fields,
    .shared = &llm_api_client_fields,
    .names = llm_api_ol_embeddings_names,
    .read = llm_api_ol_embeddings_read,
    .body = llm_api_ol_embed_write,
    .error = llm_api_ollama_error
};
