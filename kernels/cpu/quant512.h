/*
 * Rounding of activations, and products of quantised weights by VPDPBUSD
 * (AVX-512 VNNI); included after simd_gemm.h.  Codes are the unsigned side,
 * activations the signed one; what a code's zero adds to a dot product is
 * taken off by starting from zero[] of the stage.
 */

#define QUANT_FEW_MM   8
#define QUANT_MANY_MM  6


static void
quant_stage_q8(const llm_cpu_stage_t *s, uint32_t row, int what)
{
    int            sum0, sum1;
    float          max, d, id;
    int8_t        *q;
    size_t         i;
    __m512         x0, x1;
    __m512i        q0, q1;
    uint32_t       b;
    const float   *x;

    x = s->x + (size_t) row * s->n_in;
    q = s->q + row * s->stride;

    for (b = 0; b < s->n_blocks; b++, x += LLM_BLOCK, q += LLM_BLOCK) {

        x0 = _mm512_loadu_ps(x);
        x1 = _mm512_loadu_ps(x + 16);

        max = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(x0),
                                                 _mm512_abs_ps(x1)));
        d = max / 127.0f;
        id = max > 0 ? 127.0f / max : 0;

        q0 = _mm512_cvtps_epi32(_mm512_mul_ps(x0, _mm512_set1_ps(id)));
        q1 = _mm512_cvtps_epi32(_mm512_mul_ps(x1, _mm512_set1_ps(id)));

        _mm_storeu_si128((__m128i *) q, _mm512_cvtsepi32_epi8(q0));
        _mm_storeu_si128((__m128i *) (q + 16), _mm512_cvtsepi32_epi8(q1));

        sum0 = _mm512_reduce_add_epi32(q0);
        sum1 = _mm512_reduce_add_epi32(q1);

        i = (size_t) row * s->n_blocks + b;

        s->d[i] = d;
        s->sum[i] = d * (float) (sum0 + sum1);

        if (what & LLM_STAGE_ZERO << LLM_ZERO_8) {
            s->zero[LLM_ZERO_8][i] = -8 * (sum0 + sum1);
        }

        if (what & LLM_STAGE_ZERO << LLM_ZERO_16) {
            s->zero[LLM_ZERO_16][i] = -16 * (sum0 + sum1);
        }

        if (what & LLM_STAGE_ZERO << LLM_ZERO_32) {
            s->zero[LLM_ZERO_32][2 * i] = -32 * sum0;
            s->zero[LLM_ZERO_32][2 * i + 1] = -32 * sum1;
        }

        if (what & LLM_STAGE_ZERO << LLM_ZERO_128) {
            s->zero[LLM_ZERO_128][i] = -128 * (sum0 + sum1);
        }
    }
}


/* four elements of x in every lane */

simd_inline __m512i
quant_x(const int8_t *q)
{
    int32_t  v;

    memcpy(&v, q, 4);

    return _mm512_set1_epi32(v);
}


/* mm rows by one panel, whose codes are unpacked block by block */

