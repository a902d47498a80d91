/*
 * Speed of the CPU backend's operations, one by one: products of every type
 * for one row and many, attention for decode and prefill.
 *
 * usage: kernels [isa] [type]      one thread
 *
 * Times are the thread's CPU time, the best of several, so that other
 * processes on the same cores disturb little.  GB/s are of the file's weights
 * (or keys and values), GMAC/s of multiplications and additions.
 */

#define _GNU_SOURCE

#include "kernels/kernels.h"
#include "t/unit/blocks.h"

#include <stdio.h>
#include <time.h>

#define MAX_ROWS   512
#define MAX_CTX    8192
#define SPEND      0.2                  /* seconds for one number */


static double
cpu_time(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);

    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}


static void *
zeroed(size_t size)
{
    void  *p;

    p = calloc(1, size);
    if (p == NULL) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }

    return p;
}


static llm_dev_t *
open_device(const char *isa)
{
    char             line[128];
    llm_err_t        err;
    llm_dev_t       *dev;
    llm_dev_opts_t   opts;

    memset(&opts, 0, sizeof(opts));
    opts.threads = 1;
    opts.isa = isa;
    opts.max_tokens = MAX_ROWS;
    opts.max_seqs = 1;
    opts.max_pages = MAX_CTX / LLM_KV_PAGE;

    if (llm_ops_cpu.open(&dev, &opts, &err) != LLM_OK) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }

    dev->ops->describe(dev, line, sizeof(line));
    printf("%s\n", line);

    return dev;
}


/* rows of one sequence whose last position is len - 1 */

static void
set_batch(llm_batch_t *b, uint32_t rows, uint32_t len)
{
    uint32_t         i;
    static uint32_t  pos[MAX_ROWS], ends[2], kv_len[1];
    static uint32_t  pages[MAX_CTX / LLM_KV_PAGE];

    for (i = 0; i < rows; i++) {
        pos[i] = len - rows + i;
    }

    for (i = 0; i < MAX_CTX / LLM_KV_PAGE; i++) {
        pages[i] = i;
    }

    ends[1] = rows;
    kv_len[0] = len;

    memset(b, 0, sizeof(llm_batch_t));
    b->n_tokens = rows;
    b->n_seqs = 1;
    b->n_out = rows;
    b->max_pages = MAX_CTX / LLM_KV_PAGE;
    b->pos = pos;
    b->seq_rows = ends;
    b->kv_len = kv_len;
    b->pages = pages;
    b->out_rows = pos;
}


static void
random_rows(llm_dev_t *dev, llm_act_t *a, uint32_t rows, uint32_t cols)
{
    float     *x;
    size_t     i;
    uint32_t   r;

    x = zeroed((size_t) rows * cols * sizeof(float));

    for (i = 0, r = 1; i < (size_t) rows * cols; i++) {
        r = r * 1664525 + 1013904223;
        x[i] = (float) (r >> 8) / 8388608.0f - 1.0f;
    }

    dev->ops->write(dev, a, 0, rows, x);
    free(x);
}


static void
bench_linear(llm_dev_t *dev, uint32_t type, uint32_t n_out, uint32_t n_in,
    llm_rows_t kind)
{
    double            t, best, spent;
    size_t            size, i, k, n;
    uint8_t          *m;
    uint32_t          r, rows;
    llm_act_t        *x, *y;
    llm_batch_t       b;
    llm_linear_t      l;
    llm_weight_t     *w[8];
    const llm_ops_t  *o = dev->ops;

    static const uint32_t  counts[] = { 1, 2, 4, 8, 16, 32, 128, 512 };

    size = llm_type_row_size(type, n_in) * n_out;
    m = zeroed(size);

    for (i = 0, r = 7; i < size; i++) {
        r = r * 1664525 + 1013904223;
        /* small exponents: any bytes are finite numbers */
        m[i] = (uint8_t) (r >> 24) & 0x3f;
    }

    for (i = 0; llm_type_block(type) > 1 && i < size;
         i += llm_type_block_size(type))
    {
        blocks_scale(type, m + i, 0.01f, 0.01f);
    }

    /* copies in turn: read from memory, not from the cache */
    for (n = 0; n < llm_nelems(w) && (n == 0 || n * size < 64 << 20); n++) {
        w[n] = o->weight_create(dev, type, n_out, n_in, m,
                                LLM_WEIGHT_LINEAR, NULL);
    }

    x = o->act_create(dev, MAX_ROWS, n_in, LLM_ACT_VALUE, NULL);
    y = o->act_create(dev, MAX_ROWS, n_out, LLM_ACT_VALUE, NULL);
    random_rows(dev, x, MAX_ROWS, n_in);

    printf("%-7s %5u x %-5u%s", llm_type_name(type), n_out, n_in,
           kind == LLM_ROWS_OUT ? " fine" : "     ");

    for (i = 0; i < llm_nelems(counts); i++) {

        rows = counts[i];
        best = 1e9;

        for (spent = 0, k = 0; spent < SPEND; spent += t, k++) {
            set_batch(&b, rows, rows);
            o->begin(dev, &b, NULL);
            l = (llm_linear_t) { w[k % n], NULL, y, 0 };

            t = cpu_time();
            o->linear(dev, kind, x, &l, 1);
            t = cpu_time() - t;

            o->end(dev, NULL);
            best = llm_min(best, t);
        }

        if (rows <= 16) {
            printf("  %u: %.1f GB/s", rows, (double) size / best * 1e-9);

        } else {
            printf("  %u: %.0f GMAC/s", rows,
                   (double) rows * n_out * n_in / best * 1e-9);
        }
    }

    printf("\n");

    while (n) {
        o->weight_free(dev, w[--n]);
    }

    o->act_free(dev, x);
    o->act_free(dev, y);
    free(m);
}


