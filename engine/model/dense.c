/*
 * The matrices that turn a pooled state into the model's embedding: dense_2
 * and dense_3, in models that were converted with their sentence-transformers
 * modules.  They run on the host: one vector for each sequence is too little
 * work for a device.
 *
 * Invariant: a result depends on the vector alone.  The model owns the
 * matrices, as float32.
 */

#include "engine/model/model_internal.h"


int
llm_desc_dense(const llm_gguf_t *g, const llm_desc_t *d, llm_err_t *err)
{
    const llm_gguf_tensor_t  *two, *three;

    two = d->global[LLM_GT_DENSE_2];
    three = d->global[LLM_GT_DENSE_3];

    if ((two == NULL) != (three == NULL)
        || (two && two->ne[1] != three->ne[0]))
    {
        return llm_fail(err, "%s: dense_2.weight and dense_3.weight: they do "
                        "not fit each other", llm_gguf_name(g));
    }

    return LLM_OK;
}


int
llm_load_dense(llm_load_t *l)
{
    llm_model_t              *m;
    const llm_gguf_tensor_t  *two;

    m = l->m;
    two = m->desc.global[LLM_GT_DENSE_2];

    if (two == NULL) {
        return LLM_OK;
    }

    m->n_dense = (uint32_t) two->ne[1];
    m->dense_row = malloc((size_t) m->n_dense * sizeof(float));

    if (m->dense_row == NULL) {
        return llm_fail(l->err, "%s: no memory for dense_2.weight",
                        llm_gguf_name(m->gguf));
    }

    return llm_load_host(l, LLM_GT_DENSE_2, &m->dense[0]) == LLM_OK
           ? llm_load_host(l, LLM_GT_DENSE_3, &m->dense[1]) : LLM_ERROR;
}


int
llm_model_project(const llm_model_t *m, float *v)
{
    uint32_t  i, n;

    n = m->desc.hp.n_embd;

    if (m->n_dense == 0) {
        return 0;
    }

    for (i = 0; i < m->n_dense; i++) {
        m->dense_row[i] = (float) llm_host_dot(m->dense[0] + (size_t) i * n,
                                               v, n);
    }

    for (i = 0; i < n; i++) {
        v[i] = (float) llm_host_dot(m->dense[1] + (size_t) i * m->n_dense,
                                    m->dense_row, m->n_dense);
    }

    return 1;
}
