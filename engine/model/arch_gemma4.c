/*
 * Gemma 4: layers with windows have smaller heads and another RoPE, the last
 * layers read the keys and values of earlier ones, values are normalised, and
 * each layer may have an input of its own, made from the token.
 */

#include "engine/model/blocks.h"
#include "engine/model/reader.h"

#include <math.h>


static const llm_tensor_want_t  llm_gemma4_tensors[] = {
    { LLM_LT_Q_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_K_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_V, LLM_WANT_OPTIONAL },    /* without it, V is K's product */
    { LLM_LT_ATTN_POST, LLM_WANT_REQUIRED },
    { LLM_LT_FFN_POST, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_arch_experts_t  llm_gemma4_experts = {
    .score = LLM_ROUTE_SOFTMAX,
    .normalize = 1
};


static int
llm_gemma4_windows(llm_reader_t *r)
{
    uint32_t           i, rope, dim_k, dim_v;
    llm_desc_t        *d;
    llm_layer_desc_t  *l;

    d = r->d;

    if (llm_read_window_rope(r, 10000, &rope) != LLM_OK
        || llm_read_windows(r, 6, rope) == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    dim_k = d->layers[0].head_dim_k;
    dim_v = d->layers[0].head_dim_v;

    if (llm_read_size(r, "attention.key_length_swa", dim_k, &dim_k) != LLM_OK
        || llm_read_size(r, "attention.value_length_swa", dim_v, &dim_v)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    d->ropes[rope].n_rot = dim_k;

    if (llm_read_rot(r, "rope.dimension_count_swa", dim_k,
                     &d->ropes[rope].n_rot) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < d->hp.n_layers; i++) {
        l = &d->layers[i];

        if (l->window) {
            l->head_dim_k = dim_k;
            l->head_dim_v = dim_v;
            l->spans = d->hp.spans;
        }
    }

    return LLM_OK;
}


/* each of the last layers reads the keys and values of the nearest layer before
   them with the same sizes, either both with windows or both without */

static int
llm_gemma4_share(llm_reader_t *r)
{
    uint32_t           i, k, shared, first;
    llm_desc_t        *d;
    llm_layer_desc_t  *l;

    d = r->d;
    shared = 0;

    if (llm_read_u32(r, "attention.shared_kv_layers", &shared) == LLM_ERROR) {
        return LLM_ERROR;
    }

    first = d->hp.n_layers - llm_min(shared, d->hp.n_layers);

    for (i = first; i < d->hp.n_layers; i++) {
        l = &d->layers[i];

        for (k = first; k > 0; k--) {
            if (!d->layers[k - 1].window == !l->window
                && d->layers[k - 1].n_kv_heads == l->n_kv_heads
                && d->layers[k - 1].head_dim_k == l->head_dim_k
                && d->layers[k - 1].head_dim_v == l->head_dim_v)
            {
                break;
            }
        }

        if (k == 0) {
            return llm_fail(r->err, "%s: %s.attention.shared_kv_layers: %u: "
                            "no layer has the keys of layer %u",
                            llm_gguf_name(r->g), d->hp.arch, shared, i);
        }

        l->kv_layer = k - 1;
        l->want[LLM_LT_K] = LLM_WANT_NONE;
        l->want[LLM_LT_V] = LLM_WANT_NONE;
        l->want[LLM_LT_K_NORM] = LLM_WANT_NONE;
    }

    return LLM_OK;
}


/* layers with experts have a feed-forward network and a mixture */

static void
llm_gemma4_chain(const llm_desc_t *d, llm_layer_desc_t *l)
{
    uint32_t            n;
    const llm_block_t  *blocks[LLM_MAX_BLOCKS];

    n = 0;
    blocks[n++] = &llm_block_attention;
    blocks[n++] = l->route.n_experts ? &llm_block_mixture_beside
                                     : &llm_block_ffn;

    if (d->n_input) {
        blocks[n++] = &llm_block_input;
    }

    blocks[n++] = &llm_block_out_scale;
    llm_desc_chain(l, blocks, n);
}


static int
llm_gemma4_inputs(llm_reader_t *r)
{
    uint32_t     i;
    llm_desc_t  *d;

    d = r->d;

    if (llm_read_u32(r, "embedding_length_per_layer_input", &d->n_input)
        == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    if (d->n_input > LLM_MAX_WIDTH / d->hp.n_layers) {
        return llm_fail(r->err, "%s: %s.embedding_length_per_layer_input: %u "
                        "is too wide", llm_gguf_name(r->g), d->hp.arch,
                        d->n_input);
    }

    for (i = 0; i < d->hp.n_layers; i++) {
        llm_gemma4_chain(d, &d->layers[i]);
        d->layers[i].want[LLM_LT_V] = LLM_WANT_OPTIONAL;
        d->layers[i].scale = 1;
        d->layers[i].norm_v = 1;
    }

    if (d->n_input) {
        d->global_want[LLM_GT_INPUT_EMBD] = LLM_WANT_REQUIRED;
        d->global_want[LLM_GT_INPUT_MODEL_PROJ] = LLM_WANT_REQUIRED;
        d->global_want[LLM_GT_INPUT_NORM] = LLM_WANT_REQUIRED;
    }

    return LLM_OK;
}


static int
llm_gemma4_read(llm_reader_t *r)
{
    r->d->embd_scale = sqrtf((float) r->d->hp.n_embd);

    if (llm_read_f32(r, "final_logit_softcapping", &r->d->logit_cap)
        == LLM_ERROR
        || llm_gemma4_inputs(r) != LLM_OK)
    {
        return LLM_ERROR;
    }

    /* rows of an image see each other in layers with windows; not in the small
       models, which are those whose layers have inputs of their own */

    r->d->hp.spans = r->d->n_input == 0;

    if (llm_gemma4_windows(r) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_gemma4_share(r);
}


/*
 * The assistant: its layers read the keys and values of the model's last layer
 * with a window, or of the last one without.  Every token that it drafts is at
 * the same position, after those that the model has, so a window has one
 * position less.
 */

static int
llm_assistant_read(llm_reader_t *r)
{
    uint32_t           i;
    llm_desc_t        *d;
    llm_layer_desc_t  *l;

    d = r->d;
    llm_read_ignore(r, "attention.shared_kv_layers");

    if (llm_read_size(r, "embedding_length_out", LLM_MAX_WIDTH / 2,
                      &d->head.n_target) != LLM_OK
        || llm_gemma4_inputs(r) != LLM_OK
        || llm_gemma4_windows(r) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (d->n_input) {
        return llm_fail(r->err, "%s: %s.embedding_length_per_layer_input: an "
                        "assistant has no such inputs", llm_gguf_name(r->g),
                        d->hp.arch);
    }

    d->head.n_in = 2 * d->head.n_target;

    for (i = 0; i < d->hp.n_layers; i++) {
        l = &d->layers[i];
        l->outside = 1;
        l->spans = 0;
        l->window -= l->window != 0;
        l->want[LLM_LT_K] = LLM_WANT_NONE;
        l->want[LLM_LT_V] = LLM_WANT_NONE;
        l->want[LLM_LT_K_NORM] = LLM_WANT_NONE;
    }

    return LLM_OK;
}


static const llm_tensor_want_t  llm_assistant_globals[] = {
    { LLM_GT_BEFORE, LLM_WANT_REQUIRED },
    { LLM_GT_AFTER, LLM_WANT_REQUIRED },
    { LLM_GT_N, LLM_WANT_NONE }
};


const llm_arch_t  llm_arch_gemma4_assistant = {
    .name = "gemma4-assistant",
    .rope = LLM_ROPE_NEOX,
    .act = LLM_GLU_GELU,
    .blocks = { &llm_block_attention, &llm_block_ffn },
    .tensors = llm_gemma4_tensors,
    .globals = llm_assistant_globals,
    .head = LLM_HEAD_ASSISTANT,
    .read = llm_assistant_read
};

const llm_arch_t  llm_arch_gemma4 = {
    .name = "gemma4",
    .rope = LLM_ROPE_NEOX,
    .act = LLM_GLU_GELU,
    .blocks = { &llm_block_attention, &llm_block_ffn },
    .experts = &llm_gemma4_experts,
    .tensors = llm_gemma4_tensors,
    .read = llm_gemma4_read
};
