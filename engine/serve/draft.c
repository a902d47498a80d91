/*
 * What drafts tokens for an instance's model: the model of draft=FILE (see
 * engine/sched/draft_model.h), or a head, of that file or of the model's own
 * (engine/sched/draft_head.h).
 */

#include "engine/serve/check.h"
#include "engine/serve/engine.h"

/* rows of a step of the small model */
#define LLM_DRAFT_BATCH  64


/* the file of the head: the model's own is NULL.  LLM_ABSENT: no head drafts */

static int
llm_instance_head_path(const llm_instance_t *m, const char **path,
    llm_err_t *err)
{
    *path = m->conf.draft_path;

    if (m->conf.draft_path) {
        return llm_head_is(m->conf.draft_path, err);
    }

    return llm_conf_drafts(&m->conf, LLM_DRAFT_MTP) ? LLM_OK : LLM_ABSENT;
}


int
llm_instance_keep(const llm_instance_t *m, const char *path,
    llm_keep_t *keep, llm_err_t *err)
{
    int          rc;
    const char  *head;

    memset(keep, 0, sizeof(*keep));
    rc = llm_instance_head_path(m, &head, err);

    if (rc != LLM_OK) {
        return rc == LLM_ABSENT ? LLM_OK : LLM_ERROR;
    }

    return llm_head_check(path, head, err) == LLM_OK
           ? llm_head_keeps(head, keep, err) : LLM_ERROR;
}


/* ---- a head, as the scheduler uses it ---- */

static void
llm_head_run_states(void *data, uint32_t row, uint32_t n, float *to)
{
    llm_head_read(data, row, n, to);
}


static int
llm_head_run_rows(void *data, const llm_head_at_t *at, const int32_t *ids,
    const float *states, uint32_t n, llm_err_t *err)
{
    return llm_head_rows(data, at, ids, states, n, 0, err);
}


static int
llm_head_run_next(void *data, const llm_head_at_t *at, int32_t id,
    llm_err_t *err)
{
    return llm_head_next(data, at, id, err);
}


static const float *
llm_head_run_logits(void *data)
{
    return llm_head_logits(data, 0);
}


static int32_t
llm_head_run_token(void *data, uint32_t i)
{
    return llm_head_token(data, i);
}


static int
llm_instance_head(llm_instance_t *m, const char *path,
    const llm_model_opts_t *opts, llm_err_t *err)
{
    llm_model_opts_t    o;
    llm_head_runner_t  *run;

    o = *opts;
    o.ctx = m->runner.ctx;
    o.batch = LLM_HEAD_ROWS;
    o.max_seqs = m->runner.max_seqs;
    o.kv_bytes = 0;

    m->head = llm_head_load(m->model, path, &o, err);
    if (m->head == NULL) {
        return LLM_ERROR;
    }

    run = &m->head_runner;
    run->data = m->head;
    run->kind = path ? LLM_DRAFT_MODEL : LLM_DRAFT_MTP;
    run->n_vocab = llm_head_n_vocab(m->head);
    run->n_tokens = llm_head_n_tokens(m->head);
    run->width = llm_head_width(m->head);
    run->ctx = llm_head_ctx(m->head);
    run->batch = llm_head_batch(m->head);
    run->seats = llm_head_seats(m->head);
    run->last = llm_head_is_last(m->head);
    run->states = llm_head_run_states;
    run->rows = llm_head_run_rows;
    run->next = llm_head_run_next;
    run->logits = llm_head_run_logits;
    run->token = llm_head_run_token;

    return LLM_OK;
}


/* ---- a small model ---- */


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


static int
llm_instance_small(llm_instance_t *m, const llm_model_opts_t *opts,
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

    llm_model_draft_begins(m->model);
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


int
llm_instance_draft(llm_instance_t *m, const llm_model_opts_t *opts,
    llm_err_t *err)
{
    int          rc;
    const char  *path;

    rc = llm_instance_head_path(m, &path, err);

    if (rc == LLM_OK) {
        return llm_instance_head(m, path, opts, err);
    }

    return rc == LLM_ABSENT && path ? llm_instance_small(m, opts, err)
           : rc == LLM_ABSENT ? LLM_OK : LLM_ERROR;
}


void
llm_instance_close_draft(llm_instance_t *m)
{
    llm_head_free(m->head);
    m->head = NULL;

    if (m->draft) {
        llm_model_free(m->draft);
        m->draft = NULL;
    }
}
