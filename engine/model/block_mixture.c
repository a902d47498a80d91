/*
 * Two blocks: a mixture of experts instead of a feed-forward network, and a
 * mixture in addition to such a network, each of the two with its own norms.
 *
 * block_experts.c computes the mixture itself; here are its weights and norms.
 */

#include "engine/model/block_experts.h"
#include "engine/model/blocks.h"

#include <math.h>


/* y = the mixture of x, or y += with `add`; the router reads r */

static void
llm_mix_forward(const llm_pass_t *p, const llm_act_t *r, const llm_act_t *x,
    int add, llm_act_t *y)
{
    llm_mixture_t             mix;
    llm_mixture_acts_t        a;
    const llm_layer_desc_t   *d = p->d;
    const llm_model_layer_t  *l = p->l;

    memset(&mix, 0, sizeof(mix));
    mix.router = l->w[LLM_LT_ROUTER];
    mix.router_bias = l->v[LLM_LT_ROUTER_BIAS];
    mix.route = d->route;
    mix.route.bias = l->v[LLM_LT_PROBS_BIAS];
    mix.route.factor = l->v[LLM_LT_DOWN_EXPS_SCALE];
    mix.experts.gate = l->w[LLM_LT_GATE_EXPS];
    mix.experts.up = l->w[LLM_LT_UP_EXPS];
    mix.experts.down = l->w[LLM_LT_DOWN_EXPS];
    mix.experts.gate_bias = l->v[LLM_LT_GATE_EXPS_BIAS];
    mix.experts.up_bias = l->v[LLM_LT_UP_EXPS_BIAS];
    mix.experts.down_bias = l->v[LLM_LT_DOWN_EXPS_BIAS];
    mix.experts.act = d->act.kind;
    mix.experts.weigh_input = p->m->desc.arch->experts->weigh_input;
    mix.experts.add = add;
    mix.shared_gate = l->w[LLM_LT_GATE_SHARED];
    mix.shared_up = l->w[LLM_LT_UP_SHARED];
    mix.shared_down = l->w[LLM_LT_DOWN_SHARED];
    mix.shared_switch = l->w[LLM_LT_SWITCH];

    memset(&a, 0, sizeof(a));
    a.choice = p->m->at->choice;
    a.logits = p->m->act[LLM_MA_ROUTER];
    a.gate = p->m->act[LLM_MA_GATE];
    a.up = p->m->act[LLM_MA_UP];
    a.glu = p->m->act[LLM_MA_GLU];
    a.open = p->m->act[LLM_MA_SWITCH];

    llm_mixture_forward(p->m->ops, p->m->exec, p->rows, &mix, &a, r, x, y);
}


static void
llm_block_mix(const llm_pass_t *p)
{
    int         direct;
    llm_act_t  *h, *y;

    h = p->m->act[LLM_MA_H];
    direct = (p->d->residual_scale == 1 && p->l->v[LLM_LT_FFN_POST] == NULL);
    y = direct ? p->x : p->m->act[LLM_MA_OUT];

    if (p->d->parallel) {
        h = p->h;

    } else {
        llm_pass_norm(p, p->x, LLM_LT_FFN_NORM, LLM_LT_FFN_NORM_BIAS, h);
    }

    llm_mix_forward(p, h, h, direct, y);

    if (!direct) {
        llm_pass_join(p, y, LLM_LT_FFN_POST);
    }
}


/* y = norm(the feed-forward network of h) */

static void
llm_swap_feed(const llm_pass_t *p, const llm_act_t *h, llm_act_t *y)
{
    llm_linear_t  down = { p->l->w[LLM_LT_DOWN], NULL, y, 0 };

    p->m->ops->linear(p->m->exec, p->rows, llm_pass_feed(p, h), &down, 1);
    llm_pass_norm(p, y, LLM_LT_FFN_POST_1, LLM_LT_N, y);
}


/* the router reads norm(x) / sqrt(n_embd), with weights of its own */

