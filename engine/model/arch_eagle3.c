/*
 * EAGLE3 (arXiv:2503.01840): a layer that drafts for a model.  Its attention
 * reads a token's embedding and, beside it, a mixture of what three layers of
 * the model have read; see head.h.
 */

#include "engine/model/reader.h"


/* the layers of the model whose inputs are read */

static int
llm_eagle3_taps(llm_reader_t *r)
{
    int64_t               v;
    uint32_t              i;
    llm_desc_t           *d;
    llm_gguf_key_t        key;
    const llm_gguf_kv_t  *kv;

    d = r->d;
    kv = llm_read_key(r, llm_gguf_key(&key, d->hp.arch, "target_layers"));

    if (kv == NULL) {
        return llm_read_missing(r, "target_layers");
    }

    if (kv->type != LLM_GGUF_ARRAY || kv->count != LLM_HEAD_TAPS
        || kv->item == LLM_GGUF_STR || kv->item == LLM_GGUF_ARRAY)
    {
        return llm_fail(r->err, "%s: %s: it must be %d numbers",
                        llm_gguf_name(r->g), key.text, LLM_HEAD_TAPS);
    }

    for (i = 0; i < LLM_HEAD_TAPS; i++) {
        v = llm_gguf_item_int(kv, i);

        if (v < 0 || v >= LLM_MAX_LAYERS) {
            return llm_fail(r->err, "%s: %s: %lld is no layer",
                            llm_gguf_name(r->g), key.text, (long long) v);
        }

        d->head.taps[i] = (uint32_t) v;
    }

    return LLM_OK;
}


static int
llm_eagle3_read(llm_reader_t *r)
{
    llm_desc_t        *d;
    llm_layer_desc_t  *l;

    d = r->d;
    d->head.n_target = d->hp.n_embd;
    d->head.n_in = 2 * d->hp.n_embd;

    if (llm_eagle3_taps(r) != LLM_OK
        || llm_read_size(r, "target_hidden_size",
                         LLM_MAX_WIDTH / LLM_HEAD_TAPS, &d->head.n_target)
           != LLM_OK
        || llm_read_bool(r, "norm_before_residual", &d->head.norm_residual)
           == LLM_ERROR
        || llm_read_bool(r, "norm_before_fc", &d->head.norm_taps)
           == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    if (d->hp.n_layers != 1) {
        return llm_fail(r->err, "%s: %s.block_count: %u: a head has one layer",
                        llm_gguf_name(r->g), d->hp.arch, d->hp.n_layers);
    }

    d->facts[LLM_LT_Q].in = LLM_DIM_PAIR;
    d->facts[LLM_LT_K].in = LLM_DIM_PAIR;
    d->facts[LLM_LT_V].in = LLM_DIM_PAIR;
    d->global_want[LLM_GT_TOKEN_EMBD] = LLM_WANT_NONE;
    d->global_want[LLM_GT_TAPS_NORM] = d->head.norm_taps ? LLM_WANT_REQUIRED
                                                         : LLM_WANT_NONE;
    l = &d->layers[0];
    l->pair = 1;
    l->want[LLM_LT_ATTN_AGAIN] = LLM_WANT_REQUIRED;

    return LLM_OK;
}


static const llm_tensor_want_t  llm_eagle3_globals[] = {
    { LLM_GT_TAPS, LLM_WANT_REQUIRED },
    { LLM_GT_N, LLM_WANT_NONE }
};


const llm_arch_t  llm_arch_eagle3 = {
    .name = "eagle3",
    .globals = llm_eagle3_globals,
    .head = LLM_HEAD_EAGLE3,
    .read = llm_eagle3_read
};
