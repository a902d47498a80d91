/*
 * Mixtures of experts: each device has rows of every expert's matrices, so all
 * choose the same experts for a row, each for itself.  The hidden layers of the
 * chosen experts are collected between the two products.
 */

#include "kernels/team/team_internal.h"

typedef struct {
    llm_choice_t    *of[LLM_MAX_DEVICES];
    llm_team_act_t  *hidden;            /* [rows, n_used * n_ff] */
    uint32_t         n_used;            /* of the last choice */
} llm_team_choice_t;


llm_weight_t *
llm_team_experts_create(llm_exec_t *exec, uint32_t type, uint32_t n_experts,
    uint32_t n_out, uint32_t n_in, const void *src, size_t stride,
    llm_err_t *err)
{
    uint32_t            i;
    llm_team_t         *t = (llm_team_t *) exec;
    const char         *rows;
    llm_team_weight_t  *w;

    assert(n_out % t->n == 0);

    w = calloc(1, sizeof(llm_team_weight_t));

    if (w == NULL) {
        (void) llm_fail(err, "no memory for the weights of experts");
        return NULL;
    }

    w->n_out = n_out;

    for (i = 0; i < t->n; i++) {
        rows = (const char *) src + llm_team_first(t, n_out, i)
                                    * llm_type_row_size(type, n_in);
        w->part[i] = t->ops->experts_create(llm_team_device(t, i), type,
                                            n_experts, n_out / t->n, n_in,
                                            rows, stride, err);
        if (w->part[i] == NULL) {
            llm_team_weight_free(exec, (llm_weight_t *) w);
            return NULL;
        }
    }

    return (llm_weight_t *) w;
}


llm_choice_t *
llm_team_choice_create(llm_exec_t *exec, const llm_choice_opts_t *opts,
    llm_err_t *err)
{
    uint32_t            i;
    llm_team_t         *t = (llm_team_t *) exec;
    llm_team_choice_t  *c;

    c = calloc(1, sizeof(llm_team_choice_t));

    if (c == NULL) {
        (void) llm_fail(err, "no memory for the choice of experts");
        return NULL;
    }

    c->hidden = (llm_team_act_t *) llm_team_act_create(exec, opts->max_rows,
                                       opts->n_used * opts->n_ff,
                                       LLM_ACT_VALUE, err);

    for (i = 0; c->hidden && i < t->n; i++) {
        c->of[i] = t->ops->choice_create(llm_team_device(t, i), opts, err);

        if (c->of[i] == NULL) {
            break;
        }
    }

    if (c->hidden == NULL || i < t->n) {
        llm_team_choice_free(exec, (llm_choice_t *) c);
        return NULL;
    }

    return (llm_choice_t *) c;
}


void
llm_team_choice_free(llm_exec_t *exec, llm_choice_t *choice)
{
    llm_team_t         *t = (llm_team_t *) exec;
    llm_team_choice_t  *c = (llm_team_choice_t *) choice;

    llm_team_drop(t, choice_free, c->of);

    if (c->hidden) {
        llm_team_act_free(exec, (llm_act_t *) c->hidden);
    }

    free(c);
}


void
llm_team_route(llm_exec_t *exec, llm_rows_t rows, const llm_route_t *r,
    const llm_act_t *logits, llm_choice_t *choice)
{
    uint32_t               i;
    llm_team_t            *t = (llm_team_t *) exec;
    llm_route_t            of = *r;
    llm_team_act_t        *x = (llm_team_act_t *) logits;
    llm_team_choice_t     *c = (llm_team_choice_t *) choice;
    const llm_team_vec_t  *bias = (const llm_team_vec_t *) r->bias;
    const llm_team_vec_t  *factor = (const llm_team_vec_t *) r->factor;

    llm_team_need(t, rows, x, LLM_TEAM_WHOLE);
    c->n_used = r->n_used;

    for (i = 0; i < t->n; i++) {
        of.bias = llm_team_at(bias, LLM_TEAM_WHOLE, i);
        of.factor = llm_team_at(factor, LLM_TEAM_WHOLE, i);
        t->ops->route(llm_team_device(t, i), rows, &of, x->whole[i], c->of[i]);
    }
}


/* a device's rows of each matrix, and all biases */

static llm_experts_t
llm_team_experts_of(const llm_experts_t *e, uint32_t i)
{
    llm_experts_t             of = *e;
    const llm_team_vec_t     *gate_bias, *up_bias, *down_bias;
    const llm_team_weight_t  *gate, *up, *down;

    gate = (const llm_team_weight_t *) e->gate;
    up = (const llm_team_weight_t *) e->up;
    down = (const llm_team_weight_t *) e->down;
    gate_bias = (const llm_team_vec_t *) e->gate_bias;
    up_bias = (const llm_team_vec_t *) e->up_bias;
    down_bias = (const llm_team_vec_t *) e->down_bias;

    of.gate = gate ? gate->part[i] : NULL;
    of.up = up->part[i];
    of.down = down->part[i];
    of.gate_bias = llm_team_at(gate_bias, LLM_TEAM_WHOLE, i);
    of.up_bias = llm_team_at(up_bias, LLM_TEAM_WHOLE, i);
    of.down_bias = llm_team_at(down_bias, LLM_TEAM_WHOLE, i);

    return of;
}


void
llm_team_experts(llm_exec_t *exec, llm_rows_t rows, const llm_experts_t *e,
    const llm_act_t *in, llm_choice_t *choice, llm_act_t *out)
{
    uint32_t                  i;
    llm_team_t               *t = (llm_team_t *) exec;
    llm_experts_t             of;
    llm_team_act_t           *x = (llm_team_act_t *) in;
    llm_team_act_t           *y = (llm_team_act_t *) out;
    llm_team_choice_t        *c = (llm_team_choice_t *) choice;
    llm_team_act_t           *h = c->hidden;
    const llm_team_weight_t  *up = (const llm_team_weight_t *) e->up;

    llm_team_act_cols((llm_act_t *) h, c->n_used * up->n_out);
    llm_team_need(t, rows, x, LLM_TEAM_WHOLE);
    llm_team_writes(t, h, LLM_TEAM_PART);

    for (i = 0; i < t->n; i++) {
        of = llm_team_experts_of(e, i);
        t->ops->experts_up(llm_team_device(t, i), rows, &of, i, t->n,
                           x->whole[i], c->of[i], h->part[i]);
    }

    llm_team_need(t, rows, h, LLM_TEAM_WHOLE);

    if (e->add) {
        llm_team_need(t, rows, y, LLM_TEAM_PART);
    }

    llm_team_writes(t, y, LLM_TEAM_PART);

    for (i = 0; i < t->n; i++) {
        of = llm_team_experts_of(e, i);
        t->ops->experts_down(llm_team_device(t, i), rows, &of, i, t->n,
                             h->whole[i], c->of[i], y->part[i]);
    }
}


/* one number for each row, for all its columns */

void
llm_team_gate_rows(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *gates,
    llm_act_t *act)
{
    int              form;
    llm_team_t      *t = (llm_team_t *) exec;
    llm_team_act_t  *g = (llm_team_act_t *) gates;
    llm_team_act_t  *x = (llm_team_act_t *) act;

    llm_team_need(t, rows, g, LLM_TEAM_WHOLE);
    form = llm_team_alike(t, rows, x, x);
    llm_team_writes(t, x, form);
    llm_team_run(t, form, gate_rows(e, rows, g->whole[i],
                                    llm_team_at(x, form, i)));
}
