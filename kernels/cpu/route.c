/*
 * The choice of experts for a row (llm_route_t) in plain C: a few hundred
 * numbers, which take little time compared to the experts' products.
 *
 * Invariant: the list of chosen experts is always full, and its entries differ,
 * even if logits are NaN, which compare as neither smaller nor larger.
 */

#include "kernels/cpu/route.h"

#include <assert.h>
#include <math.h>


/* inserts i into a list of at most `max` indexes with falling p, after indexes
   of equal p; returns the length */

static uint32_t
llm_route_insert(const double *p, uint32_t i, uint32_t *list, uint32_t n,
    uint32_t max)
{
    uint32_t  at;

    if (n < max) {
        n++;

    } else if (!(p[i] > p[list[n - 1]])) {
        return n;
    }

    for (at = n - 1; at > 0 && p[i] > p[list[at - 1]]; at--) {
        list[at] = list[at - 1];
    }

    list[at] = i;

    return n;
}


/* s_e of all experts */

static void
llm_route_scores(const llm_route_t *r, const float *logits, double *s)
{
    double    max, sum;
    uint32_t  e;

    max = -INFINITY;
    sum = 0;

    if (r->score == LLM_ROUTE_SOFTMAX) {
        for (e = 0; e < r->n_experts; e++) {
            max = llm_max(max, (double) logits[e]);
        }
    }

    for (e = 0; e < r->n_experts; e++) {
        switch (r->score) {

        case LLM_ROUTE_SOFTMAX:
            s[e] = exp(logits[e] - max);
            sum += s[e];
            break;

        case LLM_ROUTE_SIGMOID:
            s[e] = 1 / (1 + exp(-(double) logits[e]));
            break;

        default:  /* LLM_ROUTE_CHOSEN */
            s[e] = logits[e];
        }
    }

    if (r->score == LLM_ROUTE_SOFTMAX) {
        for (e = 0; e < r->n_experts; e++) {
            s[e] /= sum;
        }
    }
}


/* the value by which groups are ranked */

static double
llm_route_group(const llm_route_t *r, const double *p, uint32_t first,
    uint32_t size)
{
    uint32_t  i, n, top[2] = { 0, 0 };

    for (i = 0, n = 0; i < size; i++) {
        n = llm_route_insert(p + first, i, top, n, 2);
    }

    return p[first + top[0]]
           + (r->group_pairs && n == 2 ? p[first + top[1]] : 0);
}


static void
llm_route_choose(const llm_route_t *r, const double *p, uint32_t *expert)
{
    double    group[LLM_MAX_EXPERTS];
    uint32_t  i, e, n, size, n_groups, used[LLM_MAX_EXPERTS];

    if (r->n_groups == 0) {
        for (e = 0, n = 0; e < r->n_experts; e++) {
            n = llm_route_insert(p, e, expert, n, r->n_used);
        }

        return;
    }

    size = r->n_experts / r->n_groups;

    for (i = 0, n_groups = 0; i < r->n_groups; i++) {
        group[i] = llm_route_group(r, p, i * size, size);
        n_groups = llm_route_insert(group, i, used, n_groups,
                                    r->n_groups_used);
    }

    /* in the order of experts, so that in a tie the lower number wins */

    for (i = 0, n = 0; i < r->n_experts; i++) {
        for (e = 0; e < n_groups && used[e] != i / size; e++) {
            /* void */
        }

        if (e < n_groups) {
            n = llm_route_insert(p, i, expert, n, r->n_used);
        }
    }
}


/* computes the weights of the chosen experts from their scores */

static void
llm_route_weigh(const llm_route_t *r, const double *s, const float *factor,
    const uint32_t *expert, float *weight)
{
    double    w, max, sum;
    uint32_t  i;

    max = -INFINITY;
    sum = 0;

    if (r->score == LLM_ROUTE_CHOSEN) {
        for (i = 0; i < r->n_used; i++) {
            max = llm_max(max, s[expert[i]]);
        }

        for (i = 0; i < r->n_used; i++) {
            sum += exp(s[expert[i]] - max);
        }

    } else if (r->normalize) {
        for (i = 0; i < r->n_used; i++) {
            sum += s[expert[i]];
        }

        /* a sum that is NaN stays NaN */
        sum = sum < (double) r->floor ? (double) r->floor : sum;
        sum += (double) r->eps;

    } else {
        sum = 1;
    }

    for (i = 0; i < r->n_used; i++) {
        w = s[expert[i]];
        w = r->score == LLM_ROUTE_CHOSEN ? exp(w - max) : w;
        w = w / sum * r->scale;
        weight[i] = (float) (factor ? w * factor[expert[i]] : w);
    }
}


void
llm_route_row(const llm_route_t *r, const float *bias, const float *factor,
    const float *logits, uint32_t *expert, float *weight)
{
    double    s[LLM_MAX_EXPERTS], p[LLM_MAX_EXPERTS];
    uint32_t  e;

    assert(r->n_experts <= LLM_MAX_EXPERTS && r->n_used <= r->n_experts
           && r->n_used > 0);
    assert(r->n_groups == 0
           || (r->n_experts % r->n_groups == 0
               && r->n_groups_used <= r->n_groups
               && r->n_experts / r->n_groups * r->n_groups_used
                  >= r->n_used));

    llm_route_scores(r, logits, s);

    for (e = 0; e < r->n_experts; e++) {
        p[e] = bias ? s[e] + bias[e]
               : r->n_groups && r->group_pairs ? s[e] : logits[e];
    }

    llm_route_choose(r, p, expert);
    llm_route_weigh(r, s, factor, expert, weight);
}


int
llm_choice_check(const llm_choice_opts_t *opts, llm_err_t *err)
{
    if (opts->n_used == 0 || opts->n_used > opts->n_experts
        || opts->n_experts > LLM_MAX_EXPERTS)
    {
        return llm_fail(err, "a layer cannot use %u of %u experts: it must "
                        "have 1 to %u and use at least one", opts->n_used,
                        opts->n_experts, LLM_MAX_EXPERTS);
    }

    return LLM_OK;
}
