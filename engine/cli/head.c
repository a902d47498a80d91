/*
 * A head that drafts for one sequence, in order, as engine/sched/draft_head.c
 * does for many.
 *
 * Invariant: the head has rows of the states before `at`, each with the known
 * token after it, and `states` has those from `at` on.
 */

#include "engine/cli/head.h"
#include "engine/llm.h"
#include "engine/sample/rows.h"

#include <math.h>

/* rows of a step with drafts beside those of a batch */
#define LLM_CLI_HEAD_MORE  32


int
llm_cli_speculate(const llm_cli_t *c, llm_cli_kinds_t *k, llm_err_t *err)
{
    int        rc;
    uint32_t   i, kinds[LLM_DRAFT_N];
    llm_err_t  what;
    llm_str_t  path;

    memset(k, 0, sizeof(*k));

    if (c->speculate == NULL) {
        return LLM_OK;
    }

    if (llm_speculate_read((llm_str_t) { strlen(c->speculate), c->speculate },
                           kinds, &path, &what)
        != LLM_OK)
    {
        return llm_fail(err, "--speculate: \"%s\": %s", c->speculate,
                        what.msg);
    }

    for (i = 0; i < LLM_DRAFT_N; i++) {
        k->ngram |= kinds[i] == LLM_DRAFT_NGRAM;
        k->head |= kinds[i] == LLM_DRAFT_MTP;
    }

    if (path.len) {
        k->path = strndup(path.data, path.len);

        if (k->path == NULL) {
            return llm_fail(err, "no memory");
        }

        rc = llm_head_is(k->path, err);

        if (rc != LLM_OK) {
            return rc == LLM_ERROR ? rc
                   : llm_fail(err, "--speculate: \"%s\": a small model drafts "
                              "in the server alone; here the file may be a "
                              "head", c->speculate);
        }

        k->head = 1;
    }

    return k->head ? llm_head_check(c->file, k->path, err) : LLM_OK;
}


int
llm_cli_head_open(llm_cli_head_t *h, const llm_cli_t *c,
    const llm_cli_seq_t *s, const char *path, llm_err_t *err)
{
    llm_model_opts_t  o;

    if (llm_cli_model_opts(c, &o, err) != LLM_OK) {
        return LLM_ERROR;
    }

    o.ctx = llm_model_ctx(s->model);
    o.batch = llm_model_batch(s->model);
    o.max_seqs = 1;
    o.log = llm_cli_log;
    o.log_data = (void *) c;

    h->head = llm_head_load(s->model, path, &o, err);

    if (h->head == NULL) {
        return LLM_ERROR;
    }

    h->cap = o.batch + LLM_CLI_HEAD_MORE;
    h->states = malloc((size_t) h->cap * llm_head_width(h->head)
                       * sizeof(float));

    return h->states ? LLM_OK : llm_fail(err, "no memory for the states");
}


void
llm_cli_head_close(llm_cli_head_t *h)
{
    llm_head_free(h->head);
    free(h->states);
}


/* computes the rows of the first n states, whose next tokens are known */

static int
llm_cli_head_rows(llm_cli_head_t *h, const llm_ids_t *ids, uint32_t n,
    llm_err_t *err)
{
    size_t          width;
    uint32_t        i, take;
    llm_head_at_t   at;

    memset(&at, 0, sizeof(at));
    width = llm_head_width(h->head);

    for (i = 0; i < n; i += take) {
        take = llm_min(n - i, llm_head_batch(h->head));
        at.pos = h->at + i;

        if (llm_head_rows(h->head, &at, ids->data + h->at + i + 1,
                          h->states + i * width, take, 0, err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    h->at += n;
    h->n -= n;
    memmove(h->states, h->states + n * width, h->n * width * sizeof(float));

    return LLM_OK;
}


int
llm_cli_head_take(llm_cli_head_t *h, const llm_ids_t *ids, uint32_t pos,
    uint32_t n, llm_err_t *err)
{
    int       rc;
    uint32_t  skip;

    if (llm_head_is_last(h->head)) {
        h->at = pos;
        h->n = 0;
    }

    /* rows that are computed again, from an earlier state, are the same */

    skip = pos < h->at ? llm_min(h->at - pos, n) : 0;
    llm_cli_head_drop(h, pos + skip);
    rc = LLM_OK;

    if (h->n + n - skip > h->cap) {
        rc = llm_cli_head_rows(h, ids, h->n, err);
    }

    llm_head_read(h->head, skip, n - skip,
                  h->states + (size_t) h->n * llm_head_width(h->head));
    h->n += n - skip;

    return rc;
}


void
llm_cli_head_drop(llm_cli_head_t *h, uint32_t pos)
{
    if (pos < h->at + h->n) {
        h->n = pos - llm_min(pos, h->at);
    }
}


/* the most likely token of the head's last row, and its probability */

static int32_t
llm_cli_head_best(llm_cli_head_t *h, double *p)
{
    double        sum;
    uint32_t      i, n, best;
    const float  *row;

    row = llm_head_logits(h->head, 0);
    n = llm_head_n_vocab(h->head);

    best = llm_row_best(row, n);

    for (i = 0, sum = 0; i < n; i++) {
        sum += exp((double) row[i] - row[best]);
    }

    *p = 1 / sum;

    return llm_head_token(h->head, best);
}


/* the row after the last known token, whose position is `last`; *at: where the
   next row is */

static int
llm_cli_head_begin(llm_cli_head_t *h, const llm_cli_seq_t *s,
    const llm_ids_t *ids, uint32_t last, llm_head_at_t *at, llm_err_t *err)
{
    int       rc;
    uint32_t  k;

    memset(at, 0, sizeof(*at));
    at->pos = last;

    if (!llm_head_is_last(h->head)) {
        return llm_cli_head_rows(h, ids, last - h->at, err);
    }

    for (k = 0; k < LLM_KV_KINDS; k++) {
        at->pages[k] = s->pages[k];
    }

    at->n_pages = s->max_pages;
    rc = llm_head_rows(h->head, at, ids->data + last,
                       h->states + (size_t) (last - 1 - h->at)
                                   * llm_head_width(h->head), 1, 0, err);

    return rc;
}


int
llm_cli_head_guess(llm_cli_head_t *h, const llm_cli_seq_t *s,
    const llm_ids_t *ids, uint32_t n, double least, int32_t *drafts,
    uint32_t *got, llm_err_t *err)
{
    double          p, chain;
    uint32_t        last;
    llm_head_at_t   at;

    *got = 0;
    last = (uint32_t) ids->len - 1;

    if (n == 0 || last < h->at + 1 || h->at + h->n < last
        || last + n > llm_head_ctx(h->head)
        || (uint32_t) ids->data[last] >= llm_head_n_tokens(h->head))
    {
        return LLM_OK;
    }

    if (llm_cli_head_begin(h, s, ids, last, &at, err) != LLM_OK) {
        return LLM_ERROR;
    }

    for (chain = 1; /* void */ ; at.pos += !llm_head_is_last(h->head)) {
        drafts[*got] = llm_cli_head_best(h, &p);
        chain *= p;

        if (!(chain >= least)) {
            return LLM_OK;
        }

        (*got)++;

        if (*got == n || (uint32_t) drafts[*got - 1]
                         >= llm_head_n_tokens(h->head))
        {
            return LLM_OK;
        }

        if (llm_head_next(h->head, &at, drafts[*got - 1], err) != LLM_OK) {
            return LLM_ERROR;
        }
    }
}
