/*
 * A model as a scheduler uses it: its sizes, and the functions of
 * engine/model/model.h behind llm_runner_t.
 */

#include "engine/serve/engine.h"


static int
llm_runner_submit(void *data, const llm_batch_t *b, llm_err_t *err)
{
    return llm_model_submit(data, b, err);
}


static int
llm_runner_wait(void *data, llm_err_t *err)
{
    return llm_model_wait(data, err);
}


static const float *
llm_runner_logits(void *data, uint32_t i)
{
    return llm_model_logits(data, i);
}


static const float *
llm_runner_hidden(void *data, uint32_t i)
{
    return llm_model_hidden(data, i);
}


static int
llm_runner_project(void *data, float *v)
{
    return llm_model_project(data, v);
}


static double
llm_runner_rank(void *data, const float *state, int raw)
{
    return llm_model_rank(data, state, raw);
}


static void
llm_runner_drawn(void *data, uint32_t i, llm_drawn_t *out)
{
    llm_model_drawn(data, i, out);
}


static void
llm_runner_copy(void *data, uint32_t kind, uint32_t src, uint32_t dst)
{
    llm_model_copy_page(data, kind, src, dst);
}


static void
llm_runner_copy_slot(void *data, uint32_t src, uint32_t dst)
{
    llm_model_copy_slot(data, src, dst);
}


void
llm_instance_runner_of(llm_model_t *model, llm_runner_t *run)
{
    uint32_t  k;

    memset(run, 0, sizeof(*run));

    run->data = model;
    run->n_vocab = llm_model_hparams(model)->n_vocab;
    run->n_embd = llm_model_hparams(model)->n_embd;
    run->batch = llm_model_batch(model);
    run->max_seqs = llm_model_max_seqs(model);
    run->max_out = llm_model_max_out(model);
    run->window = llm_model_window(model);
    run->ctx = llm_model_ctx(model);

    for (k = 0; k < LLM_KV_KINDS; k++) {
        run->n_pages[k] = llm_model_n_pages(model, k);
    }

    if (run->window == 0 || run->n_pages[LLM_KV_WINDOW]) {
        run->ctx = llm_min(run->ctx, run->n_pages[LLM_KV_FULL] * LLM_KV_PAGE);
    }

    run->submit = llm_runner_submit;
    run->wait = llm_runner_wait;
    run->overlaps = llm_model_overlaps(model);
    run->logits = llm_runner_logits;
    run->drawn = llm_model_draws(model) ? llm_runner_drawn : NULL;
    run->hidden = llm_runner_hidden;
    run->project = llm_runner_project;
    run->rank = llm_runner_rank;
    run->copy_page = llm_runner_copy;
    run->n_slots = llm_model_n_slots(model);
    run->copy_slot = llm_runner_copy_slot;
}
