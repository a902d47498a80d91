/*
 * A row's choice of experts, for the reference and for every instruction set:
 * written once, so that the same logits choose the same experts everywhere.
 */

#ifndef LLM_CPU_ROUTE_H
#define LLM_CPU_ROUTE_H

#include "kernels/kernels.h"

/*
 * logits, bias and factor [n_experts], the latter two or NULL; expert and
 * weight [n_used] are written.  Whatever the logits are, the experts are
 * n_used different ones below n_experts.
 */
void llm_route_row(const llm_route_t *r, const float *bias,
    const float *factor, const float *logits, uint32_t *expert,
    float *weight);

/* refuses numbers of experts that no layer can have */
int llm_choice_check(const llm_choice_opts_t *opts, llm_err_t *err);

#endif /* LLM_CPU_ROUTE_H */