simd_inline void
quant_few_tile(const llm_cpu_gemm_t *g, uint32_t type, uint32_t panel,
    uint32_t row, const int mm)
{
    int                     i, m, zero;
    size_t                  at, nb;
    __m512                  acc[QUANT_FEW_MM], d[2], min, dot;
    __m512i                 w[8], a0, a1;
    uint32_t                b;
    const int8_t           *q[QUANT_FEW_MM];
    const uint8_t          *codes, *scales;
    const llm_cpu_stage_t  *x;

    x = g->x;
    nb = x->n_blocks;
    zero = quant_zero(type);
    codes = g->w->data + panel * g->w->panel_size;
    scales = codes + g->w->codes_size;

    for (m = 0; m < mm; m++) {
        q[m] = x->q + (row + m) * x->stride;
        acc[m] = _mm512_setzero_ps();
    }

    for (b = 0; b < nb; b++) {

        quant_codes(type, codes + b * quant_code_size(type), w);
        quant_scales(type, scales, b, d, &min);

        for (m = 0; m < mm; m++) {
            at = (row + m) * nb + b;
            a1 = _mm512_setzero_si512();

            if (type == LLM_TYPE_Q6_K) {
                a0 = _mm512_set1_epi32(x->zero[LLM_ZERO_32][2 * at]);
                a1 = _mm512_set1_epi32(x->zero[LLM_ZERO_32][2 * at + 1]);

            } else if (zero >= 0) {
                a0 = _mm512_set1_epi32(x->zero[zero][at]);

            } else {
                a0 = _mm512_setzero_si512();
            }

            /* two chains, which are the halves of the block */
            for (i = 0; i < 4; i++) {
                a0 = _mm512_dpbusd_epi32(a0, w[i],
                                    quant_x(q[m] + b * LLM_BLOCK + i * 4));
                a1 = _mm512_dpbusd_epi32(a1, w[i + 4],
                                quant_x(q[m] + b * LLM_BLOCK + 16 + i * 4));
            }

            if (type == LLM_TYPE_Q6_K) {
                dot = _mm512_cvtepi32_ps(a0);
                acc[m] = _mm512_fmadd_ps(dot,
                             _mm512_mul_ps(d[0], _mm512_set1_ps(x->d[at])),
                             acc[m]);
                dot = _mm512_cvtepi32_ps(a1);
                acc[m] = _mm512_fmadd_ps(dot,
                             _mm512_mul_ps(d[1], _mm512_set1_ps(x->d[at])),
                             acc[m]);
                continue;
            }

            dot = _mm512_cvtepi32_ps(_mm512_add_epi32(a0, a1));
            acc[m] = _mm512_fmadd_ps(dot,
                         _mm512_mul_ps(d[0], _mm512_set1_ps(x->d[at])),
                         acc[m]);

            if (quant_has_min(type)) {
                acc[m] = _mm512_fmadd_ps(min, _mm512_set1_ps(x->sum[at]),
                                         acc[m]);
            }
        }
    }

    for (m = 0; m < mm; m++) {
        gemm_store(g, row + m, panel * LLM_PANEL, acc[m]);
    }
}


simd_inline void
quant_few(const llm_cpu_gemm_t *g, uint32_t type)
{
    uint32_t  p, row, end;

    end = g->row + g->n_rows;

    for (p = g->panel; p < g->panel + g->n_panels; p++) {

        row = g->row;

        for ( /* void */ ; row + 8 <= end; row += 8) {
            quant_few_tile(g, type, p, row, 8);
        }

        if (row + 4 <= end) {
            quant_few_tile(g, type, p, row, 4);
            row += 4;
        }

        if (row + 2 <= end) {
            quant_few_tile(g, type, p, row, 2);
            row += 2;
        }

        if (row < end) {
            quant_few_tile(g, type, p, row, 1);
        }
    }
}


/*
 * A panel with its codes as bytes and its scales as float32: what products
 * of many rows read.  Q8_0's codes are used where they are.
 */

typedef struct {
    const uint8_t       *codes;         /* [n_blocks][512] */
    const float         *d;             /* [n_blocks][16], or [2][16] */
    const float         *m;             /* [n_blocks][16] */
} quant_panel_t;


simd_inline void
quant_unpack(const llm_weight_t *w, uint32_t type, uint32_t panel,
    uint8_t *scratch, quant_panel_t *p)
{
    float          *fd, *fm;
    __m512          d[2], m;
    __m512i         v[8];
    uint32_t        b, i, n;
    const uint8_t  *codes, *scales;

    n = w->n_in / LLM_BLOCK;
    codes = w->data + panel * w->panel_size;
    scales = codes + w->codes_size;

    fd = (float *) (void *) (scratch + n * 512);
    fm = fd + n * 32;

    p->codes = type == LLM_TYPE_Q8_0 ? codes : scratch;
    p->d = fd;
    p->m = fm;

    for (b = 0; b < n; b++) {

        quant_scales(type, scales, b, d, &m);

        if (type == LLM_TYPE_Q6_K) {
            _mm512_store_ps(fd + b * 32, d[0]);
            _mm512_store_ps(fd + b * 32 + 16, d[1]);

        } else {
            _mm512_store_ps(fd + b * 16, d[0]);
        }

        if (quant_has_min(type)) {
            _mm512_store_ps(fm + b * 16, m);
        }

        if (type != LLM_TYPE_Q8_0) {
            quant_codes(type, codes + b * quant_code_size(type), v);

            for (i = 0; i < 8; i++) {
                _mm512_store_si512(scratch + b * 512 + i * 64, v[i]);
            }
        }
    }
}


