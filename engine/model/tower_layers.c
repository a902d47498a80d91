/*
 * The layers of a tower's encoder, from the tensors v.blk.N of its file, or
 * a.blk.N of an encoder of sound: what kinds of norms, biases, gates and clamps
 * they have, the file says by having them; see tower_internal.h.
 */

#include "engine/model/tower_internal.h"

#include <math.h>
#include <stdio.h>

#define LLM_TOWER_NAME  128


/* Q, K or V as a matrix of its own, or as a third of attn_qkv */

static int
llm_tower_third(llm_tower_load_t *l, llm_tower_linear_t *x, uint32_t layer,
    uint32_t i)
{
    float                    *bias;
    uint32_t                  width = l->t->width;
    const llm_gguf_tensor_t  *t, *b;

    t = llm_tower_find(l, "%c.blk.%u.attn_qkv.weight", l->t->part, layer);
    b = llm_tower_find(l, "%c.blk.%u.attn_qkv.bias", l->t->part, layer);

    if (llm_tower_part(l, x, t, 3, i, width) != LLM_OK) {
        return LLM_ERROR;
    }

    if (b == NULL) {
        return LLM_OK;
    }

    bias = llm_tower_floats(l, b, 3 * (size_t) width);
    x->bias = bias ? l->t->ops->vec_create(l->t->exec, bias + i * width, width,
                                           l->err)
                   : NULL;

    return x->bias ? LLM_OK : LLM_ERROR;
}


/* the norm of heads that are rotated in halves, in the order of these */

static int
llm_tower_head_norm(llm_tower_load_t *l, llm_vec_t **v, uint32_t layer,
    const char *name)
{
    float                    *f, *to;
    uint32_t                  i, n, q;
    const llm_gguf_tensor_t  *t;

    n = l->t->head_dim;
    q = n / 4;
    t = llm_tower_find(l, "%c.blk.%u.%s.weight", l->t->part, layer, name);

    if (t == NULL) {
        return LLM_OK;
    }

    f = llm_tower_floats(l, t, n);
    to = llm_tower_keep(l, n, sizeof(float));

    if (f == NULL || to == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < n; i++) {
        to[i] = f[!l->t->kind->halves || i / q == 0 || i / q > 2 ? i
                  : i / q == 1 ? i + q : i - q];
    }

    *v = l->t->ops->vec_create(l->t->exec, to, n, l->err);

    return *v ? LLM_OK : LLM_ERROR;
}


/* a matrix of a head's rows, which are rotated in halves in some families */

static int
llm_tower_heads(llm_tower_load_t *l, llm_tower_linear_t *x, uint32_t layer,
    uint32_t i)
{
    char                      name[LLM_TOWER_NAME];
    uint32_t                  width = l->t->width;
    llm_tower_matrix_t        m;
    const llm_gguf_tensor_t  *t;

    static const char  *const names[] = { "attn_q", "attn_k", "attn_v" };

    if (llm_tower_find(l, "%c.blk.%u.attn_qkv.weight", l->t->part, layer)) {
        return llm_tower_third(l, x, layer, i);
    }

    snprintf(name, sizeof(name), "%c.blk.%u.%s", l->t->part, layer,
             names[i]);

    if (!l->t->kind->halves || i == 2) {
        return llm_tower_linear(l, x, width, &width, name);
    }

    t = llm_tower_find(l, "%s.weight", name);

    if (t == NULL || t->ne[0] != width || t->ne[1] != width
        || t->ne[2] * t->ne[3] != 1)
    {
        return t ? llm_fail(l->err, "%s: %s.weight: not %u by %u elements",
                            llm_gguf_name(l->t->gguf), name, width, width)
                 : llm_tower_missing(l, name);
    }

    memset(&m, 0, sizeof(m));
    m.t = t;
    m.n = width;
    m.n_in = width;
    m.halves = l->t->head_dim;
    x->w = llm_tower_matrix(l, &m);

    return x->w ? llm_tower_clamps(l, x, width, name) : LLM_ERROR;
}


/* a matrix whose product has a factor for each of its elements (layer scale),
   which is put into its rows and its bias */

