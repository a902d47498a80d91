/*
 * The exponential and what is made of it, for kernels of all instruction sets;
 * included after simd512.h or simd256.h.
 */

#include <math.h>


/*
 * Loads and stores of a whole vector (m = VL) or of its first m lanes, for
 * loops over a row: only the last vector of a row needs a mask.
 */

simd_inline vf_t
simd_load(const float *p, uint32_t m)
{
    return m == VL ? vf_load(p) : vf_load_n(p, m);
}


simd_inline void
simd_store(float *p, vf_t v, uint32_t m)
{
    if (m == VL) {
        vf_store(p, v);

    } else {
        vf_store_n(p, v, m);
    }
}


/*
 * e^x within 1.2 units in the last place; 0 if it is below the smallest normal
 * number, at most e^88.  x = n ln 2 + r, and e^r = 1 + r + r^2 p(r), where p is
 * the polynomial of degree 4 with the smallest relative error.
 */

simd_inline vf_t
vf_exp(vf_t v)
{
    vf_t  x, n, r, p;

    /* v is the second operand, which min and max return if one is NaN: NaN
       must not be lost */
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
vf_tanh(vf_t x)
{
    vf_t  e;

    e = vf_exp(vf_add(x, x));

    return vf_sub(vf_set1(1.0f),
                  vf_div(vf_set1(2.0f), vf_add(e, vf_set1(1.0f))));
}


simd_inline void
simd_softcap(float cap, float *x, size_t n)
{
    vf_t      f, c;
    size_t    i;
    uint32_t  m;

    f = vf_set1(1 / cap);
    c = vf_set1(cap);

    for (i = 0; i < n; i += VL) {
        m = (uint32_t) llm_min(n - i, (size_t) VL);
        simd_store(x + i, vf_mul(vf_tanh(vf_mul(simd_load(x + i, m), f)), c),
                   m);
    }
}
