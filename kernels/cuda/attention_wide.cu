/*
 * Attention of heads of more than 256 elements, and of more than 128 with
 * slopes, in slices of V; see attention_kernel.h.
 */

#include "kernels/cuda/attention_kernel.h"


template void llm_att_launch<LLM_CUDA_MAX_HEAD, LLM_ATT_SLICE>(llm_cuda_t *d, const llm_kv_t *kv,
    const llm_att_args_t &a);
