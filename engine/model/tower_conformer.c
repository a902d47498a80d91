/*
 * Conformers (arXiv:2005.08100), as in Gemma 4's encoder of sound, a Universal
 * Speech Model (arXiv:2303.01037): what its file has of them, and the matrices
 * that are made of it.  Their operations are in tower_usm.c.
 *
 * The score of a key at distance d is q (k + r_d), with a vector r_d for each
 * of the LLM_TOWER_NEAR distances.  As there are so few, q r_d is a sum of
 * waves whose period is as many rows: sum of a_f cos(w_f d) + b_f sin(w_f d),
 * where a_f and b_f are products of q.  That is what RoPE makes of pairs
 * (a_f, -b_f) of the query and (1, 0) of the key, so these pairs precede the
 * elements of a head, and the operations are those of other models:
 * linear_heads() makes the pairs, and rope_kv() rotates them, and nothing else.
 */

#include "engine/model/tower_internal.h"

#include <math.h>
#include <stdio.h>

#define WINDOW     LLM_TOWER_NEAR
#define PAIRS      (WINDOW / 2 + 1)     /* waves: of f = 0 ... WINDOW / 2 rounds
                                           in a period */
#define EXTRA      LLM_TOWER_EXTRA      /* pairs, then zeros */
#define NAME       64
#define ROUNDS     10000.0              /* of the fastest wave of a position,
                                           for one of the slowest */


/* ---- loading ---- */

/* half i of the rows of a matrix with twice as many as columns */

static int
llm_conformer_rows(llm_tower_load_t *l, llm_tower_linear_t *x, uint32_t i,
    const char *name)
{
    uint32_t                  width = l->t->width;
    const llm_gguf_tensor_t  *w;

    w = llm_tower_find(l, "%s.weight", name);

    if (w == NULL) {
        return llm_tower_missing(l, name);
    }

    return llm_tower_part(l, x, w, 2, i, width) == LLM_OK
           ? llm_tower_clamps(l, x, width, name) : LLM_ERROR;
}


/* weights, times a factor */

static llm_vec_t *
llm_conformer_vec(llm_tower_load_t *l, uint32_t n, float factor,
    const char *name)
{
    float     *f;
    uint32_t   i;

    f = llm_tower_weights_of(l, n, name);

    for (i = 0; f && i < n; i++) {
        f[i] *= factor;
    }

    return f ? l->t->ops->vec_create(l->t->exec, f, n, l->err) : NULL;
}


/* network k of a layer; the second one's tensors have another name */

static int
llm_conformer_half(llm_tower_load_t *l, uint32_t layer, uint32_t k)
{
    char               up[NAME], down[NAME], norm[NAME], post[NAME];
    uint32_t           n_ff, width = l->t->width;
    llm_tower_half_t  *h = &l->t->conformers[layer].half[k];

    static const char  *const ends[] = { "", "_1" };

    snprintf(norm, NAME, "a.blk.%u.ffn_norm%s", layer, ends[k]);
    snprintf(up, NAME, "a.blk.%u.ffn_up%s", layer, ends[k]);
    snprintf(down, NAME, "a.blk.%u.ffn_down%s", layer, ends[k]);
    snprintf(post, NAME, "a.blk.%u.ffn_post_norm%s", layer, ends[k]);
    n_ff = 0;

    if (llm_tower_norm(l, &h->norm, width, 1, "%s", norm) != LLM_OK
        || llm_tower_linear(l, &h->up, width, &n_ff, up) != LLM_OK
        || llm_tower_linear(l, &h->down, n_ff, &width, down) != LLM_OK)
    {
        return LLM_ERROR;
    }

    /* the convolution uses the same buffers */

    h->n_ff = n_ff;
    l->t->n_ff = llm_max(l->t->n_ff, llm_max(n_ff, width));
    h->post.w = llm_conformer_vec(l, width, 0.5f, post);

    return h->post.w ? LLM_OK : LLM_ERROR;
}


