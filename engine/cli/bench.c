/*
 * The command bench: prompt processing and generation in llama-bench's terms
 * (pp512, tg128), and the read bandwidth of this machine's memory, which
 * bounds generation on a CPU: every token reads every weight once, and the
 * keys and values of the tokens before it.
 */

#include "engine/cli/cli.h"
#include "kernels/cpu/machine.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#define LLM_BENCH_PP       512
#define LLM_BENCH_TG       128
#define LLM_BENCH_REPS     5
/* larger than any cache */
#define LLM_BENCH_BUFFER   ((size_t) 1 << 30)
/* vectors that are prefetched ahead: the hardware's own prefetching is not
   enough for the full bandwidth */
#define LLM_BENCH_AHEAD    8
#define LLM_BENCH_PASSES   6


/* 64 bytes at a time, in registers of whatever size there is */
typedef uint64_t  llm_bench_vec_t __attribute__((vector_size(64)));

/* the slice of the buffer that one thread reads */
typedef struct {
    pthread_t               thread;
    int                     started;
    int                     ahead;      /* with prefetches */
    const llm_bench_vec_t  *data;
    size_t                  n;
    uint64_t                sum;        /* so that nothing is optimised out */
} llm_bench_reader_t;


static void *
llm_bench_read(void *arg)
{
    size_t               i;
    llm_bench_vec_t      a, b;
    llm_bench_reader_t  *r = arg;

    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));

    for (i = 0; i + 2 <= r->n; i += 2) {
        if (r->ahead) {
            __builtin_prefetch(r->data + i + LLM_BENCH_AHEAD);
            __builtin_prefetch(r->data + i + LLM_BENCH_AHEAD + 1);
        }

        a += r->data[i];
        b += r->data[i + 1];
    }

    a += b;
    r->sum = a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];

    return NULL;
}


/*
 * The time to read all slices once, in seconds: this thread reads the first
 * one, and those for which no thread could be started.
 */

static double
llm_bench_pass(llm_bench_reader_t *r, uint32_t n)
{
    uint32_t  i;
    uint64_t  start;

    start = llm_now_us();

    for (i = 1; i < n; i++) {
        r[i].started = pthread_create(&r[i].thread, NULL, llm_bench_read,
                                      &r[i]) == 0;
    }

    for (i = 0; i < n; i++) {
        if (!r[i].started) {
            (void) llm_bench_read(&r[i]);
        }
    }

    for (i = 1; i < n; i++) {
        if (r[i].started) {
            (void) pthread_join(r[i].thread, NULL);
        }
    }

    return (double) (llm_now_us() - start) * 1e-6;
}


/* bytes per second that n threads read together, the best of some tries; 0: no
   memory */

static double
llm_bench_bandwidth(uint32_t n)
{
    int                  pass;
    void                *buf;
    double               seconds, best;
    size_t               slice;
    uint32_t             i;
    llm_bench_reader_t  *r;

    buf = NULL;
    slice = LLM_BENCH_BUFFER / sizeof(llm_bench_vec_t) / n;
    r = calloc(n, sizeof(llm_bench_reader_t));

    if (r == NULL || posix_memalign(&buf, 1 << 21, LLM_BENCH_BUFFER) != 0) {
        free(r);
        return 0;
    }

    (void) madvise(buf, LLM_BENCH_BUFFER, MADV_HUGEPAGE);
    memset(buf, 1, LLM_BENCH_BUFFER);

    for (i = 0; i < n; i++) {
        r[i].data = (const llm_bench_vec_t *) buf + i * slice;
        r[i].n = slice;
    }

    best = 0;

    for (pass = 0; pass < LLM_BENCH_PASSES; pass++) {
        for (i = 0; i < n; i++) {
            r[i].ahead = pass % 2;
        }

        seconds = llm_bench_pass(r, n);
        best = pass ? llm_min(best, seconds) : seconds;
    }

    free(r);
    free(buf);

    return (double) (slice * n * sizeof(llm_bench_vec_t)) / best;
}


/*
 * The bytes that a step of one token reads: the weights, and the keys and
 * values (two bytes a number) of half the test's tokens, which is the
 * average.
 */

static double
llm_bench_bytes(const llm_model_t *m, uint32_t n_tg)
{
    const llm_hparams_t  *hp;

    hp = llm_model_hparams(m);

    /* a state is read and written */

    return (double) hp->n_bytes_step + 2.0 * (double) hp->n_bytes_state
           + (double) hp->n_layers * hp->n_kv_heads
             * (hp->head_dim_k + hp->head_dim_v) * 2 * (n_tg + 1) / 2;
}


static int
llm_bench_cmp(const void *one, const void *two)
{
    double  a = *(const double *) one, b = *(const double *) two;

    return a < b ? -1 : a > b;
}


