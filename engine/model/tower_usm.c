/*
 * The encoder of sound of Gemma 4's small models, a Universal Speech Model
 * (arXiv:2303.01037), beside that of images: convolutions (tower_slices.c),
 * conformers, and a projector.
 *
 * A conformer is a network, half of which is added, attention to the last rows,
 * a convolution over rows, another such network, and a norm.  Its keys need the
 * result of the first network, which is computed with them.  The convolution is
 * the short one of recurrent layers, which keeps the last rows of a piece for
 * the next one.
 *
 * transformers clamps to 10^10 between the parts, which is to keep numbers of
 * 16 bits finite; these here have 32.
 */

#include "engine/model/tower_internal.h"

/* no file says these */
#define LOGIT_CAP  50.0f
#define EPSILON    1e-6f


/* ---- layers ---- */

static llm_heads_t
llm_conformer_heads_of(const llm_tower_t *t, uint32_t layer)
{
    llm_heads_t  h;

    memset(&h, 0, sizeof(h));
    h.layer = layer % 2;
    h.n_heads = t->n_heads;
    h.n_kv_heads = t->n_heads;
    h.head_dim_k = t->key_dim;
    h.head_dim_v = t->head_dim;
    h.scale = 1;
    h.softcap = LOGIT_CAP;
    h.window = LLM_TOWER_NEAR;

    return h;
}


/* x += half of what a network makes of it */

static void
llm_conformer_add_half(const llm_tower_t *t, const llm_tower_half_t *h)
{
    llm_act_t  *up, *glu, *const *a = t->act_of;

    up = llm_tower_buffer(t, LLM_TA_UP, h->n_ff);
    glu = llm_tower_buffer(t, LLM_TA_GLU, h->n_ff);

    llm_tower_normalize(t, &h->norm, t->eps, a[LLM_TA_X], a[LLM_TA_H], 0);
    llm_tower_apply(t, &h->up, a[LLM_TA_H], up, 0);
    llm_tower_activate(t, LLM_GLU_SILU, up, glu);
    llm_tower_add(t, &h->down, &h->post, glu);
}


static void
llm_tower_conformer_keys(const llm_tower_t *t, uint32_t layer)
{
    llm_heads_t                   h = llm_conformer_heads_of(t, layer);
    llm_act_t                    *const *a = t->act_of;
    const llm_tower_layer_t      *l = &t->layers[layer];
    const llm_tower_conformer_t  *c = &t->conformers[layer];

    llm_conformer_add_half(t, &c->half[0]);
    llm_tower_normalize(t, &l->ln1, t->eps, a[LLM_TA_X], a[LLM_TA_H], 0);
    llm_tower_apply(t, &l->k, a[LLM_TA_H], a[LLM_TA_K], 0);
    llm_tower_apply(t, &l->v, a[LLM_TA_H], a[LLM_TA_V], 0);
    t->ops->linear_heads(t->exec, LLM_ROWS_ALL, t->wide, a[LLM_TA_K],
                         a[LLM_TA_WIDE]);
    t->ops->add_vec(t->exec, LLM_ROWS_ALL, t->placed_key, a[LLM_TA_WIDE]);

    h.n_heads = 0;
    t->ops->rope_kv(t->exec, &h, &t->rope, a[LLM_TA_Q], a[LLM_TA_WIDE],
                    a[LLM_TA_V], t->kv);
}


/* x += what the convolution makes of it */

static void
llm_conformer_convolve(const llm_tower_t *t, uint32_t layer)
{
    llm_act_t                    *value, *gate, *out, *const *a = t->act_of;
    const llm_tower_norm_t        none = { NULL, NULL };
    const llm_tower_conformer_t  *c = &t->conformers[layer];
    const llm_conv_t              conv = { .layer = layer, .w = c->conv };

    value = llm_tower_buffer(t, LLM_TA_UP, t->width);
    gate = llm_tower_buffer(t, LLM_TA_GATE, t->width);
    out = llm_tower_buffer(t, LLM_TA_OUT, t->width);

    llm_tower_normalize(t, &c->conv_pre, t->eps, a[LLM_TA_X], a[LLM_TA_H], 0);
    llm_tower_apply(t, &c->value, a[LLM_TA_H], value, 0);
    llm_tower_apply(t, &c->gate, a[LLM_TA_H], gate, 0);
    t->ops->glu(t->exec, LLM_ROWS_ALL, LLM_GLU_SIGMOID, gate, value, out);
    t->ops->conv(t->exec, &conv, out, t->state, gate);
    llm_tower_normalize(t, &c->conv_post, t->eps, gate, gate, 0);
    llm_tower_activate(t, LLM_GLU_SILU, gate, a[LLM_TA_H]);
    llm_tower_add(t, &c->conv_out, &none, a[LLM_TA_H]);
}