static int
llm_conformer_conv(llm_tower_load_t *l, uint32_t layer)
{
    char                    name[NAME];
    float                  *f, *to;
    uint32_t                c, k, width = l->t->width;
    llm_tower_conformer_t  *x = &l->t->conformers[layer];

    /* the converter's names of the two norms are exchanged */

    if (llm_tower_norm(l, &x->conv_pre, width, 1, "a.blk.%u.conv_norm", layer)
           != LLM_OK
        || llm_tower_norm(l, &x->conv_post, width, 1, "a.blk.%u.norm_conv",
                          layer) != LLM_OK)
    {
        return LLM_ERROR;
    }

    snprintf(name, NAME, "a.blk.%u.conv_pw1", layer);

    if (llm_conformer_rows(l, &x->value, 0, name) != LLM_OK
        || llm_conformer_rows(l, &x->gate, 1, name) != LLM_OK)
    {
        return LLM_ERROR;
    }

    snprintf(name, NAME, "a.blk.%u.conv_pw2", layer);

    if (llm_tower_linear(l, &x->conv_out, width, &width, name) != LLM_OK) {
        return LLM_ERROR;
    }

    snprintf(name, NAME, "a.blk.%u.conv_dw", layer);
    f = llm_tower_weights_of(l, (size_t) LLM_TOWER_KERNEL * width, name);
    to = f ? llm_tower_keep(l, (size_t) LLM_TOWER_KERNEL * width,
                            sizeof(float)) : NULL;

    for (c = 0; to && c < width; c++) {
        for (k = 0; k < LLM_TOWER_KERNEL; k++) {
            to[k * width + c] = f[c * LLM_TOWER_KERNEL + k];
        }
    }

    x->conv = to ? l->t->ops->vec_create(l->t->exec, to,
                                         LLM_TOWER_KERNEL * width, l->err)
                 : NULL;

    return x->conv ? LLM_OK : LLM_ERROR;
}


/* ---- distances ---- */

/* r[d][width] of each distance: the layer's matrix times the waves of d, which
   are after the last one */

static void
llm_conformer_distances(const float *w, uint32_t width, double *r)
{
    double    angle, sum, *wave;
    uint32_t  d, i, k, half;

    half = width / 2;
    wave = r + (size_t) WINDOW * width;

    for (d = 0; d < WINDOW; d++) {
        for (k = 0; k < half; k++) {
            angle = d * exp(-(double) k * log(ROUNDS)
                            / llm_max((int) half - 1, 1));
            wave[k] = sin(angle);
            wave[half + k] = cos(angle);
        }

        for (i = 0; i < width; i++) {
            for (k = 0, sum = 0; k < width; k++) {
                sum += (double) w[(size_t) i * width + k] * wave[k];
            }

            r[(size_t) d * width + i] = sum;
        }
    }
}


/* row `row` of the pairs' matrix for column c, whose numbers are r[d][c] */

static double
llm_conformer_pair(const double *r, uint32_t width, uint32_t row, uint32_t c)
{
    double    sum, angle;
    uint32_t  d, f;

    f = row % PAIRS;

    for (d = 0, sum = 0; d < WINDOW; d++) {
        angle = 2 * M_PI * f * d / WINDOW;
        sum += r[(size_t) d * width + c] * (row < PAIRS ? cos(angle)
                                                        : -sin(angle));
    }

    return sum * (f == 0 || f == PAIRS - 1 ? 1 : 2) / WINDOW;
}


/* the queries' matrices [heads][key_dim][head_dim]: of the pairs, and of a
   head's own elements, which get the factor of its key, too */

static void
llm_conformer_queries(const llm_tower_t *t, const double *r, const float *dims,
    float *to)
{
    double    q, key;
    uint32_t  h, c, row, at;

    q = 1 / sqrt(t->head_dim) / log(2);
    key = log(1 + exp(1)) / log(2);

    for (h = 0; h < t->n_heads; h++) {
        for (c = 0; c < t->head_dim; c++) {
            at = h * t->head_dim + c;

            for (row = 0; row < 2 * PAIRS; row++) {
                to[((size_t) h * t->key_dim + row) * t->head_dim + c]
                    = (float) (q * dims[c]
                               * llm_conformer_pair(r, t->width, row, at));
            }

            to[((size_t) h * t->key_dim + EXTRA + c) * t->head_dim + c]
                = (float) (q * key * dims[c]);
        }
    }
}


