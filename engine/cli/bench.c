/*
 * The command bench: speed of prompt processing and generation, named as by
 * llama-bench (pp512, tg128, pp512 @ d4096 behind 4096 tokens), and the read
 * bandwidth of this machine's memory, which limits generation on a CPU: each
 * token reads all weights, and the keys and values of the tokens before it.
 */

#include "engine/cli/head.h"
#include "engine/base/machine.h"

#include <stdio.h>

#define LLM_BENCH_PP       512
#define LLM_BENCH_TG       128
#define LLM_BENCH_REPS     5
#define LLM_BENCH_TURNS    2            /* least number of steps that take
                                           turns with reads */


/*
 * Average bytes that a step of one token reads or writes: the weights, the
 * recurrent states, and the keys and values, of 2 bytes each or of 1, of the
 * tokens before the test and of half of its own.
 */

static double
llm_bench_bytes(const llm_cli_t *c, const llm_model_t *m, uint32_t n_tg)
{
    const llm_hparams_t  *hp;

    hp = llm_model_hparams(m);

    /* recurrent states are read and written */

    return (double) hp->n_bytes_step + 2.0 * (double) hp->n_bytes_state
           + (double) hp->n_layers * hp->n_kv_heads
             * (hp->head_dim_k + hp->head_dim_v) * (c->kv ? 1 : 2)
             * (c->depth + (n_tg + 1) / 2.0);
}


static int
llm_bench_cmp(const void *one, const void *two)
{
    double  a = *(const double *) one, b = *(const double *) two;

    return a < b ? -1 : a > b;
}


void
llm_cli_sort(double *t, uint32_t n)
{
    qsort(t, n, sizeof(double), llm_bench_cmp);
}


/*
 * A first repetition, to warm up, is not counted.
 */

int
llm_cli_bench_reps(const llm_cli_t *c, llm_bench_turn_pt turn, void *data,
    uint64_t n, double *median, double *spread, llm_err_t *err)
{
    int       rc;
    double   *t;
    uint32_t  i, reps;
    uint64_t  start;

    reps = c->reps ? c->reps : LLM_BENCH_REPS;

    t = malloc(reps * sizeof(double));
    if (t == NULL) {
        return llm_fail(err, "no memory for %u repetitions", reps);
    }

    for (i = 0, rc = LLM_OK; rc == LLM_OK && i <= reps; i++) {
        start = llm_now_us();
        rc = turn(data, err);

        if (i) {
            t[i - 1] = (double) n / ((double) (llm_now_us() - start) * 1e-6);
        }
    }

    if (rc == LLM_OK) {
        llm_cli_sort(t, reps);
        *median = t[reps / 2];
        *spread = (t[reps - 1] - t[0]) / 2;
    }

    free(t);

    return rc;
}


/* n tokens in steps of batch tokens, behind depth others */

typedef struct {
    llm_cli_seq_t  *seq;
    const int32_t  *ids;
    uint32_t        n;
    uint32_t        batch;
    uint32_t        depth;
} llm_bench_run_t;

