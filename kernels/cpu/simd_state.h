/*
 * Kernels of recurrent layers: a head's matrix over rows of a sequence, and one
 * row of a short convolution; written once for all instruction sets, included
 * after simd512.h or simd256.h, and simd_ops.h.
 *
 * Invariant: each column of a head is computed independently of the others,
 * row by row of the sequence, in an order that depends only on the head's size.
 * So columns can be processed in tiles, which stay in the cache for all rows of
 * the sequence.  A tile is contiguous: a head is
 * [tiles][n_rows][columns of the tile].
 */

/* vectors of columns of a tile */
#define SIMD_STATE_TILE  4


/* loads n vectors of a row of the matrix, m lanes each */

simd_inline void
simd_state_load(const float *s, const uint32_t n, uint32_t m, vf_t *v)
{
    uint32_t  i;

    simd_unroll
    for (i = 0; i < n; i++) {
        v[i] = simd_load(s + i * VL, m);
    }
}


/* sum = s^T k of a tile; even and odd rows are added up separately */

simd_inline void
simd_state_times(const llm_cpu_state_t *p, const float *s, const float *k,
    const uint32_t n, uint32_t m, vf_t *sum)
{
    size_t    step = (n - 1) * VL + m;
    vf_t      v[SIMD_STATE_TILE], odd[SIMD_STATE_TILE], f;
    uint32_t  i, j;

    simd_unroll
    for (j = 0; j < n; j++) {
        sum[j] = odd[j] = vf_zero();
    }

    for (i = 0; i + 2 <= p->n_rows; i += 2) {
        f = vf_set1(k[i]);
        simd_state_load(s + i * step, n, m, v);

        simd_unroll
        for (j = 0; j < n; j++) {
            sum[j] = vf_fma(v[j], f, sum[j]);
        }

        f = vf_set1(k[i + 1]);
        simd_state_load(s + (i + 1) * step, n, m, v);

        simd_unroll
        for (j = 0; j < n; j++) {
            odd[j] = vf_fma(v[j], f, odd[j]);
        }
    }

    if (i < p->n_rows) {
        f = vf_set1(k[i]);
        simd_state_load(s + i * step, n, m, v);

        simd_unroll
        for (j = 0; j < n; j++) {
            sum[j] = vf_fma(v[j], f, sum[j]);
        }
    }

    simd_unroll
    for (j = 0; j < n; j++) {
        sum[j] = vf_add(sum[j], odd[j]);
    }
}


/* s = g s + k d^T, then sum = s^T q with the new s */

simd_inline void
simd_state_add(const llm_cpu_state_t *p, float *s, float g, const float *q,
    const float *k, const vf_t *d, const uint32_t n, uint32_t m, vf_t *sum)
{
    vf_t      v, kv, qv, gv;
    size_t    step = (n - 1) * VL + m;
    uint32_t  i, j;

    gv = vf_set1(g);

    simd_unroll
    for (j = 0; j < n; j++) {
        sum[j] = vf_zero();
    }

    for (i = 0; i < p->n_rows; i++, s += step) {
        kv = vf_set1(k[i]);
        qv = vf_set1(q[i]);

        simd_unroll
        for (j = 0; j < n; j++) {
            v = vf_fma(kv, d[j], vf_mul(gv, simd_load(s + j * VL, m)));
            simd_store(s + j * VL, v, m);
            sum[j] = vf_fma(qv, v, sum[j]);
        }
    }
}


/* prefetches row t + 1: rows of x are in different pages, across which the CPU
   does not prefetch by itself */

simd_inline void
simd_state_prefetch(const llm_cpu_state_t *p, uint32_t t, uint32_t c)
{
    uint32_t      i;
    const float  *q, *k;

    q = p->q + (t + 1) * p->x_stride;
    k = p->k + (t + 1) * p->x_stride;

    for (i = 0; i < p->n_rows; i += 16) {
        __builtin_prefetch(q + i);
        __builtin_prefetch(k + i);
    }

    for (i = 0; i < SIMD_STATE_TILE * VL; i += 16) {
        __builtin_prefetch(p->v + (t + 1) * p->x_stride + c + i);
    }
}


