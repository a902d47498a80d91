/*
 * The reference's RoPE and attention; see reference.c.
 */

#include "kernels/cpu/reference.h"


/* index of the cache slot of position pos in sequence seq, counted over the
   pages of all layers */

static size_t
llm_ref_slot(const llm_batch_t *b, const llm_kv_t *kv, uint32_t layer,
    uint32_t seq, uint32_t pos)
{
    uint32_t  page;

    page = llm_batch_table(b, &kv->opts, seq)[pos / LLM_KV_PAGE];

    return ((size_t) kv->at[layer] * kv->opts.n_pages + page) * LLM_KV_PAGE
           + pos % LLM_KV_PAGE;
}


/* rotates the pairs of one head by the angles of a row of the step */

static void
llm_ref_rotate(float *x, const llm_rope_t *rope, const llm_batch_t *batch,
    uint32_t row)
{
    double    angle, c, s, a, b;
    uint32_t  i, half, first, second;

    half = rope->n_dims / 2;

    for (i = 0; i < half; i++) {
        angle = (double) llm_batch_turn(batch, rope, row, i)
                * rope->inv_freq->data[i];
        c = cos(angle) * rope->mscale;
        s = sin(angle) * rope->mscale;

        first = rope->kind == LLM_ROPE_NORM ? 2 * i : i;
        second = rope->kind == LLM_ROPE_NORM ? 2 * i + 1 : i + half;

        a = x[first];
        b = x[second];
        x[first] = (float) (a * c - b * s);
        x[second] = (float) (a * s + b * c);
    }
}


/* elements of a head of k, and of the part of a head of q that is rotated */

static uint32_t
llm_ref_rope_dim(const llm_heads_t *h)
{
    return h->latent ? h->head_dim_k - h->head_dim_v : h->head_dim_k;
}


/* norm and rotation of the heads of one row, which are `stride` floats apart */

static void
llm_ref_heads(float *x, uint32_t n_heads, uint32_t stride,
    const llm_heads_t *heads, const llm_vec_t *norm, const llm_rope_t *rope,
    const llm_batch_t *batch, uint32_t row)
{
    uint32_t  h, dim;

    dim = llm_ref_rope_dim(heads);

    for (h = 0; h < n_heads; h++, x += stride) {
        if (norm && !heads->norm_last) {
            llm_ref_rms(x, norm->data, heads->norm_eps, dim, x);
        }

        llm_ref_rotate(x, rope, batch, row);

        if (norm && heads->norm_last) {
            llm_ref_rms(x, norm->data, heads->norm_eps, dim, x);
        }
    }
}


/* multiplies the queries by the factor of their position, see llm_heads_t */

static void
llm_ref_temper(float *q, const llm_heads_t *h, uint32_t pos)
{
    double    f;
    uint32_t  i;

    f = 1 + h->temp_scale * log(1 + floor((double) (pos + h->temp_offset)
                                          / h->temp_floor));

    for (i = 0; i < h->n_heads * h->head_dim_k; i++) {
        q[i] = (float) (q[i] * f);
    }
}


/* the keys, or values, in a cache slot: `cols` floats; page: floats of a
   page */

static float *
llm_ref_kv_row(float *data, size_t page, size_t slot, size_t cols)
{
    return data + slot / LLM_KV_PAGE * page + slot % LLM_KV_PAGE * cols;
}


/* writes a row's k and v to the cache */

static void
llm_ref_keep(const llm_heads_t *h, llm_kv_t *kv, size_t slot, const float *k,
    const float *v)
{
    float     *to;
    size_t     k_cols, v_cols;
    uint32_t   i, dim;

    k_cols = (size_t) h->n_kv_heads * h->head_dim_k;
    v_cols = (size_t) h->n_kv_heads * h->head_dim_v;
    to = llm_ref_kv_row(kv->k, kv->k_page, slot, k_cols);

    if (!h->latent) {
        memcpy(to, k, k_cols * sizeof(float));
        memcpy(llm_ref_kv_row(kv->v, kv->v_page, slot, v_cols), v,
               v_cols * sizeof(float));
        return;
    }

    dim = llm_ref_rope_dim(h);

    for (i = 0; i < h->n_kv_heads; i++, to += h->head_dim_k) {
        memcpy(to, v + i * h->head_dim_v, h->head_dim_v * sizeof(float));
        memcpy(to + h->head_dim_v, k + i * dim, dim * sizeof(float));
    }
}


void
llm_ref_rope_kv(llm_exec_t *exec, const llm_heads_t *h, const llm_rope_t *rope,
    llm_act_t *q, llm_act_t *k, const llm_act_t *v, llm_kv_t *kv)
{
    float              *row;
    uint32_t            s, r, dim;
    llm_ref_exec_t     *d = (llm_ref_exec_t *) exec;
    const llm_batch_t  *b;

    b = d->batch;
    dim = llm_ref_rope_dim(h);

    for (s = 0; s < b->n_seqs; s++) {
        for (r = b->seq_rows[s]; r < b->seq_rows[s + 1]; r++) {
            if (q) {
                row = q->data + (size_t) r * q->cols;
                llm_ref_heads(row + h->head_dim_k - dim, h->n_heads,
                              h->head_dim_k, h, h->q_norm, rope, b, r);
            }

            if (q && h->temp_scale != 0) {
                llm_ref_temper(row, h, b->pos[r]);
            }

            if (k == NULL) {
                continue;
            }

            row = k->data + (size_t) r * k->cols;
            llm_ref_heads(row, h->n_kv_heads, dim, h, h->k_norm, rope, b, r);

            llm_ref_keep(h, kv, llm_ref_slot(b, kv, h->layer, s, b->pos[r]),
                         row, v->data + (size_t) r * v->cols);
        }
    }
}


