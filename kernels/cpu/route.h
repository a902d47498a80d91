/*
 * The choice of experts for a row: one implementation for the reference and for
 * all instruction sets, so that equal logits choose the same experts.
 */

#ifndef LLM_CPU_ROUTE_H
#define LLM_CPU_ROUTE_H

#include "kernels/kernels.h"

/*
 * Writes expert and weight [n_used] for logits [n_experts]; bias and factor are
 * [n_experts] or NULL.  For any logits, NaN included, the experts are n_used
 * different numbers below n_experts.
 */
void llm_route_row(const llm_route_t *r, const float *bias,
    const float *factor, const float *logits, uint32_t *expert,
    float *weight);

/* LLM_ERROR and *err if no layer can have these numbers of experts */
int llm_choice_check(const llm_choice_opts_t *opts, llm_err_t *err);

#endif /* LLM_CPU_ROUTE_H */