/* row t of the sequence, for the tile that begins at column c */

simd_inline void
simd_state_row(const llm_cpu_state_t *p, uint32_t t, uint32_t c,
    const uint32_t n, uint32_t m)
{
    vf_t          v, d[SIMD_STATE_TILE], sum[SIMD_STATE_TILE], f, weight;
    float        *s, *y;
    uint32_t      j;
    const float  *q, *k, *x;

    s = p->s + (size_t) c * p->n_rows;
    q = p->q + t * p->x_stride;
    k = p->k + t * p->x_stride;
    x = p->v + t * p->x_stride + c;
    y = p->y + t * p->y_stride + c;
    weight = vf_set1(p->weight[t] * p->k_scale[t]);

    if (p->is_delta) {
        f = vf_set1(p->g[t] * p->k_scale[t]);
        simd_state_times(p, s, k, n, m, sum);

        simd_unroll
        for (j = 0; j < n; j++) {
            v = vf_fnma(f, sum[j], simd_load(x + j * VL, m));
            d[j] = vf_mul(weight, v);
        }

    } else {
        simd_unroll
        for (j = 0; j < n; j++) {
            d[j] = vf_mul(weight, simd_load(x + j * VL, m));
        }
    }

    simd_state_add(p, s, p->g[t], q, k, d, n, m, sum);
    f = vf_set1(p->q_scale[t]);

    simd_unroll
    for (j = 0; j < n; j++) {
        v = vf_mul(f, sum[j]);

        if (!p->is_delta) {
            v = vf_fma(vf_set1(p->skip), simd_load(x + j * VL, m), v);
        }

        simd_store(y + j * VL, v, m);
    }
}


/* 1 / sqrt(|x|^2 + 1e-6) */

simd_inline float
simd_state_scale(const float *x, uint32_t n)
{
    return simd_rms(x, n, 1e-6f / (float) n) / sqrtf((float) n);
}


static void
simd_state(llm_cpu_state_t *p)
{
    uint32_t  t, c;

    for (t = 0; t < p->n; t++) {
        p->q_scale[t] = 1;
        p->k_scale[t] = 1;

        if (p->is_delta) {
            p->q_scale[t] = simd_state_scale(p->q + t * p->x_stride,
                                             p->n_rows)
                            / sqrtf((float) p->n_rows);
            p->k_scale[t] = simd_state_scale(p->k + t * p->x_stride,
                                             p->n_rows);
        }
    }

    for (c = 0; c + SIMD_STATE_TILE * VL <= p->n_cols;
         c += SIMD_STATE_TILE * VL)
    {
        for (t = 0; t < p->n; t++) {
            simd_state_prefetch(p, t, c);
            simd_state_row(p, t, c, SIMD_STATE_TILE, VL);
        }
    }

    for ( /* void */ ; c < p->n_cols; c += VL) {
        for (t = 0; t < p->n; t++) {
            simd_state_row(p, t, c, 1, llm_min(p->n_cols - c, VL));
        }
    }
}


static void
simd_conv(const llm_cpu_conv_t *c, float *y)
{
    vf_t          v;
    uint32_t      i, k, m;
    const float  *w;

    for (i = 0; i < c->n; i += VL) {
        m = llm_min(c->n - i, VL);
        v = c->bias ? simd_load(c->bias + i, m) : vf_zero();

        for (k = 0; k < c->width; k++) {
            w = c->w + k * c->stride + i;
            v = vf_fma(simd_load(w, m), simd_load(c->x[k] + i, m), v);
        }

        simd_store(y + i, c->silu ? vf_sigmoid_act(LLM_GLU_SILU, v) : v, m);
    }
}