/* V of a head; if latent, the beginning of its K */

static const float *
llm_ref_value(const llm_heads_t *h, const llm_kv_t *kv, size_t slot,
    uint32_t kv_head)
{
    if (h->latent) {
        return llm_ref_kv_row(kv->k, kv->k_page, slot,
                              (size_t) h->n_kv_heads * h->head_dim_k)
               + (size_t) kv_head * h->head_dim_k;
    }

    return llm_ref_kv_row(kv->v, kv->v_page, slot,
                          (size_t) h->n_kv_heads * h->head_dim_v)
           + (size_t) kv_head * h->head_dim_v;
}


static double
llm_ref_score(const llm_ref_exec_t *d, const llm_heads_t *h,
    const llm_kv_t *kv, uint32_t seq, uint32_t pos, uint32_t kv_head,
    const float *q)
{
    double        score;
    size_t        slot;
    const float  *k;

    slot = llm_ref_slot(d->batch, kv, h->layer, seq, pos);
    k = llm_ref_kv_row(kv->k, kv->k_page, slot,
                       (size_t) h->n_kv_heads * h->head_dim_k)
        + (size_t) kv_head * h->head_dim_k;
    score = h->scale * llm_ref_dot(q, k, h->head_dim_k);

    return h->softcap > 0 ? h->softcap * tanh(score / h->softcap) : score;
}


/* what is subtracted from the score of a key for its distance (ALiBi) */

static double
llm_ref_slope(const llm_heads_t *h, uint32_t head, uint32_t pos, uint32_t key)
{
    return h->slopes ? h->slopes->data[head] * fabs((double) pos - key) : 0;
}


/* attention of one head of one row, over the positions that the row sees */

static void
llm_ref_attend(llm_ref_exec_t *d, const llm_heads_t *h, const llm_kv_t *kv,
    uint32_t seq, uint32_t row, uint32_t head, const float *q, float *out)
{
    size_t        slot;
    double        max, total, p;
    uint32_t      i, t, pos, first, end, kv_head;
    const float  *v;

    kv_head = head / (h->n_heads / h->n_kv_heads);
    pos = d->batch->pos[row];
    first = llm_batch_first(d->batch, h, row);
    end = llm_batch_end(d->batch, h, row,
                        llm_batch_len(d->batch, &kv->opts, seq));
    max = h->sinks ? (double) h->sinks->data[head] : (double) -INFINITY;

    for (t = first; t < end; t++) {
        d->scores[t] = llm_ref_score(d, h, kv, seq, t, kv_head, q)
                       - llm_ref_slope(h, head, pos, t);
        max = llm_max(max, d->scores[t]);
    }

    total = h->sinks ? exp(h->sinks->data[head] - max) : 0;
    memset(d->sum, 0, h->head_dim_v * sizeof(double));

    for (t = first; t < end; t++) {
        slot = llm_ref_slot(d->batch, kv, h->layer, seq, t);
        v = llm_ref_value(h, kv, slot, kv_head);
        p = exp(d->scores[t] - max);
        total += p;

        for (i = 0; i < h->head_dim_v; i++) {
            d->sum[i] += p * v[i];
        }
    }

    for (i = 0; i < h->head_dim_v; i++) {
        out[i] = (float) (d->sum[i] / total);
    }
}


void
llm_ref_attention(llm_exec_t *exec, const llm_heads_t *h, const llm_act_t *q,
    const llm_kv_t *kv, llm_act_t *out)
{
    uint32_t            s, r, i;
    llm_ref_exec_t     *d = (llm_ref_exec_t *) exec;
    const llm_batch_t  *b;

    b = d->batch;

    for (s = 0; s < b->n_seqs; s++) {
        for (r = b->seq_rows[s]; r < b->seq_rows[s + 1]; r++) {
            for (i = 0; i < h->n_heads; i++) {
                llm_ref_attend(d, h, kv, s, r, i,
                               q->data + (size_t) r * q->cols
                               + (size_t) i * h->head_dim_k,
                               out->data + (size_t) r * out->cols
                               + (size_t) i * h->head_dim_v);
            }
        }
    }
}


void
llm_ref_linear_heads(llm_exec_t *exec, llm_rows_t rows, const llm_weight_t *w,
    const llm_act_t *x, llm_act_t *y)
{
    float           *to;
    uint32_t         r, h, o, n_heads, x_dim, y_dim;
    const float     *from;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    n_heads = w->n_matrices;
    x_dim = x->cols / n_heads;
    y_dim = y->cols / n_heads;

    for (r = 0; r < llm_ref_rows(d, rows); r++) {
        for (h = 0; h < n_heads; h++) {
            from = x->data + (size_t) r * x->cols + h * x_dim;
            to = y->data + (size_t) r * y->cols + h * y_dim;

            for (o = 0; o < w->n_out; o++) {
                llm_dequantize(w->type, w->data + h * w->stride
                                        + o * w->row_size, d->row, w->n_in);
                to[o] = (float) llm_ref_product(w, h, from, d->row);
            }

            memcpy(to + w->n_out, from + w->n_in,
                   (x_dim - w->n_in) * sizeof(float));
        }
    }
}
