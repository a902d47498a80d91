/*
 * Loads a head that drafts for a model: what is checked against the model, and
 * what the head has instead of embeddings, output and caches; see head.h.
 *
 * Embeddings are read on the host, so the device needs no copy.  An output that
 * the head lacks is the model's, which the head borrows.
 */

#include "engine/model/model_internal.h"


/* the layer of the model whose keys and values layer i of an assistant reads:
   the last one of its sort, which must be where the assistant is */

static int
llm_head_outside(llm_model_t *m, uint32_t i, llm_err_t *err)
{
    uint32_t                 k;
    llm_layer_desc_t        *l = &m->desc.layers[i];
    const llm_desc_t        *of = &m->of->desc;
    const llm_layer_desc_t  *from;

    for (k = of->hp.n_layers; k > 0; k--) {
        if (!of->layers[k - 1].window == !l->window
            && of->layers[k - 1].n_kv_heads)
        {
            break;
        }
    }

    if (k) {
        k = of->layers[k - 1].kv_layer;
        from = &of->layers[k];

        if (from->n_kv_heads == l->n_kv_heads && !from->latent
            && from->head_dim_k == l->head_dim_k
            && from->head_dim_v == l->head_dim_v)
        {
            if (llm_part_of(m->of, k) != m->of->n_parts - 1) {
                return llm_fail(err, "%s: it reads the keys and values of "
                                "layer %u of %s, which must be on the device "
                                "of the last layer; take fewer devices",
                                llm_gguf_name(m->gguf), k,
                                llm_gguf_name(m->of->gguf));
            }

            l->kv_layer = k;
            l->kind = from->kind;
            m->outside[l->kind] = llm_part_last(m->of)->kv[l->kind];
            return LLM_OK;
        }
    }

    return llm_fail(err, "%s: no layer of %s has the keys and values that "
                    "layer %u reads", llm_gguf_name(m->gguf),
                    llm_gguf_name(m->of->gguf), i);
}


