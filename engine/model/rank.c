/*
 * Ranking: the pooled state of a prompt with a query and a document becomes the
 * probability that the document answers the query.
 *
 * Encoders have a head: cls.weight, an activation (and a norm, in
 * ModernBERT's), and cls.output.weight with one row, whose product is the log
 * odds.  In converted Qwen3-Rerankers, cls.output.weight has two rows, those of
 * the tokens "yes" and "no" of the output matrix, and the score is the
 * probability of yes against no.  A raw score is the log odds.
 *
 * Invariant: a score depends on the state alone.  The model owns the head, as
 * float32 on the host.
 */

#include "engine/model/model_internal.h"

#include <math.h>


/* index of the row for "yes"; the first if the file has no labels */

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

        if (llm_str_is(s, "yes")) {
            return (uint32_t) i;
        }
    }

    return 0;
}


int
llm_desc_rank(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    uint32_t                   n;
    const llm_gguf_tensor_t  **t;

    t = d->global;
    n = d->hp.n_embd;

    /* a single matrix with one row is the output, though it is called cls */

    if (t[LLM_GT_RANK] == NULL && t[LLM_GT_CLS]
        && t[LLM_GT_CLS]->ne[1] == 1)
    {
        t[LLM_GT_RANK] = t[LLM_GT_CLS];
        t[LLM_GT_RANK_BIAS] = t[LLM_GT_CLS_BIAS];
        t[LLM_GT_CLS] = NULL;
        t[LLM_GT_CLS_BIAS] = NULL;
    }

    if (t[LLM_GT_RANK] && t[LLM_GT_RANK]->ne[1] > 2) {
        return llm_fail(err, "%s: cls.output.weight: a head of %llu classes "
                        "is not supported (1 and 2 are)", llm_gguf_name(g),
                        (unsigned long long) t[LLM_GT_RANK]->ne[1]);
    }

    if ((t[LLM_GT_CLS] && t[LLM_GT_CLS]->ne[1] != n)
        || (t[LLM_GT_CLS_BIAS] && t[LLM_GT_CLS_BIAS]->ne[0] != n)
        || (t[LLM_GT_RANK_BIAS]
            && (t[LLM_GT_RANK] == NULL || t[LLM_GT_RANK_BIAS]->ne[0]
                                          != t[LLM_GT_RANK]->ne[1])))
    {
        return llm_fail(err, "%s: cls.weight and cls.output.weight: their "
                        "shapes do not fit each other", llm_gguf_name(g));
    }

    return LLM_OK;
}


int
llm_load_rank(llm_load_t *l)
{
    llm_rank_t               *r;
    llm_model_t              *m;
    const llm_gguf_tensor_t  *t;

    m = l->m;
    r = &m->rank;

    t = m->desc.global[LLM_GT_RANK];

    if (t == NULL) {
        return LLM_OK;
    }

    r->n_out = (uint32_t) t->ne[1];
    r->yes = r->n_out == 2 ? llm_rank_yes(m) : 0;
    r->row = malloc((size_t) m->desc.hp.n_embd * sizeof(float));

    if (r->row == NULL) {
        return llm_fail(l->err, "%s: no memory for cls.output.weight",
                        llm_gguf_name(m->gguf));
    }

    if (llm_load_host(l, LLM_GT_CLS, &r->cls) != LLM_OK
        || llm_load_host(l, LLM_GT_CLS_BIAS, &r->cls_bias) != LLM_OK
        || llm_load_host(l, LLM_GT_CLS_NORM, &r->cls_norm) != LLM_OK
        || llm_load_host(l, LLM_GT_RANK_BIAS, &r->out_bias) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_load_host(l, LLM_GT_RANK, &r->out);
}


void
llm_rank_unload(llm_rank_t *r)
{
    free(r->cls);
    free(r->cls_bias);
    free(r->cls_norm);
    free(r->out);
    free(r->out_bias);
    free(r->row);
}


int
llm_model_can_rank(const llm_model_t *m, llm_err_t *err)
{
    if (m->desc.hp.pooling != LLM_POOLING_RANK) {
        return llm_fail_with(err, 400, "unsupported_model", "model",
                             "This model does not rank: its file has no "
                             "%s.pooling_type 4 (rank).", m->desc.hp.arch);
    }

    if (m->rank.out == NULL) {
        return llm_fail_with(err, 400, "unsupported_model", "model",
                             "This model cannot rank: its file has no tensor "
                             "cls.output.weight.");
    }

    return LLM_OK;
}


/* a layer norm without a bias */

static void
llm_rank_norm(const llm_model_t *m, float *x)
{
    double    mean, var;
    uint32_t  i, n;

    n = m->desc.hp.n_embd;
    mean = 0;
    var = 0;

    for (i = 0; i < n; i++) {
        mean += (double) x[i] / n;
    }

    for (i = 0; i < n; i++) {
        var += (x[i] - mean) * (x[i] - mean) / n;
    }

    for (i = 0; i < n; i++) {
        x[i] = (float) ((x[i] - mean) / sqrt(var + m->desc.hp.norm_eps)
                        * m->rank.cls_norm[i]);
    }
}


/* a head with a norm is ModernBERT's, whose activation is GELU; the others have
   tanh */

static void
llm_rank_head(const llm_model_t *m, const float *state)
{
    double             v;
    uint32_t           i, n;
    const llm_rank_t  *r;

    r = &m->rank;
    n = m->desc.hp.n_embd;

    for (i = 0; i < n; i++) {
        v = llm_host_dot(r->cls + (size_t) i * n, state, n)
            + (r->cls_bias ? r->cls_bias[i] : 0);
        r->row[i] = (float) (r->cls_norm ? v / 2 * (1 + erf(v * M_SQRT1_2))
                                         : tanh(v));
    }

    if (r->cls_norm) {
        llm_rank_norm(m, r->row);
    }
}


double
llm_model_rank(const llm_model_t *m, const float *state, int raw)
{
    double             odds[2];
    uint32_t           i, n;
    const float       *x;
    const llm_rank_t  *r;

    r = &m->rank;
    n = m->desc.hp.n_embd;
    x = state;
    odds[1] = 0;

    if (r->cls) {
        llm_rank_head(m, state);
        x = r->row;
    }

    for (i = 0; i < r->n_out; i++) {
        odds[i] = llm_host_dot(r->out + (size_t) i * n, x, n)
                  + (r->out_bias ? r->out_bias[i] : 0);
    }

    return raw ? odds[r->yes] - odds[!r->yes]
               : 1 / (1 + exp(odds[!r->yes] - odds[r->yes]));
}
