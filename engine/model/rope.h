/*
 * Rotary position embedding (arXiv:2104.09864) from a file's metadata: the
 * frequency of every pair, and the factor on cos and sin.  Scaling: none,
 * linear, YaRN (arXiv:2309.00071), and Llama 3's factors, which are the tensor
 * rope_freqs.weight.  Nothing is allocated here.
 */

#ifndef LLM_MODEL_ROPE_H
#define LLM_MODEL_ROPE_H

#include "engine/gguf/gguf.h"

typedef enum {
    LLM_ROPE_SCALE_NONE = 0,
    LLM_ROPE_SCALE_LINEAR,
    LLM_ROPE_SCALE_YARN
} llm_rope_scale_t;

typedef struct {
    llm_rope_scale_t  scale;
    float             base;             /* theta */
    float             factor;           /* by which the context is extended */
    uint32_t          n_ctx_orig;       /* YaRN: context before extension */
    float             ext_factor;       /* YaRN: share of extrapolation */
    float             beta_fast;        /* YaRN: pairs with this many rotations
                                           within n_ctx_orig, or more, are not
                                           scaled at all */
    float             beta_slow;        /* YaRN: pairs with this many, or
                                           fewer, are scaled fully */
    float             weight;           /* YaRN: yarn_log_multiplier, mostly
                                           transformers' mscale_all_dim: mscale
                                           is divided by the YaRN factor of
                                           this weight; 0: it is not */
    float             mscale;           /* factor on cos and sin */
    int               unrounded;        /* YaRN: the ends of the ramp are not
                                           rounded to whole pairs */
} llm_rope_conf_t;

/* reads ARCH.rope.*; n_ctx_train: YaRN's original context if the file does not
   have it */
struct llm_reader_s;
int llm_rope_read(struct llm_reader_s *r, uint32_t n_ctx_train,
    llm_rope_conf_t *c);

/* YaRN's factor on cos and sin for a context that is extended by `factor` */
float llm_rope_mscale(float factor, float weight);

/*
 * Fills inv_freq[n_dims / 2], the angle in radians of each pair at position 1,
 * divided by factors (one for each pair, or NULL).  LLM_ERROR without a message
 * if an angle is not finite.
 */
int llm_rope_inv_freq(const llm_rope_conf_t *c, uint32_t n_dims,
    const float *factors, float *inv_freq);

#endif /* LLM_MODEL_ROPE_H */
