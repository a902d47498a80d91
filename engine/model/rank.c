/*
 * Ranking, as converted Qwen3-Rerankers do it: cls.output.weight has the
 * head's rows of the tokens "yes" and "no", and a pair's score is the
 * probability of yes against no behind its prompt.
 *
 * Invariant: a score depends on the state alone.  The model owns the rows, as
 * float32 on the host: two products a pair are no work for a device.
 */

#include "engine/model/model_internal.h"

#include <math.h>


/* which of the two rows is "yes"; without labels it is the first */

static uint32_t
llm_rank_yes(const llm_model_t *m)
{
    uint64_t              i;
    llm_str_t             s;
    const char           *p;
    llm_gguf_key_t        key;
    const llm_gguf_kv_t  *labels;

    llm_gguf_key(&key, m->desc.hp.arch, "classifier.output_labels");
    labels = llm_gguf_find(m->gguf, key.text);

    if (labels == NULL || labels->type != LLM_GGUF_ARRAY
        || labels->item != LLM_GGUF_STR || labels->count != 2)
    {
        return 0;
    }

    p = labels->data;

    for (i = 0; i < labels->count; i++) {
        s = llm_gguf_next_str(&p);

        if (llm_arch_is(s, "yes")) {
            return (uint32_t) i;
        }
    }

    return 0;
}


int
llm_load_rank(llm_load_t *l)
{
    uint32_t                  n, yes;
    llm_model_t              *m;
    const llm_gguf_tensor_t  *t;

    m = l->m;
    t = m->desc.global[LLM_GT_RANK];

    if (t == NULL) {
        return LLM_OK;
    }

    n = m->desc.hp.n_embd;
    m->rank = malloc((size_t) n * 2 * sizeof(float));

    if (m->rank == NULL) {
        return llm_fail(l->err, "%s: no memory for cls.output.weight",
                        llm_gguf_name(m->gguf));
    }

    /* "yes" first, whatever the file's order */

    yes = llm_rank_yes(m);

    llm_dequantize(t->type, (const char *) t->data + yes * t->size / 2,
                   m->rank, n);
    llm_dequantize(t->type, (const char *) t->data + (1 - yes) * t->size / 2,
                   m->rank + n, n);

    return LLM_OK;
}


int
llm_model_can_rank(const llm_model_t *m, llm_err_t *err)
{
    if (m->desc.hp.pooling != LLM_POOLING_RANK) {
        return llm_fail_with(err, 400, "unsupported_model", "model",
                             "This model does not rank: its file has no "
                             "%s.pooling_type 4 (rank).", m->desc.hp.arch);
    }

    if (m->rank == NULL) {
        return llm_fail_with(err, 400, "unsupported_model", "model",
                             "This model cannot rank: its file has no tensor "
                             "cls.output.weight.");
    }

    return LLM_OK;
}


double
llm_model_rank(const llm_model_t *m, const float *state)
{
    double       yes, no;
    uint32_t     i, n;

    n = m->desc.hp.n_embd;
    yes = 0;
    no = 0;

    for (i = 0; i < n; i++) {
        yes += (double) m->rank[i] * state[i];
        no += (double) m->rank[n + i] * state[i];
    }

    return 1 / (1 + exp(no - yes));
}
