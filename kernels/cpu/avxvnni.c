/*
 * Products of quantised weights for AVX-VNNI (Alder Lake and later, which have no
 * AVX-512): those of avx2.c with VPDPBUSD, which adds four products of unsigned
 * and signed bytes to 32 bits.  All else is AVX2's, and so are the bits.
 */

#include "kernels/cpu/cpu.h"

#if defined(__x86_64__)

#define QUANT_VNNI  1

/* SOFT_VNNI_H: VPDPBUSD is in AVX2 (t/unit/soft) */

#if defined(__clang__) && defined(SOFT_VNNI_H)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))),       \
    apply_to = function)
#elif defined(__clang__)
#pragma clang attribute push(__attribute__((target(                          \
    "avx2,fma,f16c,avxvnni"))), apply_to = function)
#elif defined(SOFT_VNNI_H)
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avxvnni")
#endif

#include "kernels/cpu/simd256.h"
#include "kernels/cpu/gemm_store.h"
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
llm_cpu_kernels_avxvnni(llm_cpu_kernels_t *k)
{
    llm_cpu_kernels_avx2(k);
    k->name = "AVX-VNNI";
    k->stage_q8 = quant_stage_q8;
    k->gemm_quant = quant_gemm;
}

#endif