static int
llm_tower_scaled(llm_tower_load_t *l, llm_tower_linear_t *x, uint32_t n_in,
    uint32_t layer, const char *name, const char *scale)
{
    char                      prefix[LLM_TOWER_NAME];
    float                    *f, *b;
    uint32_t                  i, width = l->t->width;
    llm_tower_matrix_t        m;
    const llm_gguf_tensor_t  *t, *s, *bias;

    snprintf(prefix, sizeof(prefix), "%c.blk.%u.%s", l->t->part, layer, name);
    s = llm_tower_find(l, "%c.blk.%u.%s.weight", l->t->part, layer, scale);

    if (s == NULL) {
        return llm_tower_linear(l, x, n_in, &width, prefix);
    }

    t = llm_tower_find(l, "%s.weight", prefix);

    if (t == NULL || t->ne[0] != n_in || t->ne[1] != width
        || t->ne[2] * t->ne[3] != 1)
    {
        return t ? llm_fail(l->err, "%s: %s.weight: not %u by %u elements",
                            llm_gguf_name(l->t->gguf), prefix, n_in, width)
                 : llm_tower_missing(l, prefix);
    }

    f = llm_tower_floats(l, s, width);

    if (f == NULL) {
        return LLM_ERROR;
    }

    memset(&m, 0, sizeof(m));
    m.t = t;
    m.n = width;
    m.n_in = n_in;
    m.factors = f;
    x->w = llm_tower_matrix(l, &m);
    bias = llm_tower_find(l, "%s.bias", prefix);

    if (x->w == NULL || bias == NULL) {
        return x->w ? LLM_OK : LLM_ERROR;
    }

    b = llm_tower_floats(l, bias, width);

    for (i = 0; b && i < width; i++) {
        b[i] *= f[i];
    }

    x->bias = b ? l->t->ops->vec_create(l->t->exec, b, width, l->err) : NULL;

    return x->bias ? LLM_OK : LLM_ERROR;
}


/* the first converters gave each of the network's matrices the other's name */

static int
llm_tower_exchanged(llm_tower_load_t *l, uint32_t i)
{
    const llm_gguf_tensor_t  *up, *down;

    up = llm_tower_find(l, "%c.blk.%u.ffn_up.weight", l->t->part, i);
    down = llm_tower_find(l, "%c.blk.%u.ffn_down.weight", l->t->part, i);

    return up && down && up->ne[0] != l->t->width
           && down->ne[0] == l->t->width;
}


