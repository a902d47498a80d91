/*
 * Loads the encoder of sound: its weights, its buffers, and the caches that it
 * fills; see ear.h.
 */

#include "engine/model/ear.h"

/* rows of a piece on a CPU; a GPU takes what a step has room for, as it
   computes more rows in the same time */
#define LLM_EAR_ROWS  256


static int
llm_ear_no_memory(llm_load_t *l)
{
    return llm_fail(l->err, "%s: no memory for its encoder of sound",
                    llm_gguf_name(l->m->gguf));
}


/* one tensor, as a matrix or as a vector; nothing if t is NULL */

static int
llm_ear_load(llm_load_t *l, const llm_gguf_tensor_t *t, int usage,
    llm_weight_t **w, llm_vec_t **v)
{
    if (t == NULL) {
        return LLM_OK;
    }

    if (usage) {
        *w = llm_load_weight(l, t, usage);
        return *w ? LLM_OK : LLM_ERROR;
    }

    *v = llm_load_vec(l, t);

    return *v ? LLM_OK : LLM_ERROR;
}


/*
 * What the matrices are for; 0: it is a vector.  A rounded query or key changes
 * which sound is attended to, and that counts more than a rounding in the
 * feed-forward network, which has two thirds of the products.
 */

static int
llm_ear_usage(uint32_t id)
{
    switch (id) {

    case LLM_ST_Q:
    case LLM_ST_K:
    case LLM_ST_V:
    case LLM_ST_OUT:
        return LLM_WEIGHT_LINEAR | LLM_WEIGHT_FINE;

    case LLM_ST_UP:
    case LLM_ST_DOWN:
        return LLM_WEIGHT_LINEAR;

    default:
        return 0;
    }
}


