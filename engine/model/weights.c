/*
 * Gives the weights of a model, tensor by tensor, from the mapped file to the
 * device; part of a load (model.c).
 */

#include "engine/model/model_internal.h"

#include <math.h>


static int
llm_load_progress(llm_load_t *l, const llm_gguf_tensor_t *t)
{
    uint64_t  total;

    l->done += t->size;
    total = l->m->desc.hp.n_bytes;

    if (l->opts->progress) {
        l->opts->progress(l->opts->progress_data,
                          (int) (l->done * 1000.0 / (double) total));
    }

    if (l->opts->cancel && __atomic_load_n(l->opts->cancel, __ATOMIC_RELAXED))
    {
        return llm_fail_with(l->err, 503, NULL, NULL,
                             "%s: the load was given up",
                             llm_gguf_name(l->m->gguf));
    }

    return LLM_OK;
}


static llm_weight_t *
llm_load_weight(llm_load_t *l, const llm_gguf_tensor_t *t, int usage)
{
    llm_weight_t  *w;

    w = l->m->ops->weight_create(l->m->dev, t->type, (uint32_t) t->ne[1],
                                 (uint32_t) t->ne[0], t->data, usage, l->err);

    if (w && llm_load_progress(l, t) != LLM_OK) {
        l->m->ops->weight_free(l->m->dev, w);
        return NULL;
    }

    return w;
}


static float *
llm_load_floats(llm_load_t *l, const llm_gguf_tensor_t *t)
{
    float  *f;

    f = malloc(t->ne[0] * sizeof(float));

    if (f == NULL) {
        (void) llm_fail(l->err, "%s: no memory for %.*s",
                        llm_gguf_name(l->m->gguf), (int) t->name.len,
                        t->name.data);
        return NULL;
    }

    llm_dequantize(t->type, t->data, f, t->ne[0]);

    return f;
}


static llm_vec_t *
llm_load_vec(llm_load_t *l, const llm_gguf_tensor_t *t)
{
    float      *f;
    llm_vec_t  *v;

    f = llm_load_floats(l, t);
    if (f == NULL) {
        return NULL;
    }

    v = l->m->ops->vec_create(l->m->dev, f, (uint32_t) t->ne[0], l->err);
    free(f);

    if (v && llm_load_progress(l, t) != LLM_OK) {
        l->m->ops->vec_free(l->m->dev, v);
        return NULL;
    }

    return v;
}


static int
llm_load_rope(llm_load_t *l)
{
    float                    *factors, *inv_freq;
    uint32_t                  i, n;
    llm_model_t              *m;
    const llm_gguf_tensor_t  *t;

    m = l->m;
    n = m->desc.hp.n_rot / 2;
    t = m->desc.global[LLM_GT_ROPE_FREQS];
    factors = NULL;

    if (t) {
        factors = llm_load_floats(l, t);
        if (factors == NULL) {
            return LLM_ERROR;
        }
    }

    for (i = 0; factors && i < n; i++) {
        if (!(factors[i] > 0) || isinf(factors[i])) {
            (void) llm_fail(l->err, "%s: rope_freqs.weight: factor %u is "
                            "%g, not above 0", llm_gguf_name(m->gguf), i,
                            factors[i]);
            free(factors);
            return LLM_ERROR;
        }
    }

    inv_freq = malloc(n * sizeof(float));

    if (inv_freq == NULL) {
        (void) llm_fail(l->err, "%s: no memory for RoPE",
                        llm_gguf_name(m->gguf));

    } else {
        llm_rope_inv_freq(&m->desc.rope, m->desc.hp.n_rot, factors, inv_freq);
        m->inv_freq = m->ops->vec_create(m->dev, inv_freq, n, l->err);
    }

    free(inv_freq);
    free(factors);

    return m->inv_freq ? LLM_OK : LLM_ERROR;
}


static int
llm_load_globals(llm_load_t *l)
{
    int                        usage;
    llm_model_t               *m;
    const llm_gguf_tensor_t  **t;

    m = l->m;
    t = m->desc.global;

    usage = LLM_WEIGHT_EMBED;

    if (t[LLM_GT_OUTPUT] == NULL) {
        usage |= LLM_WEIGHT_LINEAR | LLM_WEIGHT_HEAD;
    }

    m->token_embd = llm_load_weight(l, t[LLM_GT_TOKEN_EMBD], usage);
    if (m->token_embd == NULL) {
        return LLM_ERROR;
    }

    m->output = m->token_embd;

    if (t[LLM_GT_OUTPUT]) {
        m->output = llm_load_weight(l, t[LLM_GT_OUTPUT],
                                    LLM_WEIGHT_LINEAR | LLM_WEIGHT_HEAD);
        if (m->output == NULL) {
            return LLM_ERROR;
        }
    }

    m->output_norm = llm_load_vec(l, t[LLM_GT_OUTPUT_NORM]);
    if (m->output_norm == NULL) {
        return LLM_ERROR;
    }

    return llm_load_rope(l);
}


static int
llm_load_layer(llm_load_t *l, uint32_t layer)
{
    uint32_t                  i;
    llm_model_layer_t        *ml;
    const llm_gguf_tensor_t  *t;

    ml = &l->m->layers[layer];

    for (i = 0; i < LLM_LT_N; i++) {
        t = llm_desc_tensor(&l->m->desc, layer, i);

        if (t == NULL) {
            continue;
        }

        if (llm_layer_tensor_is_matrix(i)) {
            ml->w[i] = llm_load_weight(l, t, LLM_WEIGHT_LINEAR);

        } else {
            ml->v[i] = llm_load_vec(l, t);
        }

        if (ml->w[i] == NULL && ml->v[i] == NULL) {
            return LLM_ERROR;
        }
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

    /* after the layers: the head, which a step reads last, is last in
       memory */

    if (llm_load_globals(l) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_load_rank(l);
}