/* products of heads, of a matrix [heads][key_dim][head_dim] */

static llm_weight_t *
llm_conformer_heads(llm_tower_load_t *l, const float *src)
{
    llm_tower_t  *t = l->t;

    return t->ops->heads_create(t->exec, LLM_TYPE_F32, t->n_heads, t->key_dim,
                                t->head_dim, src,
                                (size_t) t->key_dim * t->head_dim
                                * sizeof(float), l->err);
}


static int
llm_conformer_near(llm_tower_load_t *l, uint32_t layer)
{
    char                    name[NAME];
    float                  *dims, *w, *to;
    double                 *r;
    llm_tower_t            *t = l->t;
    llm_tower_conformer_t  *x = &t->conformers[layer];
    const llm_gguf_tensor_t  *rel;

    snprintf(name, NAME, "a.blk.%u.per_dim_scale", layer);
    dims = llm_tower_weights_of(l, t->head_dim, name);
    rel = llm_tower_find(l, "a.blk.%u.attn_k_rel.weight", layer);

    if (dims == NULL || rel == NULL) {
        snprintf(name, NAME, "a.blk.%u.attn_k_rel", layer);
        return dims ? llm_tower_missing(l, name) : LLM_ERROR;
    }

    if (rel->ne[0] != t->width || rel->ne[1] != t->width
        || rel->ne[2] * rel->ne[3] != 1)
    {
        return llm_tower_shape_error(l, rel, t->width, t->width);
    }

    w = malloc((size_t) t->width * t->width * sizeof(float));
    r = malloc((size_t) (WINDOW + 1) * t->width * sizeof(double));
    to = llm_tower_keep(l, (size_t) t->n_heads * t->key_dim * t->head_dim,
                        sizeof(float));

    if (w && r && to) {
        llm_dequantize(rel->type, rel->data, w, (size_t) t->width * t->width);
        llm_conformer_distances(w, t->width, r);
        llm_conformer_queries(t, r, dims, to);
        x->near = llm_conformer_heads(l, to);

    } else {
        (void) llm_fail(l->err, "%s: no memory for the tower",
                        llm_gguf_name(t->gguf));
    }

    free(w);
    free(r);

    return x->near ? LLM_OK : LLM_ERROR;
}


/* what the keys of all layers have before their elements: pairs (1, 0), and
   their rotation */

static int
llm_conformer_keys(llm_tower_load_t *l)
{
    float        *copy, *place, *waves;
    uint32_t      h, c;
    llm_tower_t  *t = l->t;

    copy = llm_tower_keep(l, (size_t) t->n_heads * t->key_dim * t->head_dim,
                          sizeof(float));
    place = llm_tower_keep(l, (size_t) t->n_heads * t->key_dim, sizeof(float));
    waves = llm_tower_keep(l, PAIRS, sizeof(float));

    if (copy == NULL || place == NULL || waves == NULL) {
        return LLM_ERROR;
    }

    for (h = 0; h < t->n_heads; h++) {
        for (c = 0; c < t->head_dim; c++) {
            copy[((size_t) h * t->key_dim + EXTRA + c) * t->head_dim + c] = 1;
        }

        for (c = 0; c < PAIRS; c++) {
            place[h * t->key_dim + c] = 1;
        }
    }

    for (c = 0; c < PAIRS; c++) {
        waves[c] = (float) (2 * M_PI * c / WINDOW);
    }

    t->rope.kind = LLM_ROPE_NEOX;
    t->rope.n_dims = 2 * PAIRS;
    t->rope.mscale = 1;
    t->wide = llm_conformer_heads(l, copy);
    t->placed_key = t->ops->vec_create(t->exec, place, t->n_heads * t->key_dim,
                                       l->err);
    t->rope.inv_freq = t->ops->vec_create(t->exec, waves, PAIRS, l->err);

    return t->wide && t->placed_key && t->rope.inv_freq ? LLM_OK : LLM_ERROR;
}


/* ---- layers ---- */

