/*
 * The engine's speed on a device without a server, as JSON lines:
 *
 *   bench FILE DEVICE LIBDIR [STREAMS,... [PROMPT,...]]
 *
 * Decoding, for each number of STREAMS: steps with one token of each stream, at
 * 128 to 192 cached positions, as the scheduler makes them: the device draws,
 * and a step is launched before the tokens that it continues are known.  The
 * result is the median of 64 times from one step's results to the next one's.
 * Prompts, for each PROMPT: time to the first token of a sequence of that many
 * tokens, in steps of at most 2048; the median of 5.
 *
 * Environment variables: LLM_BENCH_FP8: "weights", "kv" or "weights,kv" are
 * fp8; LLM_BENCH_TIMES: most measurements, instead of 64 and 5; LLM_BENCH_KV:
 * bytes of the cache.
 */

#include "engine/model/model.h"
#include "engine/sample/sampler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH      2048
#define MAX_SEQS   512
#define CTX        8192
#define FIRST      128                  /* positions cached before decoding */
#define STEPS      64
#define PROMPTS    5

typedef struct {
    llm_batch_t   batch;
    int32_t       tokens[BATCH];
    uint32_t      follows[BATCH];
    uint32_t      pos[BATCH];
    uint32_t      out[MAX_SEQS];
    uint32_t      seq_rows[MAX_SEQS + 1];
    uint32_t      kv_len[MAX_SEQS];
    uint32_t      slots[MAX_SEQS];
    llm_draw_t    draws[MAX_SEQS];
} step_t;

typedef struct {
    llm_model_t    *model;
    llm_sampler_t  *largest;            /* draws the largest logit, for all
                                           sequences */
    uint32_t        n_vocab;
    uint32_t        max_pages;
    uint32_t       *pages;              /* [MAX_SEQS][max_pages] */
    uint32_t       *windows;            /* the same for layers with windows */
    uint32_t        times;              /* most measurements */
    step_t          steps[2];
} bench_t;


static void
die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}


static int
by_size(const void *a, const void *b)
{
    double  x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}


static double
median(double *v, uint32_t n)
{
    qsort(v, n, sizeof(double), by_size);

    return v[n / 2];
}


/*
 * Submits a step with `rows` rows from pos on of each of `seqs` sequences; a
 * sequence's last row draws.  With `behind`, the rows' tokens are those that
 * the previous step draws.
 */

static void
submit(bench_t *b, step_t *s, uint32_t seqs, uint32_t rows, uint32_t pos,
    int behind)
{
    uint32_t   i, k, row;
    llm_err_t  err;

    for (i = 0, row = 0; i < seqs; i++) {
        s->seq_rows[i] = row;
        s->kv_len[i] = pos + rows;
        s->slots[i] = i;

        for (k = 0; k < rows; k++, row++) {
            s->tokens[row] = (int32_t) ((row * 31 + pos * 7 + k)
                                        % b->n_vocab);
            s->follows[row] = behind ? i : LLM_NO_DRAW;
            s->pos[row] = pos + k;
        }

        s->out[i] = row - 1;
        (void) llm_sampler_plan(b->largest, 0, NULL, 0, NULL, &s->draws[i]);
    }

    s->seq_rows[seqs] = row;
    s->batch.n_tokens = row;
    s->batch.n_seqs = seqs;
    s->batch.n_out = seqs;
    s->batch.max_pages = b->max_pages;
    s->batch.tokens = s->tokens;
    s->batch.follows = s->follows;
    s->batch.pos = s->pos;
    s->batch.seq_rows = s->seq_rows;
    s->batch.kv_len = s->kv_len;
    s->batch.pages[LLM_KV_FULL] = b->pages;
    s->batch.pages[LLM_KV_WINDOW] = b->windows;
    s->batch.slots = s->slots;
    s->batch.out_rows = s->out;
    s->batch.draws = s->draws;

    if (llm_model_submit(b->model, &s->batch, &err) != LLM_OK) {
        die(err.msg);
    }
}


static void
wait_step(bench_t *b)
{
    llm_err_t    err;
    llm_drawn_t  drawn;

    if (llm_model_wait(b->model, &err) != LLM_OK) {
        die(err.msg);
    }

    llm_model_drawn(b->model, 0, &drawn);

    if (drawn.status != LLM_DRAWN_TOKEN) {
        die("a draw gave no token");
    }
}


static void
spread(bench_t *b, uint32_t seqs)
{
    uint32_t  i, k, per, ring;

    per = llm_min(b->max_pages,
                  llm_model_n_pages(b->model, LLM_KV_FULL) / seqs);
    ring = llm_max(llm_model_n_pages(b->model, LLM_KV_WINDOW) / seqs, 1u);

    for (i = 0; i < seqs; i++) {
        for (k = 0; k < b->max_pages; k++) {
            b->pages[(size_t) i * b->max_pages + k] = i * per + k % per;
            b->windows[(size_t) i * b->max_pages + k] = i * ring + k % ring;
        }
    }
}


