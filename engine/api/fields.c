/*
 * The fields of a request's body, by a table: name, endpoints, type, range,
 * and where the value goes.  What is not in the table is ignored; what is
 * there is checked, and complaints are worded as OpenAI's are.
 */

#include "engine/api/api_internal.h"

#include <stdio.h>

#define CHAT      1
#define COMPL     2
#define BOTH      (CHAT | COMPL)

#define NOWHERE   ((size_t) -1)         /* checked and left alone */
#define AT(f)     offsetof(llm_api_body_t, f)

typedef enum {
    F_BOOL,                             /* int */
    F_INT,                              /* int64_t, min..max */
    F_NUMBER,                           /* double, min..max */
    F_ABOVE,                            /* double, above min, to max */
    F_STRING,                           /* llm_str_t */
    F_ARRAY,                            /* const llm_flat_t *, as all below */
    F_OBJECT,
    F_ANY,
    F_REQUIRED,                         /* any, but there and not null */
    F_REFUSED                           /* would change the answer's meaning */
} llm_api_type_t;

typedef struct {
    const char      *name;
    uint32_t         endpoints;
    llm_api_type_t   type;
    size_t           to;
    double           min;
    double           max;
} llm_api_field_t;

#define MAX_INT   2147483647.0


/* sorted by name */

