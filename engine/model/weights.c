/*
 * Gives a model's weights from the mapped file to the device, tensor by tensor;
 * part of a load (model.c).
 */

#include "engine/model/model_internal.h"

#include <math.h>


/* counts w's bytes of the file as loaded; frees w and returns NULL if the load
   was cancelled */

static llm_weight_t *
llm_load_keep(llm_load_t *l, llm_weight_t *w, uint64_t bytes)
{
    if (w && llm_load_progress(l, bytes) != LLM_OK) {
        l->m->ops->weight_free(l->m->exec, w);
        return NULL;
    }

    return w;
}


/* creates a vector of n numbers, and counts its bytes of the file as loaded */

static llm_vec_t *
llm_load_numbers(llm_load_t *l, const float *f, uint32_t n, uint64_t bytes)
{
    llm_vec_t  *v;

    v = l->m->ops->vec_create(l->m->exec, f, n, l->err);

    if (v && llm_load_progress(l, bytes) != LLM_OK) {
        l->m->ops->vec_free(l->m->exec, v);
        return NULL;
    }

    return v;
}


static llm_weight_t *
llm_load_part(llm_load_t *l, const llm_tensor_part_t *p, int usage)
{
    size_t                    row;
    llm_weight_t             *w;
    const llm_gguf_tensor_t  *t;

    t = p->t;
    row = llm_type_row_size(t->type, t->ne[0]);
    w = l->m->ops->weight_create(l->m->exec, t->type, p->n,
                                 (uint32_t) t->ne[0],
                                 (const char *) t->data + p->first * row,
                                 usage, l->err);

    return llm_load_keep(l, w, p->n * row);
}


/* the rows of p in each matrix of a tensor, which has one for each expert or
   head */

static llm_weight_t *
llm_load_stack(llm_load_t *l, const llm_tensor_part_t *p, llm_dim_t stack)
{
    size_t                    row;
    llm_weight_t             *w;
    const llm_ops_t          *ops;
    const llm_gguf_tensor_t  *t;

    t = p->t;
    ops = l->m->ops;
    row = llm_type_row_size(t->type, t->ne[0]);
    w = (stack == LLM_DIM_N_HEADS ? ops->heads_create : ops->experts_create)(
                                  l->m->exec, t->type, (uint32_t) t->ne[2],
                                  p->n, (uint32_t) t->ne[0],
                                  (const char *) t->data + p->first * row,
                                  t->ne[1] * row, l->err);

    return llm_load_keep(l, w, p->n * row * t->ne[2]);
}


static llm_weight_t *
llm_load_weight(llm_load_t *l, const llm_gguf_tensor_t *t, int usage)
{
    llm_tensor_part_t  all = { t, 0, (uint32_t) t->ne[1], NULL };

    return llm_load_part(l, &all, usage);
}


static llm_vec_t *
llm_load_vec_part(llm_load_t *l, const llm_tensor_part_t *p)
{
    float      *f;
    llm_vec_t  *v;

    f = llm_load_floats(l, p->t);
    if (f == NULL) {
        return NULL;
    }

    v = llm_load_numbers(l, f + p->first, p->n,
                         llm_type_row_size(p->t->type, p->n));
    free(f);

    return v;
}


/* a convolution's kernels, [channels][width] in a file, as [width][channels] */

static llm_vec_t *
llm_load_conv(llm_load_t *l, const llm_gguf_tensor_t *t)
{
    float      *f, *w;
    size_t      i, n;
    llm_vec_t  *v;

    n = t->ne[0] * t->ne[1];
    f = llm_load_floats(l, t);
    w = malloc(n * sizeof(float));

    if (f == NULL || w == NULL) {
        free(f);
        free(w);
        (void) llm_fail(l->err, "%s: no memory for %.*s",
                        llm_gguf_name(l->m->gguf), (int) t->name.len,
                        t->name.data);
        return NULL;
    }

    for (i = 0; i < n; i++) {
        w[i % t->ne[0] * t->ne[1] + i / t->ne[0]] = f[i];
    }

    v = llm_load_numbers(l, w, (uint32_t) n, t->size);
    free(f);
    free(w);

    return v;
}