static void
decode(bench_t *b, uint32_t seqs)
{
    double    t[STEPS], m;
    uint32_t  i, at, n;
    uint64_t  start, now;

    spread(b, seqs);
    n = llm_min(b->times, (uint32_t) STEPS);

    /* fills the cache to FIRST positions of each, a few rows at a time */

    for (at = 0; at < FIRST; at += i) {
        i = llm_min(llm_max(BATCH / seqs, 1u), FIRST - at);
        submit(b, &b->steps[0], seqs, i, at, 0);
        wait_step(b);
    }

    /* the first step is launched, the second one captured; the second is still
       in flight when the next one is submitted */

    submit(b, &b->steps[0], seqs, 1, FIRST, 0);
    wait_step(b);
    submit(b, &b->steps[0], seqs, 1, FIRST, 0);
    start = 0;

    for (i = 0; i <= n; i++) {
        submit(b, &b->steps[(i + 1) % 2], seqs, 1, FIRST + 1 + i, 1);
        wait_step(b);
        now = llm_now_us();

        if (i) {
            t[i - 1] = (double) (now - start) * 1e-6;
        }

        start = now;
    }

    wait_step(b);

    m = median(t, n);
    printf("{\"bench\": \"decode\", \"streams\": %u, \"step_ms\": %.4f, "
           "\"tokens_per_s\": %.1f}\n", seqs, m * 1e3, seqs / m);
    fflush(stdout);
}


static void
prompt(bench_t *b, uint32_t n)
{
    double    t[PROMPTS];
    uint32_t  i, at, k, times;
    uint64_t  start;

    spread(b, 1);
    times = llm_min(b->times, (uint32_t) PROMPTS);

    for (i = 0; i < times; i++) {
        start = llm_now_us();

        for (at = 0; at < n; at += k) {
            k = llm_min(n - at, (uint32_t) BATCH);
            submit(b, &b->steps[0], 1, k, at, 0);
            wait_step(b);
        }

        t[i] = (double) (llm_now_us() - start) * 1e-6;
    }

    printf("{\"bench\": \"prompt\", \"tokens\": %u, \"ms\": %.3f}\n", n,
           median(t, times) * 1e3);
    fflush(stdout);
}


static void
each(bench_t *b, const char *list, uint32_t most,
    void (*run)(bench_t *b, uint32_t n))
{
    char  *end;
    long   n;

    while (*list) {
        n = strtol(list, &end, 10);

        if (end == list || n < 1 || n > (long) most) {
            die("STREAMS or PROMPT: a number is out of range");
        }

        run(b, (uint32_t) n);

        list = end + (*end == ',');
    }
}


int
main(int argc, char **argv)
{
    char               name[256];
    bench_t           *b;
    llm_err_t          err;
    const char        *fp8;
    llm_sampling_t     sampling;
    llm_model_opts_t   o;

    if (argc < 4) {
        die("usage: bench FILE DEVICE LIBDIR [STREAMS,... [PROMPT,...]]");
    }

    b = calloc(1, sizeof(bench_t));
    if (b == NULL) {
        die("no memory");
    }

    b->times = getenv("LLM_BENCH_TIMES") ? (uint32_t)
               llm_max(atoi(getenv("LLM_BENCH_TIMES")), 1) : STEPS;

    memset(&o, 0, sizeof(o));
    o.device = argv[2];
    o.backend_dir = argv[3];
    o.ctx = CTX;
    o.batch = BATCH;
    o.max_seqs = MAX_SEQS;
    o.max_out = MAX_SEQS;
    o.kv_bytes = getenv("LLM_BENCH_KV") ? strtoull(getenv("LLM_BENCH_KV"),
                                                   NULL, 10) : 0;
    fp8 = getenv("LLM_BENCH_FP8") ? getenv("LLM_BENCH_FP8") : "";
    o.weights_fp8 = strstr(fp8, "weights") != NULL;
    o.kv_fp8 = strstr(fp8, "kv") != NULL;

    b->model = llm_model_load(argv[1], &o, &err);
    if (b->model == NULL) {
        die(err.msg);
    }

    if (!llm_model_overlaps(b->model)) {
        die("this device does not draw and overlap steps");
    }

    b->n_vocab = llm_model_hparams(b->model)->n_vocab;

    llm_sampling_default(&sampling);
    sampling.temperature = 0;
    b->largest = llm_sampler_create(&sampling, 0, NULL, 0, b->n_vocab);
    if (b->largest == NULL) {
        die("no memory");
    }

    b->max_pages = (llm_model_ctx(b->model) + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
    b->pages = calloc((size_t) MAX_SEQS * b->max_pages, sizeof(uint32_t));
    b->windows = calloc((size_t) MAX_SEQS * b->max_pages, sizeof(uint32_t));
    if (b->pages == NULL || b->windows == NULL) {
        die("no memory");
    }

    llm_model_device(b->model, name, sizeof(name));
    printf("{\"file\": \"%s\", \"device\": \"%s\", \"weights_mib\": %.1f, "
           "\"fp8\": \"%s\"}\n", argv[1], name,
           (double) llm_model_hparams(b->model)->n_bytes / (1 << 20), fp8);

    each(b, argc > 4 ? argv[4] : "1,8,64,256,512", MAX_SEQS, decode);
    each(b, argc > 5 ? argv[5] : "128,2048,8192", llm_model_ctx(b->model),
         prompt);

    llm_sampler_free(b->largest);
    llm_model_free(b->model);
    free(b->pages);
    free(b->windows);
    free(b);

    return 0;
}
