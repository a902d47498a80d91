/*
 * Commands that run a model over one sequence: logits, complete,
 * perplexity.
 */

#include "engine/cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#define LLM_CLI_BATCH_SIZE   512        /* tokens per step by default */
#define LLM_CLI_WINDOW       512        /* tokens; perplexity without --ctx */


int
llm_cli_n_vocab(const char *file, uint32_t *n_vocab, llm_err_t *err)
{
    int            rc;
    llm_gguf_t    *g;
    llm_hparams_t  hp;

    g = llm_gguf_open(file, err);
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

    rc = llm_cli_n_vocab(c->file, &n_vocab, err);

    if (rc == LLM_OK) {
        rc = llm_cli_read_ids(n_vocab, &ids, err);
    }

    if (rc == LLM_OK && (ids.len == 0 || ids.len > INT32_MAX)) {
        rc = llm_fail(err, "standard input: %s ids",
                      ids.len ? "too many" : "no");
    }

    if (rc == LLM_OK) {
        rc = llm_cli_run_logits(c, &ids, err);
    }

    free(ids.data);

    return rc;
}


/* owns all that a completion uses; see llm_cli_complete_free() */
typedef struct {
    llm_cli_seq_t           seq;
    llm_vocab_t            *vocab;
    llm_detok_t             detok;
    llm_ids_t               ids;
    llm_sampler_t          *sampler;
    llm_sampler_scratch_t  *scratch;
} llm_cli_complete_t;


static void
llm_cli_complete_free(llm_cli_complete_t *k)
{
    if (k->sampler) {
        llm_sampler_free(k->sampler);
    }

    if (k->scratch) {
        llm_sampler_scratch_free(k->scratch);
    }

    if (k->vocab) {
        llm_detok_free(&k->detok);
        llm_vocab_free(k->vocab);
    }

    free(k->ids.data);
    llm_cli_seq_close(&k->seq);
}


/* reads the text on standard input and tokenizes it; the caller frees
   ids->data */

static int
llm_cli_prompt(const llm_vocab_t *v, int flags, llm_ids_t *ids,
    llm_err_t *err)
{
    int        rc;
    llm_buf_t  b;

    llm_buf_init(&b, 0);

    rc = llm_cli_read(&b, err);

    if (rc == LLM_OK) {
        rc = llm_vocab_tokenize(v, b.data, b.len, NULL, 0, flags, 0, ids,
                                err);
    }

    llm_buf_free(&b);

    if (rc == LLM_OK && ids->len == 0) {
        return llm_fail(err, "standard input: no text");
    }

    return rc;
}


static int
llm_cli_sampler(const llm_cli_t *c, llm_cli_complete_t *k, llm_err_t *err)
{
    size_t           i;
    uint32_t         n_vocab;
    llm_sampling_t   sampling;
    struct timespec  ts;

    sampling = c->sampling;

    if (!sampling.has_seed) {
        clock_gettime(CLOCK_REALTIME, &ts);
        sampling.has_seed = 1;
        sampling.seed = (uint64_t) ts.tv_sec * 1000000007 + ts.tv_nsec;
    }

    n_vocab = llm_model_hparams(k->seq.model)->n_vocab;
    k->sampler = llm_sampler_create(&sampling, 0, NULL, 0, n_vocab);
    k->scratch = llm_sampler_scratch_create(n_vocab);

    if (k->sampler == NULL || k->scratch == NULL) {
        return llm_fail(err, "no memory for the sampler");
    }

    for (i = 0; i < k->ids.len; i++) {
        llm_sampler_see_prompt(k->sampler, k->ids.data[i]);
    }

    return LLM_OK;
}


static int
llm_cli_generate(const llm_cli_t *c, llm_cli_complete_t *k, llm_err_t *err)
{
    uint32_t       i, max;
    llm_str_t      text;
    llm_sampled_t  next;

    max = llm_model_ctx(k->seq.model) - k->seq.len;

    if (c->max_tokens) {
        max = llm_min(max, c->max_tokens);
    }

    for (i = 0; i < max; i++) {
        if (llm_sampler_sample(k->sampler, k->scratch,
                               llm_model_logits(k->seq.model, 0), NULL, 0,
                               NULL, &next, err) != LLM_OK)
        {
            return LLM_ERROR;
        }

        if (llm_vocab_is_eog(k->vocab, next.id)) {
            break;
        }

        llm_sampler_accept(k->sampler, next.id);
        text = llm_detok_push(&k->detok, next.id);

        if (llm_cli_write(text.data, text.len, err) != LLM_OK
            || llm_cli_flush(err) != LLM_OK)
        {
            return LLM_ERROR;
        }

        if (i + 1 < max
            && llm_cli_seq_step(&k->seq, &next.id, 1, 1, err) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    text = llm_detok_flush(&k->detok, 1);

    if (llm_cli_write(text.data, text.len, err) != LLM_OK) {
        return LLM_ERROR;
    }

    return k->detok.failed ? llm_fail(err, "no memory for the text") : LLM_OK;
}


int
llm_cli_complete(const llm_cli_t *c, llm_err_t *err)
{
    int                 rc;
    llm_cli_complete_t  k;

    memset(&k, 0, sizeof(k));

    if (llm_cli_seq_open(&k.seq, c, 0,
                         c->batch ? c->batch : LLM_CLI_BATCH_SIZE, 1, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    rc = LLM_ERROR;
    k.vocab = llm_vocab_load(llm_model_gguf(k.seq.model), err);

    if (k.vocab) {
        llm_detok_init(&k.detok, k.vocab, 0, 0);
        rc = llm_cli_prompt(k.vocab, LLM_TOKENIZE_ADD
                            | (c->special ? LLM_TOKENIZE_SPECIAL
                                          : LLM_TOKENIZE_PLAIN),
                            &k.ids, err);
    }

    if (rc == LLM_OK && k.ids.len > llm_model_ctx(k.seq.model)) {
        rc = llm_fail(err, "the prompt has %zu tokens, and ctx is %u",
                      k.ids.len, llm_model_ctx(k.seq.model));
    }

    if (rc == LLM_OK) {
        rc = llm_cli_sampler(c, &k, err);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_seq_feed(&k.seq, k.ids.data, k.ids.len, err);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_generate(c, &k, err);
    }

    llm_cli_complete_free(&k);

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
