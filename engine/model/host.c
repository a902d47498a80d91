/*
 * Tensors as float32 on the host: for rank.c and dense.c, which compute there,
 * and for tensors that are converted on their way to the device.
 *
 * Invariant: a product's sums are always added in the same order, so it
 * depends on its vectors alone.
 */

#include "engine/model/model_internal.h"

/* partial sums of a product, for SIMD */
#define LLM_HOST_LANES  8


float *
llm_load_floats(llm_load_t *l, const llm_gguf_tensor_t *t)
{
    float  *f;

    f = malloc(t->ne[0] * t->ne[1] * sizeof(float));

    if (f == NULL) {
        (void) llm_fail(l->err, "%s: no memory for %.*s",
                        llm_gguf_name(l->m->gguf), (int) t->name.len,
                        t->name.data);
        return NULL;
    }

    llm_dequantize(t->type, t->data, f, t->ne[0] * t->ne[1]);

    return f;
}


int
llm_load_host(llm_load_t *l, llm_global_tensor_t id, float **w)
{
    const llm_gguf_tensor_t  *t;

    t = l->m->desc.global[id];

    if (t == NULL) {
        return LLM_OK;
    }

    *w = llm_load_floats(l, t);

    return *w ? llm_load_progress(l, t->size) : LLM_ERROR;
}


double
llm_host_dot(const float *a, const float *b, uint32_t n)
{
    float     sum[LLM_HOST_LANES] = { 0 };
    double    total;
    uint32_t  i, k;

    for (i = 0; i + LLM_HOST_LANES <= n; i += LLM_HOST_LANES) {
        for (k = 0; k < LLM_HOST_LANES; k++) {
            sum[k] += a[i + k] * b[i + k];
        }
    }

    for (total = 0; i < n; i++) {
        total += (double) a[i] * b[i];
    }

    for (k = 0; k < LLM_HOST_LANES; k++) {
        total += sum[k];
    }

    return total;
}
