/*
 * Gives what the whole model has, and not a layer, from the mapped file to the
 * devices: embeddings to the first, the head to the last, RoPE's angles and
 * ALiBi's slopes to each; part of a load (model.c), after the layers, so that
 * the head, which a step reads last, is last in memory.
 */

#include "engine/model/model_internal.h"

#include <math.h>


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


/* the angles of the part that the load is at */

static int
llm_load_angles(llm_load_t *l, const float *factors)
{
    float                  *inv_freq;
    uint32_t                i, n;
    llm_model_t            *m;
    const llm_rope_desc_t  *r;

    m = l->m;

    for (i = 0; i < m->desc.n_ropes; i++) {
        r = &m->desc.ropes[i];
        n = r->n_rot / 2;
        inv_freq = malloc(n * sizeof(float));

        if (inv_freq == NULL) {
            return llm_fail(l->err, "%s: no memory for RoPE",
                            llm_gguf_name(m->gguf));
        }

        if (llm_rope_inv_freq(&r->conf, r->n_rot, r->plain ? NULL : factors,
                              inv_freq) != LLM_OK)
        {
            free(inv_freq);
            return llm_fail(l->err, "%s: rope: the base, the scaling factor "
                            "and the tensor of factors give angles that are "
                            "not finite", llm_gguf_name(m->gguf));
        }

        m->at->inv_freq[i] = m->ops->vec_create(m->exec, inv_freq, n, l->err);
        free(inv_freq);

        if (m->at->inv_freq[i] == NULL) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_load_ropes(llm_load_t *l)
{
    int       rc;
    float    *factors;
    uint32_t  i;

    if (l->m->desc.n_ropes == 0) {
        return LLM_OK;
    }

    rc = llm_load_factors(l, &factors);

    for (i = 0; rc == LLM_OK && i < l->m->n_parts; i++) {
        llm_part_enter(l->m, i);
        rc = llm_load_angles(l, factors);
    }

    free(factors);

    return rc;
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

    for (i = 0; i < m->n_parts; i++) {
        llm_part_enter(m, i);
        m->at->slopes = m->ops->vec_create(m->exec, f, heads, l->err);

        if (m->at->slopes == NULL) {
            break;
        }
    }

    free(f);

    return i == m->n_parts ? LLM_OK : LLM_ERROR;
}


/* the embeddings, on the first device; all tokens have the first type of
   TOKEN_TYPES, which is the first row */

static int
llm_load_embeddings(llm_load_t *l)
{
    int           usage;
    llm_model_t  *m = l->m;

    usage = LLM_WEIGHT_EMBED;

    if (m->desc.global[LLM_GT_OUTPUT] == NULL && !m->desc.hp.encoder
        && m->n_parts == 1)
    {
        usage |= LLM_WEIGHT_LINEAR | LLM_WEIGHT_HEAD;
    }

    llm_part_enter(m, 0);

    if (llm_load_global(l, LLM_GT_INPUT_EMBD, LLM_WEIGHT_EMBED,
                        &m->input_embd) != LLM_OK
        || llm_load_global(l, LLM_GT_INPUT_MODEL_PROJ, LLM_WEIGHT_LINEAR,
                           &m->input_proj) != LLM_OK
        || llm_load_global(l, LLM_GT_POS_EMBD, LLM_WEIGHT_EMBED,
                           &m->pos_embd) != LLM_OK
        || llm_load_global(l, LLM_GT_TOKEN_EMBD, usage, &m->token_embd)
           != LLM_OK
        || llm_load_global_vec(l, LLM_GT_INPUT_NORM, &m->input_norm)
           != LLM_OK
        || llm_load_global_vec(l, LLM_GT_TOKEN_TYPES, &m->token_type)
           != LLM_OK
        || llm_load_global_vec(l, LLM_GT_EMBD_NORM, &m->embd_norm) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_load_global_vec(l, LLM_GT_EMBD_NORM_BIAS, &m->embd_norm_bias);
}


/* the head if it is the matrix of embeddings: on another device it is another
   copy, whose bytes do not count as loaded again */

static int
llm_load_tied(llm_load_t *l)
{
    llm_model_t              *m = l->m;
    const llm_gguf_tensor_t  *t = m->desc.global[LLM_GT_TOKEN_EMBD];

    if (m->n_parts == 1 || m->desc.hp.encoder) {
        m->output = m->token_embd;
        return LLM_OK;
    }

    m->output = m->ops->weight_create(m->exec, t->type, (uint32_t) t->ne[1],
                    (uint32_t) t->ne[0], t->data,
                    LLM_WEIGHT_LINEAR | LLM_WEIGHT_HEAD, l->err);

    return m->output ? LLM_OK : LLM_ERROR;
}


/* the head, on the last device */

static int
llm_load_head(llm_load_t *l)
{
    int           rc;
    llm_model_t  *m = l->m;

    llm_part_enter(m, m->n_parts - 1);

    rc = m->desc.global[LLM_GT_OUTPUT] && !m->desc.hp.encoder
         ? llm_load_global(l, LLM_GT_OUTPUT,
                           LLM_WEIGHT_LINEAR | LLM_WEIGHT_HEAD, &m->output)
         : llm_load_tied(l);

    if (rc != LLM_OK
        || llm_load_scale(l, m->desc.output_scale, m->output) != LLM_OK
        || llm_load_global_vec(l, LLM_GT_OUTPUT_NORM, &m->output_norm)
           != LLM_OK
        || llm_load_global_vec(l, LLM_GT_OUTPUT_NORM_LFM, &m->output_norm)
           != LLM_OK
        || llm_load_global_vec(l, LLM_GT_OUTPUT_NORM_BIAS,
                               &m->output_norm_bias) != LLM_OK
        || llm_load_global_vec(l, LLM_GT_OUTPUT_BIAS, &m->output_bias)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_load_global_vec(l, LLM_GT_ENC_NORM, &m->output_norm);
}


int
llm_load_globals(llm_load_t *l)
{
    int  rc;

    rc = l->m->of ? llm_load_head_globals(l) : llm_load_embeddings(l);

    if (rc != LLM_OK || (l->m->of == NULL && llm_load_head(l) != LLM_OK)
        || llm_load_slopes(l) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (llm_load_ropes(l) != LLM_OK || llm_load_rank(l) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_load_dense(l);
}
