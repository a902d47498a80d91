/*
 * Sampling parameters that a model's file recommends: general.sampling.* of
 * GGUF, which converters take from a repository's generation_config.json.
 * They are the defaults of parameters that a request omits.
 *
 * Names of the fields: github.com/ggml-org/llama.cpp, gguf-py.
 */

#include "engine/serve/engine.h"

#include <math.h>
#include <stdio.h>


typedef struct {
    const char      *key;               /* after "general.sampling." */
    llm_param_id_t   id;
} llm_advice_t;

static const llm_advice_t  llm_advice[] = {
    { "temp",            LLM_PARAM_ID_temperature },
    { "top_k",           LLM_PARAM_ID_top_k },
    { "top_p",           LLM_PARAM_ID_top_p },
    { "min_p",           LLM_PARAM_ID_min_p },
    { "xtc_probability", LLM_PARAM_ID_xtc_probability },
    { "xtc_threshold",   LLM_PARAM_ID_xtc_threshold },
    { "penalty_last_n",  LLM_PARAM_ID_repeat_last_n },
    { "penalty_repeat",  LLM_PARAM_ID_repetition_penalty }
};


/* sets a parameter; LLM_ERROR: v is not within its range */

static int
llm_advice_set(llm_sampling_t *s, llm_param_id_t id, float v)
{
    int  fits;

    if (!isfinite(v)) {
        return LLM_ERROR;
    }

    switch (id) {

#define LLM_ADVICE_NUMBER(least)  v >= (least)
#define LLM_ADVICE_ABOVE(least)   v > (least)
#define LLM_ADVICE_INT(least)     v >= (least) && v == floorf(v)

#define LLM_PARAM(name, type, otherwise, least, most)                        \
    case LLM_PARAM_ID_##name:                                                \
        fits = LLM_ADVICE_##type(least) && (double) v <= (double) (most);    \
                                                                             \
        if (fits) {                                                          \
            s->name = (__typeof__(s->name)) v;                               \
        }                                                                    \
                                                                             \
        break;
#include "engine/base/sampling.def"

    default:
        fits = 0;
    }

    if (!fits) {
        return LLM_ERROR;
    }

    s->said |= 1u << id;

    return LLM_OK;
}


void
llm_instance_sampling(llm_instance_t *m, const llm_gguf_t *g)
{
    int        rc;
    char       key[64];
    float      v;
    size_t     i;
    llm_err_t  err;

    llm_sampling_default(&m->env.advised);

    for (i = 0; i < llm_nelems(llm_advice); i++) {
        (void) snprintf(key, sizeof(key), "general.sampling.%s",
                        llm_advice[i].key);

        rc = llm_gguf_get_f32(g, key, &v, &err);

        if (rc == LLM_OK
            && llm_advice_set(&m->env.advised, llm_advice[i].id, v) != LLM_OK)
        {
            (void) llm_fail(&err, "%s: %s: %g is out of range",
                            llm_gguf_name(g), key, v);
            rc = LLM_ERROR;
        }

        if (rc == LLM_ERROR) {
            llm_engine_log(m->engine, LLM_LOG_WARN, "model \"%s\": %s; it "
                           "is not used", m->conf.name, err.msg);
        }
    }
}
