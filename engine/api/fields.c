/*
 * Reads the fields of a request's body by tables: name, type, range, and
 * where the value is stored.  The fields that endpoints share are here, those
 * of a single endpoint in its file, and those of sampling in
 * engine/base/sampling.def.  Fields in no table are ignored; others are
 * checked, with errors in OpenAI's words.
 */

#include "engine/api/endpoint.h"

#define AT(f)  offsetof(llm_api_body_t, f)


static const llm_api_field_t  llm_api_shared_rows[] = {
    { "allowed_token_ids", LLM_FIELD_ARRAY, AT(allowed_token_ids), 0, 0 },
    { "bad_words", LLM_FIELD_ARRAY, AT(bad_words), 0, 0 },
    { "cache_prompt", LLM_FIELD_BOOL, AT(cache_prompt), 0, 0 },
    { "cache_salt", LLM_FIELD_STRING, AT(cache_salt), 0, 0 },
    { "dry_sequence_breakers", LLM_FIELD_ARRAY, AT(dry_sequence_breakers),
      0, 0 },
    { "grammar", LLM_FIELD_STRING, AT(grammar), 0, 0 },
    { "guided_choice", LLM_FIELD_ARRAY, AT(guided_choice), 0, 0 },
    { "guided_grammar", LLM_FIELD_STRING, AT(guided_grammar), 0, 0 },
    { "guided_json", LLM_FIELD_ANY, AT(guided_json), 0, 0 },
    { "guided_regex", LLM_FIELD_STRING, AT(guided_regex), 0, 0 },
    { "ignore_eos", LLM_FIELD_BOOL, AT(ignore_eos), 0, 0 },
    { "include_stop_str_in_output", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE,
      0, 0 },
    { "json_schema", LLM_FIELD_ANY, AT(json_schema), 0, 0 },
    { "logit_bias", LLM_FIELD_ANY, AT(logit_bias), 0, 0 },
    { "logits_processors", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "logprob_token_ids", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "logprobs", LLM_FIELD_ANY, AT(logprobs), 0, 0 },
    { "lora", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "lora_path", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "max_tokens", LLM_FIELD_INT, AT(max_tokens), -1, INT32_MAX },
    { "metadata", LLM_FIELD_OBJECT, AT(metadata), 0, 0 },
    { "min_keep", LLM_FIELD_INT, AT(min_keep), 0, INT32_MAX },
    { "min_tokens", LLM_FIELD_INT, AT(min_tokens), 0, INT32_MAX },
    { "mirostat", LLM_FIELD_INT, AT(mirostat), 0, 2 },
    { "mirostat_eta", LLM_FIELD_PARAM_NUMBER, LLM_FIELD_NOWHERE, 0, 100 },
    { "mirostat_tau", LLM_FIELD_PARAM_NUMBER, LLM_FIELD_NOWHERE, 0, 100 },
    { "model", LLM_FIELD_STRING, AT(model), 0, 0 },
    { "n", LLM_FIELD_INT, AT(n), 1, 128 },
    { "n_predict", LLM_FIELD_INT, AT(max_tokens), -1, INT32_MAX },
    { "priority", LLM_FIELD_ANY, AT(priority), 0, 0 },
    { "prompt_cache_key", LLM_FIELD_STRING, LLM_FIELD_NOWHERE, 0, 0 },
    { "prompt_cache_retention", LLM_FIELD_STRING, LLM_FIELD_NOWHERE, 0, 0 },
    { "prompt_logprobs", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "response_format", LLM_FIELD_OBJECT, AT(response_format), 0, 0 },
    { "return_token_ids", LLM_FIELD_BOOL, AT(return_token_ids), 0, 0 },
    { "return_tokens_as_token_ids", LLM_FIELD_BOOL, AT(tokens_as_ids), 0, 0 },
    { "safety_identifier", LLM_FIELD_STRING, AT(safety_identifier), 0, 0 },
    { "samplers", LLM_FIELD_ANY, AT(samplers), 0, 0 },
    { "seed", LLM_FIELD_ANY, AT(seed), 0, 0 },
    { "service_tier", LLM_FIELD_STRING, LLM_FIELD_NOWHERE, 0, 0 },
    { "skip_special_tokens", LLM_FIELD_BOOL, AT(skip_special_tokens), 0, 0 },
    { "stop", LLM_FIELD_ANY, AT(stop), 0, 0 },
    { "stop_token_ids", LLM_FIELD_ARRAY, AT(stop_token_ids), 0, 0 },
    { "store", LLM_FIELD_BOOL, LLM_FIELD_NOWHERE, 0, 0 },
    { "stream", LLM_FIELD_BOOL, AT(stream), 0, 0 },
    { "stream_options", LLM_FIELD_OBJECT, AT(stream_options), 0, 0 },
    { "structured_outputs", LLM_FIELD_OBJECT, AT(structured_outputs), 0, 0 },
    { "truncate_prompt_tokens", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "use_beam_search", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "user", LLM_FIELD_STRING, AT(user), 0, 0 },
};