static void
llm_tower_conformer_layer(const llm_tower_t *t, uint32_t layer)
{
    llm_heads_t                   h = llm_conformer_heads_of(t, layer);
    llm_act_t                    *const *a = t->act_of;
    const llm_tower_layer_t      *l = &t->layers[layer];
    const llm_tower_conformer_t  *c = &t->conformers[layer];

    llm_tower_normalize(t, &l->ln1, t->eps, a[LLM_TA_X], a[LLM_TA_H], 0);
    llm_tower_apply(t, &l->q, a[LLM_TA_H], a[LLM_TA_Q], 0);
    t->ops->linear_heads(t->exec, LLM_ROWS_ALL, c->near, a[LLM_TA_Q],
                         a[LLM_TA_WIDE]);
    t->ops->rope_kv(t->exec, &h, &t->rope, a[LLM_TA_WIDE], NULL, NULL, t->kv);
    t->ops->attention(t->exec, &h, a[LLM_TA_WIDE], t->kv, a[LLM_TA_ATTN]);
    llm_tower_add(t, &l->out, &l->attn_post, a[LLM_TA_ATTN]);

    llm_conformer_convolve(t, layer);
    llm_conformer_add_half(t, &c->half[1]);
    llm_tower_normalize(t, &c->last, t->eps, a[LLM_TA_X], a[LLM_TA_X], 0);
}


/* ---- the projector ---- */

static int
llm_tower_gemma4a_read(llm_tower_load_t *l)
{
    uint32_t             out;
    llm_tower_t         *t = l->t;
    llm_tower_merger_t  *m = &t->mergers[0];

    out = t->info.n_embd;

    if (t->width % 2) {
        return llm_fail(l->err, "%s: clip.audio.embedding_length: %u is odd: "
                        "distances have pairs of sine and cosine",
                        llm_gguf_name(t->gguf), t->width);
    }

    if (t->head_dim > LLM_MAX_HEAD_DIM - LLM_TOWER_EXTRA) {
        return llm_fail(l->err, "%s: clip.audio.attention.head_count: heads of "
                        "%u elements are too large", llm_gguf_name(t->gguf),
                        t->head_dim);
    }

    /* files have another one, which the encoder was not trained with */

    t->eps = EPSILON;

    return llm_tower_linear(l, &m->linear[0], t->cell, &t->mid,
                            "a.pre_encode.out") == LLM_OK
           ? llm_tower_linear(l, &m->linear[1], t->mid, &out,
                              "mm.a.input_projection")
           : LLM_ERROR;
}


static void
llm_tower_gemma4a_project(const llm_tower_t *t)
{
    llm_act_t                 *const *a = t->act_of;
    const llm_tower_norm_t     bare = { NULL, NULL };
    const llm_tower_merger_t  *m = &t->mergers[0];

    t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, a[LLM_TA_CELL_H]);
    llm_tower_apply(t, &m->linear[0], a[LLM_TA_CELL_H], a[LLM_TA_MID], 0);
    llm_tower_normalize(t, &bare, t->eps, a[LLM_TA_MID], a[LLM_TA_MID_H], 0);
    llm_tower_apply(t, &m->linear[1], a[LLM_TA_MID_H], a[LLM_TA_PART], 0);
}


const llm_tower_kind_t  llm_tower_gemma4a = {
    .projector = "gemma4a",
    .sound = 1,
    .group = 1,
    .sliced = 1,
    .usm = 1,
    .needs = LLM_CAN_NORMS | LLM_CAN_ACTS | LLM_CAN_WINDOWS | LLM_CAN_SCORES
             | LLM_CAN_ROPE | LLM_CAN_SCALE | LLM_CAN_STATE | LLM_CAN_LATENT,
    .norm = LLM_NORM_RMS,
    .act = LLM_GLU_SILU,
    .read = llm_tower_gemma4a_read,
    .keys = llm_tower_conformer_keys,
    .layer = llm_tower_conformer_layer,
    .project = llm_tower_gemma4a_project
};
