/*
 * Values of the dimensions of tensors.def in a layer.
 */

#include "engine/model/arch.h"


static const uint8_t  llm_dim_counts[LLM_DIM_N] = {
#define LLM_COUNT(ID, value)  [LLM_DIM_##ID] = 1,
#include "engine/model/tensors.def"
};


int
llm_layer_tensor_is_matrix(const llm_desc_t *d, llm_layer_tensor_t t)
{
    const llm_tensor_fact_t  *f = &d->facts[t];

    return f->out != LLM_DIM_NONE && !llm_dim_counts[f->out]
           && f->in != LLM_DIM_CONV_WIDTH;
}


uint32_t
llm_desc_dim(const llm_desc_t *d, const llm_layer_desc_t *l, llm_dim_t dim)
{
    switch (dim) {

#define LLM_DIM(ID, value)                                                   \
    case LLM_DIM_##ID:                                                       \
        return value;

#include "engine/model/tensors.def"

    case LLM_DIM_N:
        break;
    }

    return 0;
}
