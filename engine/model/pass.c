/*
 * What the blocks have in common: norms, and adding results to the residual
 * stream; see blocks.h.
 */

#include "engine/model/blocks.h"


void
llm_pass_buffers(const llm_pass_t *p, const llm_buffer_want_t *b)
{
    uint32_t  cols;

    for ( /* void */ ; b && b->buffer != LLM_MA_N; b++) {
        cols = llm_desc_dim(&p->m->desc, p->d, b->cols);

        if (cols && p->m->act[b->buffer]) {
            p->m->ops->act_cols(p->m->act[b->buffer], cols);
        }
    }
}


void
llm_pass_norm(const llm_pass_t *p, const llm_act_t *x, llm_layer_tensor_t w,
    llm_layer_tensor_t bias, llm_act_t *y)
{
    llm_model_t  *m = p->m;

    llm_norm_t  norm = {
        .kind = m->desc.arch->norm,
        .eps = m->desc.hp.norm_eps,
        .w = p->l->v[w],
        .bias = bias == LLM_LT_N ? NULL : p->l->v[bias]
    };

    if (norm.w == NULL && !m->desc.arch->bare) {
        m->ops->scale(m->exec, p->rows, 1, x, 0, y);
        return;
    }

    m->ops->norm(m->exec, p->rows, x, &norm, y);
}


llm_kv_t *
llm_pass_kv(const llm_pass_t *p)
{
    llm_model_t  *m = p->m;

    if (p->d->outside) {
        return m->outside[p->d->kind];
    }

    return m->at->kv[m->desc.layers[p->d->kv_layer].kind];
}


llm_rope_t
llm_pass_rope(const llm_pass_t *p)
{
    llm_rope_t              rope;
    const llm_rope_desc_t  *r;

    memset(&rope, 0, sizeof(llm_rope_t));
    rope.kind = p->m->desc.rope_kind;

    if (p->d->rope != LLM_NO_ROPE) {
        r = &p->m->desc.ropes[p->d->rope];
        rope.n_dims = r->n_rot;
        rope.inv_freq = p->m->at->inv_freq[p->d->rope];
        rope.mscale = r->conf.mscale;
        memcpy(rope.sections, r->sections, sizeof(rope.sections));
        rope.mixed = r->mixed;
    }

    return rope;
}


uint32_t
llm_pass_window(const llm_pass_t *p)
{
    uint32_t  side;

    /* half of an encoder's window lies on either side of a row */

    side = p->m->desc.hp.encoder ? p->d->window / 2 : p->d->window;

    return side < p->m->ctx ? p->d->window : 0;
}


void
llm_pass_join(const llm_pass_t *p, llm_act_t *y, llm_layer_tensor_t norm)
{
    float         scale = p->d->residual_scale;
    llm_model_t  *m = p->m;

    llm_norm_t  post = {
        .kind = m->desc.arch->norm,
        .eps = m->desc.hp.norm_eps,
        .w = norm == LLM_LT_N ? NULL : p->l->v[norm],
        .add = scale == 1
    };

    if (post.w) {
        m->ops->norm(m->exec, p->rows, y, &post, scale == 1 ? p->x : y);
    }

    if (post.w == NULL || scale != 1) {
        m->ops->scale(m->exec, p->rows, scale, y, 1, p->x);
    }
}


void
llm_pass_add(const llm_pass_t *p, const llm_act_t *h, llm_layer_tensor_t w,
    llm_layer_tensor_t bias, llm_layer_tensor_t norm)
{
    llm_model_t  *m = p->m;

    llm_linear_t  out = {
        p->l->w[w], bias == LLM_LT_N ? NULL : p->l->v[bias], p->x, 1
    };

    if (p->d->residual_scale == 1
        && (norm == LLM_LT_N || p->l->v[norm] == NULL))
    {
        m->ops->linear(m->exec, p->rows, h, &out, 1);
        return;
    }

    out.y = m->act[LLM_MA_OUT];
    out.add = 0;
    m->ops->linear(m->exec, p->rows, h, &out, 1);
    llm_pass_join(p, out.y, norm);
}
