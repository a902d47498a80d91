/*
 * The sampling parameters of a request, a plain struct in the message from the
 * worker to the engine: engine/api fills it, the sampler (engine/sample) reads
 * it.
 */

#ifndef LLM_SAMPLING_H
#define LLM_SAMPLING_H

#include <stdint.h>

/* most sequence breakers of DRY, and most bytes of one */
#define LLM_MAX_BREAKERS      16
#define LLM_MAX_BREAKER_LEN   64

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

    /* the parameters in sampling.def */

#define LLM_PARAM_NUMBER  float
#define LLM_PARAM_ABOVE   float
#define LLM_PARAM_INT     int32_t

#define LLM_PARAM(name, type, otherwise, least, most)  LLM_PARAM_##type name;
#include "engine/base/sampling.def"

#undef LLM_PARAM_NUMBER
#undef LLM_PARAM_ABOVE
#undef LLM_PARAM_INT

    uint32_t     said;                  /* parameters set explicitly, bits of
                                           llm_param_id_t */
    int32_t      n_logprobs;            /* alternatives to return with the
                                           token's own logprob; -1: no
                                           logprobs */
    uint32_t     of_draw;               /* logprobs are those of the draw, after
                                           all stages, not of the model */
    uint32_t     has_seed;
    uint64_t     seed;
} llm_sampling_t;

/* the defaults of sampling.def, no logprobs, no seed */
void llm_sampling_default(llm_sampling_t *s);
/* copies the parameters that are set explicitly in `of` but not in s */
void llm_sampling_adopt(llm_sampling_t *s, const llm_sampling_t *of);

#endif /* LLM_SAMPLING_H */
