/*
 * Encoders whose norms come before their blocks: ModernBERT, NeoBERT,
 * EuroBERT, EmbeddingGemma; and what all encoders have in common: attention
 * without a causal mask, no logits.
 */

#include "engine/model/blocks.h"
#include "engine/model/reader.h"

#include <math.h>


static const llm_tensor_want_t  llm_gemma_embedding_globals[] = {
    { LLM_GT_DENSE_2, LLM_WANT_OPTIONAL },
    { LLM_GT_DENSE_3, LLM_WANT_OPTIONAL },
    { LLM_GT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_modern_bert_globals[] = {
    { LLM_GT_EMBD_NORM, LLM_WANT_REQUIRED },
    { LLM_GT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_neo_bert_globals[] = {
    { LLM_GT_OUTPUT_NORM, LLM_WANT_NONE },
    { LLM_GT_ENC_NORM, LLM_WANT_REQUIRED },
    { LLM_GT_N, LLM_WANT_NONE }
};


/* the names of transformers' activations */

static int
llm_encoder_act(llm_reader_t *r)
{
    int         rc;
    size_t      i;
    uint32_t    l;
    llm_str_t   s;

    static const struct {
        const char  *name;
        llm_glu_t    act;
    } known[] = {
        { "gelu", LLM_GLU_GELU_ERF }, { "geglu", LLM_GLU_GELU_ERF },
        { "gelu_new", LLM_GLU_GELU }, { "gelu_pytorch_tanh", LLM_GLU_GELU },
        { "silu", LLM_GLU_SILU }, { "swish", LLM_GLU_SILU },
        { "swiglu", LLM_GLU_SILU }
    };

    rc = llm_read_str(r, "hidden_activation", &s);

    if (rc != LLM_OK) {
        return rc == LLM_ABSENT ? LLM_OK : rc;
    }

    for (i = 0; i < llm_nelems(known); i++) {
        if (llm_str_is(s, known[i].name)) {
            break;
        }
    }

    if (i == llm_nelems(known)) {
        return llm_fail(r->err, "%s: %s.hidden_activation: \"%.*s\" is not "
                        "supported (gelu, gelu_pytorch_tanh and silu are)",
                        llm_gguf_name(r->g), r->d->hp.arch,
                        (int) llm_min(s.len, 32), s.data);
    }

    for (l = 0; l < r->d->hp.n_layers; l++) {
        r->d->layers[l].act.kind = known[i].act;
    }

    return LLM_OK;
}


int
llm_read_encoder(llm_reader_t *r)
{
    uint32_t                 i;
    llm_desc_t              *d;
    const llm_layer_desc_t  *l;

    d = r->d;

    d->global_want[LLM_GT_CLS] = LLM_WANT_OPTIONAL;
    d->global_want[LLM_GT_CLS_BIAS] = LLM_WANT_OPTIONAL;
    d->global_want[LLM_GT_CLS_NORM] = LLM_WANT_OPTIONAL;
    d->global_want[LLM_GT_RANK_BIAS] = LLM_WANT_OPTIONAL;

    /* keys and values are needed only while their layer is computed: all
       layers use the same pages, one after the other */

    for (i = 0; i < d->hp.n_layers; i++) {
        l = &d->layers[i];

        if (l->latent) {
            return llm_fail(r->err, "%s: %s.attention.causal: false: not "
                            "supported with latent attention",
                            llm_gguf_name(r->g), d->hp.arch);
        }

        if (l->kv_layer != i || l->n_kv_heads != d->layers[0].n_kv_heads
            || l->head_dim_k != d->layers[0].head_dim_k
            || l->head_dim_v != d->layers[0].head_dim_v)
        {
            return llm_fail(r->err, "%s: %s.attention.causal: false: not "
                            "supported with keys and values that differ from "
                            "layer to layer", llm_gguf_name(r->g),
                            d->hp.arch);
        }
    }

    return llm_encoder_act(r);
}


/* the first of every few layers sees all positions, the others have windows
   and another RoPE; the first layer may lack a norm, as the embeddings have
   one */

static int
llm_modern_bert_read(llm_reader_t *r)
{
    uint32_t        rope;
    llm_gguf_key_t  key;

    r->d->layers[0].want[LLM_LT_ATTN_NORM] = LLM_WANT_OPTIONAL;

    llm_gguf_key(&key, r->d->hp.arch, "classifier.pooling_type");

    if (llm_gguf_find(r->g, key.text) == NULL) {
        r->d->hp.rank_from = LLM_POOLING_MEAN;
    }

    if (llm_read_window_rope(r, r->d->ropes[0].conf.base, &rope) != LLM_OK
        || llm_read_windows_behind(r, 3, rope) == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    return LLM_OK;
}


/* as Gemma 3, but windows reach to both sides of a row; if the file does not
   say which layers have windows, the last one has none */

static int
llm_gemma_embedding_read(llm_reader_t *r)
{
    uint32_t           rope;
    llm_gguf_key_t     key;
    llm_layer_desc_t  *last;

    r->d->embd_scale = sqrtf((float) r->d->hp.n_embd);

    llm_read_ignore(r, "dense_2_feat_in");
    llm_read_ignore(r, "dense_2_feat_out");
    llm_read_ignore(r, "dense_3_feat_in");
    llm_read_ignore(r, "dense_3_feat_out");

    if (llm_read_window_rope(r, 10000, &rope) != LLM_OK
        || llm_read_windows(r, 6, rope) == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    llm_gguf_key(&key, r->d->hp.arch, "attention.sliding_window_pattern");

    if (llm_gguf_find(r->g, key.text) == NULL) {
        last = &r->d->layers[r->d->hp.n_layers - 1];
        last->window = 0;
        last->rope = 0;
    }

    return LLM_OK;
}


const llm_arch_t  llm_arch_modern_bert = {
    .name = "modern-bert",
    .encoder = 1,
    .rope = LLM_ROPE_NEOX,
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU_ERF,
    .globals = llm_modern_bert_globals,
    .read = llm_modern_bert_read
};

const llm_arch_t  llm_arch_neo_bert = {
    .name = "neo-bert",
    .encoder = 1,
    .rope = LLM_ROPE_NORM,
    .globals = llm_neo_bert_globals
};

const llm_arch_t  llm_arch_euro_bert = {
    .name = "eurobert",
    .encoder = 1,
    .rope = LLM_ROPE_NEOX
};

const llm_arch_t  llm_arch_gemma_embedding = {
    .name = "gemma-embedding",
    .encoder = 1,
    .rope = LLM_ROPE_NEOX,
    .act = LLM_GLU_GELU,
    .tensors = llm_want_qk_post_norms,
    .globals = llm_gemma_embedding_globals,
    .read = llm_gemma_embedding_read
};
