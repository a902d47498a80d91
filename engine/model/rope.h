/*
 * Rotary position embedding (arXiv:2104.09864) as a file's metadata asks
 * for it: the frequency of every pair, and the factor on cos and sin.
 * Scaling: none, linear, YaRN (arXiv:2309.00071) and Llama 3's factors,
 * which a file carries as the tensor rope_freqs.weight.
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
    float             factor;           /* by which the context is stretched */
    uint32_t          n_ctx_orig;       /* YaRN: context before it was
                                           stretched */
    float             ext_factor;       /* YaRN: share of extrapolation */
    float             beta_fast;        /* YaRN: turns within n_ctx_orig that
                                           are not scaled at all */
    float             beta_slow;        /* YaRN: turns that are scaled fully */
    float             weight;           /* YaRN: of what is taken from its
                                           factor again, transformers'
                                           mscale_all_dim; 0: nothing is */
    float             mscale;           /* on cos and sin */
    int               unrounded;        /* YaRN: the ramp begins and ends
                                           between two pairs */
} llm_rope_conf_t;

/* reads ARCH.rope.*; n_ctx_train is YaRN's original context if no key names
   it */
struct llm_reader_s;
int llm_rope_read(struct llm_reader_s *r, uint32_t n_ctx_train,
    llm_rope_conf_t *c);

/* YaRN's factor for a context stretched by `factor` */
float llm_rope_mscale(float factor, float weight);

/*
 * Fills inv_freq[n_dims / 2], the angle of each pair at position 1, divided
 * by factors (one for each pair, or NULL); LLM_ERROR if one is not finite.
 */
int llm_rope_inv_freq(const llm_rope_conf_t *c, uint32_t n_dims,
    const float *factors, float *inv_freq);

#endif /* LLM_MODEL_ROPE_H */
