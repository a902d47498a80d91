/*
 * What the alignment heads of the decoder look at: softmax of their queries'
 * products with the keys of a window, on the host, in float32 as the products
 * came from the device, before they were rounded for the cache.
 */

#include "engine/model/ear.h"

#include <math.h>


void
llm_ear_keep_queries(const llm_pass_t *p)
{
    llm_act_t    *q;
    llm_model_t  *m = p->m;

    q = m->ear->queries[p->layer];

    if (m->ear->keeps && q) {
        m->ops->scale(m->exec, LLM_ROWS_ALL, 1, m->act[LLM_MA_Q], 0, q);
    }
}


void
llm_ear_keep_keys(llm_model_t *m, uint32_t layer, uint32_t first,
    uint32_t n)
{
    float                   *to;
    uint32_t                 i, k, dim;
    const float             *k0;
    llm_ear_t             *s = m->ear;
    const llm_ear_desc_t  *d = &m->desc.ear;

    k0 = NULL;
    dim = m->desc.layers[layer].head_dim_k;

    for (i = 0; i < d->n_align; i++) {
        if (d->align[i][0] != layer) {
            continue;
        }

        if (k0 == NULL) {
            k0 = m->ops->map(m->exec, s->k, 0, n);
        }

        to = s->keys[s->state]
             + ((size_t) i * d->n_ctx + first) * m->desc.hp.head_dim_k;

        for (k = 0; k < n; k++) {
            memcpy(to + (size_t) k * dim,
                   k0 + (size_t) k * d->n_embd + d->align[i][1] * dim,
                   dim * sizeof(float));
        }
    }
}


/* the weights of one query over n keys */

static void
llm_ear_softmax(const float *q, const float *keys, uint32_t dim,
    uint32_t n, float scale, float *w)
{
    float     max;
    double    sum;
    uint32_t  i;

    for (i = 0, max = -INFINITY; i < n; i++) {
        w[i] = scale * (float) llm_host_dot(q, keys + (size_t) i * dim, dim);
        max = llm_max(max, w[i]);
    }

    for (i = 0, sum = 0; i < n; i++) {
        w[i] = expf(w[i] - max);
        sum += (double) w[i];
    }

    for (i = 0; i < n; i++) {
        w[i] = (float) ((double) w[i] / sum);
    }
}


void
llm_ear_take_queries(llm_model_t *m, uint32_t n, uint32_t at, uint32_t of,
    float *to)
{
    uint32_t               i, k, dim;
    const float           *q;
    const llm_ear_desc_t  *d = &m->desc.ear;

    dim = m->desc.hp.head_dim_k;

    for (i = 0; i < d->n_align; i++) {
        q = m->ops->map(m->exec, m->ear->queries[d->align[i][0]], 0, n);

        for (k = 0; k < n; k++) {
            memcpy(to + ((size_t) i * of + at + k) * dim,
                   q + (size_t) k * d->n_embd + d->align[i][1] * dim,
                   dim * sizeof(float));
        }
    }
}


void
llm_ear_weigh(const llm_model_t *m, uint32_t state, uint32_t i, uint32_t n,
    const float *queries, float *weights)
{
    uint32_t               k, dim;
    const llm_ear_desc_t  *d = &m->desc.ear;

    dim = m->desc.hp.head_dim_k;

    for (k = 0; k < n; k++) {
        llm_ear_softmax(queries + ((size_t) i * n + k) * dim,
                        m->ear->keys[state] + (size_t) i * d->n_ctx * dim,
                        dim, d->n_ctx, m->desc.layers[d->align[i][0]].scale,
                        weights + (size_t) k * d->n_ctx);
    }
}
