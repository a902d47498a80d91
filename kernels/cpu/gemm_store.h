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