static void
bench_attention(llm_dev_t *dev, uint32_t heads, uint32_t kv_heads,
    uint32_t dim, uint32_t rows, uint32_t len)
{
    double            t, best, pairs, spent;
    llm_act_t        *q, *out;
    llm_kv_t         *kv;
    llm_batch_t       b;
    llm_heads_t       h;
    llm_kv_opts_t     opts;
    const llm_ops_t  *o = dev->ops;

    opts = (llm_kv_opts_t) { .n_layers = 1, .n_pages = MAX_CTX / LLM_KV_PAGE,
                             .n_kv_heads = kv_heads, .n_heads = heads,
                             .head_dim_k = dim, .head_dim_v = dim };
    h = (llm_heads_t) { .n_heads = heads, .n_kv_heads = kv_heads,
                        .head_dim_k = dim, .head_dim_v = dim, .scale = 0.1f };

    kv = o->kv_create(dev, &opts, NULL);
    q = o->act_create(dev, MAX_ROWS, heads * dim, LLM_ACT_VALUE, NULL);
    out = o->act_create(dev, MAX_ROWS, heads * dim, LLM_ACT_VALUE, NULL);
    random_rows(dev, q, MAX_ROWS, heads * dim);

    best = 1e9;

    for (spent = 0; spent < SPEND; spent += t) {
        set_batch(&b, rows, len);
        o->begin(dev, &b, NULL);

        t = cpu_time();
        o->attention(dev, &h, q, kv, out);
        t = cpu_time() - t;

        o->end(dev, NULL);
        best = llm_min(best, t);
    }

    /* of the causal triangle */
    pairs = (double) rows * (len - (rows - 1) / 2.0);

    printf("attention %u/%u heads of %u, %u rows, %u keys: %.3f ms, "
           "%.1f GMAC/s, %.1f GB/s\n", heads, kv_heads, dim, rows, len,
           best * 1e3, pairs * heads * dim * 2 / best * 1e-9,
           (double) len * kv_heads * dim * 4 / best * 1e-9);

    o->kv_free(dev, kv);
    o->act_free(dev, q);
    o->act_free(dev, out);
}


int
main(int argc, char **argv)
{
    uint32_t     type;
    llm_dev_t   *dev;
    const char  *isa, *only;

    isa = argc > 1 && strcmp(argv[1], "best") ? argv[1] : NULL;
    only = argc > 2 ? argv[2] : NULL;

    dev = open_device(isa);

    for (type = 0; type < LLM_TYPE_END; type++) {
        if (llm_type_name(type) == NULL
            || (only && strcasecmp(only, llm_type_name(type))))
        {
            continue;
        }

        bench_linear(dev, type, 3072, 1024, LLM_ROWS_ALL);
        bench_linear(dev, type, 1024, 3072, LLM_ROWS_ALL);
        bench_linear(dev, type, 1024, 1024, LLM_ROWS_OUT);
    }

    bench_attention(dev, 16, 8, 128, 1, 512);
    bench_attention(dev, 16, 8, 128, 1, 8192);
    bench_attention(dev, 16, 8, 128, 512, 512);
    bench_attention(dev, 32, 8, 64, 512, 4096);

    dev->ops->close(dev);

    return 0;
}
