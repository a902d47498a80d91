/*
 * Products of F32, F16 and BF16 weights and float32 rows; written once for all
 * instruction sets, included after gemm_store.h.
 *
 * Invariant: every output is acc = fma(w, x, acc) over k in order, whatever
 * tile it is computed in.
 */

/*
 * A tile is rows of x by vectors of outputs.  With up to GEMM_FEW rows, F16 and
 * BF16 panels are converted in registers; with more, once for all rows into the
 * thread's scratch.
 */
#define GEMM_FEW      4
#define GEMM_MM       6

#if VL == 16
#define GEMM_NV       4
#else
#define GEMM_NV       2
#endif

#define GEMM_HALVES   (LLM_PANEL / VL)  /* vectors across a panel */
#define GEMM_PANELS   (GEMM_NV / GEMM_HALVES)


/*
 * mm rows by nv vectors of outputs from `out` on.  panel[v]: address of vector
 * v's first lane in its panel, which has elements of `type`.
 */

simd_inline void
gemm_float_tile(const llm_cpu_gemm_t *g, uint32_t type,
    const uint8_t *const *panel, uint32_t row, uint32_t out, const int mm,
    const int nv)
{
    int           m, v;
    vf_t          acc[8][8], w[8], w2, xk;
    size_t        k, n;
    const float  *x;

    n = g->w->n_in;
    x = g->x->x + row * n;

    simd_unroll
    for (m = 0; m < mm; m++) {
        simd_unroll
        for (v = 0; v < nv; v++) {
            acc[m][v] = vf_zero();
        }
    }

    if (type == LLM_TYPE_BF16) {

        for (k = 0; k + 2 <= n; k += 2) {
            simd_unroll
            for (v = 0; v < nv; v++) {
                w[v] = vf_load_bf16_even((const uint16_t *) panel[v]
                                         + k * LLM_PANEL);
                w2 = vf_load_bf16_odd((const uint16_t *) panel[v]
                                      + k * LLM_PANEL);

                simd_unroll
                for (m = 0; m < mm; m++) {
                    acc[m][v] = vf_fma(w[v], vf_set1(x[m * n + k]),
                                       acc[m][v]);
                    acc[m][v] = vf_fma(w2, vf_set1(x[m * n + k + 1]),
                                       acc[m][v]);
                }
            }
        }

        if (k < n) {
            simd_unroll
            for (v = 0; v < nv; v++) {
                w[v] = vf_load_bf16_even((const uint16_t *) panel[v]
                                         + k * LLM_PANEL);

                simd_unroll
                for (m = 0; m < mm; m++) {
                    acc[m][v] = vf_fma(w[v], vf_set1(x[m * n + k]),
                                       acc[m][v]);
                }
            }
        }

    } else {
        for (k = 0; k < n; k++) {
            simd_unroll
            for (v = 0; v < nv; v++) {
                w[v] = type == LLM_TYPE_F16
                       ? vf_load_f16((const uint16_t *) panel[v]
                                     + k * LLM_PANEL)
                       : vf_load((const float *) panel[v] + k * LLM_PANEL);
            }

            /* one element of x at a time, as there are registers for all
               sums and w, and one more */

            simd_unroll
            for (m = 0; m < mm; m++) {
                xk = vf_set1(x[m * n + k]);

                simd_unroll
                for (v = 0; v < nv; v++) {
                    acc[m][v] = vf_fma(w[v], xk, acc[m][v]);
                }
            }
        }
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        simd_unroll
        for (v = 0; v < nv; v++) {
            gemm_store(g, row + m, out + v * VL, acc[m][v]);
        }
    }
}


/* converts a panel to float32, [n_in][16] */

simd_inline void
gemm_float_unpack(const llm_weight_t *w, uint32_t type, const uint8_t *src,
    float *dst)
{
    size_t           i, k;
    vf_t             a, b;
    const uint16_t  *p;

    p = (const uint16_t *) src;

    if (type == LLM_TYPE_F16) {
        for (i = 0; i < (size_t) w->n_in * LLM_PANEL; i += VL) {
            vf_store(dst + i, vf_load_f16(p + i));
        }

        return;
    }

    for (k = 0; k < w->n_in; k += 2) {
        for (i = 0; i < LLM_PANEL; i += VL) {
            a = vf_load_bf16_even(p + k * LLM_PANEL + i * 2);
            b = vf_load_bf16_odd(p + k * LLM_PANEL + i * 2);
            vf_store(dst + k * LLM_PANEL + i, a);
            vf_store(dst + (k + 1) * LLM_PANEL + i, b);
        }
    }
}


/* all rows by GEMM_NV vectors of outputs, from panel `first` on */

simd_inline void
gemm_float_rows(const llm_cpu_gemm_t *g, uint32_t type, uint32_t first)
{
    size_t          lane, size;
    uint32_t        i, n, row, end, out;
    const uint8_t  *panel[GEMM_PANELS], *p[GEMM_NV];

    n = llm_min(g->panel + g->n_panels - first, GEMM_PANELS);

    for (i = 0; i < GEMM_PANELS; i++) {
        panel[i] = g->w->data + (first + llm_min(i, n - 1))
                                * g->w->panel_size;
    }

    if (g->n_rows > GEMM_FEW && type != LLM_TYPE_F32) {
        size = llm_align(g->w->n_in, 32) * LLM_PANEL * sizeof(float);

        for (i = 0; i < n; i++) {
            gemm_float_unpack(g->w, type, panel[i],
                              (float *) (void *) (g->scratch + i * size));
        }

        for (i = 0; i < GEMM_PANELS; i++) {
            panel[i] = g->scratch + llm_min(i, n - 1) * size;
        }

        type = LLM_TYPE_F32;
    }

    lane = VL * (type == LLM_TYPE_F16 ? 2 : 4);

    for (i = 0; i < GEMM_NV; i++) {
        p[i] = panel[i / GEMM_HALVES] + i % GEMM_HALVES * lane;
    }

    end = g->row + g->n_rows;
    out = first * LLM_PANEL;
    row = g->row;

    if (type == LLM_TYPE_F32) {
        for ( /* void */ ; row + GEMM_MM <= end; row += GEMM_MM) {
            gemm_float_tile(g, LLM_TYPE_F32, p, row, out, GEMM_MM, GEMM_NV);
        }

        for ( /* void */ ; row + 2 <= end; row += 2) {
            gemm_float_tile(g, LLM_TYPE_F32, p, row, out, 2, GEMM_NV);
        }

        if (row < end) {
            gemm_float_tile(g, LLM_TYPE_F32, p, row, out, 1, GEMM_NV);
        }

        return;
    }

    for ( /* void */ ; row + 2 <= end; row += 2) {
        gemm_float_tile(g, type, p, row, out, 2, GEMM_NV);
    }

    if (row < end) {
        gemm_float_tile(g, type, p, row, out, 1, GEMM_NV);
    }
}


static void
simd_gemm_float(const llm_cpu_gemm_t *g)
{
    uint32_t  p, end;

    end = g->panel + g->n_panels;

    for (p = g->panel; p < end; p += GEMM_PANELS) {
        switch (g->w->type) {

        case LLM_TYPE_F32:
            gemm_float_rows(g, LLM_TYPE_F32, p);
            break;

        case LLM_TYPE_F16:
            gemm_float_rows(g, LLM_TYPE_F16, p);
            break;

        default:
            gemm_float_rows(g, LLM_TYPE_BF16, p);
        }
    }
}
