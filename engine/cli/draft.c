/*
 * "llm draft": the logits of a head that drafts for a model, at the pairs of a
 * position's state and the token after it, or those of drafts that are taken
 * one after another.
 */

#include "engine/cli/cli.h"
#include "engine/model/head.h"
#include "engine/sample/rows.h"

#include <errno.h>
#include <stdio.h>


typedef struct {
    llm_cli_seq_t    seq;
    llm_head_t      *head;
    llm_ids_t        ids;
    float           *states;            /* [ids.len - 1][width] */
} llm_cli_draft_t;


/* the states of all ids but the last one, from the model */

static int
llm_cli_draft_run(llm_cli_draft_t *d, llm_err_t *err)
{
    size_t    i, n;
    uint32_t  take;

    n = d->ids.len - 1;

    for (i = 0; i < n; i += take) {
        take = (uint32_t) llm_min(n - i, llm_model_batch(d->seq.model));

        if (llm_cli_seq_step(&d->seq, d->ids.data + i, take, 0, err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        llm_head_read(d->head, 0, take,
                      d->states + i * llm_head_width(d->head));
    }

    return LLM_OK;
}


/* the same from a file, which may have those of the last id, too */

static int
llm_cli_draft_file(llm_cli_draft_t *d, const char *path, llm_err_t *err)
{
    FILE    *f;
    size_t   n, got, row;

    row = llm_head_width(d->head) * sizeof(float);
    n = (d->ids.len - 1) * row;
    f = fopen(path, "rb");

    if (f == NULL) {
        return llm_fail(err, "%s: %s", path, strerror(errno));
    }

    got = fread(d->states, 1, n, f);
    fclose(f);

    return got == n ? LLM_OK
           : llm_fail(err, "%s: %zu bytes; the states of %zu ids have %zu",
                      path, got, d->ids.len - 1, n);
}


static int
llm_cli_draft_print(llm_cli_draft_t *d, uint32_t i, llm_err_t *err)
{
    return llm_cli_write(llm_head_logits(d->head, i),
                         llm_head_n_vocab(d->head) * sizeof(float), err);
}


/* prints the logits of the drafts, each after the most likely one before */

static int
llm_cli_draft_chain(llm_cli_draft_t *d, llm_head_at_t *at, uint32_t n,
    llm_err_t *err)
{
    int       rc;
    uint32_t  i, best;

    for (i = 0; /* void */ ; i++) {
        rc = llm_cli_draft_print(d, 0, err);

        if (rc != LLM_OK || i + 1 == n) {
            return rc;
        }

        best = llm_row_best(llm_head_logits(d->head, 0),
                            llm_head_n_vocab(d->head));

        if (llm_head_next(d->head, at, llm_head_token(d->head, best), err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        at->pos += llm_head_is_last(d->head) ? 0 : 1;
    }
}


/* the rows of all pairs; logits of each, or with --chain of the last */

static int
llm_cli_draft_rows(const llm_cli_t *c, llm_cli_draft_t *d, llm_err_t *err)
{
    int             rc;
    size_t          n;
    uint32_t        i, k, take;
    llm_head_at_t   at;

    n = d->ids.len - 1;
    memset(&at, 0, sizeof(at));

    for (k = 0; k < LLM_KV_KINDS; k++) {
        at.pages[k] = d->seq.pages[k];
    }

    at.n_pages = d->seq.max_pages;
    at.pos = llm_head_is_last(d->head) ? (uint32_t) n : 0;
    i = llm_head_is_last(d->head) ? (uint32_t) n - 1 : 0;

    for (rc = LLM_OK; rc == LLM_OK && i < n; i += take) {
        take = (uint32_t) llm_min(n - i, llm_head_batch(d->head));
        rc = llm_head_rows(d->head, &at, d->ids.data + i + 1,
                           d->states + (size_t) i * llm_head_width(d->head),
                           take, c->chain == 0, err);

        for (k = 0; rc == LLM_OK && c->chain == 0 && k < take; k++) {
            rc = llm_cli_draft_print(d, k, err);
        }

        at.pos += llm_head_is_last(d->head) ? 0 : take;
    }

    return rc == LLM_OK && c->chain
           ? llm_cli_draft_chain(d, &at, c->chain, err) : rc;
}


static int
llm_cli_draft_open(const llm_cli_t *c, llm_cli_draft_t *d, llm_err_t *err)
{
    uint32_t          i, ctx, batch;
    llm_keep_t        keep;
    llm_model_opts_t  o;

    if (llm_head_keeps(c->head, &keep, err) != LLM_OK
        || llm_head_check(c->file, c->head, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    ctx = (uint32_t) d->ids.len + c->chain;
    batch = c->batch ? c->batch : LLM_CLI_BATCH_SIZE;
    batch = (uint32_t) llm_min(batch, d->ids.len);

    if (llm_cli_seq_keeping(&d->seq, c, &keep, ctx, batch, 1, err) != LLM_OK
        || llm_cli_model_opts(c, &o, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    o.ctx = ctx;
    o.batch = batch;
    o.max_seqs = 1;
    o.log = llm_cli_log;
    o.log_data = (void *) c;
    d->head = llm_head_load(d->seq.model, c->head, &o, err);

    if (d->head == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < d->ids.len; i++) {
        if ((uint32_t) d->ids.data[i] >= llm_head_n_tokens(d->head)) {
            return llm_fail(err, "standard input: %d is no token of the head",
                            d->ids.data[i]);
        }
    }

    d->states = malloc((d->ids.len - 1) * llm_head_width(d->head)
                       * sizeof(float));

    return d->states ? LLM_OK : llm_fail(err, "no memory for the states");
}


int
llm_cli_draft(const llm_cli_t *c, llm_err_t *err)
{
    int              rc;
    uint32_t         n_vocab;
    llm_cli_draft_t  d;

    memset(&d, 0, sizeof(d));
    rc = llm_cli_n_vocab(c->file, &n_vocab, err);

    if (rc == LLM_OK) {
        rc = llm_cli_read_ids(n_vocab, 0, &d.ids, err);
    }

    if (rc == LLM_OK && (d.ids.len < 2 || d.ids.len > INT32_MAX / 2)) {
        rc = llm_fail(err, "standard input: a head needs two ids at least%s",
                      d.ids.len < 2 ? "" : ", and these are too many");
    }

    if (rc == LLM_OK) {
        rc = llm_cli_draft_open(c, &d, err);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_draft_run(&d, err);
    }

    if (rc == LLM_OK && c->hidden) {
        rc = llm_cli_draft_file(&d, c->hidden, err);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_draft_rows(c, &d, err);
    }

    llm_head_free(d.head);
    llm_cli_seq_close(&d.seq);
    free(d.states);
    free(d.ids.data);

    return rc;
}