static void
llm_block_mix_beside(const llm_pass_t *p)
{
    llm_model_t  *m = p->m;
    llm_act_t    *const *a = m->act;

    llm_norm_t  post = {
        .kind = m->desc.arch->norm,
        .eps = m->desc.hp.norm_eps,
        .w = p->l->v[LLM_LT_FFN_POST_2],
        .add = 1
    };

    llm_pass_norm(p, p->x, LLM_LT_FFN_NORM, LLM_LT_N, a[LLM_MA_H]);
    llm_swap_feed(p, a[LLM_MA_H], a[LLM_MA_OUT]);

    llm_pass_norm(p, p->x, LLM_LT_ROUTER_SCALE, LLM_LT_N,
                  a[LLM_MA_ROUTER_IN]);
    m->ops->scale(m->exec, p->rows, 1 / sqrtf((float) m->desc.hp.n_embd),
                  a[LLM_MA_ROUTER_IN], 0, a[LLM_MA_ROUTER_IN]);

    llm_pass_norm(p, p->x, LLM_LT_FFN_NORM_2, LLM_LT_N, a[LLM_MA_H]);
    llm_mix_forward(p, a[LLM_MA_ROUTER_IN], a[LLM_MA_H], 0,
                    a[LLM_MA_MIXED]);
    m->ops->norm(m->exec, p->rows, a[LLM_MA_MIXED], &post, a[LLM_MA_OUT]);

    llm_pass_join(p, a[LLM_MA_OUT], LLM_LT_FFN_POST);
}


static const llm_tensor_want_t  llm_mix_tensors[] = {
    { LLM_LT_FFN_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_ROUTER, LLM_WANT_REQUIRED },
    { LLM_LT_GATE_EXPS, LLM_WANT_REQUIRED },
    { LLM_LT_UP_EXPS, LLM_WANT_REQUIRED },
    { LLM_LT_DOWN_EXPS, LLM_WANT_REQUIRED },
    { LLM_LT_ROUTER_BIAS, LLM_WANT_OPTIONAL },
    { LLM_LT_PROBS_BIAS, LLM_WANT_OPTIONAL },
    { LLM_LT_GATE_EXPS_BIAS, LLM_WANT_OPTIONAL },
    { LLM_LT_UP_EXPS_BIAS, LLM_WANT_OPTIONAL },
    { LLM_LT_DOWN_EXPS_BIAS, LLM_WANT_OPTIONAL },
    { LLM_LT_N, LLM_WANT_NONE }
};


static const llm_tensor_want_t  llm_mix_beside_tensors[] = {
    { LLM_LT_FFN_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_GATE, LLM_WANT_REQUIRED },
    { LLM_LT_UP, LLM_WANT_REQUIRED },
    { LLM_LT_DOWN, LLM_WANT_REQUIRED },
    { LLM_LT_FFN_POST_1, LLM_WANT_REQUIRED },
    { LLM_LT_ROUTER, LLM_WANT_REQUIRED },
    { LLM_LT_ROUTER_SCALE, LLM_WANT_REQUIRED },
    { LLM_LT_FFN_NORM_2, LLM_WANT_REQUIRED },
    { LLM_LT_GATE_EXPS, LLM_WANT_REQUIRED },
    { LLM_LT_UP_EXPS, LLM_WANT_REQUIRED },
    { LLM_LT_DOWN_EXPS, LLM_WANT_REQUIRED },
    { LLM_LT_DOWN_EXPS_SCALE, LLM_WANT_OPTIONAL },
    { LLM_LT_FFN_POST_2, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};


static const llm_buffer_want_t  llm_mix_buffers[] = {
    { LLM_MA_ROUTER, LLM_DIM_ROUTER },
    { LLM_MA_GATE, LLM_DIM_FF_SHARED },
    { LLM_MA_UP, LLM_DIM_FF_SHARED },
    { LLM_MA_GLU, LLM_DIM_FF_SHARED },
    { LLM_MA_SWITCH, LLM_DIM_SWITCH },
    { LLM_MA_N, LLM_DIM_NONE }
};


const llm_block_t  llm_block_mixture = {
    .forward = llm_block_mix,
    .needs = LLM_CAN_EXPERTS,
    .tensors = llm_mix_tensors,
    .buffers = llm_mix_buffers
};

static const llm_buffer_want_t  llm_mix_beside_buffers[] = {
    { LLM_MA_GATE, LLM_DIM_FF },
    { LLM_MA_UP, LLM_DIM_FF },
    { LLM_MA_GLU, LLM_DIM_FF },
    { LLM_MA_ROUTER, LLM_DIM_ROUTER },
    { LLM_MA_ROUTER_IN, LLM_DIM_EMBD },
    { LLM_MA_MIXED, LLM_DIM_EMBD },
    { LLM_MA_N, LLM_DIM_NONE }
};


const llm_block_t  llm_block_mixture_beside = {
    .forward = llm_block_mix_beside,
    .needs = LLM_CAN_EXPERTS,
    .tensors = llm_mix_beside_tensors,
    .buffers = llm_mix_beside_buffers
};
