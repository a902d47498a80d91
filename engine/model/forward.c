/*
 * The forward pass of one step: the embedding, the layers, each with the chain
 * of blocks in its description, and the head, device after device.  Blocks call
 * the table of operations; architectures differ only in the description and in
 * the tensors that the file has.
 *
 * After the last layer's last block whose rows depend on each other, which is
 * attention, only the rows that need results are computed: keys and values of
 * the others are in the cache.  A row's result is its logits, its final state
 * (which the head reads), or both.
 */

#include "engine/model/ear.h"
#include "engine/model/head_pass.h"
#include "engine/model/keep.h"

#include <assert.h>


const llm_buffer_want_t  llm_forward_buffers[] = {
    { LLM_MA_X, LLM_DIM_EMBD },
    { LLM_MA_H, LLM_DIM_EMBD },
    { LLM_MA_OUT, LLM_DIM_EMBD },
    { LLM_MA_X_OUT, LLM_DIM_EMBD },
    { LLM_MA_H_OUT, LLM_DIM_EMBD },
    { LLM_MA_LOGITS, LLM_DIM_LOGITS },
    { LLM_MA_HIDDEN, LLM_DIM_STATE },
    { LLM_MA_PAIR, LLM_DIM_PAIR },
    { LLM_MA_TAPS, LLM_DIM_TAPS },
    { LLM_MA_N, LLM_DIM_NONE }
};


/* index of the layer's last block whose rows depend on each other */

static uint32_t
llm_forward_last_mix(const llm_layer_desc_t *l)
{
    uint32_t  i, last;

    last = 0;

    for (i = 0; l->blocks[i]; i++) {
        last = l->blocks[i]->mixes ? i : last;
    }

    return last;
}


static void
llm_forward_begin(llm_model_t *m)
{
    llm_act_t  *x = m->act[LLM_MA_X];

    llm_norm_t  norm = {
        .kind = m->desc.arch->norm,
        .eps = m->desc.hp.norm_eps,
        .w = m->embd_norm,
        .bias = m->embd_norm_bias
    };

    if (m->desc.head.kind) {
        llm_head_begin(m);
        return;
    }

    m->ops->embed(m->exec, m->token_embd, x);

    if (m->desc.embd_scale != 1) {
        m->ops->scale(m->exec, LLM_ROWS_ALL, m->desc.embd_scale, x, 0, x);
    }

    if (m->given) {
        m->ops->input(m->exec, LLM_ROWS_ALL, 0, 0, x);
    }

    if (m->pos_embd) {
        m->ops->embed_pos(m->exec, m->pos_embd, x);
    }

    if (m->token_type) {
        m->ops->add_vec(m->exec, LLM_ROWS_ALL, m->token_type, x);
    }

    if (m->embd_norm) {
        m->ops->norm(m->exec, LLM_ROWS_ALL, x, &norm, x);
    }

    if (m->desc.n_input) {
        llm_forward_inputs(m);
    }
}


static void
llm_forward_head(llm_model_t *m)
{
    llm_act_t  *const *a = m->act;

    llm_linear_t  head = {
        m->output, m->output_bias, a[LLM_MA_LOGITS], 0
    };

    llm_norm_t  norm = {
        .kind = m->desc.arch->norm,
        .eps = m->desc.hp.norm_eps,
        .w = m->output_norm,
        .bias = m->output_norm_bias
    };

    if (m->gives != LLM_GIVES_LOGITS && m->desc.head.kind > LLM_HEAD_MTP) {
        llm_head_state(m);

    } else if (m->gives != LLM_GIVES_LOGITS
               && (norm.w || m->desc.arch->bare))
    {
        m->ops->norm(m->exec, LLM_ROWS_OUT, a[LLM_MA_X_OUT], &norm,
                     a[LLM_MA_HIDDEN]);

    } else if (m->gives != LLM_GIVES_LOGITS) {
        m->ops->scale(m->exec, LLM_ROWS_OUT, 1, a[LLM_MA_X_OUT], 0,
                      a[LLM_MA_HIDDEN]);
    }

    if (m->gives == LLM_GIVES_HIDDEN) {
        return;
    }

    m->ops->norm(m->exec, LLM_ROWS_OUT, a[LLM_MA_X_OUT], &norm, a[LLM_MA_H]);
    m->ops->linear(m->exec, LLM_ROWS_OUT, a[LLM_MA_H], &head, 1);

    if (m->desc.logit_scale != 1) {
        m->ops->scale(m->exec, LLM_ROWS_OUT, m->desc.logit_scale, head.y, 0,
                      head.y);
    }

    if (m->desc.logit_cap > 0) {
        m->ops->softcap(m->exec, LLM_ROWS_OUT, m->desc.logit_cap, head.y);
    }
}


/* the layers of the part that the step is at */

