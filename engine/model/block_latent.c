/*
 * A block: latent attention (MLA, arXiv:2405.04434).
 *
 * The cache keeps of a token the latent, a vector for all heads from which a
 * matrix would make each head's keys and values, and a rotated key that all
 * heads share.  Keys and values of single heads are never computed: the
 * matrices of keys are applied to the queries, and those of values to
 * attention's result.  So attention has many heads of Q and one head of K,
 * [latent, rotated key], whose V is the latent.
 */

#include "engine/model/blocks.h"


/* Q of all heads, by one matrix or by two with a norm between them; the latent
   and the key before its rotation */

static void
llm_latent_products(const llm_pass_t *p)
{
    int                       low;
    llm_model_t              *m = p->m;
    llm_act_t                *const *a = m->act;
    const llm_model_layer_t  *l = p->l;

    low = p->d->q_rank != 0;

    llm_linear_t  products[] = {
        { l->w[LLM_LT_LATENT], NULL, a[LLM_MA_V], 0 },
        { l->w[LLM_LT_LATENT_ROPE], NULL, a[LLM_MA_K], 0 },
        { l->w[low ? LLM_LT_Q_A : LLM_LT_Q], NULL,
          a[low ? LLM_MA_Q_LOW : LLM_MA_Q_HEADS], 0 }
    };

    llm_linear_t  q = { l->w[LLM_LT_Q_B], NULL, a[LLM_MA_Q_HEADS], 0 };

    m->ops->linear(m->exec, p->rows, a[LLM_MA_H], products, 3);
    llm_pass_norm(p, a[LLM_MA_V], LLM_LT_LATENT_NORM, LLM_LT_N, a[LLM_MA_V]);

    if (low) {
        llm_pass_norm(p, a[LLM_MA_Q_LOW], LLM_LT_Q_A_NORM, LLM_LT_N,
                      a[LLM_MA_Q_LOW_H]);
        m->ops->linear(m->exec, p->rows, a[LLM_MA_Q_LOW_H], &q, 1);
    }
}


static void
llm_block_attend_latent(const llm_pass_t *p)
{
    llm_rope_t                rope;
    llm_model_t              *m = p->m;
    llm_act_t                *const *a = m->act;
    const llm_layer_desc_t   *d = p->d;
    const llm_model_layer_t  *l = p->l;

    llm_heads_t  heads = {
        .layer = p->layer,
        .n_heads = d->n_heads,
        .n_kv_heads = 1,
        .head_dim_k = d->head_dim_k,
        .head_dim_v = d->head_dim_v,
        .scale = d->scale,
        .latent = 1,
        .window = llm_pass_window(p),
        .temp_scale = d->temp_scale,
        .temp_floor = d->temp_floor,
        .temp_offset = d->temp_offset
    };

    rope = llm_pass_rope(p);

    llm_pass_norm(p, p->x, LLM_LT_ATTN_NORM, LLM_LT_ATTN_NORM_BIAS,
                  a[LLM_MA_H]);
    llm_latent_products(p);

    m->ops->linear_heads(m->exec, p->rows, l->w[LLM_LT_K_B],
                         a[LLM_MA_Q_HEADS], a[LLM_MA_Q]);
    m->ops->rope_kv(m->exec, &heads, &rope, a[LLM_MA_Q], a[LLM_MA_K],
                    a[LLM_MA_V], llm_pass_kv(p));

    if (p->ends) {
        return;
    }

    m->ops->attention(m->exec, &heads, a[LLM_MA_Q], llm_pass_kv(p),
                      a[LLM_MA_ATTN]);
    m->ops->linear_heads(m->exec, p->rows, l->w[LLM_LT_V_B], a[LLM_MA_ATTN],
                         a[LLM_MA_HEADS]);

    llm_pass_add(p, a[LLM_MA_HEADS], LLM_LT_ATTN_OUT, LLM_LT_N, LLM_LT_N);
}


static const llm_tensor_want_t  llm_latent_tensors[] = {
    { LLM_LT_ATTN_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_LATENT, LLM_WANT_REQUIRED },
    { LLM_LT_LATENT_ROPE, LLM_WANT_REQUIRED },
    { LLM_LT_LATENT_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_ATTN_OUT, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};


static const llm_buffer_want_t  llm_latent_buffers[] = {
    { LLM_MA_Q_LOW, LLM_DIM_Q_RANK },
    { LLM_MA_Q_LOW_H, LLM_DIM_Q_RANK },
    { LLM_MA_Q_HEADS, LLM_DIM_Q_HEADS },
    { LLM_MA_Q, LLM_DIM_Q },
    { LLM_MA_K, LLM_DIM_LATENT_ROPE },
    { LLM_MA_V, LLM_DIM_LATENT },
    { LLM_MA_ATTN, LLM_DIM_HEADS },
    { LLM_MA_HEADS, LLM_DIM_OUT_HEADS },
    { LLM_MA_N, LLM_DIM_NONE }
};


const llm_block_t  llm_block_latent = {
    .forward = llm_block_attend_latent,
    .mixes = 1,
    .needs = LLM_CAN_LATENT,
    .tensors = llm_latent_tensors,
    .buffers = llm_latent_buffers
};
