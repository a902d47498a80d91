/*
 * A layer's mixture of experts as operations of kernels.h, without norms: the
 * router, the experts that it chooses, and the shared experts, if any.
 *
 * Weights and buffers are the model's; nothing is owned here.
 */

#ifndef LLM_MODEL_BLOCK_EXPERTS_H
#define LLM_MODEL_BLOCK_EXPERTS_H

#include "kernels/kernels.h"

typedef struct {
    const llm_weight_t  *router;        /* [n_experts, n_embd], created as
                                           LLM_WEIGHT_HEAD */
    const llm_vec_t     *router_bias;   /* or NULL */
    llm_route_t          route;
    llm_experts_t        experts;

    /* the shared experts, one network that all rows go through; shared_up
       NULL: there are none */
    const llm_weight_t  *shared_gate;   /* or NULL */
    const llm_weight_t  *shared_up;
    const llm_weight_t  *shared_down;
    const llm_weight_t  *shared_switch; /* [1, n_embd]: its sigmoid multiplies
                                           the network's result; or NULL */
} llm_mixture_t;

/* buffers, for the most rows of a step and the widest layer */
typedef struct {
    llm_choice_t        *choice;
    llm_act_t           *logits;        /* [rows, n_experts] */
    llm_act_t           *gate;          /* [rows, width of shared experts], as
                                           are the next two */
    llm_act_t           *up;
    llm_act_t           *glu;
    llm_act_t           *open;          /* [rows, 1] products of the switch */
} llm_mixture_acts_t;

/*
 * y = the mixture of x, or y += if experts.add is set.  The router reads r,
 * which is x in most models.  r, x and y are rows of n_embd; y is a buffer of
 * its own.
 */
void llm_mixture_forward(const llm_ops_t *ops, llm_exec_t *exec,
    llm_rows_t rows, const llm_mixture_t *m, const llm_mixture_acts_t *a,
    const llm_act_t *r, const llm_act_t *x, llm_act_t *y);

#endif /* LLM_MODEL_BLOCK_EXPERTS_H */