static void
llm_forward_step(llm_model_t *m)
{
    int         narrows;
    uint32_t    i;
    llm_act_t  *const *a = m->act;
    llm_pass_t  p = { .m = m, .rows = LLM_ROWS_ALL, .x = a[LLM_MA_X],
                      .h = a[LLM_MA_H] };

    if (m->at == m->parts) {
        llm_forward_begin(m);
    }

    if (llm_head_is_made(m)) {
        return;
    }

    for (p.layer = m->at->first; p.layer < m->at->end; p.layer++) {
        p.d = &m->desc.layers[p.layer];
        p.l = &m->layers[p.layer];
        llm_keep_input(m, p.layer);

        for (i = 0; p.d->blocks[i]; i++) {
            narrows = (p.layer == m->desc.hp.n_layers - 1
                       && i == llm_forward_last_mix(p.d));
            p.ends = (narrows && m->n_out == 0 && !llm_keep_all(m));

            llm_pass_buffers(&p, p.d->blocks[i]->buffers);
            p.d->blocks[i]->forward(&p);

            if (p.ends) {
                return;
            }

            if (narrows && m->n_out) {
                m->ops->gather(m->exec, a[LLM_MA_X], a[LLM_MA_X_OUT]);
            }

            if (narrows && llm_keep_all(m)) {
                llm_keep_rest(&p, i);
            }

            if (narrows && m->n_out == 0) {
                return;
            }

            if (narrows) {
                p.rows = LLM_ROWS_OUT;
                p.x = a[LLM_MA_X_OUT];
            }

            if (narrows && p.d->parallel) {
                m->ops->gather(m->exec, a[LLM_MA_H], a[LLM_MA_H_OUT]);
                p.h = a[LLM_MA_H_OUT];
            }
        }

        if (m->given && p.layer < m->desc.hp.n_deepstack) {
            m->ops->input(m->exec, p.rows,
                          (p.layer + 1) * m->desc.hp.n_embd, 1, p.x);
        }
    }

    if (m->at == llm_part_last(m)) {
        llm_keep_results(m);
        llm_forward_head(m);
    }
}


/* copies what a part reads of the part before it: the residual stream, and the
   layers' own inputs; and the first part's tokens that the last part drew */

static void
llm_forward_receive(llm_model_t *m, const llm_batch_t *b)
{
    size_t                   i;
    const llm_model_part_t  *from;

    static const llm_model_act_t  passed[] = { LLM_MA_X, LLM_MA_INPUTS };

    if (m->n_parts == 1) {
        return;
    }

    if (m->at == m->parts) {
        if (b->follows) {
            m->ops->receive_drawn(m->exec, llm_part_last(m)->exec);
        }

        return;
    }

    from = m->at - 1;

    for (i = 0; i < llm_nelems(passed); i++) {
        if (m->act[passed[i]]) {
            m->ops->receive(m->exec, from->exec, from->act[passed[i]],
                            m->act[passed[i]]);
        }
    }
}


/* the step in one part */

static int
llm_forward_part(llm_model_t *m, uint32_t part, const llm_batch_t *b,
    llm_err_t *err)
{
    int  rc;

    llm_part_enter(m, part);
    llm_forward_receive(m, b);

    rc = m->ops->begin(m->exec, b, err);

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (rc == LLM_OK) {
        llm_forward_step(m);
    }

    if (m->ops->submit && m->ops->submit(m->exec) == LLM_REDO) {
        llm_forward_step(m);
        (void) m->ops->submit(m->exec);
    }

    return LLM_OK;
}


static void
llm_forward_assert(const llm_model_t *m, const llm_batch_t *b)
{
    uint32_t  i;

    assert(b->n_tokens > 0 && b->n_tokens <= m->batch);
    assert(b->n_seqs > 0 && b->n_seqs <= m->max_seqs);
    assert(b->n_out <= m->max_out);
    assert(b->max_pages <= llm_max(m->max_pages,
                                   llm_ear_n_pages(&m->desc)));
    assert(m->ear == NULL || (b->cross && b->cross_len));
    assert(b->seq_rows[0] == 0 && b->seq_rows[b->n_seqs] == b->n_tokens);

    for (i = 0; i < m->n_kinds; i++) {
        assert(b->pages[i]);
    }

    for (i = 0; i < b->n_seqs; i++) {
        assert(b->seq_rows[i] < b->seq_rows[i + 1]);
        assert(b->kv_len[i] > 0 && b->kv_len[i] <= m->ctx);
        assert(b->kv_len[i] == b->pos[b->seq_rows[i + 1] - 1] + 1);
        assert(m->n_slots == 0 || (b->slots && b->slots[i] < m->n_slots));
    }

    for (i = 0; m->desc.hp.encoder && i < b->n_seqs; i++) {
        assert(b->pos[b->seq_rows[i]] == 0);
        assert(b->gives == LLM_GIVES_HIDDEN || b->n_out == 0);
    }

    assert((b->given == NULL && b->turns == NULL && b->sees == NULL)
           || llm_model_takes_rows(m));
    assert(b->given == NULL || m->desc.head.kind
           || b->given_cols == m->desc.hp.n_embd
                               * (1 + m->desc.hp.n_deepstack));

    for (i = 0; i < b->n_tokens; i++) {
        assert(b->given == NULL || b->given[i] == LLM_NOT_GIVEN
               || (b->given[i] < b->n_given && b->tokens[i] == 0));
        assert(b->sees == NULL
               || (b->sees[2 * i] <= b->pos[i]
                   && b->sees[2 * i + 1] > b->pos[i]
                   && b->sees[2 * i + 1] <= m->ctx));
        assert((uint32_t) b->tokens[i] < m->desc.hp.n_vocab);
        assert(b->follows == NULL || b->follows[i] == LLM_NO_DRAW
               || (m->ops->submit && b->follows[i] < m->n_out));
    }
}


