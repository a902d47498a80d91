/*
 * Gives the weights of a model's layers from the mapped file to their devices,
 * tensor by tensor; part of a load (model.c).  Those of the whole model are in
 * globals.c.
 */

#include "engine/model/model_internal.h"
#include "engine/gguf/map.h"


/* counts w's bytes of the file, at src, as loaded, and gives up their memory;
   frees w and returns NULL if the load was cancelled */

static llm_weight_t *
llm_load_keep(llm_load_t *l, llm_weight_t *w, const void *src, size_t span,
    uint64_t bytes)
{
    llm_map_release(src, span);

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
    const char               *src;
    llm_weight_t             *w;
    const llm_gguf_tensor_t  *t;

    t = p->t;
    row = llm_type_row_size(t->type, t->ne[0]);
    src = (const char *) t->data + p->first * row;
    w = l->m->ops->weight_create(l->m->exec, t->type, p->n,
                                 (uint32_t) t->ne[0], src, usage, l->err);

    return llm_load_keep(l, w, src, p->n * row, p->n * row);
}


/* the rows of p in each matrix of a tensor, which has one for each expert or
   head */

static llm_weight_t *
llm_load_stack(llm_load_t *l, const llm_tensor_part_t *p, llm_dim_t stack)
{
    size_t                    row, n;
    const char               *src;
    llm_weight_t             *w;
    const llm_ops_t          *ops;
    const llm_gguf_tensor_t  *t;

    t = p->t;
    n = t->ne[2];
    ops = l->m->ops;
    row = llm_type_row_size(t->type, t->ne[0]);
    src = (const char *) t->data + p->first * row;
    w = (stack == LLM_DIM_N_HEADS ? ops->heads_create : ops->experts_create)(
                                  l->m->exec, t->type, (uint32_t) n, p->n,
                                  (uint32_t) t->ne[0], src, t->ne[1] * row,
                                  l->err);

    return llm_load_keep(l, w, src, ((n - 1) * t->ne[1] + p->n) * row,
                         n * p->n * row);
}


llm_weight_t *
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

llm_vec_t *
llm_load_vec(llm_load_t *l, const llm_gguf_tensor_t *t)
{
    llm_tensor_part_t  all = { t, 0, (uint32_t) t->ne[0], NULL };

    return llm_load_vec_part(l, &all);
}


/* sets the factors on products with w; none if t or w is NULL */

int
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


/* a speech model's steps are rows of few sequences, each of which counts */

static int
llm_load_usage(const llm_load_t *l, uint32_t id)
{
    int  fine;

    fine = l->m->desc.hp.listens ? LLM_WEIGHT_FINE : 0;

    return LLM_WEIGHT_LINEAR | fine
           | (id == LLM_LT_ROUTER || id == LLM_LT_NEXTN_OUTPUT
              ? LLM_WEIGHT_HEAD : 0);
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

        /* the embeddings of a head are read on the host */

        if (p->t == NULL || i == LLM_LT_KV_B || i == LLM_LT_DELTA_MIXED
            || i == LLM_LT_NEXTN_EMBD)
        {
            continue;
        }

        if (l->m->desc.facts[i].stack != LLM_DIM_NONE) {
            ml->w[i] = llm_load_stack(l, p, l->m->desc.facts[i].stack);

        } else if (llm_layer_tensor_is_matrix(&l->m->desc, i)) {
            ml->w[i] = llm_load_part(l, p, llm_load_usage(l, i));

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
        llm_part_enter(m, llm_part_of(m, i));

        if (llm_load_layer(l, i) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