const llm_api_fields_t  llm_api_shared_fields = {
    llm_api_shared_rows, llm_nelems(llm_api_shared_rows)
};

/* those of endpoints that generate no text */

static const llm_api_field_t  llm_api_client_rows[] = {
    { "cache_salt", LLM_FIELD_STRING, AT(cache_salt), 0, 0 },
    { "metadata", LLM_FIELD_OBJECT, AT(metadata), 0, 0 },
    { "model", LLM_FIELD_STRING, AT(model), 0, 0 },
    { "priority", LLM_FIELD_ANY, AT(priority), 0, 0 },
    { "user", LLM_FIELD_STRING, AT(user), 0, 0 },
};

const llm_api_fields_t  llm_api_client_fields = {
    llm_api_client_rows, llm_nelems(llm_api_client_rows)
};

/* the sampling parameters, in the order of the chain */

static const llm_api_field_t  llm_api_params[] = {
#define LLM_PARAM(name, type, otherwise, least, most)                        \
    { #name, LLM_FIELD_PARAM_##type, AT(sampling.name), least, most },
#define LLM_ALIAS(name, of, type, least, most)                               \
    { #name, LLM_FIELD_PARAM_##type, AT(sampling.of), least, most },
#include "engine/base/sampling.def"
};


/* null, false and empty values of an unsupported field are accepted */

static int
llm_api_is_nothing(const llm_flat_t *v)
{
    switch (v->type) {

    case LLM_FLAT_NULL:
        return 1;

    case LLM_FLAT_BOOL:
        return llm_flat_int(v) == 0;

    case LLM_FLAT_INT:
    case LLM_FLAT_DOUBLE:
        return 0;

    default:
        return v->count == 0;
    }
}


static int
llm_api_read_field(const llm_api_field_t *f, const llm_flat_t *v,
    void *body, llm_err_t *err)
{
    int                  above;
    void                *to;
    llm_str_t            unused;
    const llm_api_at_t  *at;

    at = llm_api_top(f->name);

    /* fields that are only checked are stored in `unused`, which is large
       enough for any type */
    to = (f->to == LLM_FIELD_NOWHERE) ? (void *) &unused
                                      : (char *) body + f->to;
    above = 0;

    switch (f->type) {

    case LLM_FIELD_BOOL:
        if (llm_api_check_type(err, at, v, LLM_FLAT_BOOL) != LLM_OK) {
            return LLM_ERROR;
        }

        *(int *) to = (int) llm_flat_int(v);
        return LLM_OK;

    case LLM_FIELD_INT:
        if (llm_api_check_int(err, at, v, (int64_t) f->min, (int64_t) f->max)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        *(int64_t *) to = llm_flat_int(v);
        return LLM_OK;

    case LLM_FIELD_PARAM_INT:
        if (llm_api_check_int(err, at, v, (int64_t) f->min, (int64_t) f->max)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        *(int32_t *) to = (int32_t) llm_flat_int(v);
        return LLM_OK;

    case LLM_FIELD_PARAM_ABOVE:
        above = 1;
        /* fall through */

    case LLM_FIELD_PARAM_NUMBER:
        if (llm_api_check_number(err, at, v, f->min, f->max, above)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        *(float *) to = (float) llm_flat_double(v);
        return LLM_OK;

    case LLM_FIELD_STRING:
        if (llm_api_check_type(err, at, v, LLM_FLAT_STRING) != LLM_OK) {
            return LLM_ERROR;
        }

        *(llm_str_t *) to = llm_flat_str(v);
        return LLM_OK;

    case LLM_FIELD_ARRAY:
        if (llm_api_check_type(err, at, v, LLM_FLAT_ARRAY) != LLM_OK) {
            return LLM_ERROR;
        }

        break;

    case LLM_FIELD_OBJECT:
        if (llm_api_check_type(err, at, v, LLM_FLAT_OBJECT) != LLM_OK) {
            return LLM_ERROR;
        }

        break;

    case LLM_FIELD_REFUSED:
        return llm_api_is_nothing(v) ? LLM_OK
                                     : llm_api_unsupported(err, at, "");

    case LLM_FIELD_ANY:
    case LLM_FIELD_REQUIRED:
        break;
    }

    *(const llm_flat_t **) to = v;

    return LLM_OK;
}


/*
 * The tables of an endpoint: its own, which takes precedence if a name is in
 * two tables, the shared one, and that of sampling.  If several fields are
 * wrong, the error is about the first in this order, whatever their order in
 * the body.
 */

typedef struct {
    llm_api_fields_t   of[3];
    uint32_t           n;
} llm_api_tables_t;


static llm_api_tables_t
llm_api_tables(const llm_api_endpoint_t *ep)
{
    llm_api_tables_t  t = { .n = 0 };

    t.of[t.n++] = *ep->fields;

    if (ep->shared) {
        t.of[t.n++] = *ep->shared;
    }

    if (ep->shared == &llm_api_shared_fields) {
        t.of[t.n++] = (llm_api_fields_t) {
            llm_api_params, llm_nelems(llm_api_params)
        };
    }

    return t;
}


/* the index of a name among the rows of all tables, or -1 */

static int
llm_api_find_row(const llm_api_tables_t *t, llm_str_t name)
{
    int                     place;
    uint32_t                i, k;
    const llm_api_field_t  *f;

    place = 0;

    for (i = 0; i < t->n; i++) {
        f = t->of[i].rows;

        for (k = 0; k < t->of[i].n; k++, place++) {

            if (strlen(f[k].name) == name.len
                && memcmp(f[k].name, name.data, name.len) == 0)
            {
                return place;
            }
        }
    }

    return -1;
}


llm_api_known_t
llm_api_knows(const llm_api_endpoint_t *ep, llm_str_t name)
{
    int               place;
    uint32_t          i;
    llm_api_tables_t  t;

    t = llm_api_tables(ep);
    place = llm_api_find_row(&t, name);

    for (i = 0; place >= 0; place -= (int) t.of[i++].n) {
        if (place < (int) t.of[i].n) {
            return t.of[i].rows[place].to == LLM_FIELD_NOWHERE
                   ? LLM_API_CHECKED
                   : ep->task < LLM_TASK_TOKENIZE ? LLM_API_RUN : LLM_API_READ;
        }
    }

    return LLM_API_UNKNOWN;
}


int
llm_api_read_fields(const llm_api_reader_t *rd, void *to, llm_err_t *err)
{
    int                     place;
    uint32_t                i, k;
    llm_api_tables_t        t;
    const llm_flat_t       *key, *v;
    const llm_api_field_t  *f;
    const llm_flat_t       *given[LLM_API_MAX_FIELDS] = { NULL };

    t = llm_api_tables(rd->endpoint);

    for (i = 0, k = 0; i < t.n; i++) {
        k += t.of[i].n;
    }

    if (k > LLM_API_MAX_FIELDS) {
        return llm_fail(err, "the endpoint has too many fields");
    }

    for (key = llm_flat_first(rd->root); key;
         key = llm_flat_next(rd->root, v))
    {
        v = llm_flat_next(rd->root, key);
        place = llm_api_find_row(&t, llm_flat_str(key));

        if (place >= 0) {
            given[place] = v;
        }
    }

    for (i = 0, place = 0; i < t.n; i++) {

        for (k = 0; k < t.of[i].n; k++, place++) {
            f = &t.of[i].rows[k];
            v = given[place];

            if (v == NULL && f->type == LLM_FIELD_REQUIRED) {
                return llm_api_missing(err, llm_api_top(f->name));
            }

            if (v == NULL
                || (v->type == LLM_FLAT_NULL && f->type != LLM_FIELD_REQUIRED))
            {
                continue;
            }

            if (llm_api_read_field(f, v, to, err) != LLM_OK) {
                return LLM_ERROR;
            }
        }
    }

    return LLM_OK;
}
