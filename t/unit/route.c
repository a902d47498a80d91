/*
 * How a row chooses its experts (kernels/cpu/route.c): against a choice made
 * by counting, near ties, and logits that are no numbers.
 */

#include "t/unit/ops.h"
#include "t/unit/route_naive.h"
#include "kernels/cpu/route.h"


static int
same_choice(const llm_route_t *r, const float *bias, const float *factor,
    const float *logits)
{
    int       good;
    float     weight[MAX_EXPERTS];
    double    want_weight[MAX_EXPERTS];
    uint32_t  i, expert[MAX_EXPERTS], want[MAX_EXPERTS];

    llm_route_row(r, bias, factor, logits, expert, weight);
    naive_route(r, bias, factor, logits, want, want_weight);

    for (i = 0, good = 1; i < r->n_used; i++) {
        good &= expert[i] == want[i]
                && fabs(weight[i] - want_weight[i])
                   <= 1e-6 * fabs(want_weight[i]) + 1e-30;
    }

    return good;
}


static void
test_route(void)
{
    int       good;
    float     logits[MAX_EXPERTS], bias[MAX_EXPERTS], factor[MAX_EXPERTS];
    uint32_t  i, k;

    static const struct {
        const char   *name;
        llm_route_t   r;
    } routes[] = {
        { "softmax", { .score = LLM_ROUTE_SOFTMAX, .n_experts = 40,
                       .n_used = 8, .scale = 1 } },
        { "softmax, normalised", { .score = LLM_ROUTE_SOFTMAX,
                       .n_experts = 33, .n_used = 4, .normalize = 1,
                       .scale = 1 } },
        { "of the chosen", { .score = LLM_ROUTE_CHOSEN, .n_experts = 32,
                       .n_used = 4, .scale = 1 } },
        { "sigmoid", { .score = LLM_ROUTE_SIGMOID, .n_experts = 16,
                       .n_used = 1, .scale = 1 } },
        { "sigmoid, normalised and scaled", { .score = LLM_ROUTE_SIGMOID,
                       .n_experts = 24, .n_used = 6, .normalize = 1,
                       .scale = 2.5f } },
        { "a floor", { .score = LLM_ROUTE_SIGMOID, .n_experts = 24,
                       .n_used = 2, .normalize = 1, .floor = 3,
                       .scale = 1 } },
        { "groups by the largest", { .score = LLM_ROUTE_SOFTMAX,
                       .n_experts = 40, .n_used = 6, .n_groups = 8,
                       .n_groups_used = 3, .scale = 16 } },
        { "groups by two", { .score = LLM_ROUTE_SIGMOID, .n_experts = 32,
                       .n_used = 8, .n_groups = 8, .n_groups_used = 4,
                       .group_pairs = 1, .normalize = 1, .scale = 2.5f } },
        { "groups of one", { .score = LLM_ROUTE_SIGMOID, .n_experts = 12,
                       .n_used = 4, .n_groups = 12, .n_groups_used = 5,
                       .group_pairs = 1, .scale = 1 } },
        { "all experts", { .score = LLM_ROUTE_SOFTMAX, .n_experts = 7,
                       .n_used = 7, .scale = 1 } },
        { "one expert", { .score = LLM_ROUTE_CHOSEN, .n_experts = 1,
                       .n_used = 1, .scale = 1 } },
    };

    for (i = 0; i < llm_nelems(routes); i++) {
        for (k = 0, good = 1; k < 400; k++) {
            ops_fill(logits, MAX_EXPERTS, i * 1000 + k);
            ops_fill(bias, MAX_EXPERTS, i * 1000 + k + 500);
            ops_fill(factor, MAX_EXPERTS, k + 7);

            /* sets of equal ones */
            if (k % 4 == 3) {
                logits[5] = logits[k % 16];
                logits[1] = logits[2];
            }

            good &= same_choice(&routes[i].r, k % 2 ? bias : NULL,
                                k % 3 ? factor : NULL, logits);
        }

        ok(good, "a choice by %s", routes[i].name);
    }
}


static void
test_ties(void)
{
    float        weight[8];
    uint32_t     i, expert[8];
    llm_route_t  r;

    static const float  level[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    static const float  far[8] = { 80, 90, 100, 91, 60, 0, 0, 0 };
    float               near[8] = { 2, 2, 2, 2, 2, 2, 2, 2 };

    r = (llm_route_t) { .score = LLM_ROUTE_SIGMOID, .n_experts = 8,
                        .n_used = 3, .scale = 1 };

    llm_route_row(&r, NULL, NULL, level, expert, weight);
    ok(expert[0] == 0 && expert[1] == 1 && expert[2] == 2,
       "a tie goes to the lower numbers");

    near[6] = nextafterf(2, 3);
    near[3] = nextafterf(near[6], 3);
    llm_route_row(&r, NULL, NULL, near, expert, weight);
    ok(expert[0] == 3 && expert[1] == 6 && expert[2] == 0,
       "the last bit of a logit decides");

    llm_route_row(&r, NULL, NULL, far, expert, weight);
    ok(expert[0] == 2 && expert[1] == 3 && expert[2] == 1,
       "and where all of their scores are 1");

    r.n_groups = 4;
    r.n_groups_used = 2;
    llm_route_row(&r, NULL, NULL, level, expert, weight);
    ok(expert[0] == 0 && expert[1] == 1 && expert[2] == 2,
       "a tie of groups goes to the lower ones");

    for (i = 0; i < 8; i++) {
        near[i] = i % 2 ? NAN : -INFINITY;
    }

    llm_route_row(&r, near, NULL, near, expert, weight);
    ok(expert[0] < 8 && expert[1] < 8 && expert[2] < 8
       && expert[0] != expert[1] && expert[0] != expert[2]
       && expert[1] != expert[2],
       "logits that are no numbers choose different experts");
}


int
main(void)
{
    test_route();
    test_ties();

    return done_testing();
}