/* mm rows by two panels */

simd_inline void
quant_many_tile(const llm_cpu_gemm_t *g, uint32_t type,
    const quant_panel_t *p, uint32_t panel, uint32_t row, const int mm)
{
    int                     m, zero;
    size_t                  i, at, nb;
    __m512                  acc[QUANT_MANY_MM][2], d0, d1, f;
    __m512i                 a[QUANT_MANY_MM][2], w0, w1, v;
    uint32_t                b, half;
    const int8_t           *q[QUANT_MANY_MM];
    const llm_cpu_stage_t  *x;

    const size_t            halves = type == LLM_TYPE_Q6_K ? 2 : 1;
    const size_t            groups = 8 / halves;

    x = g->x;
    nb = x->n_blocks;
    zero = quant_zero(type);

    for (m = 0; m < mm; m++) {
        q[m] = x->q + (row + m) * x->stride;
        acc[m][0] = _mm512_setzero_ps();
        acc[m][1] = _mm512_setzero_ps();
    }

    for (b = 0; b < nb; b++) {
        for (half = 0; half < halves; half++) {

            for (m = 0; m < mm; m++) {
                at = ((row + m) * nb + b) * halves + half;
                a[m][0] = zero >= 0 ? _mm512_set1_epi32(x->zero[zero][at])
                                    : _mm512_setzero_si512();
                a[m][1] = a[m][0];
            }

            at = b * halves + half;

            for (i = 0; i < groups; i++) {
                w0 = _mm512_load_si512(p[0].codes + (at * groups + i) * 64);
                w1 = _mm512_load_si512(p[1].codes + (at * groups + i) * 64);

                for (m = 0; m < mm; m++) {
                    v = quant_x(q[m] + (at * groups + i) * 4);
                    a[m][0] = _mm512_dpbusd_epi32(a[m][0], w0, v);
                    a[m][1] = _mm512_dpbusd_epi32(a[m][1], w1, v);
                }
            }

            d0 = _mm512_load_ps(p[0].d + at * 16);
            d1 = _mm512_load_ps(p[1].d + at * 16);

            for (m = 0; m < mm; m++) {
                f = _mm512_set1_ps(x->d[(row + m) * nb + b]);
                acc[m][0] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(a[m][0]),
                                            _mm512_mul_ps(d0, f), acc[m][0]);
                acc[m][1] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(a[m][1]),
                                            _mm512_mul_ps(d1, f), acc[m][1]);
            }
        }

        if (quant_has_min(type)) {
            d0 = _mm512_load_ps(p[0].m + b * 16);
            d1 = _mm512_load_ps(p[1].m + b * 16);

            for (m = 0; m < mm; m++) {
                f = _mm512_set1_ps(x->sum[(row + m) * nb + b]);
                acc[m][0] = _mm512_fmadd_ps(d0, f, acc[m][0]);
                acc[m][1] = _mm512_fmadd_ps(d1, f, acc[m][1]);
            }
        }
    }

    for (m = 0; m < mm; m++) {
        gemm_store(g, row + m, panel * LLM_PANEL, acc[m][0]);
        gemm_store(g, row + m, (panel + 1) * LLM_PANEL, acc[m][1]);
    }
}


/*
 * Only what the loops see differs between types once they are unpacked: one
 * expansion for each kind.
 */

