/*
 * Products of F32, F16 and BF16 weights and float32 rows; written once for all
 * instruction sets, included after gemm_store.h.
 *
 * Invariant: every output is acc = fma(w, x, acc) over k in order, whatever
 * tile it is computed in.
 */

/*
 * A tile is rows of x by vectors of outputs.  With up to GEMM_FEW rows, F16 and
 * BF16 panels are converted in registers, for each tile again; with more, once
 * for all rows into the thread's scratch.
 */
#define GEMM_FEW      96
#define GEMM_MM       6

#if VL == 16
#define GEMM_NV       4
#define GEMM_LEVEL    2                 /* for __builtin_prefetch(): 2: the
                                           second-level cache; 3: the first */
#else
#define GEMM_NV       2
#define GEMM_LEVEL    3
#endif

#define GEMM_HALVES   (LLM_PANEL / VL)  /* vectors across a panel */
#define GEMM_PANELS   (GEMM_NV / GEMM_HALVES)

/* bytes from the weights that are multiplied to those that are prefetched, with
   more than GEMM_STREAM rows in a tile: the hardware's prefetcher alone keeps
   up with fewer, and not with slower readers */
#define GEMM_AHEAD    2048
#define GEMM_STREAM   2


/* a vector of weights of k + odd; k is even, p is the panel at k */

simd_inline vf_t
gemm_float_load(const uint8_t *p, uint32_t type, const int odd)
{
    if (type == LLM_TYPE_F32) {
        return vf_load((const float *) (const void *) p + odd * LLM_PANEL);
    }

    if (type == LLM_TYPE_F16) {
        return vf_load_f16((const uint16_t *) (const void *) p
                           + odd * LLM_PANEL);
    }

    return odd ? vf_load_bf16_odd((const uint16_t *) (const void *) p)
               : vf_load_bf16_even((const uint16_t *) (const void *) p);
}


/* mm rows by GEMM_NV vectors of outputs from `out` on.  panel[v]: address of
   vector v's first lane in its panel, which has elements of `type` */

simd_inline void
gemm_float_tile(const llm_cpu_gemm_t *g, uint32_t type,
    const uint8_t *const *panel, uint32_t row, uint32_t out, const int mm)
{
    int           m, v, odd;
    vf_t          acc[GEMM_MM][GEMM_NV], w[GEMM_NV], xk;
    size_t        k, n, at, ahead;
    const float  *x;

    const size_t  step = LLM_PANEL * (type == LLM_TYPE_F32 ? 4 : 2);
    const int     prefetches = mm > GEMM_STREAM
                               && (type != LLM_TYPE_F32 || VL == 8);

    n = g->w->n_in;
    x = g->x->x + row * n;
    ahead = row == g->row ? GEMM_AHEAD : 0;

    simd_unroll
    for (m = 0; m < mm; m++) {
        simd_unroll
        for (v = 0; v < GEMM_NV; v++) {
            acc[m][v] = vf_zero();
        }
    }

    for (k = 0; k < n; k += 2) {

        simd_unroll
        for (v = 0; prefetches && v < GEMM_NV; v += GEMM_HALVES) {
            simd_unroll
            for (at = 0; at < 2 * step; at += 64) {
                __builtin_prefetch(panel[v] + k * step + ahead + at, 0,
                                   GEMM_LEVEL);
            }
        }

        simd_unroll
        for (odd = 0; odd < 2; odd++) {

            if (k + (size_t) odd == n) {
                break;
            }

            simd_unroll
            for (v = 0; v < GEMM_NV; v++) {
                w[v] = gemm_float_load(panel[v] + k * step, type, odd);
            }

            /* one element of x at a time, as there are registers for all
               sums and w, and one more */

            simd_unroll
            for (m = 0; m < mm; m++) {
                xk = vf_set1(x[m * n + k + odd]);

                simd_unroll
                for (v = 0; v < GEMM_NV; v++) {
                    acc[m][v] = vf_fma(w[v], xk, acc[m][v]);
                }
            }
        }
    }

    gemm_store_tile(g, row, out, acc[0], mm, GEMM_NV);
}


/* all rows: the highest tile while the weights are read from memory, then tiles
   of about the same height, as low ones wait for their sums */

simd_inline void
gemm_float_tiles(const llm_cpu_gemm_t *g, uint32_t type,
    const uint8_t *const *panel, uint32_t out)
{
    uint32_t  row, end, mm, n;

    /* 16 registers: both halves of pairs stay in some */
    const uint32_t  most = type == LLM_TYPE_BF16 && VL == 8 ? GEMM_MM - 1
                                                            : GEMM_MM;

    row = g->row;
    end = g->row + g->n_rows;

    for (n = (g->n_rows + most - 1) / most; n; n--) {
        mm = row == g->row ? llm_min(most, g->n_rows)
                           : (end - row + n - 1) / n;

        switch (mm) {

        case 1:
            gemm_float_tile(g, type, panel, row, out, 1);
            break;

        case 2:
            gemm_float_tile(g, type, panel, row, out, 2);
            break;

        case 3:
            gemm_float_tile(g, type, panel, row, out, 3);
            break;

        case 4:
            gemm_float_tile(g, type, panel, row, out, 4);
            break;

        case 5:
            gemm_float_tile(g, type, panel, row, out, 5);
            break;

        default:
            gemm_float_tile(g, type, panel, row, out, GEMM_MM);
        }

        row += mm;
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
    uint32_t        i, n, out;
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

    out = first * LLM_PANEL;

    if (type == LLM_TYPE_F32) {
        gemm_float_tiles(g, LLM_TYPE_F32, p, out);

    } else {
        gemm_float_tiles(g, type, p, out);
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
