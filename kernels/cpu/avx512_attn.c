/*
 * Attention with AVX-512 VNNI: in float32, and on a cache of int8.
 */

#include "kernels/cpu/cpu.h"

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target(                          \
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c"))),        \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")
#endif

#include "kernels/cpu/simd512.h"
#include "kernels/cpu/simd_math.h"
#include "kernels/cpu/simd_attn.h"
#include "kernels/cpu/simd_attn_q8.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif


void
llm_cpu_attn_avx512(llm_cpu_kernels_t *k)
{
    k->attn[LLM_CPU_KV_F16] = simd_attn;
    k->attn[LLM_CPU_KV_F32] = simd_attn_f32;
    k->keep[LLM_CPU_KV_F32] = simd_keep_f32;
    k->attn[LLM_CPU_KV_Q8] = simd_attn_q8;
    k->keep[LLM_CPU_KV_Q8] = simd_keep_q8;
    k->attn_merge = simd_attn_merge;
    k->attn_finish = simd_attn_finish;
}

#endif
