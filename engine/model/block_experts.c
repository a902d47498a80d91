/*
 * A mixture of experts: see block_experts.h.
 *
 * The switch of the shared network multiplies the input of `down` instead of
 * its result: that is the same, and down can then add to y.
 */

#include "engine/model/block_experts.h"


static void
llm_mixture_shared(const llm_ops_t *ops, llm_exec_t *exec, llm_rows_t rows,
    const llm_mixture_t *m, const llm_mixture_acts_t *a, const llm_act_t *x,
    llm_act_t *y)
{
    llm_linear_t  down = { m->shared_down, NULL, y, 1 };

    uint32_t      n;
    llm_act_fn_t  fn = { .kind = m->experts.act };
    llm_linear_t  products[3];

    n = 0;
    products[n++] = (llm_linear_t) { m->shared_up, NULL, a->up, 0 };

    if (m->shared_gate) {
        products[n++] = (llm_linear_t) { m->shared_gate, NULL, a->gate, 0 };
    }

    if (m->shared_switch) {
        products[n++] = (llm_linear_t) { m->shared_switch, NULL, a->open, 0 };
    }

    ops->linear(exec, rows, x, products, n);

    if (m->shared_gate) {
        ops->glu(exec, rows, fn.kind, a->gate, a->up, a->glu);

    } else {
        ops->act(exec, rows, &fn, a->up, a->glu);
    }

    if (m->shared_switch) {
        ops->gate_rows(exec, rows, a->open, a->glu);
    }

    ops->linear(exec, rows, a->glu, &down, 1);
}


void
llm_mixture_forward(const llm_ops_t *ops, llm_exec_t *exec, llm_rows_t rows,
    const llm_mixture_t *m, const llm_mixture_acts_t *a, const llm_act_t *r,
    const llm_act_t *x, llm_act_t *y)
{
    llm_linear_t  router = { m->router, m->router_bias, a->logits, 0 };

    ops->linear(exec, rows, r, &router, 1);
    ops->route(exec, rows, &m->route, a->logits, a->choice);
    ops->experts(exec, rows, &m->experts, x, a->choice, y);

    if (m->shared_up) {
        llm_mixture_shared(ops, exec, rows, m, a, x, y);
    }
}
