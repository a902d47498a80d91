/*
 * Commands that run a model over given tokens: logits, perplexity.
 */

#include "engine/file/source.h"
#include "engine/cli/cli.h"

#include <math.h>
#include <stdio.h>

#define LLM_CLI_WINDOW       512        /* tokens; perplexity without --ctx */


int
llm_cli_n_vocab(const char *file, uint32_t *n_vocab, llm_err_t *err)
{
    int            rc;
    llm_gguf_t    *g;
    llm_hparams_t  hp;

    g = llm_source_open(file, err);
    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = llm_model_check(g, &hp, err);

    if (rc == LLM_OK) {
        *n_vocab = hp.n_vocab;
    }

    llm_gguf_close(g);

    return rc;
}


static int
llm_cli_print_logits(llm_cli_seq_t *s, uint32_t n, llm_err_t *err)
{
    uint32_t  i, n_vocab;

    n_vocab = llm_model_hparams(s->model)->n_vocab;

    for (i = 0; i < n; i++) {
        if (llm_cli_write(llm_model_logits(s->model, i),
                          n_vocab * sizeof(float), err) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_cli_run_logits(const llm_cli_t *c, const llm_ids_t *ids, llm_err_t *err)
{
    int            rc;
    size_t         i;
    uint32_t       ctx, batch, take, n_out;
    llm_cli_seq_t  s;

    ctx = c->ctx ? c->ctx : (uint32_t) ids->len;
    batch = c->batch ? c->batch : LLM_CLI_BATCH_SIZE;
    batch = (uint32_t) llm_min(batch, ids->len);

    if (llm_cli_seq_open(&s, c, ctx, batch, c->all ? batch : 1, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    rc = LLM_OK;

    for (i = 0; rc == LLM_OK && i < ids->len; i += take) {
        take = (uint32_t) llm_min(batch, ids->len - i);
        n_out = c->all ? take : (i + take == ids->len);

        rc = llm_cli_seq_step(&s, ids->data + i, take, n_out, err);

        if (rc == LLM_OK) {
            rc = llm_cli_print_logits(&s, n_out, err);
        }
    }

    llm_cli_seq_close(&s);

    return rc;
}


int
llm_cli_logits(const llm_cli_t *c, llm_err_t *err)
{
    int        rc;
    uint32_t   n_vocab;
    llm_ids_t  ids = { NULL, 0, 0 };

    if (c->mmproj) {
        return llm_cli_logits_images(c, err);
    }

    if (c->images.n) {
        return llm_fail(err, "--image needs --mmproj FILE, the encoder that "
                        "came with the model");
    }

    rc = llm_cli_n_vocab(c->file, &n_vocab, err);

    if (rc == LLM_OK) {
        rc = llm_cli_read_ids(n_vocab, 0, &ids, err);
    }

    if (rc == LLM_OK && (ids.len == 0 || ids.len > INT32_MAX)) {
        rc = llm_fail(err, "standard input: %s ids",
                      ids.len ? "too many" : "no");
    }

    if (rc == LLM_OK) {
        rc = c->audio ? llm_cli_hear_logits(c, &ids, err)
                      : llm_cli_run_logits(c, &ids, err);
    }

    free(ids.data);

    return rc;
}


/* -log(p) of token id, from n logits */

static double
llm_cli_surprise(const float *logits, uint32_t n, int32_t id)
{
    double    sum;
    float     max;
    uint32_t  i;

    max = logits[0];

    for (i = 1; i < n; i++) {
        max = llm_max(max, logits[i]);
    }

    sum = 0;

    for (i = 0; i < n; i++) {
        sum += exp((double) logits[i] - max);
    }

    return log(sum) + max - logits[id];
}


/*
 * Adds -log(p) of each token of a window, except the first `skip` ones, given
 * the tokens before it in the window; the window's first token is never
 * counted.
 */

static int
llm_cli_window(llm_cli_seq_t *s, const int32_t *ids, uint32_t n,
    uint32_t skip, double *sum, uint64_t *count, llm_err_t *err)
{
    uint32_t  i, k, take, n_vocab;

    n_vocab = llm_model_hparams(s->model)->n_vocab;
    s->len = 0;

    for (i = 0; i < n; i += take) {
        take = llm_min(n - i, llm_model_batch(s->model));

        if (llm_cli_seq_step(s, ids + i, take, take, err) != LLM_OK) {
            return LLM_ERROR;
        }

        for (k = 0; k < take && i + k + 1 < n; k++) {
            if (i + k + 1 < skip) {
                continue;
            }

            *sum += llm_cli_surprise(llm_model_logits(s->model, k), n_vocab,
                                     ids[i + k + 1]);
            (*count)++;
        }
    }

    return LLM_OK;
}


/*
 * The text is read in windows of ctx tokens.  Each window after the first
 * begins with the second half of the previous window, as context only.
 */

int
llm_cli_perplexity(const llm_cli_t *c, llm_err_t *err)
{
    int            rc;
    double         sum;
    size_t         i;
    uint32_t       n, step, ctx;
    uint64_t       count;
    llm_ids_t      ids = { NULL, 0, 0 };
    llm_vocab_t   *v;
    llm_cli_seq_t  s;

    ctx = c->ctx ? c->ctx : LLM_CLI_WINDOW;
    n = llm_min(ctx, c->batch ? c->batch : LLM_CLI_BATCH_SIZE);

    if (ctx < 2) {
        return llm_fail(err, "--ctx: perplexity needs at least 2 tokens");
    }

    if (llm_cli_seq_open(&s, c, ctx, n, n, err) != LLM_OK) {
        return LLM_ERROR;
    }

    sum = 0;
    count = 0;
    rc = LLM_ERROR;

    v = llm_vocab_load(llm_model_gguf(s.model), err);

    if (v) {
        rc = llm_cli_prompt(v, LLM_TOKENIZE_PLAIN | LLM_TOKENIZE_ADD, &ids,
                            err);
        llm_vocab_free(v);
    }

    step = ctx - ctx / 2;

    for (i = 0; rc == LLM_OK && i < ids.len; i += step) {
        n = (uint32_t) llm_min(ctx, ids.len - i);

        rc = llm_cli_window(&s, ids.data + i, n, i ? ctx - step : 0, &sum,
                            &count, err);

        if (i + n == ids.len) {
            break;
        }
    }

    if (rc == LLM_OK && count == 0) {
        rc = llm_fail(err, "standard input: perplexity needs at least 2 "
                      "tokens");
    }

    if (rc == LLM_OK) {
        printf("perplexity %.4f over %llu tokens, in windows of %u\n",
               exp(sum / (double) count), (unsigned long long) count, ctx);
    }

    free(ids.data);
    llm_cli_seq_close(&s);

    return rc;
}
