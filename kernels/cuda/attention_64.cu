/*
 * Attention of heads of at most 64 elements; see attention_kernel.h.
 */

#include "kernels/cuda/attention_kernel.h"


template void llm_att_launch<64, 64>(llm_cuda_t *d, const llm_kv_t *kv,
    const llm_att_args_t &a);
