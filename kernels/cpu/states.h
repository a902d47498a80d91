/*
 * Where the states of recurrent layers lie, for the reference and the CPU
 * backend: slot after slot, in each the layers in order, of each the last
 * inputs of its convolution and then the matrices of its heads; float32.
 *
 * One allocation, which llm_state_t owns.
 */

#ifndef LLM_CPU_STATES_H
#define LLM_CPU_STATES_H

#include "kernels/kernels.h"

struct llm_state_s {
    llm_state_opts_t   opts;
    size_t             slot;            /* floats of one slot */
    size_t            *first;           /* [n_layers] where a layer's begin in
                                           it */
    size_t             size;            /* bytes of all */
    float             *data;            /* [n_slots][slot] */
};

/* a sequence of a step, in one layer */
typedef struct {
    uint32_t           row;             /* its first */
    uint32_t           end;
    int                begins;          /* at position 0: with zeros */
    float             *conv;            /* [conv_width - 1][conv_channels] */
    float             *heads;           /* [n_heads][n_rows * n_cols] */
} llm_state_seq_t;

/* state_create() ... state_copy() of kernels.h */
llm_state_t *llm_states_create(llm_dev_t *dev, const llm_state_opts_t *opts,
    llm_err_t *err);
void llm_states_free(llm_dev_t *dev, llm_state_t *st);
size_t llm_states_size(llm_dev_t *dev, const llm_state_opts_t *opts);
void llm_states_copy(llm_dev_t *dev, llm_state_t *st, uint32_t src,
    uint32_t dst);

llm_state_seq_t llm_states_seq(const llm_state_t *st, const llm_batch_t *b,
    uint32_t layer, uint32_t seq);

#endif /* LLM_CPU_STATES_H */
