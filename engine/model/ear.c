/*
 * Encodes a window of sound, piece by piece; see ear.h.
 *
 * The convolutions, three frames wide, are products with rows of three frames
 * side by side, which the host gathers; the second one takes every second
 * frame.  All layers use one cache, one after the other.
 */

#include "engine/model/ear.h"

#include <assert.h>


/* rows that a piece begins with; how many it has */

static uint32_t
llm_ear_first(const llm_ear_t *s)
{
    return s->chunk * s->rows;
}


static uint32_t
llm_ear_n(const llm_model_t *m)
{
    const llm_ear_t  *s = m->ear;

    return llm_min(s->rows, m->desc.ear.n_ctx
                            * (s->stage == LLM_EAR_CONV_1 ? 2u : 1u)
                            - llm_ear_first(s));
}


/* y = norm(x) */

static void
llm_ear_norm(llm_model_t *m, const llm_act_t *x, const llm_vec_t *w,
    const llm_vec_t *bias, llm_act_t *y)
{
    llm_norm_t  norm = {
        .kind = LLM_NORM_LAYER,
        .eps = m->desc.hp.norm_eps,
        .w = w,
        .bias = bias
    };

    m->ops->norm(m->exec, LLM_ROWS_ALL, x, &norm, y);
}


/* row i of the inputs is the frames of the window that the kernel sees, each
   channel's side by side, with zeros outside */

static void
llm_ear_gather(llm_model_t *m, uint32_t first, uint32_t n)
{
    int64_t                  at;
    uint32_t                 i, c, k, channels, stride, frames, one;
    float                   *to;
    const float             *from;
    llm_ear_t             *s = m->ear;
    const llm_ear_desc_t  *d = &m->desc.ear;

    /* mel has a row for each band, frames one for each frame */

    one = s->stage == LLM_EAR_CONV_1;
    channels = one ? d->n_mels : d->n_embd;
    stride = one ? 1 : 2;
    frames = 2 * d->n_ctx;

    for (i = 0; i < n; i++) {
        to = s->input + (size_t) i * 3 * channels;

        for (k = 0; k < 3; k++) {
            at = (int64_t) (first + i) * stride + k - 1;

            for (c = 0; c < channels; c++) {
                if (at < 0 || at >= frames) {
                    to[3 * c + k] = 0;
                    continue;
                }

                from = one ? s->mel + (size_t) c * frames + at
                           : s->frames + (size_t) at * channels + c;
                to[3 * c + k] = *from;
            }
        }
    }

    m->ops->act_cols(s->in, 3 * channels);
    m->ops->write(m->exec, s->in, 0, n, s->input);
}


static void
llm_ear_convolve(llm_model_t *m)
{
    llm_ear_t   *s = m->ear;
    llm_act_fn_t   gelu = { .kind = LLM_GLU_GELU_ERF };

    llm_linear_t  out = { s->gw[LLM_SG_CONV_1], s->gv[LLM_SG_CONV_1_BIAS],
                          s->conv, 0 };

    if (s->stage == LLM_EAR_CONV_2) {
        out.w = s->gw[LLM_SG_CONV_2];
        out.bias = s->gv[LLM_SG_CONV_2_BIAS];
    }

    m->ops->linear(m->exec, LLM_ROWS_ALL, s->in, &out, 1);
    m->ops->act(m->exec, LLM_ROWS_ALL, &gelu, s->conv, s->conv);

    if (s->stage == LLM_EAR_CONV_2) {
        m->ops->scale(m->exec, LLM_ROWS_ALL, 1, s->conv, 0, s->x[s->chunk]);
        m->ops->embed_pos(m->exec, s->gw[LLM_SG_POS], s->x[s->chunk]);
    }
}


/* the heads of the encoder, or of the decoder's cross-attention */

static llm_heads_t
llm_ear_heads(const llm_model_t *m)
{
    const llm_ear_t       *s = m->ear;
    const llm_ear_desc_t  *d = &m->desc.ear;
    const llm_layer_desc_t  *l = &m->desc.layers[s->layer];

    llm_heads_t  h = {
        .layer = 0,
        .n_heads = d->n_heads,
        .n_kv_heads = d->n_heads,
        .head_dim_k = d->n_embd / d->n_heads,
        .head_dim_v = d->n_embd / d->n_heads,
        .norm_eps = m->desc.hp.norm_eps,
        .both = 1
    };

    if (s->stage == LLM_EAR_CROSS) {
        h.layer = s->layer;
        h.n_heads = l->n_heads;
        h.n_kv_heads = l->n_kv_heads;
        h.head_dim_k = l->head_dim_k;
        h.head_dim_v = l->head_dim_v;
    }

    h.scale = 1 / __builtin_sqrtf((float) h.head_dim_k);

    return h;
}