int
llm_model_submit(llm_model_t *m, const llm_batch_t *b, llm_err_t *err)
{
    uint32_t  i;

    assert(m->n_in_flight < (m->ops->submit ? 2 : 1));
    llm_forward_assert(m, b);

    m->n_out = b->n_out;
    m->n_rows = b->n_tokens;
    m->all_out = b->n_out == b->n_tokens;

    for (i = 0; i < b->n_out && m->all_out; i++) {
        m->all_out = b->out_rows[i] == i;
    }

    m->gives = b->gives;
    m->given = b->given != NULL;

    for (i = 0; i < m->n_parts; i++) {
        if (llm_forward_part(m, i, b, err) != LLM_OK) {
            m->n_in_flight = 0;
            return LLM_ERROR;
        }
    }

    m->in_flight[m->n_in_flight++] = b->n_out;

    return LLM_OK;
}


int
llm_model_wait(llm_model_t *m, llm_err_t *err)
{
    uint32_t  i;

    assert(m->n_in_flight > 0);

    m->n_results = m->in_flight[0];
    m->n_kept = m->n_rows;
    m->in_flight[0] = m->in_flight[1];
    m->n_in_flight--;
    m->logits = NULL;
    m->hidden = NULL;

    for (i = 0; i < m->n_parts; i++) {
        if (m->ops->end(m->parts[i].exec, err) != LLM_OK) {
            m->n_in_flight = 0;
            return LLM_ERROR;
        }
    }

    /* the device may have read weights from the mapped file during the step */

    if (llm_gguf_intact(m->gguf, err) != LLM_OK
        || llm_packed_intact(m, err) != LLM_OK)
    {
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
llm_model_takes_rows(const llm_model_t *m)
{
    return (m->ops->can & LLM_CAN_MEDIA) != 0;
}


int
llm_model_overlaps(const llm_model_t *m)
{
    /* a step that follows would write over what one keeps */

    return m->ops->submit != NULL && m->ops->drawn != NULL
           && m->keep.n_layers == 0 && !m->keep.states;
}


const float *
llm_model_logits(llm_model_t *m, uint32_t i)
{
    assert(i < m->n_results);

    if (m->logits == NULL) {
        llm_part_enter(m, m->n_parts - 1);
        m->logits = m->ops->map(m->exec, m->act[LLM_MA_LOGITS], 0,
                                m->n_results);
    }

    return m->logits + (size_t) i * m->desc.hp.n_vocab;
}


const float *
llm_model_hidden(llm_model_t *m, uint32_t i)
{
    assert(i < m->n_results);

    if (m->hidden == NULL) {
        llm_part_enter(m, m->n_parts - 1);
        m->hidden = m->ops->map(m->exec, m->act[LLM_MA_HIDDEN], 0,
                                m->n_results);
    }

    return m->hidden + (size_t) i
                       * llm_desc_dim(&m->desc, &m->desc.layers[0],
                                      LLM_DIM_STATE);
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

    m->ops->drawn(llm_part_last(m)->exec, i, out);
}


void
llm_model_copy_page(llm_model_t *m, uint32_t kind, uint32_t src, uint32_t dst)
{
    uint32_t  i;

    assert(kind < m->n_kinds);
    assert(src < m->n_pages[kind] && dst < m->n_pages[kind]);

    for (i = 0; i < m->n_parts; i++) {
        llm_part_enter(m, i);
        m->ops->kv_copy(m->exec, m->at->kv[kind], src, dst);
    }
}


void
llm_model_copy_slot(llm_model_t *m, uint32_t src, uint32_t dst)
{
    uint32_t  i;

    assert(src < m->n_slots && dst < m->n_slots);

    for (i = 0; i < m->n_parts; i++) {
        llm_part_enter(m, i);
        m->ops->state_copy(m->exec, m->at->state, src, dst);
    }
}
