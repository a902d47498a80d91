/*
 * The memory of recurrent states, for the reference and the CPU backend.
 * Slots follow each other; a slot has the layers in order; a layer has the last
 * inputs of its convolution, then the matrices of its heads, in float32.
 *
 * One allocation, which llm_state_t owns.
 */

#ifndef LLM_CPU_STATES_H
#define LLM_CPU_STATES_H

#include "kernels/kernels.h"

struct llm_state_s {
    llm_state_opts_t   opts;
    size_t             slot;            /* floats of one slot */
    size_t            *first;           /* [n_layers] offset of a layer in a
                                           slot, in floats */
    size_t             size;            /* bytes of all slots */
    float             *data;            /* [n_slots][slot] */
};

/* one sequence of a step in one layer: its rows and its state */
typedef struct {
    uint32_t           row;             /* first row */
    uint32_t           end;             /* last row + 1 */
    int                begins;          /* 1: the first row is at position 0,
                                           so the state must be zeroed */
    float             *conv;            /* [conv_width - 1][conv_channels] */
    float             *heads;           /* [n_heads][n_rows * n_cols] */
} llm_state_seq_t;

/* state_create() ... state_copy() of ops.def */
llm_state_t *llm_states_create(llm_exec_t *exec, const llm_state_opts_t *opts,
    llm_err_t *err);
void llm_states_free(llm_exec_t *exec, llm_state_t *st);
size_t llm_states_size(llm_exec_t *exec, const llm_state_opts_t *opts);
void llm_states_copy(llm_exec_t *exec, llm_state_t *st, uint32_t src,
    uint32_t dst);

llm_state_seq_t llm_states_seq(const llm_state_t *st, const llm_batch_t *b,
    uint32_t layer, uint32_t seq);

#endif /* LLM_CPU_STATES_H */