static const llm_api_field_t  llm_api_fields[] = {
    { "add_generation_prompt",  CHAT,  F_BOOL, AT(add_generation_prompt),
                                                                   0, 0 },
    { "allowed_token_ids",      BOTH,  F_REFUSED, NOWHERE,         0, 0 },
    { "audio",                  CHAT,  F_REFUSED, NOWHERE,         0, 0 },
    { "bad_words",              BOTH,  F_REFUSED, NOWHERE,         0, 0 },
    { "best_of",                COMPL, F_INT, AT(best_of),         1, 128 },
    { "cache_prompt",           BOTH,  F_BOOL, AT(cache_prompt),   0, 0 },
    { "cache_salt",             BOTH,  F_STRING, AT(cache_salt),   0, 0 },
    { "chat_template",          CHAT,  F_REFUSED, NOWHERE,         0, 0 },
    { "chat_template_kwargs",   CHAT,  F_OBJECT, AT(chat_template_kwargs),
                                                                   0, 0 },
    { "continue_final_message", CHAT,  F_BOOL, AT(continue_final_message),
                                                                   0, 0 },
    { "documents",              CHAT,  F_ARRAY, AT(documents),     0, 0 },
    { "echo",                   COMPL, F_BOOL, AT(echo),           0, 0 },
    { "enable_thinking",        CHAT,  F_BOOL, AT(enable_thinking), 0, 0 },
    { "frequency_penalty",      BOTH,  F_NUMBER, AT(frequency_penalty),
                                                                  -2, 2 },
    { "function_call",          CHAT,  F_REFUSED, NOWHERE,         0, 0 },
    { "functions",              CHAT,  F_REFUSED, NOWHERE,         0, 0 },
    { "grammar",                BOTH,  F_REFUSED, NOWHERE,         0, 0 },
    { "guided_choice",          BOTH,  F_REFUSED, NOWHERE,         0, 0 },
    { "guided_grammar",         BOTH,  F_REFUSED, NOWHERE,         0, 0 },
    { "guided_json",            BOTH,  F_REFUSED, NOWHERE,         0, 0 },
    { "guided_regex",           BOTH,  F_REFUSED, NOWHERE,         0, 0 },
    { "ignore_eos",             BOTH,  F_BOOL, AT(ignore_eos),     0, 0 },
    { "json_schema",            BOTH,  F_REFUSED, NOWHERE,         0, 0 },
    { "logit_bias",             BOTH,  F_ANY, AT(logit_bias),      0, 0 },
    { "logprobs",               BOTH,  F_ANY, AT(logprobs),        0, 0 },
    { "max_completion_tokens",  CHAT,  F_INT, AT(max_completion_tokens),
                                                                   1, MAX_INT },
    { "max_tokens",             BOTH,  F_INT, AT(max_tokens),      0, MAX_INT },
    { "messages",               CHAT,  F_REQUIRED, AT(messages),   0, 0 },
    { "metadata",               BOTH,  F_OBJECT, AT(metadata),     0, 0 },
    { "min_p",                  BOTH,  F_NUMBER, AT(min_p),        0, 1 },
    { "min_tokens",             BOTH,  F_INT, AT(min_tokens),      0, MAX_INT },
    { "modalities",             CHAT,  F_ARRAY, AT(modalities),    0, 0 },
    { "model",                  BOTH,  F_STRING, AT(model),        0, 0 },
    { "n",                      BOTH,  F_INT, AT(n),               1, 128 },
    { "parallel_tool_calls",    CHAT,  F_BOOL, NOWHERE,            0, 0 },
    { "prediction",             CHAT,  F_OBJECT, NOWHERE,          0, 0 },
    { "presence_penalty",       BOTH,  F_NUMBER, AT(presence_penalty),
                                                                  -2, 2 },
    { "priority",               BOTH,  F_ANY, AT(priority),        0, 0 },
    { "prompt",                 COMPL, F_REQUIRED, AT(prompt),     0, 0 },
    { "prompt_cache_key",       BOTH,  F_STRING, NOWHERE,          0, 0 },
    { "prompt_logprobs",        BOTH,  F_REFUSED, NOWHERE,         0, 0 },
    { "reasoning_effort",       CHAT,  F_STRING, AT(reasoning_effort), 0, 0 },
    { "repeat_penalty",         BOTH,  F_NUMBER, AT(repetition_penalty),
                                                                0.01, 100 },
    { "repetition_penalty",     BOTH,  F_NUMBER, AT(repetition_penalty),
                                                                0.01, 100 },
    { "response_format",        BOTH,  F_OBJECT, AT(response_format), 0, 0 },
    { "return_token_ids",       BOTH,  F_BOOL, AT(return_token_ids), 0, 0 },
    { "safety_identifier",      BOTH,  F_STRING, NOWHERE,          0, 0 },
    { "seed",                   BOTH,  F_ANY, AT(seed),            0, 0 },
    { "service_tier",           BOTH,  F_STRING, NOWHERE,          0, 0 },
    { "skip_special_tokens",    BOTH,  F_BOOL, AT(skip_special_tokens), 0, 0 },
    { "stop",                   BOTH,  F_ANY, AT(stop),            0, 0 },
    { "stop_token_ids",         BOTH,  F_ARRAY, AT(stop_token_ids), 0, 0 },
    { "store",                  BOTH,  F_BOOL, NOWHERE,            0, 0 },
    { "stream",                 BOTH,  F_BOOL, AT(stream),         0, 0 },
    { "stream_options",         BOTH,  F_OBJECT, AT(stream_options), 0, 0 },
    { "structured_outputs",     BOTH,  F_REFUSED, NOWHERE,         0, 0 },
    { "suffix",                 COMPL, F_STRING, AT(suffix),       0, 0 },
    { "temperature",            BOTH,  F_NUMBER, AT(temperature),  0, 2 },
    { "tool_choice",            CHAT,  F_ANY, AT(tool_choice),     0, 0 },
    { "tools",                  CHAT,  F_ARRAY, AT(tools),         0, 0 },
    { "top_k",                  BOTH,  F_INT, AT(top_k),          -1, MAX_INT },
    { "top_logprobs",           CHAT,  F_INT, AT(top_logprobs),    0, 20 },
    { "top_p",                  BOTH,  F_ABOVE, AT(top_p),         0, 1 },
    { "truncate_prompt_tokens", BOTH,  F_REFUSED, NOWHERE,         0, 0 },
    { "typical_p",              BOTH,  F_ABOVE, AT(typical_p),     0, 1 },
    { "use_beam_search",        BOTH,  F_REFUSED, NOWHERE,         0, 0 },
    { "user",                   BOTH,  F_STRING, NOWHERE,          0, 0 },
    { "verbosity",              CHAT,  F_STRING, NOWHERE,          0, 0 },
    { "web_search_options",     CHAT,  F_REFUSED, NOWHERE,         0, 0 },
};


