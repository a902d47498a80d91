/*
 * The sampling parameters of a request, as they are in its message: the API
 * reads them, the sampler (engine/sample) uses them.
 */

#ifndef LLM_SAMPLING_H
#define LLM_SAMPLING_H

#include <stdint.h>

/* sequence breakers of DRY */
#define LLM_MAX_BREAKERS      16
#define LLM_MAX_BREAKER_LEN   64        /* bytes */

typedef struct {
    int32_t      id;
    float        bias;
} llm_logit_bias_t;

typedef enum {
#define LLM_PARAM(name, type, otherwise, least, most)  LLM_PARAM_ID_##name,
#include "engine/base/sampling.def"
    LLM_PARAM_N
} llm_param_id_t;

_Static_assert(LLM_PARAM_N <= 32, "parameters are bits of 32");

typedef struct {

    /* the parameters of the stages, by their names */

#define LLM_PARAM_NUMBER  float
#define LLM_PARAM_ABOVE   float
#define LLM_PARAM_INT     int32_t

#define LLM_PARAM(name, type, otherwise, least, most)  LLM_PARAM_##type name;
#include "engine/base/sampling.def"

#undef LLM_PARAM_NUMBER
#undef LLM_PARAM_ABOVE
#undef LLM_PARAM_INT

    uint32_t     said;                  /* parameters that somebody has named:
                                           bits of llm_param_id_t */
    int32_t      n_logprobs;            /* -1: none; 0: the token's own */
    uint32_t     has_seed;
    uint64_t     seed;
} llm_sampling_t;

/* the defaults: temperature 1, all else off */
void llm_sampling_default(llm_sampling_t *s);
/* takes the parameters that `of` names and s does not */
void llm_sampling_adopt(llm_sampling_t *s, const llm_sampling_t *of);

#endif /* LLM_SAMPLING_H */
