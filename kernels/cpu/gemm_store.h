/*
 * How every product reads its weights and how it ends; included after
 * simd512.h or simd256.h.
 */

/*
 * Products of few rows wait for memory.  The hardware's own prefetching
 * keeps some 3/4 of what one core can have under way; this the rest.  What
 * lies behind a weight is most likely the next one: see memory.c.
 */
#define GEMM_AHEAD  512


simd_inline void
gemm_ahead(const uint8_t *p, size_t size)
{
    size_t  i;

    simd_unroll
    for (i = 0; i < size; i += 64) {
        __builtin_prefetch(p + GEMM_AHEAD + i);
    }
}


/* one vector of outputs into y: bias and y itself are added if wanted */

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

    if (g->bias) {
        v = vf_add(v, vf_load_n(g->bias + out, n));
    }

    if (g->add) {
        v = vf_add(v, vf_load_n(y, n));
    }

    vf_store_n(y, v, n);
}
