/*
 * The forward pass of one step: the embedding, the layers, each a chain of
 * blocks that the architecture's row names, and the head.  Blocks call the
 * table of operations; differences between architectures come from the
 * description and from the tensors that the file has.
 *
 * In the last layer, after the last block whose rows depend on each other,
 * which is attention, only the rows that need results are computed: the others
 * have left their keys and values.  A row's result is its logits, or its
 * final state, which is what the head reads, or both.
 */

#include "engine/model/blocks.h"

#include <assert.h>


/* the last block of the chain whose rows depend on each other */

static uint32_t
llm_forward_last_mix(const llm_arch_t *arch)
{
    uint32_t  i, last;

    last = 0;

    for (i = 0; arch->blocks[i]; i++) {
        last = arch->blocks[i]->mixes ? i : last;
    }

    return last;
}


static void
llm_forward_step(llm_model_t *m)
{
    int                       narrows;
    uint32_t                  i, last_mix;
    llm_act_t                *const *a = m->act;
    llm_pass_t                p = { m, 0, LLM_ROWS_ALL, a[LLM_MA_X], 0 };
    llm_linear_t              head = { m->output, NULL, a[LLM_MA_LOGITS], 0 };
    const llm_block_t *const *blocks = m->desc.arch->blocks;

    last_mix = llm_forward_last_mix(m->desc.arch);
    m->ops->embed(m->dev, m->token_embd, p.x);

    for ( /* void */ ; p.layer < m->desc.hp.n_layers; p.layer++) {
        for (i = 0; blocks[i]; i++) {
            narrows = (p.layer == m->desc.hp.n_layers - 1 && i == last_mix);
            p.ends = (narrows && m->n_out == 0);

            blocks[i]->forward(&p);

            if (p.ends) {
                return;
            }

            if (narrows) {
                m->ops->gather(m->dev, a[LLM_MA_X], a[LLM_MA_X_OUT]);
                p.rows = LLM_ROWS_OUT;
                p.x = a[LLM_MA_X_OUT];
            }
        }
    }

    if (m->gives != LLM_GIVES_LOGITS) {
        m->ops->norm(m->dev, LLM_ROWS_OUT, a[LLM_MA_X_OUT], m->output_norm,
                     m->desc.hp.norm_eps, a[LLM_MA_STATE]);
    }

    if (m->gives != LLM_GIVES_STATES) {
        m->ops->norm(m->dev, LLM_ROWS_OUT, a[LLM_MA_X_OUT], m->output_norm,
                     m->desc.hp.norm_eps, a[LLM_MA_H]);
        m->ops->linear(m->dev, LLM_ROWS_OUT, a[LLM_MA_H], &head, 1);
    }
}


static void
llm_forward_assert(const llm_model_t *m, const llm_batch_t *b)
{
    uint32_t  i;

    assert(b->n_tokens > 0 && b->n_tokens <= m->batch);
    assert(b->n_seqs > 0 && b->n_seqs <= m->max_seqs);
    assert(b->n_out <= m->max_out);
    assert(b->max_pages <= m->max_pages);
    assert(b->seq_rows[0] == 0 && b->seq_rows[b->n_seqs] == b->n_tokens);

    for (i = 0; i < b->n_seqs; i++) {
        assert(b->seq_rows[i] < b->seq_rows[i + 1]);
        assert(b->kv_len[i] > 0 && b->kv_len[i] <= m->ctx);
        assert(b->kv_len[i] == b->pos[b->seq_rows[i + 1] - 1] + 1);
    }

    for (i = 0; i < b->n_tokens; i++) {
        assert((uint32_t) b->tokens[i] < m->desc.hp.n_vocab);
        assert(b->follows == NULL || b->follows[i] == LLM_NO_DRAW
               || (m->ops->submit && b->follows[i] < m->n_out));
    }
}


int
llm_model_submit(llm_model_t *m, const llm_batch_t *b, llm_err_t *err)
{
    int  rc;

    assert(m->n_in_flight < (m->ops->submit ? 2 : 1));
    llm_forward_assert(m, b);

    m->n_out = b->n_out;
    m->gives = b->gives;

    rc = m->ops->begin(m->dev, b, err);

    if (rc == LLM_ERROR) {
        m->n_in_flight = 0;
        return LLM_ERROR;
    }

    if (rc == LLM_OK) {
        llm_forward_step(m);
    }

    if (m->ops->submit && m->ops->submit(m->dev) == LLM_REDO) {
        llm_forward_step(m);
        (void) m->ops->submit(m->dev);
    }

    m->in_flight[m->n_in_flight++] = b->n_out;

    return LLM_OK;
}


int
llm_model_wait(llm_model_t *m, llm_err_t *err)
{
    assert(m->n_in_flight > 0);

    m->n_results = m->in_flight[0];
    m->in_flight[0] = m->in_flight[1];
    m->n_in_flight--;
    m->logits = NULL;
    m->states = NULL;

    if (m->ops->end(m->dev, err) != LLM_OK) {
        m->n_in_flight = 0;
        return LLM_ERROR;
    }

    /* a device may read its weights from the mapped file */

    if (llm_gguf_intact(m->gguf, err) != LLM_OK) {
        m->n_in_flight = 0;
        return LLM_ERROR;
    }

    return LLM_OK;
}


int
llm_model_forward(llm_model_t *m, const llm_batch_t *b, llm_err_t *err)
{
    if (llm_model_submit(m, b, err) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_model_wait(m, err);
}


int
llm_model_overlaps(const llm_model_t *m)
{
    return m->ops->submit != NULL && m->ops->drawn != NULL;
}


const float *
llm_model_logits(llm_model_t *m, uint32_t i)
{
    assert(i < m->n_results);

    if (m->logits == NULL) {
        m->logits = m->ops->map(m->dev, m->act[LLM_MA_LOGITS], 0,
                                m->n_results);
    }

    return m->logits + (size_t) i * m->desc.hp.n_vocab;
}


const float *
llm_model_state(llm_model_t *m, uint32_t i)
{
    assert(i < m->n_results);

    if (m->states == NULL) {
        m->states = m->ops->map(m->dev, m->act[LLM_MA_STATE], 0,
                                m->n_results);
    }

    return m->states + (size_t) i * m->desc.hp.n_embd;
}


int
llm_model_draws(const llm_model_t *m)
{
    return m->ops->drawn != NULL;
}


void
llm_model_drawn(llm_model_t *m, uint32_t i, llm_drawn_t *out)
{
    assert(i < m->n_results);

    m->ops->drawn(m->dev, i, out);
}


void
llm_model_copy_page(llm_model_t *m, uint32_t src, uint32_t dst)
{
    assert(src < m->n_pages && dst < m->n_pages);

    m->ops->kv_copy(m->dev, m->kv, src, dst);
}
