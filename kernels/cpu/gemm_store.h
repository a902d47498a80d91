/*
 * The end of every product: storing its results; included after simd512.h or
 * simd256.h.
 */

/* stores one vector of outputs to y: scales v, then adds the bias, if any, and
   y, if g->add; outputs after the piece's last one are not stored */

simd_inline void
gemm_store(const llm_cpu_gemm_t *g, uint32_t row, uint32_t out, vf_t v)
{
    float     *y;
    uint32_t   n, end;

    end = llm_min((g->panel + g->n_panels) * LLM_PANEL, g->w->n_out);
    if (out >= end) {
        return;
    }

    n = llm_min(end - out, VL);
    y = g->y + (size_t) row * g->w->n_out + out;

    if (g->scale != 1) {
        v = vf_mul(v, vf_set1(g->scale));
    }

    if (g->bias) {
        v = vf_add(v, vf_load_n(g->bias + out, n));
    }

    if (g->add) {
        v = vf_add(v, vf_load_n(y, n));
    }

    vf_store_n(y, v, n);
}


/* stores a tile of mm rows with nv adjacent vectors each: v[mm][nv].  Rows after
   the piece's last one are not stored */

simd_inline void
gemm_store_tile(const llm_cpu_gemm_t *g, uint32_t row, uint32_t out,
    const vf_t *v, const int mm, const int nv)
{
    int       m, i;
    float    *y;
    uint32_t  end;

    end = llm_min((g->panel + g->n_panels) * LLM_PANEL, g->w->n_out);

    if (g->scale == 1 && g->bias == NULL && !g->add
        && out + (uint32_t) nv * VL <= end
        && row + (uint32_t) mm <= g->row + g->n_rows)
    {
        y = g->y + (size_t) row * g->w->n_out + out;

        simd_unroll
        for (m = 0; m < mm; m++) {
            simd_unroll
            for (i = 0; i < nv; i++) {
                vf_store(y + i * VL, v[m * nv + i]);
            }

            y += g->w->n_out;
        }

        return;
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        if (row + (uint32_t) m == g->row + g->n_rows) {
            return;
        }

        simd_unroll
        for (i = 0; i < nv; i++) {
            gemm_store(g, row + (uint32_t) m, out + (uint32_t) i * VL,
                       v[m * nv + i]);
        }
    }
}
