/*
 * A row's choice of experts as llm_route_t says it, by counting how many are
 * larger: what tests compare with.
 */

#ifndef LLM_TEST_ROUTE_NAIVE_H
#define LLM_TEST_ROUTE_NAIVE_H

#include "kernels/kernels.h"

#include <math.h>

#define MAX_EXPERTS  40


static inline double
naive_score(const llm_route_t *r, const float *logits, uint32_t e)
{
    double    sum;
    uint32_t  i;

    if (r->score == LLM_ROUTE_CHOSEN) {
        return logits[e];
    }

    if (r->score == LLM_ROUTE_SIGMOID) {
        return 1 / (1 + exp(-(double) logits[e]));
    }

    for (i = 0, sum = 0; i < r->n_experts; i++) {
        sum += exp((double) logits[i] - logits[e]);
    }

    return 1 / sum;
}


/* how many of n are before i in falling order */

static inline uint32_t
naive_rank(const double *p, uint32_t n, uint32_t i)
{
    uint32_t  k, rank;

    for (k = 0, rank = 0; k < n; k++) {
        rank += p[k] > p[i] || (p[k] == p[i] && k < i);
    }

    return rank;
}


static inline void
naive_route(const llm_route_t *r, const float *bias, const float *factor,
    const float *logits, uint32_t *expert, double *weight)
{
    double    s[MAX_EXPERTS], p[MAX_EXPERTS], group[MAX_EXPERTS], sum;
    uint32_t  e, g, size, rank;

    for (e = 0; e < r->n_experts; e++) {
        s[e] = naive_score(r, logits, e);
        p[e] = s[e] + (bias ? bias[e] : 0);
    }

    if (r->n_groups) {
        size = r->n_experts / r->n_groups;

        for (g = 0; g < r->n_groups; g++) {
            group[g] = 0;

            for (e = 0; e < size; e++) {
                rank = naive_rank(p + g * size, size, e);
                group[g] += rank == 0 || (rank == 1 && r->group_pairs)
                            ? p[g * size + e] : 0;
            }
        }

        for (e = 0; e < r->n_experts; e++) {
            if (naive_rank(group, r->n_groups, e / size)
                >= r->n_groups_used)
            {
                p[e] = -INFINITY;
            }
        }
    }

    sum = 0;

    for (e = 0; e < r->n_experts; e++) {
        rank = naive_rank(p, r->n_experts, e);

        if (rank < r->n_used) {
            expert[rank] = e;
            weight[rank] = r->score == LLM_ROUTE_CHOSEN ? exp(s[e]) : s[e];
            sum += weight[rank];
        }
    }

    if (r->score != LLM_ROUTE_CHOSEN) {
        sum = !r->normalize ? 1 : sum < (double) r->floor
                                  ? (double) r->floor : sum;
    }

    for (e = 0; e < r->n_used; e++) {
        weight[e] *= r->scale / sum * (factor ? factor[expert[e]] : 1);
    }
}

#endif /* LLM_TEST_ROUTE_NAIVE_H */