static void
quant_many_rows(const llm_cpu_gemm_t *g, const quant_panel_t *p,
    uint32_t panel)
{
    uint32_t  row, end;

    end = g->row + g->n_rows;
    row = g->row;

#define quant_many_case(type)                                                \
        for ( /* void */ ; row + QUANT_MANY_MM <= end;                       \
             row += QUANT_MANY_MM)                                           \
        {                                                                    \
            quant_many_tile(g, type, p, panel, row, QUANT_MANY_MM);          \
        }                                                                    \
                                                                             \
        for ( /* void */ ; row + 2 <= end; row += 2) {                       \
            quant_many_tile(g, type, p, panel, row, 2);                      \
        }                                                                    \
                                                                             \
        if (row < end) {                                                     \
            quant_many_tile(g, type, p, panel, row, 1);                      \
        }                                                                    \
                                                                             \
        break

    switch (g->w->type) {

    case LLM_TYPE_Q8_0:
        quant_many_case(LLM_TYPE_Q8_0);

    case LLM_TYPE_Q4_0:
        quant_many_case(LLM_TYPE_Q4_0);

    case LLM_TYPE_Q5_0:
        quant_many_case(LLM_TYPE_Q5_0);

    case LLM_TYPE_Q6_K:
        quant_many_case(LLM_TYPE_Q6_K);

    default:  /* a minimum and no zero: Q4_1, Q5_1, Q4_K, Q5_K */
        quant_many_case(LLM_TYPE_Q4_1);
    }

#undef quant_many_case
}


static void
quant_unpack_any(const llm_weight_t *w, uint32_t panel, uint8_t *scratch,
    quant_panel_t *p)
{
    switch (w->type) {

    case LLM_TYPE_Q8_0:
        quant_unpack(w, LLM_TYPE_Q8_0, panel, scratch, p);
        break;

    case LLM_TYPE_Q4_0:
        quant_unpack(w, LLM_TYPE_Q4_0, panel, scratch, p);
        break;

    case LLM_TYPE_Q4_1:
        quant_unpack(w, LLM_TYPE_Q4_1, panel, scratch, p);
        break;

    case LLM_TYPE_Q5_0:
        quant_unpack(w, LLM_TYPE_Q5_0, panel, scratch, p);
        break;

    case LLM_TYPE_Q5_1:
        quant_unpack(w, LLM_TYPE_Q5_1, panel, scratch, p);
        break;

    case LLM_TYPE_Q4_K:
        quant_unpack(w, LLM_TYPE_Q4_K, panel, scratch, p);
        break;

    case LLM_TYPE_Q5_K:
        quant_unpack(w, LLM_TYPE_Q5_K, panel, scratch, p);
        break;

    default:
        quant_unpack(w, LLM_TYPE_Q6_K, panel, scratch, p);
    }
}


static void
quant_many(const llm_cpu_gemm_t *g)
{
    size_t         size;
    uint32_t       i, n, end;
    quant_panel_t  p[2];

    end = g->panel + g->n_panels;
    size = g->w->n_in / LLM_BLOCK * (size_t) (512 + 3 * 64);

    for (i = g->panel; i < end; i += 2) {

        for (n = 0; n < 2 && i + n < end; n++) {
            quant_unpack_any(g->w, i + n, g->scratch + n * size, &p[n]);
        }

        if (n == 1) {
            p[1] = p[0];
        }

        quant_many_rows(g, p, i);
    }
}


static void
quant_gemm(const llm_cpu_gemm_t *g)
{
    if (g->n_rows > LLM_GEMM_FEW) {
        quant_many(g);
        return;
    }

    switch (g->w->type) {

    case LLM_TYPE_Q8_0:
        quant_few(g, LLM_TYPE_Q8_0);
        break;

    case LLM_TYPE_Q4_0:
        quant_few(g, LLM_TYPE_Q4_0);
        break;

    case LLM_TYPE_Q4_1:
        quant_few(g, LLM_TYPE_Q4_1);
        break;

    case LLM_TYPE_Q5_0:
        quant_few(g, LLM_TYPE_Q5_0);
        break;

    case LLM_TYPE_Q5_1:
        quant_few(g, LLM_TYPE_Q5_1);
        break;

    case LLM_TYPE_Q4_K:
        quant_few(g, LLM_TYPE_Q4_K);
        break;

    case LLM_TYPE_Q5_K:
        quant_few(g, LLM_TYPE_Q5_K);
        break;

    default:
        quant_few(g, LLM_TYPE_Q6_K);
    }
}
