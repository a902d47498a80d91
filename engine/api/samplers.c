/*
 * "samplers", llama-server's: the stages of the sampler that run.  The others
 * are off, whatever their parameters are, also where the model's file
 * recommends them.  Their order has no effect: it is that of
 * engine/base/sampling.def.
 */

#include "engine/api/endpoint.h"

#define P(name)  (1u << LLM_PARAM_ID_##name)


typedef struct {
    char               letter;
    const char        *name;
    const char        *other;           /* another name, or NULL */
    uint32_t           params;          /* bits of the parameters */
} llm_api_stage_t;


/* "infill" and "adaptive_p" are known, and do nothing here */

static const llm_api_stage_t  llm_api_stages[] = {
    { 'e', "penalties", NULL, P(repeat_last_n) | P(repetition_penalty)
                              | P(frequency_penalty) | P(presence_penalty) },
    { 'd', "dry", NULL, P(dry_multiplier) | P(dry_base) | P(dry_allowed_length)
                        | P(dry_penalty_last_n) },
    { 's', "top_n_sigma", NULL, P(top_n_sigma) },
    { 'k', "top_k", NULL, P(top_k) },
    { 'y', "typ_p", "typical_p", P(typical_p) },
    { 'p', "top_p", NULL, P(top_p) },
    { 'm', "min_p", NULL, P(min_p) },
    { 'x', "xtc", NULL, P(xtc_probability) | P(xtc_threshold) },
    { 't', "temperature", "temp", P(temperature) | P(dynatemp_range)
                                  | P(dynatemp_exponent) },
    { 'i', "infill", NULL, 0 },
    { 'a', "adaptive_p", NULL, 0 }
};


/* the stage with this name, or with this letter if there is one */

static const llm_api_stage_t *
llm_api_stage(llm_str_t name, char letter)
{
    size_t                  i;
    const llm_api_stage_t  *s;

    for (i = 0; i < llm_nelems(llm_api_stages); i++) {
        s = &llm_api_stages[i];

        if (letter ? s->letter == letter
                   : llm_str_is(name, s->name)
                     || (s->other && llm_str_is(name, s->other)))
        {
            return s;
        }
    }

    return NULL;
}


static int
llm_api_samplers_unknown(llm_err_t *err, llm_str_t name)
{
    return llm_api_bad_value(err, llm_api_top("samplers"),
                             "Invalid 'samplers': there is no '%.*s'; known "
                             "are penalties, dry, top_n_sigma, top_k, typ_p, "
                             "top_p, min_p, xtc, temperature and infill.",
                             (int) llm_min(name.len, 40), name.data);
}


/* a string: a letter for each stage */

static int
llm_api_samplers_letters(llm_str_t s, uint32_t *params, llm_err_t *err)
{
    size_t                  i;
    const llm_api_stage_t  *stage;

    for (i = 0; i < s.len; i++) {
        stage = s.data[i] ? llm_api_stage(s, s.data[i]) : NULL;

        if (stage == NULL) {
            return llm_api_samplers_unknown(err, s);
        }

        *params |= stage->params;
    }

    return LLM_OK;
}


static int
llm_api_samplers_names(const llm_flat_t *list, uint32_t *params,
    llm_err_t *err)
{
    uint32_t                i;
    const llm_flat_t       *v;
    const llm_api_stage_t  *stage;

    for (i = 0, v = llm_flat_first(list); v;
         i++, v = llm_flat_next(list, v))
    {
        if (llm_api_check_type(err, llm_api_idx(llm_api_top("samplers"), i),
                               v, LLM_FLAT_STRING)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        stage = llm_api_stage(llm_flat_str(v), '\0');

        if (stage == NULL) {
            return llm_api_samplers_unknown(err, llm_flat_str(v));
        }

        *params |= stage->params;
    }

    return LLM_OK;
}


int
llm_api_read_samplers(llm_sampling_t *s, const llm_flat_t *v, llm_err_t *err)
{
    int             rc;
    uint32_t        params;
    llm_sampling_t  off;

    if (v == NULL || v->type == LLM_FLAT_NULL
        || ((v->type == LLM_FLAT_STRING || v->type == LLM_FLAT_ARRAY)
            && v->count == 0))
    {
        return LLM_OK;
    }

    params = 0;

    if (v->type == LLM_FLAT_STRING) {
        rc = llm_api_samplers_letters(llm_flat_str(v), &params, err);

    } else if (v->type == LLM_FLAT_ARRAY) {
        rc = llm_api_samplers_names(v, &params, err);

    } else {
        rc = llm_api_bad_type(err, llm_api_top("samplers"),
                              "an array of names, or a string", v);
    }

    if (rc != LLM_OK) {
        return rc;
    }

    llm_sampling_default(&off);

#define LLM_PARAM(name, type, otherwise, least, most)                        \
    if (!(params & P(name))) {                                               \
        s->name = off.name;                                                  \
        s->said |= P(name);                                                  \
    }
#include "engine/base/sampling.def"

    return LLM_OK;
}
