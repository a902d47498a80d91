/*
 * What is loaded after a model and has to find memory then: the encoder of
 * mmproj=, and what drafts for the model, a head or a small model.  The model's
 * load comes first and would take all that is free for its KV cache, so it
 * leaves what these will take (room.c): an estimate from the headers of their
 * files, from above.
 */

#include "engine/file/source.h"
#include "engine/model/model_internal.h"

/* rows of a step of what drafts, from above (engine/serve/draft.c) */
#define LLM_BESIDE_ROWS   128

/* floats of a row in the buffers of a step, times the width of the model, of
   its feed-forward layers, and of its heads together */
#define LLM_BESIDE_WIDTHS 16
#define LLM_BESIDE_FFS    4
#define LLM_BESIDE_HEADS  6

/* what a GPU's backend takes for a model of any size */
#define LLM_BESIDE_GPU    ((size_t) 32 << 20)


/* the bytes of the buffers of a step, and of logits */

static size_t
llm_beside_step(const llm_model_t *of, const llm_model_t *m, int gpu)
{
    const llm_hparams_t  *hp = &m->desc.hp;

    /* a head may have the model's vocabulary */

    return LLM_BESIDE_ROWS * sizeof(float)
           * (LLM_BESIDE_WIDTHS * (size_t) hp->n_embd
              + LLM_BESIDE_FFS * (size_t) hp->n_ff
              + LLM_BESIDE_HEADS * (size_t) hp->n_heads * hp->head_dim_k
              + 2 * (size_t) llm_max(hp->n_vocab, of->desc.hp.n_vocab))
           + (gpu ? LLM_BESIDE_GPU : 0);
}


/* what drafts, as the model's device will have it; m has the file, described */

static int
llm_beside_sizes(llm_load_t *of, llm_load_t *l)
{
    size_t          n;
    uint32_t        i;
    llm_model_t    *m = l->m;
    llm_kv_opts_t   o;

    if (llm_load_ctx(l) != LLM_OK || llm_load_sizes(l) != LLM_OK) {
        return LLM_ERROR;
    }

    m->ops = of->m->ops;
    m->exec = of->m->exec;
    of->beside.draft = llm_beside_step(of->m, m, of->beside.gpu)
                       + (of->beside.gpu ? (size_t) m->desc.hp.n_bytes
                                         : llm_load_weight_bytes(m));

    if (m->desc.head.kind == LLM_HEAD_ASSISTANT) {
        return LLM_OK;
    }

    for (i = 0, n = 0; i < m->n_kinds; i++) {
        llm_load_kv_opts(l, i, &o);
        n += m->ops->kv_page_size(m->exec, &o);
    }

    of->beside.page = n;
    of->beside.pages = (size_t) m->max_pages * m->max_seqs;

    /* without ctx= the model may get a shorter one, and this one with it */

    of->beside.least = (of->opts->ctx || of->opts->whole)
                       ? (size_t) m->max_pages * n : n;

    return LLM_OK;
}


static int
llm_beside_draft(llm_load_t *l)
{
    int                rc;
    llm_gguf_t        *g;
    llm_load_t         d;
    llm_model_opts_t   o;

    o = *l->opts;
    o.devices = l->m->devices;
    o.ctx = l->m->ctx;
    o.batch = LLM_BESIDE_ROWS;
    o.max_seqs = l->m->max_seqs;
    o.max_out = 0;
    o.kv_bytes = 0;
    o.log = NULL;

    g = o.draft ? llm_source_open_header(o.draft, l->err) : l->m->gguf;

    if (g == NULL) {
        return LLM_ERROR;
    }

    memset(&d, 0, sizeof(d));
    d.opts = &o;
    d.err = l->err;
    d.m = llm_model_create(&o);

    if (d.m == NULL) {
        rc = llm_fail(l->err, "%s: no memory for the model", llm_gguf_name(g));

    } else {
        d.m->gguf = g;
        rc = o.draft && llm_desc_head_kind(g) == LLM_HEAD_NONE
             ? llm_desc_read(g, &d.m->desc, l->err)
             : llm_desc_read_head(g, o.draft ? LLM_HEAD_NONE : LLM_HEAD_MTP,
                                  &d.m->desc, l->err);
        d.m->of = d.m->desc.head.kind == LLM_HEAD_NONE ? NULL : l->m;
        l->beside.head = d.m->of != NULL;
        rc = rc == LLM_OK ? llm_beside_sizes(l, &d) : rc;
        d.m->gguf = NULL;
        d.m->ops = NULL;
        d.m->exec = NULL;
        llm_model_free(d.m);
    }

    if (g != l->m->gguf) {
        llm_gguf_close(g);
    }

    return rc;
}


static int
llm_beside_tower(llm_load_t *l)
{
    llm_gguf_t  *g;

    g = llm_gguf_open_header(l->opts->tower, l->err);

    if (g == NULL) {
        return LLM_ERROR;
    }

    l->beside.tower = llm_tower_memory(g, l->beside.gpu);
    llm_gguf_close(g);

    return LLM_OK;
}


int
llm_beside_read(llm_load_t *l)
{
    l->beside.gpu = llm_model_on_gpu(l->m);

    if ((l->opts->tower == NULL || llm_beside_tower(l) == LLM_OK)
        && (!l->opts->drafts || llm_beside_draft(l) == LLM_OK))
    {
        return LLM_OK;
    }

    /* the files are wrong, whatever memory there is */
    l->memory = 0;

    return LLM_ERROR;
}
