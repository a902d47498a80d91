/*
 * A model with one sequence; see cli.h.  The sequence has all pages of the KV
 * cache, in order.  Layers with sliding windows have fewer pages than the
 * sequence: they are used again from the first one.
 */

#include "engine/cli/cli.h"

#include <errno.h>
#include <stdio.h>


void
llm_cli_log(void *data, int level, const char *msg)
{
    const llm_cli_t  *c = data;

    if (level <= LLM_LOG_WARN || c->verbose) {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, msg);
    }
}


int
llm_cli_model_opts(const llm_cli_t *c, llm_model_opts_t *o, llm_err_t *err)
{
    memset(o, 0, sizeof(*o));

    if (c->split && strcmp(c->split, "rows") != 0
        && strcmp(c->split, "layers") != 0)
    {
        return llm_fail(err, "--split: \"%s\" is unknown; layers and rows are "
                        "known", c->split);
    }

    o->device = c->device;
    o->split_rows = c->split && strcmp(c->split, "rows") == 0;
    o->isa = c->isa;
    o->weights_fp8 = c->weights != NULL;
    o->kv_fp8 = c->kv && strcmp(c->kv, "fp8") == 0;
    o->kv_q8 = c->kv && strcmp(c->kv, "q8_0") == 0;
    o->products = c->products;
    o->packed = c->packed;
    o->threads = c->threads;
    o->ctx = c->ctx;

    return LLM_OK;
}


int
llm_cli_seq_open(llm_cli_seq_t *s, const llm_cli_t *c, uint32_t ctx,
    uint32_t batch, uint32_t max_out, llm_err_t *err)
{
    return llm_cli_seq_keeping(s, c, NULL, ctx, batch, max_out, err);
}


int
llm_cli_seq_keeping(llm_cli_seq_t *s, const llm_cli_t *c,
    const llm_keep_t *keep, uint32_t ctx, uint32_t batch, uint32_t max_out,
    llm_err_t *err)
{
    uint32_t          i, k, n;
    llm_model_opts_t  o;

    memset(s, 0, sizeof(llm_cli_seq_t));

    if (llm_cli_model_opts(c, &o, err) != LLM_OK) {
        return LLM_ERROR;
    }

    o.ctx = ctx ? ctx : c->ctx;
    o.batch = batch;
    o.max_seqs = llm_max(c->n_seqs, 1u);
    o.whole = c->n_seqs > 1;
    o.max_out = max_out;

    if (keep) {
        o.keep = *keep;
    }

    o.log = llm_cli_log;
    o.log_data = (void *) c;

    s->model = llm_model_load(c->file, &o, err);
    if (s->model == NULL) {
        return LLM_ERROR;
    }

    if (llm_model_hparams(s->model)->listens) {
        llm_cli_seq_close(s);
        return llm_fail(err, "%s is a model of speech: it needs sound "
                        "(--audio of logits, embed and bench)", c->file);
    }

    s->max_pages = (llm_model_ctx(s->model) + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
    s->pos = malloc(llm_model_batch(s->model) * sizeof(uint32_t));
    s->out = malloc(llm_model_batch(s->model) * sizeof(uint32_t));

    if (s->pos == NULL || s->out == NULL) {
        goto failed;
    }

    for (k = 0; k < LLM_KV_KINDS; k++) {
        s->pages[k] = malloc(s->max_pages * sizeof(uint32_t));

        if (s->pages[k] == NULL) {
            goto failed;
        }

        n = llm_max(llm_model_n_pages(s->model, k), 1u);

        for (i = 0; i < s->max_pages; i++) {
            s->pages[k][i] = i % n;
        }
    }

    return LLM_OK;

failed:

    llm_cli_seq_close(s);

    return llm_fail(err, "no memory for the sequence");
}


void
llm_cli_seq_close(llm_cli_seq_t *s)
{
    uint32_t  k;

    for (k = 0; k < LLM_KV_KINDS; k++) {
        free(s->pages[k]);
    }

    free(s->pos);
    free(s->out);

    if (s->model) {
        llm_model_wait_packed(s->model);
        llm_model_free(s->model);
    }

    memset(s, 0, sizeof(llm_cli_seq_t));
}


int
llm_cli_seq_run(llm_cli_seq_t *s, llm_batch_t *b, llm_err_t *err)
{
    uint32_t  i, k, rows[2], kv_len, slot;

    if (llm_model_hparams(s->model)->encoder
        && s->gives != LLM_GIVES_HIDDEN)
    {
        return llm_fail(err, "%s is an encoder, which has no logits; use "
                        "\"embed\" for its states",
                        llm_model_hparams(s->model)->arch);
    }

    if (b->n_tokens > llm_model_ctx(s->model) - s->len) {
        return llm_fail(err, "the sequence is longer than ctx, %u tokens",
                        llm_model_ctx(s->model));
    }

    for (i = 0; i < b->n_tokens; i++) {
        s->pos[i] = s->len + i;
    }

    rows[0] = 0;
    rows[1] = b->n_tokens;
    kv_len = s->len + b->n_tokens;
    slot = 0;

    b->n_seqs = 1;
    b->gives = s->gives;
    b->max_pages = s->max_pages;
    b->pos = s->pos;
    b->seq_rows = rows;
    b->kv_len = &kv_len;

    for (k = 0; k < LLM_KV_KINDS; k++) {
        b->pages[k] = s->pages[k];
    }

    b->slots = &slot;

    if (llm_model_forward(s->model, b, err) != LLM_OK) {
        return LLM_ERROR;
    }

    s->len += b->n_tokens;

    return LLM_OK;
}


int
llm_cli_seq_step(llm_cli_seq_t *s, const int32_t *ids, uint32_t n,
    uint32_t n_out, llm_err_t *err)
{
    uint32_t     i;
    llm_batch_t  b;

    for (i = 0; i < n_out; i++) {
        s->out[i] = n - n_out + i;
    }

    memset(&b, 0, sizeof(b));
    b.n_tokens = n;
    b.n_out = n_out;
    b.tokens = ids;
    b.out_rows = s->out;

    return llm_cli_seq_run(s, &b, err);
}


int
llm_cli_seq_feed(llm_cli_seq_t *s, const int32_t *ids, size_t n,
    llm_err_t *err)
{
    size_t    i;
    uint32_t  take;

    for (i = 0; i < n; i += take) {
        take = (uint32_t) llm_min(n - i, llm_model_batch(s->model));

        if (llm_cli_seq_step(s, ids + i, take, i + take == n, err) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