static int
llm_bench_turn(void *data, llm_err_t *err)
{
    uint32_t          k, take;
    llm_bench_run_t  *run = data;

    run->seq->len = run->depth;

    for (k = 0; k < run->n; k += take) {
        take = llm_min(run->batch, run->n - k);

        if (llm_cli_seq_step(run->seq, run->ids + k, take, 1, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_bench_test(const llm_cli_t *c, llm_cli_seq_t *s, const int32_t *ids,
    uint32_t n, uint32_t batch, double *median, double *spread,
    llm_err_t *err)
{
    llm_bench_run_t  run = { s, ids, n, batch, c->depth };

    return llm_cli_bench_reps(c, llm_bench_turn, &run, n, median, spread, err);
}


/*
 * Steps of one token take turns with reads of the whole buffer, so that both
 * are measured under the same load by other programs and by other machines on
 * the host.  *steps, *reads: bytes per second, from the medians; 0: no memory
 * for the buffer.
 */

static int
llm_bench_turns(const llm_cli_t *c, llm_cli_seq_t *s, const int32_t *ids,
    uint32_t n, double *steps, double *reads, llm_err_t *err)
{
    int                  rc;
    double              *t[3];          /* seconds of steps, of reads without
                                           and of reads with prefetches */
    uint32_t             i, k, take, len[3];
    uint64_t             start;
    llm_cli_memory_t  *m;

    *steps = 0;
    *reads = 0;
    n = llm_max(n, LLM_BENCH_TURNS);
    m = llm_cli_memory_create(c->threads ? c->threads : llm_machine_cpus());
    t[0] = malloc(3 * n * sizeof(double));

    if (m == NULL || t[0] == NULL) {
        llm_cli_memory_free(m);
        free(t[0]);
        return LLM_OK;
    }

    t[1] = t[0] + n;
    t[2] = t[1] + n;
    memset(len, 0, sizeof(len));

    rc = LLM_OK;
    s->len = c->depth;

    for (k = 0; rc == LLM_OK && k < n; k++) {
        take = 1 + k % 2;
        t[take][len[take]++] = llm_cli_memory_read(m, k % 2);

        start = llm_now_us();
        rc = llm_cli_seq_step(s, ids + k, 1, 1, err);
        t[0][len[0]++] = (double) (llm_now_us() - start) * 1e-6;
    }

    if (rc == LLM_OK) {
        for (i = 0; i < 3; i++) {
            llm_cli_sort(t[i], len[i]);
        }

        *steps = llm_bench_bytes(c, s->model, n) / t[0][len[0] / 2];
        *reads = (double) LLM_CLI_MEMORY
                 / llm_min(t[1][len[1] / 2], t[2][len[2] / 2]);
    }

    free(t[0]);
    llm_cli_memory_free(m);

    return rc;
}


void
llm_cli_bench_row(const llm_cli_t *c, const llm_model_t *m, const char *test,
    uint32_t n, uint32_t n_seqs, double median, double spread)
{
    char                  depth[32], seqs[32], device[128];
    const llm_hparams_t  *hp;

    hp = llm_model_hparams(m);
    depth[0] = '\0';
    seqs[0] = '\0';

    if (n_seqs) {
        snprintf(seqs, sizeof(seqs), " x %u", n_seqs);
    }

    if (c->depth) {
        snprintf(depth, sizeof(depth), " @ d%u", c->depth);
    }

    llm_model_device(m, device, sizeof(device));

    printf("| %s | %.2f MiB | %.2f M | %s | %s%u%s%s | %.2f +- %.2f |\n",
           hp->name, (double) hp->n_bytes / (1 << 20),
           (double) hp->n_params / 1e6, device, test, n, seqs, depth, median,
           spread);
    fflush(stdout);
}


/* what drafts, if anything does; the caller frees k->path */

static int
llm_bench_kinds(const llm_cli_t *c, llm_cli_kinds_t *k, llm_err_t *err)
{
    if (llm_cli_speculate(c, k, err) != LLM_OK) {
        free(k->path);
        return LLM_ERROR;
    }

    if (k->ngram) {
        free(k->path);
        return llm_fail(err, "--speculate: \"%s\": a bench has no text that "
                        "ngram could find again; it may be mtp or draft=HEAD",
                        c->speculate);
    }

    return LLM_OK;
}


/* any tokens, but not always the same one */

static void
llm_bench_ids(int32_t *ids, uint32_t n, uint32_t n_vocab)
{
    uint32_t  i, x;

    for (i = 0, x = 1; i < n; i++) {
        x = x * 1664525 + 1013904223;
        ids[i] = (int32_t) ((x >> 8) % n_vocab);
    }
}


static int
llm_bench_run(const llm_cli_t *c, llm_cli_seq_t *s, const llm_cli_kinds_t *k,
    llm_err_t *err)
{
    double    tg, spread, steps, reads;
    int32_t  *ids;
    uint32_t  n, n_pp, n_tg, n_vocab;

    n_pp = c->pp ? c->pp : LLM_BENCH_PP;
    n_tg = c->tg ? c->tg : LLM_BENCH_TG;
    n = llm_max(llm_max(n_pp, n_tg), llm_max(c->depth, LLM_BENCH_TURNS));
    n_vocab = llm_model_hparams(s->model)->n_vocab;

    ids = malloc(n * sizeof(int32_t));
    if (ids == NULL) {
        return llm_fail(err, "no memory for %u ids", n);
    }

    llm_bench_ids(ids, n, n_vocab);

    printf("| model | size | params | device | test | t/s |\n"
           "| --- | ---: | ---: | --- | --- | ---: |\n");
    fflush(stdout);

    if (llm_cli_seq_feed(s, ids, c->depth, err) != LLM_OK
        || llm_bench_test(c, s, ids, n_pp, n_pp, &tg, &spread, err) != LLM_OK)
    {
        goto failed;
    }

    llm_cli_bench_row(c, s->model, "pp", n_pp, 0, tg, spread);

    if (llm_bench_test(c, s, ids, n_tg, 1, &tg, &spread, err) != LLM_OK) {
        goto failed;
    }

    llm_cli_bench_row(c, s->model, "tg", n_tg, 0, tg, spread);

    if (c->n_seqs && llm_cli_bench_rows(c, s, ids, n_tg, err) != LLM_OK) {
        goto failed;
    }

    if (llm_bench_turns(c, s, ids, n_tg, &steps, &reads, err) != LLM_OK) {
        goto failed;
    }

    printf("\nread bandwidth of this machine, %u threads: %.2f GB/s\n"
           "tg%u reads %.3f GB per token (weights and cache), %.2f GB/s: "
           "%.0f %% of the bandwidth\n",
           c->threads ? c->threads : llm_machine_cpus(), reads / 1e9, n_tg,
           llm_bench_bytes(c, s->model, n_tg) / 1e9, steps / 1e9,
           reads > 0 ? 100 * steps / reads : 0);

    /* generation with drafts, behind as many tokens as a prompt has */

    if (k->head
        && llm_bench_head(c, k->path, ids, n_pp, n_tg, err) != LLM_OK)
    {
        goto failed;
    }

    free(ids);

    return LLM_OK;

failed:

    free(ids);

    return LLM_ERROR;
}


static int
llm_bench_text(const llm_cli_t *c, llm_err_t *err)
{
    int              rc;
    uint32_t         n_pp, ctx;
    llm_cli_seq_t    s;
    llm_cli_kinds_t  k;

    if (llm_bench_kinds(c, &k, err) != LLM_OK) {
        return LLM_ERROR;
    }

    n_pp = c->pp ? c->pp : LLM_BENCH_PP;
    ctx = llm_max(n_pp, c->tg ? c->tg : LLM_BENCH_TG);
    ctx = c->depth + llm_max(ctx, LLM_BENCH_TURNS);
    ctx = llm_max(ctx, c->ctx);

    rc = llm_cli_seq_open(&s, c, ctx, llm_max(n_pp, c->n_seqs),
                          llm_max(c->n_seqs, 1u), err);

    if (rc == LLM_OK) {
        rc = llm_bench_run(c, &s, &k, err);
        llm_cli_seq_close(&s);
    }

    free(k.path);

    return rc;
}


int
llm_cli_bench(const llm_cli_t *c, llm_err_t *err)
{
    if (c->n_seqs && (c->audio || c->images.n)) {
        return llm_fail(err, "--rows: sequences generate text; it goes with "
                        "neither --audio nor --image");
    }

    if (c->audio) {
        return llm_cli_bench_speech(c, err);
    }

    return c->images.n ? llm_cli_bench_image(c, err) : llm_bench_text(c, err);
}
