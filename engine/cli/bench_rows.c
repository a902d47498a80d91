/*
 * bench --rows N: generation of N sequences at once, a token of each in every
 * step, as a server with N streams computes it, without its scheduler and
 * sampler.
 *
 * The sequences share the model's pages and states in equal parts.  Layers with
 * sliding windows have fewer pages than a sequence; they are used again from
 * the first one.
 */

#include "engine/cli/cli.h"


typedef struct {
    llm_cli_seq_t  *seq;
    const int32_t  *ids;                /* [n] */
    uint32_t        n;                  /* tokens of each sequence */
    uint32_t        n_seqs;
    uint32_t        depth;              /* tokens before them */
    llm_batch_t     batch;              /* a step of all sequences */
    int32_t        *tokens;             /* [n_seqs], as the others */
    uint32_t       *pos;
    uint32_t       *seq_rows;           /* [n_seqs + 1] */
    uint32_t       *kv_len;
    uint32_t       *out;
    uint32_t       *slots;
    uint32_t       *pages[LLM_KV_KINDS];    /* [n_seqs][max_pages] */
} llm_bench_rows_t;


static void
llm_bench_rows_free(llm_bench_rows_t *r)
{
    uint32_t  k;

    free(r->tokens);
    free(r->pos);
    free(r->seq_rows);
    free(r->kv_len);
    free(r->out);
    free(r->slots);

    for (k = 0; k < LLM_KV_KINDS; k++) {
        free(r->pages[k]);
    }
}


/* each sequence's pages of a kind */

static void
llm_bench_rows_pages(llm_bench_rows_t *r, uint32_t kind)
{
    uint32_t  i, k, n, max;

    max = r->seq->max_pages;
    n = llm_max(llm_model_n_pages(r->seq->model, kind) / r->n_seqs, 1u);

    for (i = 0; i < r->n_seqs; i++) {
        for (k = 0; k < max; k++) {
            r->pages[kind][(size_t) i * max + k] = i * n + k % n;
        }
    }
}


/* does each sequence have its own pages and state? */

static int
llm_bench_rows_fit(const llm_bench_rows_t *r)
{
    uint32_t      need, slots;
    llm_model_t  *m = r->seq->model;

    need = (r->depth + r->n + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
    slots = llm_model_n_slots(m);

    return llm_model_n_pages(m, LLM_KV_FULL) / r->n_seqs >= need
           && (slots == 0 || slots >= r->n_seqs);
}


static int
llm_bench_rows_create(llm_bench_rows_t *r, llm_err_t *err)
{
    int           missing;
    size_t        n;
    uint32_t      i, k;
    llm_batch_t  *b;

    if (!llm_bench_rows_fit(r)) {
        return llm_fail(err, "--rows: there is no memory for %u sequences of "
                        "%u tokens", r->n_seqs, r->depth + r->n);
    }

    n = r->n_seqs;
    r->tokens = malloc(n * sizeof(*r->tokens));
    r->pos = malloc(n * sizeof(*r->pos));
    r->seq_rows = malloc((n + 1) * sizeof(*r->seq_rows));
    r->kv_len = malloc(n * sizeof(*r->kv_len));
    r->out = malloc(n * sizeof(*r->out));
    r->slots = malloc(n * sizeof(*r->slots));

    missing = !r->tokens || !r->pos || !r->seq_rows || !r->kv_len || !r->out
              || !r->slots;

    for (k = 0; k < LLM_KV_KINDS; k++) {
        r->pages[k] = malloc(n * r->seq->max_pages * sizeof(uint32_t));
        missing |= r->pages[k] == NULL;
    }

    if (missing) {
        return llm_fail(err, "no memory for %u sequences", r->n_seqs);
    }

    b = &r->batch;
    b->n_tokens = b->n_seqs = b->n_out = r->n_seqs;
    b->tokens = r->tokens;
    b->pos = r->pos;
    b->seq_rows = r->seq_rows;
    b->kv_len = r->kv_len;
    b->out_rows = r->out;
    b->slots = r->slots;
    b->max_pages = r->seq->max_pages;

    for (k = 0; k < LLM_KV_KINDS; k++) {
        llm_bench_rows_pages(r, k);
        b->pages[k] = r->pages[k];
    }

    for (i = 0; i < r->n_seqs; i++) {
        r->seq_rows[i] = r->out[i] = r->slots[i] = i;
    }

    r->seq_rows[r->n_seqs] = r->n_seqs;

    return LLM_OK;
}


/* token `at` of all sequences, each of which has others: mixtures of experts
   would take the same experts for all */

static int
llm_bench_rows_step(llm_bench_rows_t *r, uint32_t at, llm_err_t *err)
{
    uint32_t  i;

    for (i = 0; i < r->n_seqs; i++) {
        r->tokens[i] = r->ids[(at + i) % r->n];
        r->pos[i] = at;
        r->kv_len[i] = at + 1;
    }

    return llm_model_forward(r->seq->model, &r->batch, err);
}


static int
llm_bench_rows_turn(void *data, llm_err_t *err)
{
    uint32_t           k;
    llm_bench_rows_t  *r = data;

    for (k = 0; k < r->n; k++) {
        if (llm_bench_rows_step(r, r->depth + k, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_cli_bench_rows(const llm_cli_t *c, llm_cli_seq_t *s, const int32_t *ids,
    uint32_t n, llm_err_t *err)
{
    int               rc;
    double            median, spread;
    uint32_t          k;
    llm_bench_rows_t  r;

    memset(&r, 0, sizeof(r));
    r.seq = s;
    r.ids = ids;
    r.n = n;
    r.n_seqs = c->n_seqs;
    r.depth = c->depth;

    rc = llm_bench_rows_create(&r, err);

    for (k = 0; rc == LLM_OK && k < r.depth; k++) {
        rc = llm_bench_rows_step(&r, k, err);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_bench_reps(c, llm_bench_rows_turn, &r,
                                (uint64_t) n * r.n_seqs, &median, &spread,
                                err);
    }

    if (rc == LLM_OK) {
        llm_cli_bench_row(c, s->model, "tg", n, r.n_seqs, median, spread);
    }

    llm_bench_rows_free(&r);

    return rc;
}