/*
 * Tokens per second for n tokens in steps of batch: the median of the
 * repetitions, without the first one.
 */

static int
llm_bench_test(const llm_cli_t *c, llm_cli_seq_t *s, const int32_t *ids,
    uint32_t n, uint32_t batch, double *median, double *spread,
    llm_err_t *err)
{
    int       rc;
    double   *t;
    uint32_t  i, k, take, reps;
    uint64_t  start;

    reps = c->reps ? c->reps : LLM_BENCH_REPS;

    t = malloc(reps * sizeof(double));
    if (t == NULL) {
        return llm_fail(err, "no memory for %u repetitions", reps);
    }

    rc = LLM_OK;

    for (i = 0; rc == LLM_OK && i <= reps; i++) {
        s->len = 0;
        start = llm_now_us();

        for (k = 0; rc == LLM_OK && k < n; k += take) {
            take = llm_min(batch, n - k);
            rc = llm_cli_seq_step(s, ids + k, take, 1, err);
        }

        if (i) {
            t[i - 1] = n / ((double) (llm_now_us() - start) * 1e-6);
        }
    }

    qsort(t, reps, sizeof(double), llm_bench_cmp);
    *median = t[reps / 2];
    *spread = (t[reps - 1] - t[0]) / 2;

    free(t);

    return rc;
}


static void
llm_bench_row(const llm_model_t *m, const char *test, uint32_t n,
    double median, double spread)
{
    char                  name[32], device[128];
    const llm_hparams_t  *hp;

    hp = llm_model_hparams(m);
    snprintf(name, sizeof(name), "%s%u", test, n);
    llm_model_device(m, device, sizeof(device));

    printf("| %s | %.2f MiB | %.2f M | %s | %s | %.2f +- %.2f |\n",
           hp->name, (double) hp->n_bytes / (1 << 20),
           (double) hp->n_params / 1e6, device, name, median, spread);
    fflush(stdout);
}


static int
llm_bench_run(const llm_cli_t *c, llm_cli_seq_t *s, llm_err_t *err)
{
    double    tg, spread, before, after, bytes, read;
    int32_t  *ids;
    uint32_t  i, n, n_pp, n_tg, threads, n_vocab, x;

    n_pp = c->pp ? c->pp : LLM_BENCH_PP;
    n_tg = c->tg ? c->tg : LLM_BENCH_TG;
    n = llm_max(n_pp, n_tg);
    n_vocab = llm_model_hparams(s->model)->n_vocab;

    ids = malloc(n * sizeof(int32_t));
    if (ids == NULL) {
        return llm_fail(err, "no memory for %u ids", n);
    }

    /* any tokens will do, but not always the same one */

    for (i = 0, x = 1; i < n; i++) {
        x = x * 1664525 + 1013904223;
        ids[i] = (int32_t) ((x >> 8) % n_vocab);
    }

    threads = c->threads ? c->threads : llm_machine_cpus();

    printf("| model | size | params | device | test | t/s |\n"
           "| --- | ---: | ---: | --- | --- | ---: |\n");
    fflush(stdout);

    before = llm_bench_bandwidth(threads);

    if (llm_bench_test(c, s, ids, n_pp, n_pp, &tg, &spread, err) != LLM_OK) {
        goto failed;
    }

    llm_bench_row(s->model, "pp", n_pp, tg, spread);

    if (llm_bench_test(c, s, ids, n_tg, 1, &tg, &spread, err) != LLM_OK) {
        goto failed;
    }

    llm_bench_row(s->model, "tg", n_tg, tg, spread);

    after = llm_bench_bandwidth(threads);
    free(ids);

    /* other programs may have used the memory during one of the two */

    before = llm_max(before, after);
    bytes = llm_bench_bytes(s->model, n_tg);
    read = tg * bytes;

    printf("\nread bandwidth of this machine, %u threads: %.2f GB/s\n"
           "tg%u reads %.3f GB a token (weights and cache), %.2f GB/s: "
           "%.0f %% of it\n", threads, before / 1e9, n_tg, bytes / 1e9,
           read / 1e9, before > 0 ? 100 * read / before : 0);

    return LLM_OK;

failed:

    free(ids);

    return LLM_ERROR;
}


int
llm_cli_bench(const llm_cli_t *c, llm_err_t *err)
{
    int            rc;
    uint32_t       n_pp, ctx;
    llm_cli_seq_t  s;

    n_pp = c->pp ? c->pp : LLM_BENCH_PP;
    ctx = llm_max(n_pp, c->tg ? c->tg : LLM_BENCH_TG);

    if (llm_cli_seq_open(&s, c, llm_max(ctx, c->ctx), n_pp, 1, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    rc = llm_bench_run(c, &s, err);
    llm_cli_seq_close(&s);

    return rc;
}
