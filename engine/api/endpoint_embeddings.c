/*
 * POST /embeddings: inputs in (a string, strings, token ids, or lists of
 * them), a vector of each out, as numbers or as base64 of little-endian
 * float32.  The engine cuts and normalises; here vectors are only written.
 */

#include "engine/api/endpoint.h"

#define AT(f)  offsetof(llm_api_embedding_t, f)

/* most values that are written at once */
#define LLM_API_VALUES  96

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
    { "cache_salt", LLM_FIELD_STRING, AT(body.cache_salt), 0, 0 },
    { "dimensions", LLM_FIELD_INT, AT(dimensions), 1, INT32_MAX },
    { "embd_normalize", LLM_FIELD_INT, AT(embd_normalize), -1, 64 },
    { "embed_dtype", LLM_FIELD_STRING, AT(embed_dtype), 0, 0 },
    { "encoding_format", LLM_FIELD_STRING, AT(encoding_format), 0, 0 },
    { "endianness", LLM_FIELD_STRING, AT(endianness), 0, 0 },
    { "input", LLM_FIELD_REQUIRED, AT(input), 0, 0 },
    { "lora", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "lora_path", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "metadata", LLM_FIELD_OBJECT, AT(body.metadata), 0, 0 },
    { "model", LLM_FIELD_STRING, AT(body.model), 0, 0 },
    { "normalize", LLM_FIELD_BOOL, AT(normalize), 0, 0 },
    { "priority", LLM_FIELD_ANY, AT(body.priority), 0, 0 },
    { "truncate_prompt_tokens", LLM_FIELD_INT, AT(truncate_prompt_tokens), -1,
      INT32_MAX },
    { "user", LLM_FIELD_STRING, AT(body.user), 0, 0 },
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


/* an empty input has no vector */

static int
llm_api_embedding_nothing(const llm_flat_t *v, const llm_api_at_t *at,
    llm_err_t *err)
{
    return v->type == LLM_FLAT_STRING && v->count == 0
           ? llm_api_bad_value(err, at, "Invalid 'input': it cannot be an "
                               "empty string.")
           : LLM_OK;
}


static int
llm_api_embedding_check(const llm_flat_t *v, llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *item;
    const llm_api_at_t  *at;

    at = llm_api_top("input");

    if (v->type != LLM_FLAT_ARRAY) {
        return llm_api_embedding_nothing(v, at, err);
    }

    item = llm_flat_first(v);

    for (i = 0; item; i++, item = llm_flat_next(v, item)) {
        if (llm_api_embedding_nothing(item, llm_api_idx(at, i), err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_api_embedding_read(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_request_t        *r;
    llm_api_embedding_t   b;

    memset(&b, 0, sizeof(llm_api_embedding_t));
    llm_api_defaults(&b.body);
    b.normalize = 1;
    b.embd_normalize = LLM_NORMALIZE_L2;

    r = &rd->r;
    r->kind = LLM_KIND_COMPLETION;

    if (llm_api_read_body(rd, &b.body, err) != LLM_OK
        || llm_api_embedding_format(rd, &b, err) != LLM_OK
        || llm_api_read_priority(rd, &b.body, err) != LLM_OK
        || llm_api_embedding_check(b.input, err) != LLM_OK
        || llm_api_write_prompts(b.input, llm_api_top("input"),
                                 LLM_MAX_INPUTS, rd->msg, &r->prompts, err)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    r->sampling = b.body.sampling;
    r->dimensions = (uint32_t) b.dimensions;
    r->truncate = (int32_t) b.truncate_prompt_tokens;
    r->normalize = b.normalize ? (int32_t) b.embd_normalize
                               : LLM_NORMALIZE_NONE;
    rd->n_choices = r->prompts.len;

    llm_api_write_list_head(rd, "embd-", "data");

    return LLM_OK;
}


/* ---- the body ---- */

/* writes some values of the cursor's piece; LLM_OK: the piece is complete */

static int
llm_api_embedding_values(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    uint32_t                  i, n;
    const float              *v;
    const llm_event_t        *ev;
    llm_api_embedding_own_t  *own = a->own;

    ev = cur->piece->ev;
    v = (const float *) llm_ref_data(ev, ev->u.vector.values) + cur->at;
    n = llm_min(ev->u.vector.values.len - cur->at, LLM_API_VALUES);
    cur->at += n;

    if (own->as_base64) {
        llm_base64_add(&own->base64, out, v, n * sizeof(*v));

    } else {
        for (i = 0; i < n; i++) {
            if (cur->some) {
                (void) llm_buf_addc(out, ',');
            }

            llm_api_add_float(out, v[i]);
            cur->some = 1;
        }
    }

    return cur->at < ev->u.vector.values.len ? LLM_MORE : LLM_OK;
}


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
        cur->piece = a->choices[cur->choice].own.first;
        cur->opened = 1;
        cur->some = 0;
        cur->at = 0;
    }

    if (cur->piece == NULL) {
        llm_base64_end(&own->base64, out);
        (void) llm_buf_adds(out, own->as_base64 ? "\"}" : "]}");
        cur->opened = 0;
        return LLM_OK;
    }

    if (llm_api_embedding_values(a, cur, out) == LLM_OK) {
        cur->piece = cur->piece->next;
        cur->at = 0;
    }

    return LLM_MORE;
}


static int
llm_api_embedding_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    return llm_api_write_list(a, a->n_choices, llm_api_embedding_step, max,
                              out);
}


const llm_api_endpoint_t  llm_api_embeddings = {
    .task = LLM_TASK_EMBED,
    .fields = &llm_api_embedding_fields,
    .read = llm_api_embedding_read,
    .body = llm_api_embedding_body
};
