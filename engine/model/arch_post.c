/*
 * Architectures with norms after the blocks: GLM 4 (which also has norms
 * before them), OLMo 2 and 3, and EXAONE 4.
 */

#include "engine/model/reader.h"


static const llm_tensor_want_t  llm_post_tensors[] = {
    { LLM_LT_ATTN_NORM, LLM_WANT_NONE },
    { LLM_LT_FFN_NORM, LLM_WANT_NONE },
    { LLM_LT_Q_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_K_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_ATTN_POST, LLM_WANT_REQUIRED },
    { LLM_LT_FFN_POST, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};


/*
 * Files of vision models, known by their rope.dimension_sections, have Q and K
 * in the order for LLM_ROPE_NEOX.  Their positions have three parts, which are
 * the same for text.
 */

static int
llm_glm4_read(llm_reader_t *r)
{
    int  has;

    if (llm_read_sections(r, 0, &has) != LLM_OK) {
        return LLM_ERROR;
    }

    if (has) {
        r->d->rope_kind = LLM_ROPE_NEOX;
    }

    return LLM_OK;
}


/* Q and K are normalised as whole rows; in OLMo 3, three of every four layers
   have windows and a RoPE that is not scaled */

static int
llm_olmo2_read(llm_reader_t *r)
{
    llm_desc_row_norms(r->d);

    return llm_read_unscaled_windows(r, 4);
}


/* if some layers have windows, the layers without have no RoPE */

static int
llm_exaone4_read(llm_reader_t *r)
{
    int  rc;

    rc = llm_read_windows(r, 4, 0);

    if (rc == LLM_OK) {
        llm_desc_rope_in_windows(r->d);
    }

    return rc == LLM_ERROR ? LLM_ERROR : LLM_OK;
}


const llm_arch_t  llm_arch_glm4 = {
    .name = "glm4",
    .tensors = llm_want_post_norms,
    .read = llm_glm4_read
};

const llm_arch_t  llm_arch_olmo2 = {
    .name = "olmo2",
    .rope = LLM_ROPE_NEOX,
    .tensors = llm_post_tensors,
    .read = llm_olmo2_read
};

const llm_arch_t  llm_arch_exaone4 = {
    .name = "exaone4",
    .rope = LLM_ROPE_NEOX,
    .tensors = llm_post_tensors,
    .read = llm_exaone4_read
};
