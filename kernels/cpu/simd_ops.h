/*
 * Kernels on single rows: norms, activation functions, rotation, conversion to
 * binary16; written once for all instruction sets, included after simd_math.h.
 *
 * Invariant: the order of a sum depends only on the row's length.
 */

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


/* sum of (x - mean)^2; of x - mean if plain */

simd_inline float
simd_moment(const float *x, uint32_t n, float mean, int plain)
{
    vf_t      v, sum, m;
    uint32_t  i, k;

    sum = vf_zero();
    m = vf_set1(mean);

    for (i = 0; i < n; i += VL) {
        k = llm_min(n - i, VL);
        v = vf_sub(simd_load(x + i, k), m);
        v = plain ? v : vf_mul(v, v);
        sum = vf_add(sum, vf_first(v, vf_zero(), k));
    }

    return vf_hsum(sum);
}


/* normalises n columns together; w and bias are those of the first column */

static void
simd_norm_group(const llm_norm_t *norm, const float *x, const float *w,
    const float *bias, float *y, uint32_t n)
{
    vf_t      f, m, v;
    float     mean;
    uint32_t  i, k;

    mean = 0;

    if (norm->kind == LLM_NORM_LAYER) {
        mean = simd_moment(x, n, 0, 1) / (float) n;
        f = vf_set1(1.0f / sqrtf(simd_moment(x, n, mean, 0) / (float) n
                                 + norm->eps));
    } else {
        f = vf_set1(simd_rms(x, n, norm->eps));
    }

    m = vf_set1(mean);

    for (i = 0; i < n; i += VL) {
        k = llm_min(n - i, VL);
        v = vf_mul(vf_sub(simd_load(x + i, k), m), f);

        if (w) {
            v = vf_mul(v, simd_load(w + i, k));
        }

        if (bias) {
            v = vf_add(v, simd_load(bias + i, k));
        }

        if (norm->add) {
            v = vf_add(v, simd_load(y + i, k));
        }

        simd_store(y + i, v, k);
    }
}


static void
simd_norm(const llm_norm_t *norm, const float *x, float *y, uint32_t n)
{
    uint32_t      i, group;
    const float  *w, *bias;

    group = norm->group ? norm->group : n;

    for (i = 0; i < n; i += group) {
        w = norm->w ? norm->w->data : NULL;
        bias = norm->bias ? norm->bias->data + i : NULL;

        if (w && norm->w->n == n) {
            w += i;
        }

        simd_norm_group(norm, x + i, w, bias, y + i, group);
    }
}


/*
 * silu(x) = x / (1 + e^-x); GELU's tanh form is x / (1 + e^-2v) with
 * v = sqrt(2 / pi) (x + 0.044715 x^3).  min and max have x as the second
 * operand, so that NaN is not lost.
 */

simd_inline vf_t
vf_sigmoid_act(llm_glu_t act, vf_t x)
{
    vf_t  v;

    switch (act) {

    case LLM_GLU_SILU:
        v = vf_sub(vf_zero(), x);
        break;

    case LLM_GLU_CLAMPED:
        x = vf_min(vf_set1(7.0f), x);
        v = vf_mul(x, vf_set1(-1.702f));
        break;

    case LLM_GLU_QUICK:
        v = vf_mul(x, vf_set1(-1.702f));
        break;

    default:  /* LLM_GLU_GELU */
        v = vf_mul(x, vf_fma(vf_mul(x, x), vf_set1(-2 * 0.0356774081f),
                             vf_set1(-2 * 0.7978845608f)));
    }

    return vf_div(x, vf_add(vf_set1(1.0f), vf_exp(v)));
}


/* the factor on the activation, from a value u of up */

simd_inline vf_t
vf_up(const llm_glu_t kind, vf_t u)
{
    if (kind == LLM_GLU_CLAMPED) {
        u = vf_max(vf_set1(-7.0f), vf_min(vf_set1(7.0f), u));
        u = vf_add(u, vf_set1(1.0f));
    }

    return u;
}


/*
 * x / 2 (1 + erf(x / sqrt(2))) by erfc(z) = e^(-z^2) t p(t) with
 * t = 1 / (1 + 0.3275911 z), z > 0: Abramowitz and Stegun, 7.1.26, within
 * 1.5e-7
 */

simd_inline vf_t
vf_gelu_erf(vf_t x)
{
    vf_t  z, t, p, positive;

    z = vf_mul(vf_abs(x), vf_set1(0.70710678f));
    t = vf_div(vf_set1(1.0f), vf_fma(z, vf_set1(0.3275911f),
                                     vf_set1(1.0f)));
    p = vf_set1(1.061405429f);
    p = vf_fma(p, t, vf_set1(-1.453152027f));
    p = vf_fma(p, t, vf_set1(1.421413741f));
    p = vf_fma(p, t, vf_set1(-0.284496736f));
    p = vf_fma(p, t, vf_set1(0.254829592f));
    p = vf_mul(vf_mul(p, t), vf_exp(vf_sub(vf_zero(), vf_mul(z, z))));

    /* x > 0: x (1 - p / 2), else x p / 2 */
    positive = vf_keep_ge(vf_sub(vf_set1(1.0f), p), x, vf_zero());

    return vf_mul(x, vf_fma(vf_set1(0.5f), p, positive));
}


simd_inline vf_t
vf_xielu(const float *c, vf_t x)
{
    vf_t  a, b, e, low;

    a = vf_max(vf_zero(), x);
    low = vf_min(vf_zero(), x);
    e = vf_exp(vf_min(vf_set1(c[3]), low));
    b = vf_mul(vf_sub(vf_sub(e, vf_set1(1.0f)), low), vf_set1(c[1]));
    b = vf_sub(b, vf_keep_ge(b, x, vf_zero()));

    return vf_fma(x, vf_set1(c[2]),
                  vf_fma(vf_mul(a, a), vf_set1(c[0]), b));
}