static void
llm_ear_keys(llm_model_t *m)
{
    llm_rope_t          none = { .kind = LLM_ROPE_NORM };
    llm_heads_t         heads = llm_ear_heads(m);
    llm_ear_t        *s = m->ear;
    llm_ear_layer_t  *l = &s->layers[s->layer];

    llm_linear_t  out[2] = {
        { l->w[LLM_ST_K], l->v[LLM_ST_K_BIAS], s->k, 0 },
        { l->w[LLM_ST_V], l->v[LLM_ST_V_BIAS], s->v, 0 }
    };

    llm_ear_norm(m, s->x[s->chunk], l->v[LLM_ST_NORM],
                   l->v[LLM_ST_NORM_BIAS], s->h);
    m->ops->linear(m->exec, LLM_ROWS_ALL, s->h, out, 2);
    m->ops->rope_kv(m->exec, &heads, &none, NULL, s->k, s->v, s->kv);
}


static void
llm_ear_layer(llm_model_t *m)
{
    llm_heads_t         heads = llm_ear_heads(m);
    llm_ear_t        *s = m->ear;
    llm_act_fn_t        gelu = { .kind = LLM_GLU_GELU_ERF };
    llm_ear_layer_t  *l = &s->layers[s->layer];

    llm_linear_t  q = { l->w[LLM_ST_Q], l->v[LLM_ST_Q_BIAS], s->q, 0 };
    llm_linear_t  out = { l->w[LLM_ST_OUT], l->v[LLM_ST_OUT_BIAS],
                          s->x[s->chunk], 1 };
    llm_linear_t  up = { l->w[LLM_ST_UP], l->v[LLM_ST_UP_BIAS], s->up, 0 };
    llm_linear_t  down = { l->w[LLM_ST_DOWN], l->v[LLM_ST_DOWN_BIAS],
                           s->x[s->chunk], 1 };

    llm_ear_norm(m, s->x[s->chunk], l->v[LLM_ST_NORM],
                   l->v[LLM_ST_NORM_BIAS], s->h);
    m->ops->linear(m->exec, LLM_ROWS_ALL, s->h, &q, 1);
    m->ops->attention(m->exec, &heads, s->q, s->kv, s->attn);
    m->ops->linear(m->exec, LLM_ROWS_ALL, s->attn, &out, 1);

    llm_ear_norm(m, s->x[s->chunk], l->v[LLM_ST_FF_NORM],
                   l->v[LLM_ST_FF_NORM_BIAS], s->h);
    m->ops->linear(m->exec, LLM_ROWS_ALL, s->h, &up, 1);
    m->ops->act(m->exec, LLM_ROWS_ALL, &gelu, s->up, s->act);
    m->ops->linear(m->exec, LLM_ROWS_ALL, s->act, &down, 1);
}


/* keys and values of the states, for a layer of the decoder */

static void
llm_ear_cross(llm_model_t *m)
{
    llm_rope_t          none = { .kind = LLM_ROPE_NORM };
    llm_heads_t         heads = llm_ear_heads(m);
    llm_ear_t        *s = m->ear;
    llm_model_layer_t  *l = &m->layers[s->layer];

    llm_linear_t  out[2] = {
        { l->w[LLM_LT_CROSS_K], l->v[LLM_LT_CROSS_K_BIAS], s->k, 0 },
        { l->w[LLM_LT_CROSS_V], l->v[LLM_LT_CROSS_V_BIAS], s->v, 0 }
    };

    llm_ear_norm(m, s->x[s->chunk], s->gv[LLM_SG_POST_NORM],
                   s->gv[LLM_SG_POST_NORM_BIAS], s->h);
    m->ops->linear(m->exec, LLM_ROWS_ALL, s->h, out, 2);
    m->ops->rope_kv(m->exec, &heads, &none, NULL, s->k, s->v, m->at->cross);
}


static void
llm_ear_piece(llm_model_t *m)
{
    llm_ear_t  *s = m->ear;

    switch (s->stage) {

    case LLM_EAR_CONV_1:
    case LLM_EAR_CONV_2:
        llm_ear_convolve(m);
        break;

    case LLM_EAR_KEYS:
        llm_ear_keys(m);
        break;

    case LLM_EAR_LAYER:
        llm_ear_layer(m);
        break;

    case LLM_EAR_LAST:
        llm_ear_norm(m, s->x[s->chunk], s->gv[LLM_SG_POST_NORM],
                       s->gv[LLM_SG_POST_NORM_BIAS], s->out);
        break;

    default:
        llm_ear_cross(m);
    }
}


/* the step of a piece: n rows from `first` on, of one sequence as long as the
   window */

