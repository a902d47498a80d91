/*
 * POST /embeddings: inputs in (a string, strings, token ids, or lists of
 * them), a vector of each out, as numbers or as base64 of little-endian
 * float32.  The engine cuts and normalises; here vectors are only written.
 */

#include "engine/api/endpoint.h"

#define AT(f)  offsetof(llm_api_embedding_t, f)

typedef struct {
    llm_api_body_t     body;

    llm_str_t          encoding_format;
    llm_str_t          embed_dtype;
    llm_str_t          endianness;
    const llm_flat_t  *input;
    int64_t            dimensions;      /* 0: not given */
    int64_t            embd_normalize;
    int64_t            truncate_prompt_tokens;  /* 0: not given */
    int                normalize;
} llm_api_embedding_t;

/* what the body's writer needs of the request, and its state between pieces */
typedef struct {
    int                as_base64;
    llm_base64_t       base64;
} llm_api_embedding_own_t;


static const llm_api_field_t  llm_api_embedding_rows[] = {
    { "cache_prompt", LLM_FIELD_BOOL, AT(body.cache_prompt), 0, 0 },
    { "dimensions", LLM_FIELD_INT, AT(dimensions), 1, INT32_MAX },
    { "embd_normalize", LLM_FIELD_INT, AT(embd_normalize), -1, 64 },
    { "embed_dtype", LLM_FIELD_STRING, AT(embed_dtype), 0, 0 },
    { "encoding_format", LLM_FIELD_STRING, AT(encoding_format), 0, 0 },
    { "endianness", LLM_FIELD_STRING, AT(endianness), 0, 0 },
    { "input", LLM_FIELD_REQUIRED, AT(input), 0, 0 },
    { "lora", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "lora_path", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "normalize", LLM_FIELD_BOOL, AT(normalize), 0, 0 },
    { "truncate_prompt_tokens", LLM_FIELD_INT, AT(truncate_prompt_tokens), -1,
      INT32_MAX },
};

static const llm_api_fields_t  llm_api_embedding_fields = {
    llm_api_embedding_rows, llm_nelems(llm_api_embedding_rows)
};


/* ---- the reader ---- */

static int
llm_api_embedding_format(llm_api_reader_t *rd, const llm_api_embedding_t *b,
    llm_err_t *err)
{
    llm_str_t                s;
    llm_api_embedding_own_t  own;

    s = b->encoding_format;
    memset(&own, 0, sizeof(own));
    own.as_base64 = llm_str_is(s, "base64");

    if (s.data && !own.as_base64 && !llm_str_is(s, "float")) {
        return llm_api_bad_value(err, llm_api_top("encoding_format"),
                                 "Invalid 'encoding_format': it can be "
                                 "'float' or 'base64'.");
    }

    if (b->embed_dtype.data && !llm_str_is(b->embed_dtype, "float32")) {
        return llm_api_unsupported(err, llm_api_top("embed_dtype"),
                                   "vectors are of 'float32'");
    }

    if (b->endianness.data && !llm_str_is(b->endianness, "native")
        && !llm_str_is(b->endianness, "little"))
    {
        return llm_api_unsupported(err, llm_api_top("endianness"),
                                   "vectors in base64 are 'little'");
    }

    (void) llm_buf_add(&rd->own, &own, sizeof(own));

    return LLM_OK;
}


static int
llm_api_embedding_read(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_api_embedding_t  b;

    memset(&b, 0, sizeof(llm_api_embedding_t));
    llm_api_defaults(&b.body);
    b.normalize = 1;
    b.embd_normalize = LLM_NORMALIZE_L2;

    if (llm_api_read_body(rd, &b.body, err) != LLM_OK
        || llm_api_embedding_format(rd, &b, err) != LLM_OK
        || llm_api_read_inputs(rd, &b.body, b.input, "input",
                               LLM_API_OBJECTS, err)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    rd->r.dimensions = (uint32_t) b.dimensions;
    rd->r.truncate = (int32_t) b.truncate_prompt_tokens;
    rd->r.normalize = b.normalize ? (int32_t) b.embd_normalize
                                  : LLM_NORMALIZE_NONE;

    llm_api_write_list_head(rd, "embd-", "data");

    return LLM_OK;
}


/* ---- the body ---- */

/* writes a little of the vector at the cursor; LLM_OK: the vector is
   complete */

static int
llm_api_embedding_step(llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out)
{
    llm_api_embedding_own_t  *own = a->own;

    if (!cur->opened) {
        (void) llm_buf_addf(out, "%s{\"object\":\"embedding\",\"index\":%u,"
                            "\"embedding\":%c", cur->choice ? "," : "",
                            cur->choice, own->as_base64 ? '"' : '[');
        llm_api_first_value(a, cur);
        cur->opened = 1;
    }

    if (llm_api_write_values(cur, own->as_base64 ? &own->base64 : NULL, out)
        == LLM_MORE)
    {
        return LLM_MORE;
    }

    llm_base64_end(&own->base64, out);
    (void) llm_buf_adds(out, own->as_base64 ? "\"}" : "]}");
    cur->opened = 0;

    return LLM_OK;
}


static int
llm_api_embedding_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    return llm_api_write_list(a, a->n_choices, llm_api_embedding_step, max,
                              out);
}


static const llm_api_other_t  llm_api_embedding_others[] = {
    { "content", &llm_api_embedding },
    { NULL, NULL }
};

const llm_api_endpoint_t  llm_api_embeddings = {
    .task = LLM_TASK_EMBED,
    .fields = &llm_api_embedding_fields,
    .shared = &llm_api_client_fields,
    .read = llm_api_embedding_read,
    .body = llm_api_embedding_body,
    .others = llm_api_embedding_others
};
