/*
 * Products of BF16 weights on CPUs with AVX512_BF16: both factors in bfloat16,
 * VDPBF16PS for pairs of k in order, sums in float32; and attention in
 * bfloat16.
 */

#include "kernels/cpu/cpu.h"

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target(                          \
    "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c"))),        \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")
#endif

#include "kernels/cpu/simd512.h"
#include "kernels/cpu/gemm_store.h"
#include "kernels/cpu/bf16.h"
#include "kernels/cpu/simd_math.h"
#include "kernels/cpu/bf16_kv.h"
#include "kernels/cpu/bf16_attn.h"

#define BF16_MM      6
#define BF16_NV      4

/* see GEMM_AHEAD of simd_gemm.h */
#define BF16_AHEAD   2048
#define BF16_STREAM  2


simd_inline void
bf16_tile(const llm_cpu_gemm_t *g, const uint8_t *const *panel, uint32_t row,
    uint32_t out, const int mm, const int fine)
{
    int              m, v;
    size_t           k, low, ahead;
    __m512           acc[BF16_MM][BF16_NV];
    __m512i          w[BF16_NV], x;
    int32_t          pair;
    const uint16_t  *p[BF16_MM];

    /* elements from the high parts of x to the low ones */
    low = (size_t) (g->x->b_low - g->x->b);
    ahead = row == g->row ? BF16_AHEAD : 0;

    simd_unroll
    for (m = 0; m < mm; m++) {
        p[m] = g->x->b + (row + m) * g->x->stride;

        simd_unroll
        for (v = 0; v < BF16_NV; v++) {
            acc[m][v] = _mm512_setzero_ps();
        }
    }

    for (k = 0; k < g->w->n_in; k += 2) {

        simd_unroll
        for (v = 0; v < BF16_NV; v++) {
            w[v] = _mm512_load_si512(panel[v] + k * LLM_PANEL * 2);

            if (mm > BF16_STREAM) {
                __builtin_prefetch(panel[v] + k * LLM_PANEL * 2 + ahead, 0, 2);
            }
        }

        simd_unroll
        for (m = 0; m < mm; m++) {
            memcpy(&pair, p[m] + k, 4);
            x = _mm512_set1_epi32(pair);

            simd_unroll
            for (v = 0; v < BF16_NV; v++) {
                acc[m][v] = _mm512_dpbf16_ps(acc[m][v], (__m512bh) w[v],
                                             (__m512bh) x);
            }

            if (!fine) {
                continue;
            }

            memcpy(&pair, p[m] + low + k, 4);
            x = _mm512_set1_epi32(pair);

            simd_unroll
            for (v = 0; v < BF16_NV; v++) {
                acc[m][v] = _mm512_dpbf16_ps(acc[m][v], (__m512bh) w[v],
                                             (__m512bh) x);
            }
        }
    }

    gemm_store_tile(g, row, out, acc[0], mm, BF16_NV);
}


/* all rows: the highest tile while the weights are read from memory, then tiles
   of about the same height, as low ones wait for their sums */

simd_inline void
bf16_rows(const llm_cpu_gemm_t *g, const uint8_t *const *p, uint32_t panel,
    const int fine)
{
    uint32_t  row, end, mm, n, out;

    row = g->row;
    end = g->row + g->n_rows;
    out = panel * LLM_PANEL;

    for (n = (g->n_rows + BF16_MM - 1) / BF16_MM; n; n--) {
        mm = row == g->row ? llm_min(BF16_MM, g->n_rows)
                           : (end - row + n - 1) / n;

        switch (mm) {

        case 1:
            bf16_tile(g, p, row, out, 1, fine);
            break;

        case 2:
            bf16_tile(g, p, row, out, 2, fine);
            break;

        case 3:
            bf16_tile(g, p, row, out, 3, fine);
            break;

        case 4:
            bf16_tile(g, p, row, out, 4, fine);
            break;

        case 5:
            bf16_tile(g, p, row, out, 5, fine);
            break;

        default:
            bf16_tile(g, p, row, out, BF16_MM, fine);
        }

        row += mm;
    }
}


static void
bf16_gemm(const llm_cpu_gemm_t *g)
{
    uint32_t        i, panel, last;
    const uint8_t  *p[BF16_NV];

    last = g->panel + g->n_panels - 1;

    for (panel = g->panel; panel <= last; panel += BF16_NV) {

        simd_unroll
        for (i = 0; i < BF16_NV; i++) {
            p[i] = g->w->data + llm_min(panel + i, last) * g->w->panel_size;
        }

        if (g->x->fine) {
            bf16_rows(g, p, panel, 1);

        } else {
            bf16_rows(g, p, panel, 0);
        }
    }
}


static void
bf16_stage(const llm_cpu_stage_t *s, const float *x, uint32_t row)
{
    bf16_stage_row(s, x, row * s->stride, 32);
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif


void
llm_cpu_kernels_avx512_bf16(llm_cpu_kernels_t *k)
{
    k->name = "AVX-512 VNNI BF16";
    k->bf16 = 1;
    k->stage_bf16 = bf16_stage;
    k->gemm_bf16 = bf16_gemm;
    k->attn[LLM_CPU_KV_BF16] = bf16_attn;
    k->keep[LLM_CPU_KV_BF16] = bf16_keep;
    k->bf16_dims = 2;
    k->bf16_tile = LLM_ATTN_TILE;
}

#endif
