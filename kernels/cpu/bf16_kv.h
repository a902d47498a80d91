/*
 * What the kernels of attention in bfloat16 share: powers of 2, rounding of
 * queries, and writing of keys and values; included after simd512.h.
 */

#include <math.h>

/* factor that makes powers of 2 of powers of e */
#define BF16_LOG2E  0x1.715476p+0f

/* a maximum of scores below all others */
#define BF16_LOWEST (-1e30f)


/*
 * 2^x, exactly 1 for 0; 0 if x is -infinity: for the fraction r of x, 0 <= r < 1,
 * a polynomial with the smallest relative error among those that are 1 for 0.
 * Its degree is 4, for errors within 2^-18, or 3, within 2^-13.
 */

simd_inline vf_t
bf16_power(vf_t x, const int degree)
{
    vf_t  r, p;

    r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);

    if (degree == 4) {
        p = vf_set1(0x1.b7f730p-7f);
        p = vf_fma(p, r, vf_set1(0x1.abf86ap-5f));
        p = vf_fma(p, r, vf_set1(0x1.ee2450p-3f));
        p = vf_fma(p, r, vf_set1(0x1.62d6c6p-1f));

    } else {
        p = vf_set1(0x1.3baaa6p-4f);
        p = vf_fma(p, r, vf_set1(0x1.d2378ap-3f));
        p = vf_fma(p, r, vf_set1(0x1.63e658p-1f));
    }

    return vf_scale2(vf_fma(p, r, vf_set1(1.0f)), x);
}


/* factors on sums */

simd_inline vf_t
bf16_exp2(vf_t x)
{
    return bf16_power(x, 4);
}


/* weights of the softmax, which are rounded to bfloat16 */

simd_inline vf_t
bf16_weight(vf_t x)
{
    return bf16_power(x, 3);
}


/* maxima over the lanes of four vectors */

simd_inline __m128
bf16_max4(const vf_t *t)
{
    vf_t  a, b;

    a = vf_max(_mm512_unpacklo_ps(t[0], t[1]), _mm512_unpackhi_ps(t[0], t[1]));
    b = vf_max(_mm512_unpacklo_ps(t[2], t[3]), _mm512_unpackhi_ps(t[2], t[3]));

    a = vf_max(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
    a = vf_max(a, _mm512_shuffle_f32x4(a, a, 0x4e));
    a = vf_max(a, _mm512_shuffle_f32x4(a, a, 0xb1));

    return _mm512_castps512_ps128(a);
}


/* rounds a query, and pads it with zeros */

simd_inline void
bf16_query(const llm_cpu_kv_layer_t *kv, const float *x, uint16_t *q)
{
    vf_t      v;
    uint32_t  i, n, m;

    n = kv->head_dim_k;

    for (i = 0; i < kv->dk_pad; i += VL) {
        m = (uint32_t) llm_min(kv->dk_pad - i, (size_t) VL);
        v = i < n ? vf_load_n(x + i, llm_min(n - i, VL)) : vf_zero();
        _mm256_mask_storeu_epi16(q + i, (__mmask16) ((1u << m) - 1),
                                 (__m256i) _mm512_cvtneps_pbh(v));
    }
}


/* writes k and v of the token in slot `slot` of a page of one head; only the
   token's own numbers, because another thread may write its neighbour's */

static void
bf16_keep(const llm_cpu_kv_layer_t *kv, uint16_t *page, uint32_t slot,
    const float *k, const float *v)
{
    __m256i    x;
    uint32_t   i, j, n, pair[8];
    uint16_t  *to;

    for (i = 0; i < kv->head_dim_k; i += VL) {
        n = llm_min(kv->head_dim_k - i, VL);
        x = (__m256i) _mm512_cvtneps_pbh(vf_load_n(k + i, n));
        _mm256_storeu_si256((__m256i *) pair, x);

        for (j = 0; j < (n + 1) / 2; j++) {
            memcpy(page + (i + j * 2) * LLM_KV_PAGE + slot * 2, &pair[j], 4);
        }
    }

    to = page + kv->k_size + slot / 2 * kv->dv_pad * 2;

    for (i = 0; i < kv->head_dim_v; i += VL) {
        x = (__m256i) _mm512_cvtneps_pbh(vf_load_n(v + i,
                                         llm_min(kv->head_dim_v - i, VL)));
        _mm512_mask_storeu_epi16(to + i * 2,
                                 slot % 2 ? 0xaaaaaaaa : 0x55555555,
                                 _mm512_slli_epi32(_mm512_cvtepu16_epi32(x),
                                                   slot % 2 * 16));
    }
}