/* what says nothing is no reason to refuse */

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
    llm_api_body_t *b, llm_err_t *err)
{
    int                  above;
    void                *to;
    llm_str_t            unused;
    const llm_api_at_t  *at;

    at = llm_api_top(f->name);

    /* a place for what is only checked; large enough for any type */
    to = (f->to == NOWHERE) ? (void *) &unused : (char *) b + f->to;
    above = 0;

    switch (f->type) {

    case F_BOOL:
        if (llm_api_check_type(err, at, v, LLM_FLAT_BOOL) != LLM_OK) {
            return LLM_ERROR;
        }

        *(int *) to = (int) llm_flat_int(v);
        return LLM_OK;

    case F_INT:
        if (llm_api_check_int(err, at, v, (int64_t) f->min, (int64_t) f->max)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        *(int64_t *) to = llm_flat_int(v);
        return LLM_OK;

    case F_ABOVE:
        above = 1;
        /* fall through */

    case F_NUMBER:
        if (llm_api_check_number(err, at, v, f->min, f->max, above)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        *(double *) to = llm_flat_double(v);
        return LLM_OK;

    case F_STRING:
        if (llm_api_check_type(err, at, v, LLM_FLAT_STRING) != LLM_OK) {
            return LLM_ERROR;
        }

        *(llm_str_t *) to = llm_flat_str(v);
        return LLM_OK;

    case F_ARRAY:
        if (llm_api_check_type(err, at, v, LLM_FLAT_ARRAY) != LLM_OK) {
            return LLM_ERROR;
        }

        break;

    case F_OBJECT:
        if (llm_api_check_type(err, at, v, LLM_FLAT_OBJECT) != LLM_OK) {
            return LLM_ERROR;
        }

        break;

    case F_REFUSED:
        return llm_api_is_nothing(v) ? LLM_OK
                                     : llm_api_unsupported(err, at, "");

    case F_ANY:
    case F_REQUIRED:
        break;
    }

    *(const llm_flat_t **) to = v;

    return LLM_OK;
}


/* the row of a name, or -1 */

static int
llm_api_find_field(llm_str_t name)
{
    int     lo, hi, mid, rc;
    size_t  len;

    lo = 0;
    hi = (int) llm_nelems(llm_api_fields) - 1;

    while (lo <= hi) {
        mid = (lo + hi) / 2;
        len = strlen(llm_api_fields[mid].name);

        rc = memcmp(name.data, llm_api_fields[mid].name,
                    llm_min(len, name.len));

        if (rc == 0) {
            rc = (name.len > len) - (name.len < len);
        }

        if (rc == 0) {
            return mid;
        }

        if (rc < 0) {
            hi = mid - 1;

        } else {
            lo = mid + 1;
        }
    }

    return -1;
}


int
llm_api_read_fields(const llm_flat_t *root, llm_api_endpoint_t ep,
    llm_api_body_t *b, llm_err_t *err)
{
    int                     row;
    size_t                  i;
    uint32_t                bit;
    const llm_flat_t       *key, *v;
    const llm_api_field_t  *f;
    const llm_flat_t       *given[llm_nelems(llm_api_fields)] = { NULL };

    for (key = llm_flat_first(root); key; key = llm_flat_next(root, v)) {
        v = llm_flat_next(root, key);
        row = llm_api_find_field(llm_flat_str(key));

        if (row >= 0) {
            given[row] = v;
        }
    }

    bit = (ep == LLM_API_CHAT) ? CHAT : COMPL;

    for (i = 0; i < llm_nelems(llm_api_fields); i++) {
        f = &llm_api_fields[i];
        v = given[i];

        if (!(f->endpoints & bit)) {
            continue;
        }

        if (v == NULL && f->type == F_REQUIRED) {
            return llm_api_missing(err, llm_api_top(f->name));
        }

        if (v == NULL || (v->type == LLM_FLAT_NULL && f->type != F_REQUIRED))
        {
            continue;
        }

        if (llm_api_read_field(f, v, b, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