simd_inline vf_t
vf_act(const llm_act_fn_t *fn, const llm_glu_t kind, vf_t x)
{
    vf_t  a;

    switch (kind) {

    case LLM_GLU_GELU_ERF:
        return vf_gelu_erf(x);

    case LLM_GLU_RELU2:
        a = vf_max(vf_zero(), x);
        return vf_mul(a, a);

    case LLM_GLU_XIELU:
        return vf_xielu(fn->xielu, x);

    case LLM_GLU_SIGMOID:
        return vf_div(vf_set1(1.0f), vf_add(vf_set1(1.0f),
                                            vf_exp(vf_sub(vf_zero(), x))));

    case LLM_GLU_LINEAR:
        return x;

    case LLM_GLU_BOUND:
        return vf_max(vf_set1(fn->least), vf_min(vf_set1(fn->bound), x));

    default:
        return vf_sigmoid_act(kind, x);
    }
}


/* expanded for each kind */

simd_inline void
simd_glu_kind(const llm_act_fn_t *fn, const llm_glu_t kind,
    const float *gate, const float *up, float *y, size_t n)
{
    vf_t      v;
    size_t    i;
    uint32_t  m;

    for (i = 0; i < n; i += VL) {
        m = (uint32_t) llm_min(n - i, (size_t) VL);
        v = vf_act(fn, kind, simd_load(gate + i, m));

        if (up) {
            v = vf_mul(v, vf_up(kind, simd_load(up + i, m)));
        }

        simd_store(y + i, v, m);
    }
}


static void
simd_glu(const llm_act_fn_t *fn, const float *gate, const float *up,
    float *y, size_t n)
{
    switch (fn->kind) {

    case LLM_GLU_SILU:
        simd_glu_kind(fn, LLM_GLU_SILU, gate, up, y, n);
        break;

    case LLM_GLU_GELU:
        simd_glu_kind(fn, LLM_GLU_GELU, gate, up, y, n);
        break;

    case LLM_GLU_GELU_ERF:
        simd_glu_kind(fn, LLM_GLU_GELU_ERF, gate, up, y, n);
        break;

    case LLM_GLU_RELU2:
        simd_glu_kind(fn, LLM_GLU_RELU2, gate, up, y, n);
        break;

    case LLM_GLU_XIELU:
        simd_glu_kind(fn, LLM_GLU_XIELU, gate, up, y, n);
        break;

    case LLM_GLU_CLAMPED:
        simd_glu_kind(fn, LLM_GLU_CLAMPED, gate, up, y, n);
        break;

    case LLM_GLU_SIGMOID:
        simd_glu_kind(fn, LLM_GLU_SIGMOID, gate, up, y, n);
        break;

    case LLM_GLU_LINEAR:
        simd_glu_kind(fn, LLM_GLU_LINEAR, gate, up, y, n);
        break;

    case LLM_GLU_BOUND:
        simd_glu_kind(fn, LLM_GLU_BOUND, gate, up, y, n);
        break;

    case LLM_GLU_QUICK:
        simd_glu_kind(fn, LLM_GLU_QUICK, gate, up, y, n);
        break;
    }
}


static void
simd_weighted_sum(float *y, const float *x, const uint32_t *at,
    const float *w, uint32_t n_at, uint32_t n, int add)
{
    vf_t      sum;
    uint32_t  i, k, m;

    for (i = 0; i < n; i += VL) {
        m = llm_min(n - i, VL);
        sum = add ? simd_load(y + i, m) : vf_zero();

        for (k = 0; k < n_at; k++) {
            sum = vf_fma(vf_set1(w ? w[k] : 1.0f),
                         simd_load(x + (size_t) at[k] * n + i, m), sum);
        }

        simd_store(y + i, sum, m);
    }
}


/* rotates m pairs (x[i], x[i + half]); both are loaded before any is stored */

simd_inline void
simd_rope_halves(float *x, const float *cos, const float *sin, uint32_t half,
    uint32_t m)
{
    vf_t  a, b, ya, yb;

    a = simd_load(x, m);
    b = simd_load(x + half, m);

    ya = vf_fma(a, simd_load(cos, m), vf_mul(b, simd_load(sin, m)));
    yb = vf_fma(b, simd_load(cos + half, m),
                vf_mul(a, simd_load(sin + half, m)));

    simd_store(x, ya, m);
    simd_store(x + half, yb, m);
}


simd_inline void
simd_rope_pairs(float *x, const float *cos, const float *sin, uint32_t m)
{
    vf_t  a;

    a = simd_load(x, m);
    a = vf_fma(a, simd_load(cos, m),
               vf_mul(vf_swap_pairs(a), simd_load(sin, m)));
    simd_store(x, a, m);
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
            simd_store(x + i, vf_mul(vf_mul(simd_load(x + i, m), f),
                                     simd_load(w + i, m)), m);
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


/* with a stride of 1, whole vectors are written, with zeros after element n */

static void
simd_store_f16(uint16_t *dst, size_t stride, const float *src, uint32_t n)
{
    uint32_t  i, j, m;
    uint16_t  tmp[VL];

    for (i = 0; i < n; i += VL) {
        m = llm_min(n - i, VL);

        if (stride == 1) {
            vf_store_f16(dst + i, simd_load(src + i, m));
            continue;
        }

        vf_store_f16(tmp, simd_load(src + i, m));

        for (j = 0; j < m; j++) {
            dst[(i + j) * stride] = tmp[j];
        }
    }
}