/* a vector, or the first row of a matrix */

static llm_vec_t *
llm_load_vec(llm_load_t *l, const llm_gguf_tensor_t *t)
{
    llm_tensor_part_t  all = { t, 0, (uint32_t) t->ne[0], NULL };

    return llm_load_vec_part(l, &all);
}


/* sets the factors on products with w; none if t or w is NULL */

static int
llm_load_scale(llm_load_t *l, const llm_gguf_tensor_t *t, llm_weight_t *w)
{
    int     rc;
    float  *f;

    if (t == NULL || w == NULL) {
        return LLM_OK;
    }

    f = llm_load_floats(l, t);
    if (f == NULL) {
        return LLM_ERROR;
    }

    rc = l->m->ops->weight_scale(l->m->exec, w, f, l->err);
    free(f);

    return rc;
}


/* the file's factors of RoPE for sequences of ctx, or NULL; the caller frees
   them, after an error, too */

static int
llm_load_factors(llm_load_t *l, float **factors)
{
    uint32_t                  i;
    llm_model_t              *m;
    const llm_gguf_tensor_t  *t;

    m = l->m;
    t = m->desc.global[LLM_GT_ROPE_FREQS];
    *factors = NULL;

    if (m->desc.global[LLM_GT_ROPE_LONG]) {
        t = m->desc.global[m->ctx > m->desc.long_ctx ? LLM_GT_ROPE_LONG
                                                     : LLM_GT_ROPE_SHORT];
    }

    if (t == NULL) {
        return LLM_OK;
    }

    *factors = llm_load_floats(l, t);
    if (*factors == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < t->ne[0]; i++) {
        if (!((*factors)[i] > 0) || isinf((*factors)[i])) {
            return llm_fail(l->err, "%s: %.*s: factor %u is %g, not above 0",
                            llm_gguf_name(m->gguf), (int) t->name.len,
                            t->name.data, i, (*factors)[i]);
        }
    }

    return LLM_OK;
}


static int
llm_load_ropes(llm_load_t *l)
{
    float                  *factors, *inv_freq;
    uint32_t                i, n;
    llm_model_t            *m;
    const llm_rope_desc_t  *r;

    m = l->m;

    if (m->desc.n_ropes == 0) {
        return LLM_OK;
    }

    if (llm_load_factors(l, &factors) != LLM_OK) {
        free(factors);
        return LLM_ERROR;
    }

    for (i = 0; i < m->desc.n_ropes; i++) {
        r = &m->desc.ropes[i];
        n = r->n_rot / 2;
        inv_freq = malloc(n * sizeof(float));

        if (inv_freq == NULL) {
            (void) llm_fail(l->err, "%s: no memory for RoPE",
                            llm_gguf_name(m->gguf));
            break;
        }

        if (llm_rope_inv_freq(&r->conf, r->n_rot, r->plain ? NULL : factors,
                              inv_freq) != LLM_OK)
        {
            (void) llm_fail(l->err, "%s: rope: the base, the scaling factor "
                            "and the tensor of factors give angles that are "
                            "not finite", llm_gguf_name(m->gguf));
            free(inv_freq);
            break;
        }

        m->inv_freq[i] = m->ops->vec_create(m->exec, inv_freq, n, l->err);
        free(inv_freq);

        if (m->inv_freq[i] == NULL) {
            break;
        }
    }

    free(factors);

    return i == m->desc.n_ropes ? LLM_OK : LLM_ERROR;
}


/* *v is unchanged if the file lacks the tensor */