static int
llm_tower_load_layer(llm_tower_load_t *l, uint32_t i)
{
    int                 exchanged;
    char                name[LLM_TOWER_NAME], part = l->t->part;
    uint32_t            width = l->t->width;
    llm_tower_layer_t  *x = &l->t->layers[i];

    if (llm_tower_norm(l, &x->ln1, width, 1, "%c.blk.%u.ln1", part, i)
           != LLM_OK
        || llm_tower_norm(l, &x->ln2, width, 1, "%c.blk.%u.ln2", part, i)
           != LLM_OK
        || llm_tower_norm(l, &x->attn_post, width, 0,
                          "%c.blk.%u.attn_post_norm", part, i) != LLM_OK
        || llm_tower_norm(l, &x->ffn_post, width, 0,
                          "%c.blk.%u.ffn_post_norm", part, i) != LLM_OK
        || llm_tower_head_norm(l, &x->q_norm, i, "attn_q_norm") != LLM_OK
        || llm_tower_head_norm(l, &x->k_norm, i, "attn_k_norm") != LLM_OK
        || llm_tower_heads(l, &x->q, i, 0) != LLM_OK
        || llm_tower_heads(l, &x->k, i, 1) != LLM_OK
        || llm_tower_heads(l, &x->v, i, 2) != LLM_OK
        || llm_tower_scaled(l, &x->out, width, i, "attn_out", "ls1")
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    exchanged = llm_tower_exchanged(l, i);
    snprintf(name, sizeof(name), "%c.blk.%u.%s", part, i,
             exchanged ? "ffn_down" : "ffn_up");

    if (llm_tower_linear(l, &x->up, width, &x->n_ff, name) != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_tower_find(l, "%c.blk.%u.ffn_gate.weight", part, i)) {
        snprintf(name, sizeof(name), "%c.blk.%u.ffn_gate", part, i);

        if (llm_tower_linear(l, &x->gate, width, &x->n_ff, name) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    l->t->n_ff = llm_max(l->t->n_ff, x->n_ff);

    return llm_tower_scaled(l, &x->down, x->n_ff, i,
                            exchanged ? "ffn_up" : "ffn_down", "ls2");
}


/* kernels of a convolution, or a matrix of whole patches */

static int
llm_tower_embeds(const llm_tower_t *t, const llm_gguf_tensor_t *w)
{
    uint64_t  p = t->info.patch;

    if (t->kind->joined) {
        return w->ne[0] == 3 * p * p && w->ne[1] == t->width
               && w->ne[2] * w->ne[3] == 1;
    }

    return w->ne[0] == p && w->ne[1] == p && w->ne[2] == 3
           && w->ne[3] == t->width;
}


/* the first frame's kernels and the second one's get the same pixels of an
   image */

static int
llm_tower_load_embed(llm_tower_load_t *l)
{
    uint32_t                  p, width = l->t->width;
    llm_tower_matrix_t        m;
    const llm_gguf_tensor_t  *t, *second;

    t = llm_tower_find(l, "v.patch_embd.weight");
    second = llm_tower_find(l, "v.patch_embd.weight.1");
    p = l->t->info.patch;

    if (t == NULL) {
        return llm_tower_missing(l, "v.patch_embd.weight");
    }

    if (!llm_tower_embeds(l->t, t)
        || (second && memcmp(second->ne, t->ne, sizeof(t->ne)) != 0))
    {
        return llm_fail(l->err, "%s: v.patch_embd.weight: not for patches of "
                        "%u pixels and a width of %u",
                        llm_gguf_name(l->t->gguf), p, width);
    }

    memset(&m, 0, sizeof(m));
    m.t = t;
    m.n = width;
    m.n_in = 3 * p * p;
    m.plus = second;
    l->t->embed.w = llm_tower_matrix(l, &m);

    if (l->t->embed.w == NULL) {
        return LLM_ERROR;
    }

    return llm_tower_read_vec(l, &l->t->embed.bias, width,
                              "v.patch_embd.bias");
}


int
llm_tower_layers(llm_tower_load_t *l)
{
    uint32_t      i;
    llm_tower_t  *t = l->t;

    if ((t->kind->sound ? llm_tower_convolutions(l) : llm_tower_load_embed(l))
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (t->kind->usm) {
        return llm_tower_conformer_read(l);
    }

    for (i = 0; i < t->info.n_layers; i++) {
        if (llm_tower_load_layer(l, i) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return t->kind->post_norm
           ? llm_tower_norm(l, &t->post, t->width, 1, "%c.post_ln", t->part)
           : LLM_OK;
}


int
llm_tower_rope(llm_tower_load_t *l, float base, llm_rope_kind_t kind,
    llm_tower_rope_t shares)
{
    float        *f;
    uint32_t      i, n, at;
    llm_tower_t  *t = l->t;

    if (t->head_dim % 4) {
        return llm_fail(l->err, "%s: heads of %u elements cannot be rotated "
                        "by rows and columns", llm_gguf_name(t->gguf),
                        t->head_dim);
    }

    n = t->head_dim / 4;
    f = llm_tower_keep(l, 2 * n, sizeof(float));

    if (f == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < 2 * n; i++) {
        at = shares == LLM_TOWER_EVERY_SECOND ? 2 * (i % n) + i / n
             : shares == LLM_TOWER_IN_TURN ? i / 2 * 2 : 2 * (i % n);
        f[i] = (float) pow(base, -2.0 * at / t->head_dim);
    }

    t->rope.kind = kind;
    t->rope.n_dims = t->head_dim;
    t->rope.mscale = 1;
    t->rope.sections[0] = n;
    t->rope.sections[1] = n;
    t->rope.mixed = shares == LLM_TOWER_IN_TURN ? 2 : 0;
    t->rope.inv_freq = t->ops->vec_create(t->exec, f, 2 * n, l->err);

    return t->rope.inv_freq ? LLM_OK : LLM_ERROR;
}