static int
llm_ear_weights(llm_load_t *l)
{
    int                      usage;
    uint32_t                 i, k;
    llm_ear_t             *s = l->m->ear;
    const llm_ear_desc_t  *d = &l->m->desc.ear;

    s->layers = calloc(d->n_layers, sizeof(*s->layers));
    if (s->layers == NULL) {
        return llm_ear_no_memory(l);
    }

    for (i = 0; i < LLM_SG_N; i++) {
        usage = i == LLM_SG_POS ? LLM_WEIGHT_EMBED
                : i == LLM_SG_CONV_1 || i == LLM_SG_CONV_2
                ? LLM_WEIGHT_LINEAR : 0;

        if (llm_ear_load(l, d->global[i], usage, &s->gw[i], &s->gv[i])
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    for (i = 0; i < d->n_layers; i++) {
        for (k = 0; k < LLM_ST_N; k++) {
            usage = llm_ear_usage(k);

            if (llm_ear_load(l, d->layers[i][k], usage,
                               &s->layers[i].w[k], &s->layers[i].v[k])
                != LLM_OK)
            {
                return LLM_ERROR;
            }
        }
    }

    return LLM_OK;
}


static int
llm_ear_acts(llm_load_t *l)
{
    uint32_t                 i, in;
    llm_model_t             *m = l->m;
    llm_ear_t             *s = m->ear;
    const llm_ear_desc_t  *d = &m->desc.ear;

    in = 3 * llm_max(d->n_mels, d->n_embd);

    const struct {
        llm_act_t      **act;
        uint32_t         cols;
        llm_act_kind_t   kind;
    } acts[] = {
        { &s->in, in, LLM_ACT_VALUE },
        { &s->conv, d->n_embd, LLM_ACT_PRODUCT },
        { &s->h, d->n_embd, LLM_ACT_VALUE },
        { &s->q, d->n_embd, LLM_ACT_PRODUCT },
        { &s->k, d->n_embd, LLM_ACT_PRODUCT },
        { &s->v, d->n_embd, LLM_ACT_PRODUCT },
        { &s->attn, d->n_embd, LLM_ACT_VALUE },
        { &s->up, d->n_ff, LLM_ACT_PRODUCT },
        { &s->act, d->n_ff, LLM_ACT_VALUE },
        { &s->out, d->n_embd, LLM_ACT_HIDDEN }
    };

    for (i = 0; i < llm_nelems(acts); i++) {
        *acts[i].act = m->ops->act_create(m->exec, s->rows, acts[i].cols,
                                          acts[i].kind, l->err);
        if (*acts[i].act == NULL) {
            return LLM_ERROR;
        }
    }

    for (i = 0; i < s->n_chunks; i++) {
        s->x[i] = m->ops->act_create(m->exec, s->rows, d->n_embd,
                                     LLM_ACT_RESIDUAL, l->err);
        if (s->x[i] == NULL) {
            return LLM_ERROR;
        }
    }

    for (i = 0; i < d->n_align; i++) {
        if (s->queries[d->align[i][0]]) {
            continue;
        }

        s->queries[d->align[i][0]] = m->ops->act_create(m->exec, s->rows,
                                         d->n_embd, LLM_ACT_RESIDUAL,
                                         l->err);
        if (s->queries[d->align[i][0]] == NULL) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* the pages of the layer that is computed, and of all states */

static int
llm_ear_caches(llm_load_t *l)
{
    llm_model_t             *m = l->m;
    llm_ear_t             *s = m->ear;
    llm_kv_opts_t            o;
    const llm_ear_desc_t  *d = &m->desc.ear;

    memset(&o, 0, sizeof(o));
    o.n_layers = 1;
    o.n_pages = s->n_pages;
    o.kind = LLM_KV_FULL;
    o.n_heads = d->n_heads;
    o.n_kv_heads = d->n_heads;
    o.head_dim_k = d->n_embd / d->n_heads;
    o.head_dim_v = o.head_dim_k;

    s->kv = m->ops->kv_create(m->exec, &o, l->err);
    if (s->kv == NULL) {
        return LLM_ERROR;
    }

    llm_load_kv_opts(l, LLM_KV_FULL, &o);
    o.n_pages = s->n_states * s->n_pages;
    o.kind = LLM_KV_CROSS;

    m->at->cross = m->ops->kv_create(m->exec, &o, l->err);

    return m->at->cross ? LLM_OK : LLM_ERROR;
}


static int
llm_ear_host(llm_load_t *l)
{
    size_t                   n;
    uint32_t                 i;
    llm_ear_t             *s = l->m->ear;
    const llm_ear_desc_t  *d = &l->m->desc.ear;

    n = (size_t) d->n_ctx * d->n_embd;

    s->x = calloc(s->n_chunks, sizeof(*s->x));
    s->queries = calloc(l->m->desc.hp.n_layers, sizeof(*s->queries));
    s->keys = calloc(s->n_states, sizeof(*s->keys));
    s->input = calloc((size_t) s->rows * 3 * llm_max(d->n_mels, d->n_embd),
                      sizeof(float));
    s->frames = calloc(2 * n, sizeof(float));
    s->states = calloc(n, sizeof(float));
    s->tokens = calloc(s->rows, sizeof(*s->tokens));
    s->pos = calloc(s->rows, sizeof(*s->pos));
    s->pages = calloc(s->n_pages, sizeof(*s->pages));
    s->cross = calloc(s->n_pages, sizeof(*s->cross));

    if (s->x == NULL || s->queries == NULL || s->keys == NULL
        || s->input == NULL || s->frames == NULL || s->states == NULL
        || s->tokens == NULL || s->pos == NULL || s->pages == NULL
        || s->cross == NULL)
    {
        return llm_ear_no_memory(l);
    }

    for (i = 0; i < s->n_pages; i++) {
        s->pages[i] = i;
    }

    return LLM_OK;
}


int
llm_load_ear(llm_load_t *l)
{
    llm_model_t             *m = l->m;
    llm_ear_t             *s;
    const llm_ear_desc_t  *d = &m->desc.ear;

    if (d->n_layers == 0) {
        return LLM_OK;
    }

    if (m->n_parts > 1 || m->n_members) {
        return llm_fail(l->err, "%s: a model of sound runs on one device, and "
                        "%u are named", llm_gguf_name(m->gguf),
                        m->n_members ? m->n_members : m->n_parts);
    }

    m->ear = s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return llm_ear_no_memory(l);
    }

    llm_part_enter(m, 0);

    s->rows = llm_min(m->batch, d->n_ctx);
    s->rows = m->ops == &llm_ops_cpu || m->ops == &llm_ops_reference
              ? llm_min(s->rows, LLM_EAR_ROWS) : s->rows;
    s->n_chunks = (d->n_ctx + s->rows - 1) / s->rows;
    s->n_pages = llm_ear_n_pages(&m->desc);
    s->n_states = l->opts->n_windows ? l->opts->n_windows : 1;
    s->stage = LLM_EAR_DONE;

    if (s->n_states > UINT32_MAX / 2 / s->n_pages) {
        return llm_fail(l->err, "%s: %u windows are too many",
                        llm_gguf_name(m->gguf), s->n_states);
    }

    if (llm_ear_host(l) != LLM_OK
        || llm_ear_weights(l) != LLM_OK
        || llm_ear_acts(l) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_ear_caches(l);
}


static void
llm_ear_free_device(llm_model_t *m)
{
    uint32_t      i, k;
    llm_ear_t  *s = m->ear;

    llm_act_t  *acts[] = { s->in, s->conv, s->h, s->q, s->k, s->v, s->attn,
                           s->up, s->act, s->out };

    for (i = 0; i < LLM_SG_N; i++) {
        if (s->gw[i]) {
            m->ops->weight_free(m->exec, s->gw[i]);
        }

        if (s->gv[i]) {
            m->ops->vec_free(m->exec, s->gv[i]);
        }
    }

    for (i = 0; s->layers && i < m->desc.ear.n_layers; i++) {
        for (k = 0; k < LLM_ST_N; k++) {
            if (s->layers[i].w[k]) {
                m->ops->weight_free(m->exec, s->layers[i].w[k]);
            }

            if (s->layers[i].v[k]) {
                m->ops->vec_free(m->exec, s->layers[i].v[k]);
            }
        }
    }

    for (i = 0; i < llm_nelems(acts); i++) {
        if (acts[i]) {
            m->ops->act_free(m->exec, acts[i]);
        }
    }

    for (i = 0; s->x && i < s->n_chunks; i++) {
        if (s->x[i]) {
            m->ops->act_free(m->exec, s->x[i]);
        }
    }

    for (i = 0; s->queries && i < m->desc.hp.n_layers; i++) {
        if (s->queries[i]) {
            m->ops->act_free(m->exec, s->queries[i]);
        }
    }

    if (s->kv) {
        m->ops->kv_free(m->exec, s->kv);
    }
}


void
llm_ear_free(llm_model_t *m)
{
    uint32_t      i;
    llm_ear_t  *s = m->ear;

    if (s == NULL) {
        return;
    }

    llm_part_enter(m, 0);
    llm_ear_free_device(m);

    for (i = 0; s->keys && i < s->n_states; i++) {
        free(s->keys[i]);
    }

    free(s->layers);
    free(s->x);
    free(s->queries);
    free(s->keys);
    free(s->input);
    free(s->frames);
    free(s->states);
    free(s->tokens);
    free(s->pos);
    free(s->pages);
    free(s->cross);
    free(s);
    m->ear = NULL;
}
