/*
 * The kernels for AVX-512 with VNNI (Ice Lake, Zen 4 and later).
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
#include "kernels/cpu/simd_ops.h"
#include "kernels/cpu/simd_state.h"
#include "kernels/cpu/gemm_store.h"
#include "kernels/cpu/simd_gemm.h"
#include "kernels/cpu/quant.h"
#include "kernels/cpu/quant512_codes.h"
#include "kernels/cpu/quant_stage.h"
#include "kernels/cpu/quant512_stage.h"
#include "kernels/cpu/quant512.h"
#include "kernels/cpu/quant512_many.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif


void
llm_avx512_gemm_quant(const llm_cpu_gemm_t *g)
{
    if (g->n_rows > (g->x->fine ? QUANT_FEW_FINE : QUANT_FEW)) {
        quant_many(g);

    } else {
        quant_few(g);
    }
}


void
llm_cpu_kernels_avx512(llm_cpu_kernels_t *k)
{
    k->name = "AVX-512 VNNI";
    k->bf16 = 0;
    k->stage_q8 = quant_stage_q8;
    k->gemm_quant = llm_avx512_gemm_quant;
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
    llm_cpu_attn_avx512(k);
}

#endif
