/*
 * How a request wants its tokens drawn, as it travels in a message: what the
 * API reads and the sampler (engine/sample) does.
 */

#ifndef LLM_SAMPLING_H
#define LLM_SAMPLING_H

#include <stdint.h>

typedef struct {
    int32_t      id;
    float        bias;
} llm_logit_bias_t;

typedef struct {
    float        temperature;           /* 0: greedy */
    float        top_p;
    float        min_p;
    float        typical_p;
    float        presence_penalty;
    float        frequency_penalty;
    float        repetition_penalty;
    int32_t      top_k;                 /* 0: all */
    int32_t      n_logprobs;            /* -1: none; 0: the token's own */
    uint32_t     has_seed;
    uint64_t     seed;
} llm_sampling_t;

/* those of a request that says nothing: temperature 1, all else off */
void llm_sampling_default(llm_sampling_t *s);

#endif /* LLM_SAMPLING_H */
