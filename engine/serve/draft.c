/*
 * The model of draft=FILE, which drafts tokens for an instance's own model; see
 * engine/sched/draft_model.h.
 */

#include "engine/serve/engine.h"

/* rows of a step of the small model */
#define LLM_DRAFT_BATCH  64


/* do both models have the same tokens?  One may have more rows than tokens */

static int
llm_instance_same_words(const llm_vocab_t *a, const llm_vocab_t *b, uint32_t n,
    llm_err_t *err)
{
    uint32_t   i;
    llm_str_t  one, other;

    for (i = 0; i < n; i++) {
        one = llm_vocab_bytes(a, (int32_t) i);
        other = llm_vocab_bytes(b, (int32_t) i);

        if (one.len != other.len
            || (one.len && memcmp(one.data, other.data, one.len) != 0))
        {
            return llm_fail(err, "token %u is not the same as in the model",
                            i);
        }
    }

    return LLM_OK;
}


static int
llm_instance_draft_words(const llm_instance_t *m, llm_err_t *err)
{
    int           rc;
    uint32_t      n;
    llm_vocab_t  *words;

    words = llm_vocab_load(llm_model_gguf(m->draft), err);
    if (words == NULL) {
        return LLM_ERROR;
    }

    n = llm_min(m->draft_runner.n_vocab, llm_vocab_size(m->env.vocab));
    n = llm_min(n, llm_vocab_size(words));
    rc = llm_instance_same_words(m->env.vocab, words, n, err);
    llm_vocab_free(words);

    return rc;
}


int
llm_instance_draft(llm_instance_t *m, const llm_model_opts_t *opts,
    llm_err_t *err)
{
    llm_err_t         why;
    llm_runner_t     *run;
    llm_model_opts_t  o;

    o = *opts;
    o.ctx = m->runner.ctx;
    o.batch = LLM_DRAFT_BATCH;
    o.max_seqs = m->runner.max_seqs;
    o.max_out = 1;
    o.kv_bytes = 0;
    o.progress = NULL;

    m->draft = llm_model_load(m->conf.draft_path, &o, err);
    if (m->draft == NULL) {
        return LLM_ERROR;
    }

    run = &m->draft_runner;
    llm_instance_runner_of(m->draft, run);
    run->n_vocab = llm_min(run->n_vocab, m->runner.n_vocab);

    if (llm_model_hparams(m->draft)->encoder
        || llm_model_hparams(m->draft)->listens)
    {
        return llm_fail(err, "%s: an encoder, or a model of speech, cannot "
                        "draft", m->conf.draft_path);
    }

    if (run->n_slots) {
        return llm_fail(err, "%s: a model with recurrent layers cannot draft",
                        m->conf.draft_path);
    }

    if (llm_instance_draft_words(m, &why) != LLM_OK) {
        return llm_fail(err, "%s cannot draft for this model: %s",
                        m->conf.draft_path, why.msg);
    }

    return LLM_OK;
}


void
llm_instance_close_draft(llm_instance_t *m)
{
    if (m->draft) {
        llm_model_free(m->draft);
        m->draft = NULL;
    }
}
