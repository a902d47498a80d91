/*
 * The kernels for AVX2 with FMA and F16C (Haswell, Zen and later).
 */

#include "kernels/cpu/cpu.h"

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target(                          \
    "avx2,fma,f16c"))),        \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

#include "kernels/cpu/simd256.h"
#include "kernels/cpu/simd_math.h"
#include "kernels/cpu/simd_ops.h"
#include "kernels/cpu/simd_state.h"
#include "kernels/cpu/gemm_store.h"
#include "kernels/cpu/simd_gemm.h"
#include "kernels/cpu/quant.h"
#include "kernels/cpu/quant_stage.h"
#include "kernels/cpu/quant256_stage.h"
#include "kernels/cpu/quant256.h"
#include "kernels/cpu/quant256_many.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif


void
llm_cpu_kernels_avx2(llm_cpu_kernels_t *k)
{
    k->name = "AVX2";
    k->bf16 = 0;
    k->stage_q8 = quant_stage_q8;
    k->gemm_quant = quant_gemm;
    k->gemm_float = simd_gemm_float;
    k->gemm_bf16 = simd_gemm_float;
    k->norm = simd_norm;
    k->glu = simd_glu;
    k->softcap = simd_softcap;
    k->weighted_sum = simd_weighted_sum;
    k->rope = simd_rope;
    k->store_f16 = simd_store_f16;
    k->state = simd_state;
    k->conv = simd_conv;
    llm_cpu_attn_avx2(k);
}

#endif
