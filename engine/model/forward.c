/*
 * The forward pass of one step: a decoder of pre-norm layers with grouped
 * attention over paged keys and values and a gated feed-forward network.
 * It is written once, against the table of operations; what architectures
 * differ in comes from the description and from the tensors that are there.
 *
 * In the last layer only the rows that want logits go on behind attention:
 * the others have left their keys and values, which is all they were for.
 */

#include "engine/model/model_internal.h"

#include <assert.h>


static void
llm_forward_attention(llm_model_t *m, uint32_t layer, int last)
{
    llm_act_t                *const *a = m->act;
    const llm_hparams_t      *hp = &m->desc.hp;
    const llm_model_layer_t  *l = &m->layers[layer];

    llm_linear_t  qkv[] = {
        { l->w[LLM_LT_Q], l->v[LLM_LT_Q_BIAS], a[LLM_MA_Q], 0 },
        { l->w[LLM_LT_K], l->v[LLM_LT_K_BIAS], a[LLM_MA_K], 0 },
        { l->w[LLM_LT_V], l->v[LLM_LT_V_BIAS], a[LLM_MA_V], 0 }
    };

    llm_linear_t  out = {
        l->w[LLM_LT_ATTN_OUT], l->v[LLM_LT_ATTN_OUT_BIAS], a[LLM_MA_X], 1
    };

    llm_heads_t  heads = {
        .layer = layer,
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

    m->ops->norm(m->dev, LLM_ROWS_ALL, a[LLM_MA_X], NULL,
                 l->v[LLM_LT_ATTN_NORM], hp->norm_eps, a[LLM_MA_H]);
    m->ops->linear(m->dev, LLM_ROWS_ALL, a[LLM_MA_H], qkv, llm_nelems(qkv));
    m->ops->rope_kv(m->dev, &heads, &rope, a[LLM_MA_Q], a[LLM_MA_K],
                    a[LLM_MA_V], m->kv);

    if (last && m->n_out == 0) {
        return;
    }

    m->ops->attention(m->dev, &heads, a[LLM_MA_Q], m->kv, a[LLM_MA_ATTN]);
    m->ops->linear(m->dev, LLM_ROWS_ALL, a[LLM_MA_ATTN], &out, 1);
}


static void
llm_forward_ffn(llm_model_t *m, uint32_t layer, llm_rows_t rows,
    llm_act_t *x)
{
    llm_act_t                *const *a = m->act;
    const llm_model_layer_t  *l = &m->layers[layer];

    llm_linear_t  gate_up[] = {
        { l->w[LLM_LT_GATE], l->v[LLM_LT_GATE_BIAS], a[LLM_MA_GATE], 0 },
        { l->w[LLM_LT_UP], l->v[LLM_LT_UP_BIAS], a[LLM_MA_UP], 0 }
    };

    llm_linear_t  down = {
        l->w[LLM_LT_DOWN], l->v[LLM_LT_DOWN_BIAS], x, 1
    };

    m->ops->norm(m->dev, rows, x, NULL, l->v[LLM_LT_FFN_NORM],
                 m->desc.hp.norm_eps, a[LLM_MA_H]);
    m->ops->linear(m->dev, rows, a[LLM_MA_H], gate_up, llm_nelems(gate_up));
    m->ops->glu(m->dev, rows, m->desc.arch->glu, a[LLM_MA_GATE],
                a[LLM_MA_UP], a[LLM_MA_GLU]);
    m->ops->linear(m->dev, rows, a[LLM_MA_GLU], &down, 1);
}


static void
llm_forward_step(llm_model_t *m)
{
    int           last;
    uint32_t      i;
    llm_act_t    *const *a = m->act;
    llm_linear_t  head = { m->output, NULL, a[LLM_MA_LOGITS], 0 };

    m->ops->embed(m->dev, m->token_embd, a[LLM_MA_X]);

    for (i = 0; i < m->desc.hp.n_layers; i++) {
        last = (i == m->desc.hp.n_layers - 1);

        llm_forward_attention(m, i, last);

        if (!last) {
            llm_forward_ffn(m, i, LLM_ROWS_ALL, a[LLM_MA_X]);
        }
    }

    if (m->n_out == 0) {
        return;
    }

    m->ops->gather(m->dev, a[LLM_MA_X], a[LLM_MA_X_OUT]);
    llm_forward_ffn(m, i - 1, LLM_ROWS_OUT, a[LLM_MA_X_OUT]);
    m->ops->norm(m->dev, LLM_ROWS_OUT, a[LLM_MA_X_OUT], NULL, m->output_norm,
                 m->desc.hp.norm_eps, a[LLM_MA_H]);
    m->ops->linear(m->dev, LLM_ROWS_OUT, a[LLM_MA_H], &head, 1);
}


static void
llm_forward_assert(const llm_model_t *m, const llm_batch_t *b)
{
    uint32_t  i;

    assert(b->n_tokens > 0 && b->n_tokens <= m->batch);
    assert(b->n_seqs > 0 && b->n_seqs <= m->max_seqs);
    assert(b->n_out <= m->max_out);
    assert(b->max_pages <= m->max_pages);
    assert(b->seq_rows[0] == 0 && b->seq_rows[b->n_seqs] == b->n_tokens);

    for (i = 0; i < b->n_seqs; i++) {
        assert(b->seq_rows[i] < b->seq_rows[i + 1]);
        assert(b->kv_len[i] > 0 && b->kv_len[i] <= m->ctx);
        assert(b->kv_len[i] == b->pos[b->seq_rows[i + 1] - 1] + 1);
    }

    for (i = 0; i < b->n_tokens; i++) {
        assert((uint32_t) b->tokens[i] < m->desc.hp.n_vocab);
        assert(b->follows == NULL || b->follows[i] == LLM_NO_DRAW
               || (m->ops->submit && b->follows[i] < m->n_out));
    }
}


int
llm_model_submit(llm_model_t *m, const llm_batch_t *b, llm_err_t *err)
{
    int  rc;

    assert(m->n_under_way < (m->ops->submit ? 2 : 1));
    llm_forward_assert(m, b);

    m->n_out = b->n_out;

    rc = m->ops->begin(m->dev, b, err);

    if (rc == LLM_ERROR) {
        m->n_under_way = 0;
        return LLM_ERROR;
    }

    if (rc == LLM_OK) {
        llm_forward_step(m);
    }

    if (m->ops->submit && m->ops->submit(m->dev) == LLM_REDO) {
        llm_forward_step(m);
        (void) m->ops->submit(m->dev);
    }

    m->under_way[m->n_under_way++] = b->n_out;

    return LLM_OK;
}


int
llm_model_wait(llm_model_t *m, llm_err_t *err)
{
    assert(m->n_under_way > 0);

    m->n_results = m->under_way[0];
    m->under_way[0] = m->under_way[1];
    m->n_under_way--;
    m->logits = NULL;

    if (m->ops->end(m->dev, err) != LLM_OK) {
        m->n_under_way = 0;
        return LLM_ERROR;
    }

    /* a device may read its weights where the file is mapped */

    if (llm_gguf_intact(m->gguf, err) != LLM_OK) {
        m->n_under_way = 0;
        return LLM_ERROR;
    }

    return LLM_OK;
}


int
llm_model_forward(llm_model_t *m, const llm_batch_t *b, llm_err_t *err)
{
    if (llm_model_submit(m, b, err) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_model_wait(m, err);
}


int
llm_model_overlaps(const llm_model_t *m)
{
    return m->ops->submit != NULL && m->ops->drawn != NULL;
}


const float *
llm_model_logits(llm_model_t *m, uint32_t i)
{
    assert(i < m->n_results);

    if (m->logits == NULL) {
        m->logits = m->ops->map(m->dev, m->act[LLM_MA_LOGITS], 0,
                                m->n_results);
    }

    return m->logits + (size_t) i * m->desc.hp.n_vocab;
}


int
llm_model_draws(const llm_model_t *m)
{
    return m->ops->drawn != NULL;
}


void
llm_model_drawn(llm_model_t *m, uint32_t i, llm_drawn_t *out)
{
    assert(i < m->n_results);

    m->ops->drawn(m->dev, i, out);
}


void
llm_model_copy_page(llm_model_t *m, uint32_t src, uint32_t dst)
{
    assert(src < m->n_pages && dst < m->n_pages);

    m->ops->kv_copy(m->dev, m->kv, src, dst);
}