static int
llm_conformer_layer(llm_tower_load_t *l, uint32_t i)
{
    char                    name[NAME];
    uint32_t                k, width = l->t->width;
    llm_tower_layer_t      *x = &l->t->layers[i];
    llm_tower_conformer_t  *c = &l->t->conformers[i];

    const struct {
        const char          *name;
        llm_tower_linear_t  *to;
    } linears[] = {
        { "attn_q", &x->q }, { "attn_k", &x->k }, { "attn_v", &x->v },
        { "attn_out", &x->out }
    };

    for (k = 0; k < llm_nelems(linears); k++) {
        snprintf(name, NAME, "a.blk.%u.%s", i, linears[k].name);

        if (llm_tower_linear(l, linears[k].to, width, &width, name) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return llm_tower_norm(l, &x->ln1, width, 1, "a.blk.%u.attn_pre_norm", i)
              == LLM_OK
           && llm_tower_norm(l, &x->attn_post, width, 1,
                             "a.blk.%u.attn_post_norm", i) == LLM_OK
           && llm_tower_norm(l, &c->last, width, 1, "a.blk.%u.ln2", i)
              == LLM_OK
           && llm_conformer_half(l, i, 0) == LLM_OK
           && llm_conformer_half(l, i, 1) == LLM_OK
           && llm_conformer_conv(l, i) == LLM_OK
           ? llm_conformer_near(l, i) : LLM_ERROR;
}


/* the last rows that each layer's convolution saw, of the one sound of a job */

static int
llm_conformer_state(llm_tower_load_t *l)
{
    uint32_t            i;
    llm_tower_t        *t = l->t;
    llm_state_opts_t    o = { .n_layers = t->info.n_layers, .n_slots = 1 };
    llm_state_layer_t  *layers;

    layers = llm_tower_keep(l, t->info.n_layers, sizeof(llm_state_layer_t));

    if (layers == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < t->info.n_layers; i++) {
        layers[i].conv_channels = t->width;
        layers[i].conv_width = LLM_TOWER_KERNEL;
    }

    o.layers = layers;
    t->state = t->ops->state_create(t->exec, &o, l->err);

    return t->state ? LLM_OK : LLM_ERROR;
}


int
llm_tower_conformer_read(llm_tower_load_t *l)
{
    uint32_t      i;
    llm_tower_t  *t = l->t;

    t->key_dim = EXTRA + t->head_dim;
    t->conformers = llm_tower_keep(l, t->info.n_layers,
                                   sizeof(llm_tower_conformer_t));

    if (t->conformers == NULL || llm_conformer_keys(l) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < t->info.n_layers; i++) {
        if (llm_conformer_layer(l, i) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return llm_conformer_state(l);
}


static void
llm_conformer_free(llm_tower_t *t, llm_tower_conformer_t *x)
{
    uint32_t  i;

    for (i = 0; i < 2; i++) {
        llm_tower_free_norm(t, &x->half[i].norm);
        llm_tower_free_linear(t, &x->half[i].up);
        llm_tower_free_linear(t, &x->half[i].down);
        llm_tower_free_norm(t, &x->half[i].post);
    }

    if (x->near) {
        t->ops->weight_free(t->exec, x->near);
    }

    if (x->conv) {
        t->ops->vec_free(t->exec, x->conv);
    }

    llm_tower_free_norm(t, &x->conv_pre);
    llm_tower_free_linear(t, &x->value);
    llm_tower_free_linear(t, &x->gate);
    llm_tower_free_norm(t, &x->conv_post);
    llm_tower_free_linear(t, &x->conv_out);
    llm_tower_free_norm(t, &x->last);
}


void
llm_tower_conformer_free(llm_tower_t *t)
{
    uint32_t  i;

    for (i = 0; t->conformers && i < t->info.n_layers; i++) {
        llm_conformer_free(t, &t->conformers[i]);
    }

    if (t->wide) {
        t->ops->weight_free(t->exec, t->wide);
    }

    if (t->placed_key) {
        t->ops->vec_free(t->exec, t->placed_key);
    }

    if (t->state) {
        t->ops->state_free(t->exec, t->state);
    }
}