static int
llm_ear_step(llm_model_t *m, uint32_t first, uint32_t n, llm_err_t *err)
{
    int           rc;
    uint32_t      i, len;
    llm_batch_t   b;
    llm_ear_t  *s = m->ear;
    uint32_t      seq_rows[2] = { 0, n };

    len = m->desc.ear.n_ctx;

    /* frames before the second convolution have no position */

    for (i = 0; i < n; i++) {
        s->pos[i] = s->stage == LLM_EAR_CONV_1 ? i % len : first + i;
    }

    for (i = 0; i < s->n_pages; i++) {
        s->cross[i] = s->state * s->n_pages + i;
    }

    memset(&b, 0, sizeof(b));
    b.n_tokens = n;
    b.n_seqs = 1;
    b.max_pages = s->n_pages;
    b.tokens = s->tokens;
    b.pos = s->pos;
    b.seq_rows = seq_rows;
    b.kv_len = &len;
    b.cross = s->cross;
    b.cross_len = &len;

    for (i = 0; i < LLM_KV_KINDS; i++) {
        b.pages[i] = s->pages;
    }

    rc = m->ops->begin(m->exec, &b, err);

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    assert(rc == LLM_OK);               /* only steps with logits are
                                           replayed */
    llm_ear_piece(m);

    if (m->ops->submit && m->ops->submit(m->exec) == LLM_REDO) {
        llm_ear_piece(m);
        (void) m->ops->submit(m->exec);
    }

    return m->ops->end(m->exec, err);
}


/* takes what the host keeps of a piece */

static void
llm_ear_keep(llm_model_t *m, uint32_t first, uint32_t n)
{
    size_t        width = m->desc.ear.n_embd;
    llm_ear_t  *s = m->ear;

    if (s->stage == LLM_EAR_CONV_1) {
        memcpy(s->frames + first * width,
               m->ops->map(m->exec, s->conv, 0, n),
               n * width * sizeof(float));

    } else if (s->stage == LLM_EAR_LAST) {
        memcpy(s->states + first * width,
               m->ops->map(m->exec, s->out, 0, n),
               n * width * sizeof(float));

    } else if (s->stage == LLM_EAR_CROSS && s->words) {
        llm_ear_keep_keys(m, s->layer, first, n);
    }
}


/* to the next piece */

static void
llm_ear_advance(llm_model_t *m)
{
    uint32_t      n;
    llm_ear_t  *s = m->ear;

    n = s->stage == LLM_EAR_CONV_1
        ? (2 * m->desc.ear.n_ctx + s->rows - 1) / s->rows : s->n_chunks;

    if (++s->chunk < n) {
        return;
    }

    s->chunk = 0;

    if (s->stage == LLM_EAR_LAYER
        && s->layer + 1 < m->desc.ear.n_layers)
    {
        s->layer++;
        s->stage = LLM_EAR_KEYS;
        return;
    }

    if (s->stage == LLM_EAR_CROSS && s->layer + 1 < m->desc.hp.n_layers) {
        s->layer++;
        return;
    }

    if (s->stage == LLM_EAR_LAYER) {
        s->layer = 0;
    }

    s->stage++;
}


void
llm_ear_begin(llm_model_t *m, uint32_t state, const float *mel, int words)
{
    llm_ear_t  *s = m->ear;

    assert(state < s->n_states);

    s->stage = LLM_EAR_CONV_1;
    s->state = state;
    s->layer = 0;
    s->chunk = 0;
    s->mel = mel;
    s->words = words;
}


/* the memory of a state's keys stays with it */

static int
llm_ear_words(llm_model_t *m, llm_err_t *err)
{
    size_t                   n;
    llm_ear_t             *s = m->ear;
    const llm_ear_desc_t  *d = &m->desc.ear;

    if (!s->words || s->keys[s->state]) {
        return LLM_OK;
    }

    n = (size_t) d->n_align * d->n_ctx * m->desc.hp.head_dim_k;
    s->keys[s->state] = calloc(n, sizeof(float));

    return s->keys[s->state] ? LLM_OK
           : llm_fail(err, "%s: no memory for the times of words",
                      llm_gguf_name(m->gguf));
}


int
llm_ear_next(llm_model_t *m, llm_err_t *err)
{
    uint32_t      first, n;
    llm_ear_t  *s = m->ear;

    assert(s->stage != LLM_EAR_DONE && m->n_in_flight == 0);

    llm_part_enter(m, 0);
    first = llm_ear_first(s);
    n = llm_ear_n(m);

    if (llm_ear_words(m, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (s->stage <= LLM_EAR_CONV_2) {
        llm_ear_gather(m, first, n);
    }

    if (llm_ear_step(m, first, n, err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_ear_keep(m, first, n);
    llm_ear_advance(m);

    if (s->stage != LLM_EAR_DONE) {
        return LLM_MORE;
    }

    return llm_gguf_intact(m->gguf, err) == LLM_OK
           && llm_packed_intact(m, err) == LLM_OK ? LLM_OK : LLM_ERROR;
}
