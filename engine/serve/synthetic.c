/*
 * device=synthetic[:N], in builds with LLM_TEST only: instead of a model, a
 * generator of N tokens per second and stream (20 by default), to measure
 * everything around the model with thousands of streams.  Vocabulary and
 * template are the file's; the tokens are its first 64 in turn.
 *
 * The pages are numbers only, without memory.
 */

#ifdef LLM_TEST

#include "engine/file/source.h"
#include "engine/serve/engine.h"

#define LLM_SYNTHETIC_RATE    20
#define LLM_SYNTHETIC_VOCAB   64
#define LLM_SYNTHETIC_CTX     4096
#define LLM_SYNTHETIC_PAGES   262144
#define LLM_SYNTHETIC_CHUNK   16384

struct llm_synthetic_s {
    llm_gguf_t  *file;
    uint64_t     tick_us;
    uint64_t     next_us;               /* when the next step is due */
    uint32_t     n_steps;
    float        rows[LLM_SYNTHETIC_VOCAB][LLM_SYNTHETIC_VOCAB];
};


static int
llm_synthetic_submit(void *data, const llm_batch_t *b, llm_err_t *err)
{
    llm_synthetic_t  *s = data;

    (void) b;
    (void) err;

    s->n_steps++;

    return LLM_OK;
}


static int
llm_synthetic_wait(void *data, llm_err_t *err)
{
    (void) data;
    (void) err;

    return LLM_OK;
}


static const float *
llm_synthetic_logits(void *data, uint32_t i)
{
    llm_synthetic_t  *s = data;

    return s->rows[(s->n_steps + i) % LLM_SYNTHETIC_VOCAB];
}


static void
llm_synthetic_copy(void *data, uint32_t kind, uint32_t src, uint32_t dst)
{
    (void) data;
    (void) kind;
    (void) src;
    (void) dst;
}


int
llm_synthetic_is(const char *device)
{
    return device && strncmp(device, "synthetic", 9) == 0
           && (device[9] == '\0' || device[9] == ':');
}


int
llm_synthetic_due(llm_synthetic_t *s, uint64_t now)
{
    if (now < s->next_us) {
        return 0;
    }

    s->next_us = llm_max(s->next_us + s->tick_us, now);

    return 1;
}


uint64_t
llm_synthetic_next(const llm_synthetic_t *s)
{
    return s->next_us;
}


int
llm_synthetic_open(llm_instance_t *m, llm_err_t *err)
{
    uint32_t           i, rate, pages;
    llm_runner_t      *run;
    llm_synthetic_t   *s;

    s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return llm_fail(err, "no memory");
    }

    m->synthetic = s;

    s->file = llm_source_open(llm_instance_path(m), err);
    if (s->file == NULL) {
        return LLM_ERROR;
    }

    m->env.vocab = llm_vocab_load(s->file, err);
    if (m->env.vocab == NULL) {
        return LLM_ERROR;
    }

    rate = m->conf.device[9] == ':'
           ? (uint32_t) strtoul(m->conf.device + 10, NULL, 10) : 0;
    s->tick_us = 1000000 / (rate ? rate : LLM_SYNTHETIC_RATE);

    for (i = 0; i < LLM_SYNTHETIC_VOCAB; i++) {
        s->rows[i][i] = 10;
    }

    run = &m->runner;
    run->data = s;
    run->n_vocab = LLM_SYNTHETIC_VOCAB;
    run->ctx = m->conf.ctx ? m->conf.ctx : LLM_SYNTHETIC_CTX;
    run->max_seqs = m->parallel;
    run->max_out = run->max_seqs + LLM_SYNTHETIC_CHUNK;
    run->chunk = LLM_SYNTHETIC_CHUNK;
    run->batch = run->max_seqs + run->chunk;

    pages = (run->ctx + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
    run->n_pages[LLM_KV_FULL] = llm_max(pages * run->max_seqs,
                                        (uint32_t) LLM_SYNTHETIC_PAGES);

    run->submit = llm_synthetic_submit;
    run->wait = llm_synthetic_wait;
    run->logits = llm_synthetic_logits;
    run->copy_page = llm_synthetic_copy;

    return LLM_OK;
}


const llm_gguf_t *
llm_synthetic_gguf(const llm_synthetic_t *s)
{
    return s->file;
}


void
llm_synthetic_close(llm_synthetic_t *s)
{
    if (s->file) {
        llm_gguf_close(s->file);
    }

    free(s);
}

#else

typedef int  llm_no_synthetic_t;

#endif /* LLM_TEST */
