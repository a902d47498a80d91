/*
 * Kernels on single rows: norm, activation functions, rotation, binary16;
 * written once, included after simd512.h or simd256.h.
 *
 * Invariant: the order of a sum depends on the row's length alone.
 */

#include <math.h>


/*
 * e^x within 1.2 units in the last place; 0 below the least normal number,
 * at most e^88.  x = n ln 2 + r, and e^r = 1 + r + r^2 p(r), where p is the
 * polynomial of degree 4 with the least relative error.
 */

simd_inline vf_t
vf_exp(vf_t v)
{
    vf_t  x, n, r, p;

    /* the operand on the right wins over NaN, which must not be lost */
    x = vf_min(vf_set1(88.0f), vf_max(vf_set1(-87.33f), v));

    n = vf_round(vf_mul(x, vf_set1(0x1.715476p+0f)));
    r = vf_fnma(n, vf_set1(0x1.62e400p-1f), x);
    r = vf_fnma(n, vf_set1(0x1.7f7d1cp-20f), r);

    p = vf_set1(0x1.6a23d0p-10f);
    p = vf_fma(p, r, vf_set1(0x1.123a20p-7f));
    p = vf_fma(p, r, vf_set1(0x1.5558f2p-5f));
    p = vf_fma(p, r, vf_set1(0x1.555492p-3f));
    p = vf_fma(p, r, vf_set1(0x1.fffffcp-2f));
    p = vf_fma(p, vf_mul(r, r), r);
    p = vf_add(p, vf_set1(1.0f));

    return vf_keep_ge(vf_scale2(p, n), v, vf_set1(-87.33f));
}


simd_inline vf_t
vf_square_sum_step(vf_t x, vf_t sum)
{
    return vf_fma(x, x, sum);
}


/* 1 / sqrt(mean(x^2) + eps) */

simd_inline float
simd_rms(const float *x, uint32_t n, float eps)
{
    vf_t      s0, s1, s2, s3;
    uint32_t  i;

    s0 = s1 = s2 = s3 = vf_zero();

    for (i = 0; i + 4 * VL <= n; i += 4 * VL) {
        s0 = vf_square_sum_step(vf_load(x + i), s0);
        s1 = vf_square_sum_step(vf_load(x + i + VL), s1);
        s2 = vf_square_sum_step(vf_load(x + i + 2 * VL), s2);
        s3 = vf_square_sum_step(vf_load(x + i + 3 * VL), s3);
    }

    for ( /* void */ ; i + VL <= n; i += VL) {
        s0 = vf_square_sum_step(vf_load(x + i), s0);
    }

    if (i < n) {
        s1 = vf_square_sum_step(vf_load_n(x + i, n - i), s1);
    }

    s0 = vf_add(vf_add(s0, s1), vf_add(s2, s3));

    return 1.0f / sqrtf(vf_hsum(s0) / (float) n + eps);
}


static void
simd_norm(const float *x, const float *w, float eps, float *y, uint32_t n)
{
    vf_t      f;
    uint32_t  i;

    f = vf_set1(simd_rms(x, n, eps));

    for (i = 0; i + VL <= n; i += VL) {
        vf_store(y + i, vf_mul(vf_mul(vf_load(x + i), f), vf_load(w + i)));
    }

    if (i < n) {
        vf_store_n(y + i, vf_mul(vf_mul(vf_load_n(x + i, n - i), f),
                                 vf_load_n(w + i, n - i)), n - i);
    }
}


/*
 * silu(x) = x / (1 + e^-x); GELU's tanh form is x / (1 + e^-2u) with
 * u = sqrt(2 / pi) (x + 0.044715 x^3)
 */

simd_inline vf_t
vf_act(llm_glu_t act, vf_t x)
{
    vf_t  u;

    if (act == LLM_GLU_SILU) {
        u = vf_sub(vf_zero(), x);

    } else {
        u = vf_mul(x, vf_fma(vf_mul(x, x), vf_set1(-2 * 0.0356774081f),
                             vf_set1(-2 * 0.7978845608f)));
    }

    return vf_div(x, vf_add(vf_set1(1.0f), vf_exp(u)));
}


static void
simd_glu(llm_glu_t act, const float *gate, const float *up, float *y,
    size_t n)
{
    size_t    i;
    uint32_t  m;

    for (i = 0; i + VL <= n; i += VL) {
        vf_store(y + i, vf_mul(vf_act(act, vf_load(gate + i)),
                               vf_load(up + i)));
    }

    if (i < n) {
        m = (uint32_t) (n - i);
        vf_store_n(y + i, vf_mul(vf_act(act, vf_load_n(gate + i, m)),
                                 vf_load_n(up + i, m)), m);
    }
}


/* m lanes of pairs (i, i + half): both are loaded before either is stored */

simd_inline void
simd_rope_halves(float *x, const float *cos, const float *sin, uint32_t half,
    uint32_t m)
{
    vf_t  a, b, ya, yb;

    a = vf_load_n(x, m);
    b = vf_load_n(x + half, m);

    ya = vf_fma(a, vf_load_n(cos, m), vf_mul(b, vf_load_n(sin, m)));
    yb = vf_fma(b, vf_load_n(cos + half, m),
                vf_mul(a, vf_load_n(sin + half, m)));

    vf_store_n(x, ya, m);
    vf_store_n(x + half, yb, m);
}


simd_inline void
simd_rope_pairs(float *x, const float *cos, const float *sin, uint32_t m)
{
    vf_t  a;

    a = vf_load_n(x, m);
    a = vf_fma(a, vf_load_n(cos, m),
               vf_mul(vf_swap_pairs(a), vf_load_n(sin, m)));
    vf_store_n(x, a, m);
}


static void
simd_rope(float *x, const float *w, float eps, uint32_t n,
    const llm_cpu_rot_t *rot)
{
    vf_t      f;
    uint32_t  i, m, half;

    if (w) {
        f = vf_set1(simd_rms(x, n, eps));

        for (i = 0; i < n; i += VL) {
            m = llm_min(n - i, VL);
            vf_store_n(x + i, vf_mul(vf_mul(vf_load_n(x + i, m), f),
                                     vf_load_n(w + i, m)), m);
        }
    }

    if (rot->kind == LLM_ROPE_NORM) {
        for (i = 0; i < rot->n_dims; i += VL) {
            simd_rope_pairs(x + i, rot->cos + i, rot->sin + i,
                            llm_min(rot->n_dims - i, VL));
        }

        return;
    }

    half = rot->n_dims / 2;

    for (i = 0; i < half; i += VL) {
        simd_rope_halves(x + i, rot->cos + i, rot->sin + i, half,
                         llm_min(half - i, VL));
    }
}


/* beside each other: whole vectors, zeros behind n; else one by one */

static void
simd_store_f16(uint16_t *dst, size_t stride, const float *src, uint32_t n)
{
    uint32_t  i, j, m;
    uint16_t  tmp[VL];

    for (i = 0; i < n; i += VL) {
        m = llm_min(n - i, VL);

        if (stride == 1) {
            vf_store_f16(dst + i, vf_load_n(src + i, m));
            continue;
        }

        vf_store_f16(tmp, vf_load_n(src + i, m));

        for (j = 0; j < m; j++) {
            dst[(i + j) * stride] = tmp[j];
        }
    }
}