static int
llm_head_fits_assistant(llm_model_t *m, llm_err_t *err)
{
    uint32_t  i;

    for (i = 0; i < m->desc.hp.n_layers; i++) {
        if (llm_head_outside(m, i, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_head_wrong_width(const llm_gguf_t *head, const llm_desc_t *d,
    const llm_gguf_t *model, uint32_t n_embd, llm_err_t *err)
{
    return llm_fail(err, "%s: it drafts for a model of width %u, and %s has "
                    "%u", llm_gguf_name(head), d->head.n_target,
                    llm_gguf_name(model), n_embd);
}


int
llm_head_fits(llm_model_t *m, llm_err_t *err)
{
    llm_desc_t           *d = &m->desc;
    const llm_hparams_t  *of = &m->of->desc.hp;

    if (d->head.n_target != of->n_embd) {
        return llm_head_wrong_width(m->gguf, d, m->of->gguf, of->n_embd, err);
    }

    if (d->head.kind == LLM_HEAD_EAGLE3 && d->hp.n_vocab == 0) {
        if (d->hp.n_embd != of->n_embd) {
            return llm_desc_no_tensor(m->gguf, "output.weight", err);
        }

        d->hp.n_vocab = of->n_vocab;
    }

    if (d->head.kind == LLM_HEAD_EAGLE3
        && d->global[LLM_GT_TOKEN_EMBD] == NULL
        && d->hp.n_embd != of->n_embd)
    {
        return llm_desc_no_tensor(m->gguf, "token_embd.weight", err);
    }

    if (d->head.kind != LLM_HEAD_EAGLE3 || d->head.words == NULL) {
        if (d->hp.n_vocab > of->n_vocab) {
            return llm_fail(err, "%s: it has %u tokens, and %s has %u",
                            llm_gguf_name(m->gguf), d->hp.n_vocab,
                            llm_gguf_name(m->of->gguf), of->n_vocab);
        }
    }

    return d->head.kind == LLM_HEAD_ASSISTANT
           ? llm_head_fits_assistant(m, err) : LLM_OK;
}


/* a tensor of the whole head; *w is unchanged if the file lacks it */

static int
llm_load_head_weight(llm_load_t *l, llm_global_tensor_t id, int usage,
    llm_weight_t **w)
{
    const llm_gguf_tensor_t  *t = l->m->desc.global[id];

    if (t == NULL) {
        return LLM_OK;
    }

    *w = llm_load_weight(l, t, usage);

    return *w ? LLM_OK : LLM_ERROR;
}


/* moves what the layer for multi-token prediction has beside a layer */

static void
llm_load_head_nextn(llm_model_t *m)
{
    llm_model_layer_t  *l = &m->layers[0];

    m->makes = l->w[LLM_LT_NEXTN_PROJ];
    m->output = l->w[LLM_LT_NEXTN_OUTPUT];
    m->output_norm = l->v[LLM_LT_NEXTN_NORM];
    l->w[LLM_LT_NEXTN_PROJ] = NULL;
    l->w[LLM_LT_NEXTN_OUTPUT] = NULL;
    l->v[LLM_LT_NEXTN_NORM] = NULL;
}


int
llm_load_head_globals(llm_load_t *l)
{
    llm_model_t             *m = l->m;
    llm_head_kind_t          kind = m->desc.head.kind;
    const llm_gguf_tensor_t  *norm;

    llm_part_enter(m, 0);

    if (kind == LLM_HEAD_MTP) {
        llm_load_head_nextn(m);
    }

    if (kind == LLM_HEAD_ASSISTANT) {
        if (llm_load_head_weight(l, LLM_GT_TOKEN_EMBD,
                                 LLM_WEIGHT_EMBED | LLM_WEIGHT_LINEAR
                                 | LLM_WEIGHT_HEAD, &m->token_embd) != LLM_OK)
        {
            return LLM_ERROR;
        }

        m->output = m->token_embd;
    }

    if (kind != LLM_HEAD_MTP
        && (llm_load_head_weight(l, LLM_GT_TAPS, LLM_WEIGHT_LINEAR, &m->makes)
            != LLM_OK
            || llm_load_head_weight(l, LLM_GT_BEFORE, LLM_WEIGHT_LINEAR,
                                    &m->makes) != LLM_OK
            || llm_load_head_weight(l, LLM_GT_AFTER, LLM_WEIGHT_LINEAR,
                                    &m->after) != LLM_OK
            || llm_load_head_weight(l, LLM_GT_OUTPUT,
                                    LLM_WEIGHT_LINEAR | LLM_WEIGHT_HEAD,
                                    &m->output) != LLM_OK))
    {
        return LLM_ERROR;
    }

    if (m->output == NULL) {
        m->output = m->of->output;
        m->borrows = 1;
    }

    norm = m->output_norm ? NULL : m->desc.global[LLM_GT_OUTPUT_NORM];

    if (norm) {
        m->output_norm = llm_load_vec(l, norm);

        if (m->output_norm == NULL) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* an assistant keeps nothing of a token; a page that is never used makes the
   device have room for its attention */

int
llm_load_head_caches(llm_load_t *l)
{
    llm_model_t    *m = l->m;
    llm_kv_opts_t   o;

    memset(&o, 0, sizeof(o));
    o.n_layers = 1;
    o.n_pages = 1;
    o.n_kv_heads = m->desc.hp.n_kv_heads;
    o.head_dim_k = m->desc.hp.head_dim_k;
    o.head_dim_v = m->desc.hp.head_dim_v;
    o.n_heads = m->desc.hp.n_heads;

    m->at->kv[LLM_KV_FULL] = m->ops->kv_create(m->exec, &o, l->err);

    return m->at->kv[LLM_KV_FULL] ? LLM_OK : LLM_ERROR;
}
