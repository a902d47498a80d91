/*
 * Gemma 1 to 3: scaled embeddings, GELU; Gemma 2 and 3 also have norms after
 * the blocks, and windows in half or most of the layers.  Gemma 4 is in
 * arch_gemma4.c.
 */

#include "engine/model/reader.h"

#include <math.h>


static int
llm_gemma_read(llm_reader_t *r)
{
    r->d->embd_scale = sqrtf((float) r->d->hp.n_embd);

    return llm_read_f32(r, "final_logit_softcapping", &r->d->logit_cap)
           == LLM_ERROR ? LLM_ERROR : LLM_OK;
}


/* the 27B models, known by their number of layers alone, scale the scores by
   1 / sqrt(n_embd / n_heads) */

static void
llm_gemma_scale(llm_desc_t *d, uint32_t layers_27b)
{
    uint32_t  i;

    for (i = 0; d->hp.n_layers == layers_27b && i < layers_27b; i++) {
        d->layers[i].scale = 1 / sqrtf((float) (d->hp.n_embd
                                                / d->layers[i].n_heads));
    }
}


/* the first files lack fields whose values are the same in all models: the
   soft caps and the window */

static int
llm_gemma2_read(llm_reader_t *r)
{
    float     cap;
    uint32_t  i;

    cap = 50;
    r->d->logit_cap = 30;
    llm_gemma_scale(r->d, 46);

    if (llm_gemma_read(r) != LLM_OK
        || llm_read_f32(r, "attn_logit_softcapping", &cap) == LLM_ERROR
        || llm_read_windows(r, 2, 0) == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < r->d->hp.n_layers; i++) {
        r->d->layers[i].softcap = cap;
    }

    return LLM_OK;
}


/* layers with windows have another RoPE, which is never scaled; rows of an
   image see each other in all layers */

static int
llm_gemma3_read(llm_reader_t *r)
{
    uint32_t  i, rope;

    llm_gemma_scale(r->d, 62);
    r->d->hp.spans = 1;

    for (i = 0; i < r->d->hp.n_layers; i++) {
        r->d->layers[i].spans = 1;
    }

    if (llm_gemma_read(r) != LLM_OK
        || llm_read_window_rope(r, 10000, &rope) != LLM_OK
        || llm_read_windows(r, 6, rope) == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    return LLM_OK;
}


const llm_arch_t  llm_arch_gemma = {
    .name = "gemma",
    .rope = LLM_ROPE_NEOX,
    .act = LLM_GLU_GELU,
    .read = llm_gemma_read
};

const llm_arch_t  llm_arch_gemma2 = {
    .name = "gemma2",
    .rope = LLM_ROPE_NEOX,
    .act = LLM_GLU_GELU,
    .window = 4096,
    .tensors = llm_want_post_norms,
    .read = llm_gemma2_read
};

const llm_arch_t  llm_arch_gemma3 = {
    .name = "gemma3",
    .rope = LLM_ROPE_NEOX,
    .act = LLM_GLU_GELU,
    .tensors = llm_want_qk_post_norms,
    .read = llm_gemma3_read
};