static int
llm_load_global_vec(llm_load_t *l, llm_global_tensor_t t, llm_vec_t **v)
{
    if (l->m->desc.global[t]) {
        *v = llm_load_vec(l, l->m->desc.global[t]);

        if (*v == NULL) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_load_global(llm_load_t *l, llm_global_tensor_t t, int usage,
    llm_weight_t **w)
{
    if (l->m->desc.global[t]) {
        *w = llm_load_weight(l, l->m->desc.global[t], usage);

        if (*w == NULL) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/*
 * ALiBi's slopes.  With n the largest power of two up to the number of heads,
 * the first n heads have 2^(-max/n), 2^(-2 max/n) ...; the rest have every
 * second one of the slopes for 2 n heads.
 */

static int
llm_load_slopes(llm_load_t *l)
{
    float        *f;
    uint32_t      i, n, heads;
    llm_model_t  *m;

    m = l->m;
    heads = m->desc.hp.n_heads;

    if (m->desc.max_slope == 0) {
        return LLM_OK;
    }

    f = malloc(heads * sizeof(float));

    if (f == NULL) {
        return llm_fail(l->err, "%s: no memory for %u slopes",
                        llm_gguf_name(m->gguf), heads);
    }

    for (n = 1; n * 2 <= heads; n *= 2) { /* void */ }

    for (i = 0; i < heads; i++) {
        f[i] = i < n ? exp2f(-m->desc.max_slope * (float) (i + 1) / (float) n)
                     : exp2f(-m->desc.max_slope * (float) (2 * (i - n) + 1)
                             / (float) (2 * n));
    }

    m->slopes = m->ops->vec_create(m->exec, f, heads, l->err);
    free(f);

    return m->slopes ? LLM_OK : LLM_ERROR;
}


/* tensors that only encoders have */

static int
llm_load_encoder(llm_load_t *l)
{
    llm_model_t  *m;

    m = l->m;

    /* all tokens have the first type, which is the first row */

    if (llm_load_global_vec(l, LLM_GT_TOKEN_TYPES, &m->token_type) != LLM_OK
        || llm_load_global_vec(l, LLM_GT_EMBD_NORM, &m->embd_norm) != LLM_OK
        || llm_load_global_vec(l, LLM_GT_EMBD_NORM_BIAS, &m->embd_norm_bias)
           != LLM_OK
        || llm_load_global_vec(l, LLM_GT_ENC_NORM, &m->output_norm)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_load_slopes(l);
}


static int
llm_load_globals(llm_load_t *l)
{
    int           usage;
    llm_model_t  *m;

    m = l->m;
    usage = LLM_WEIGHT_EMBED;

    if (m->desc.global[LLM_GT_OUTPUT] == NULL && !m->desc.hp.encoder) {
        usage |= LLM_WEIGHT_LINEAR | LLM_WEIGHT_HEAD;
    }

    if (llm_load_global(l, LLM_GT_INPUT_EMBD, LLM_WEIGHT_EMBED,
                        &m->input_embd) != LLM_OK
        || llm_load_global(l, LLM_GT_INPUT_MODEL_PROJ, LLM_WEIGHT_LINEAR,
                           &m->input_proj) != LLM_OK
        || llm_load_global(l, LLM_GT_POS_EMBD, LLM_WEIGHT_EMBED,
                           &m->pos_embd) != LLM_OK
        || llm_load_global(l, LLM_GT_TOKEN_EMBD, usage, &m->token_embd)
           != LLM_OK
        || (!m->desc.hp.encoder
            && llm_load_global(l, LLM_GT_OUTPUT,
                               LLM_WEIGHT_LINEAR | LLM_WEIGHT_HEAD,
                               &m->output) != LLM_OK)
        || llm_load_scale(l, m->desc.output_scale, m->output) != LLM_OK)
    {
        return LLM_ERROR;
    }

    m->output = m->output ? m->output : m->token_embd;

    if (llm_load_global_vec(l, LLM_GT_OUTPUT_NORM, &m->output_norm)
        != LLM_OK
        || llm_load_global_vec(l, LLM_GT_OUTPUT_NORM_LFM, &m->output_norm)
           != LLM_OK
        || llm_load_global_vec(l, LLM_GT_OUTPUT_NORM_BIAS,
                               &m->output_norm_bias) != LLM_OK
        || llm_load_global_vec(l, LLM_GT_OUTPUT_BIAS, &m->output_bias)
           != LLM_OK
        || llm_load_global_vec(l, LLM_GT_INPUT_NORM, &m->input_norm)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (llm_load_encoder(l) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_load_ropes(l);
}


/*
 * Older files of latent attention have the matrices of keys and values as one
 * tensor, made to compute K and V of each head.  Here Q is multiplied by the
 * matrices of keys instead, so these are transposed.
 */

static int
llm_load_kv_b(llm_load_t *l, uint32_t layer)
{
    float                     *row;
    size_t                     size, head;
    uint32_t                   h, i, k, n;
    llm_model_layer_t         *ml = &l->m->layers[layer];
    const llm_layer_desc_t    *d = &l->m->desc.layers[layer];
    const llm_gguf_tensor_t   *t = d->tensors[LLM_LT_KV_B].t;

    if (t == NULL) {
        return LLM_OK;
    }

    n = d->head_dim_v;
    size = llm_type_row_size(t->type, n);
    head = (d->head_plain + d->head_out) * size;
    ml->k_b = malloc((size_t) d->n_heads * d->head_plain * n
                     * sizeof(float));
    row = malloc(n * sizeof(float));

    if (ml->k_b == NULL || row == NULL) {
        free(row);
        return llm_fail(l->err, "%s: no memory for the keys' matrices of "
                        "layer %u", llm_gguf_name(l->m->gguf), layer);
    }

    for (h = 0; h < d->n_heads; h++) {
        for (i = 0; i < d->head_plain; i++) {
            llm_dequantize(t->type, (const char *) t->data + h * head
                                    + i * size, row, n);

            for (k = 0; k < n; k++) {
                ml->k_b[((size_t) h * n + k) * d->head_plain + i] = row[k];
            }
        }
    }

    free(row);

    ml->w[LLM_LT_K_B] = l->m->ops->heads_create(l->m->exec, LLM_TYPE_F32,
                            d->n_heads, n, d->head_plain, ml->k_b,
                            (size_t) n * d->head_plain * sizeof(float),
                            l->err);
    ml->w[LLM_LT_V_B] = l->m->ops->heads_create(l->m->exec, t->type,
                            d->n_heads, d->head_out, n,
                            (const char *) t->data + d->head_plain * size,
                            head, l->err);

    if (ml->w[LLM_LT_K_B] == NULL || ml->w[LLM_LT_V_B] == NULL) {
        return LLM_ERROR;
    }

    return llm_load_progress(l, t->size);
}


/*
 * Older files of Qwen3-Next have one matrix, in which Q, K, V and the gate of
 * each head of K follow each other.  Returns its rows in the order of DELTA_QKV
 * followed by DELTA_GATE; NULL: no memory.
 */

static char *
llm_load_mixed_rows(const llm_layer_desc_t *d, const llm_gguf_tensor_t *t)
{
    char        *rows;
    size_t       row, at;
    uint32_t     g, i, n[4];
    const char  *from;

    rows = malloc(t->size);

    if (rows == NULL) {
        return NULL;
    }

    row = llm_type_row_size(t->type, t->ne[0]);
    from = t->data;
    n[0] = n[1] = d->state.n_rows;
    n[2] = n[3] = d->state.n_heads / d->n_ssm_groups * d->state.n_cols;

    for (g = 0; g < d->n_ssm_groups; g++) {
        for (i = 0, at = 0; i < llm_nelems(n); i++) {
            memcpy(rows + (at + (size_t) g * n[i]) * row, from, n[i] * row);
            at += (size_t) d->n_ssm_groups * n[i];
            from += n[i] * row;
        }
    }

    return rows;
}


static int
llm_load_mixed(llm_load_t *l, uint32_t layer)
{
    uint32_t                  i, first, n;
    llm_model_layer_t        *ml = &l->m->layers[layer];
    const llm_ops_t          *ops = l->m->ops;
    const llm_layer_desc_t   *d = &l->m->desc.layers[layer];
    const llm_tensor_part_t  *p = &d->tensors[LLM_LT_DELTA_MIXED];

    static const uint32_t  ids[] = { LLM_LT_DELTA_QKV, LLM_LT_DELTA_GATE };

    if (p->t == NULL) {
        return LLM_OK;
    }

    ml->mixed = llm_load_mixed_rows(d, p->t);

    if (ml->mixed == NULL) {
        return llm_fail(l->err, "%s: no memory for the rows of ssm_in of "
                        "layer %u", llm_gguf_name(l->m->gguf), layer);
    }

    for (i = 0, first = 0; i < llm_nelems(ids); i++, first += n) {
        n = llm_desc_dim(&l->m->desc, d, l->m->desc.facts[ids[i]].out);
        ml->w[ids[i]] = ops->weight_create(l->m->exec, p->t->type, n,
                            (uint32_t) p->t->ne[0],
                            ml->mixed + first * llm_type_row_size(
                                                    p->t->type,
                                                    p->t->ne[0]),
                            LLM_WEIGHT_LINEAR, l->err);

        if (ml->w[ids[i]] == NULL
            || llm_load_scale(l, p->scale, ml->w[ids[i]]) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return llm_load_progress(l, p->t->size);
}


static int
llm_load_layer(llm_load_t *l, uint32_t layer)
{
    uint32_t                  i;
    llm_model_layer_t        *ml;
    const llm_tensor_part_t  *p;

    ml = &l->m->layers[layer];

    for (i = 0; i < LLM_LT_N; i++) {
        p = &l->m->desc.layers[layer].tensors[i];

        if (p->t == NULL || i == LLM_LT_KV_B || i == LLM_LT_DELTA_MIXED) {
            continue;
        }

        if (l->m->desc.facts[i].stack != LLM_DIM_NONE) {
            ml->w[i] = llm_load_stack(l, p, l->m->desc.facts[i].stack);

        } else if (llm_layer_tensor_is_matrix(&l->m->desc, i)) {
            ml->w[i] = llm_load_part(l, p, i == LLM_LT_ROUTER
                                     ? LLM_WEIGHT_LINEAR | LLM_WEIGHT_HEAD
                                     : LLM_WEIGHT_LINEAR);

        } else if (l->m->desc.facts[i].in == LLM_DIM_CONV_WIDTH) {
            ml->v[i] = llm_load_conv(l, p->t);

        } else {
            ml->v[i] = llm_load_vec_part(l, p);
        }

        if ((ml->w[i] == NULL && ml->v[i] == NULL)
            || llm_load_scale(l, p->scale, ml->w[i]) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    if (llm_load_kv_b(l, layer) != LLM_OK
        || llm_load_mixed(l, layer) != LLM_OK)
    {
        return LLM_ERROR;
    }

    p = &l->m->desc.layers[layer].tensors[LLM_LT_OUT_SCALE];

    if (p->t) {
        llm_dequantize(p->t->type, p->t->data, &ml->out_scale, 1);
    }

    return LLM_OK;
}


int
llm_load_weights(llm_load_t *l)
{
    uint32_t      i;
    llm_model_t  *m;

    m = l->m;

    m->layers = calloc(m->desc.hp.n_layers, sizeof(llm_model_layer_t));
    if (m->layers == NULL) {
        return llm_fail(l->err, "%s: no memory for the layers",
                        llm_gguf_name(m->gguf));
    }

    for (i = 0; i < m->desc.hp.n_layers; i++) {
        if (llm_load_layer(l, i) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    /* after the layers, so that the head, which a step reads last, is last in
       memory */

    if (llm_load_globals(l) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_load_rank(l) == LLM_OK ? llm_load_dense(l) : LLM_ERROR;
}
