/*
 * A block: pre-norm grouped attention over paged keys and values.
 *
 * rope_kv() and attention() work on all rows of a step, so this block comes
 * before blocks that work on some of them.
 */

#include "engine/model/blocks.h"


static void
llm_block_attend(const llm_pass_t *p)
{
    llm_model_t              *m = p->m;
    llm_act_t                *const *a = m->act;
    const llm_hparams_t      *hp = &m->desc.hp;
    const llm_model_layer_t  *l = &m->layers[p->layer];

    llm_linear_t  qkv[] = {
        { l->w[LLM_LT_Q], l->v[LLM_LT_Q_BIAS], a[LLM_MA_Q], 0 },
        { l->w[LLM_LT_K], l->v[LLM_LT_K_BIAS], a[LLM_MA_K], 0 },
        { l->w[LLM_LT_V], l->v[LLM_LT_V_BIAS], a[LLM_MA_V], 0 }
    };

    llm_linear_t  out = {
        l->w[LLM_LT_ATTN_OUT], l->v[LLM_LT_ATTN_OUT_BIAS], p->x, 1
    };

    llm_heads_t  heads = {
        .layer = p->layer,
        .n_heads = hp->n_heads,
        .n_kv_heads = hp->n_kv_heads,
        .head_dim_k = hp->head_dim_k,
        .head_dim_v = hp->head_dim_v,
        .scale = m->desc.attn_scale,
        .q_norm = l->v[LLM_LT_Q_NORM],
        .k_norm = l->v[LLM_LT_K_NORM],
        .norm_eps = hp->norm_eps
    };

    llm_rope_t  rope = {
        .kind = m->desc.arch->rope,
        .n_dims = hp->n_rot,
        .inv_freq = m->inv_freq,
        .mscale = m->desc.rope.mscale
    };

    m->ops->norm(m->dev, p->rows, p->x, l->v[LLM_LT_ATTN_NORM],
                 hp->norm_eps, a[LLM_MA_H]);
    m->ops->linear(m->dev, p->rows, a[LLM_MA_H], qkv, llm_nelems(qkv));
    m->ops->rope_kv(m->dev, &heads, &rope, a[LLM_MA_Q], a[LLM_MA_K],
                    a[LLM_MA_V], m->kv);

    if (p->ends) {
        return;
    }

    m->ops->attention(m->dev, &heads, a[LLM_MA_Q], m->kv, a[LLM_MA_ATTN]);
    m->ops->linear(m->dev, p->rows, a[LLM_MA_ATTN], &out, 1);
}


const llm_block_t  llm_block_attention = {
    .forward = llm_block_attend,
    .mixes = 1,

    .required = llm_arch_bit(LLM_LT_ATTN_NORM) | llm_arch_bit(LLM_LT_Q)
                | llm_arch_bit(LLM_LT_K) | llm_arch_bit(LLM_LT_V)
                | llm_arch_bit(LLM_LT_ATTN_OUT),

    .optional = llm_arch_bit(LLM_LT_Q_BIAS) | llm_arch_bit(LLM_LT_K_BIAS)
                | llm_arch_bit(LLM_LT_V_BIAS)
                | llm_arch_bit(LLM_LT_ATTN_OUT_BIAS)
};
