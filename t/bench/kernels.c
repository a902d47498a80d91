/*
 * Speed of the CPU backend's operations, one by one, in one thread: matrix
 * products of each type with one row and with many, attention in decode and
 * prefill, mixtures of experts in the shapes of Qwen3-30B-A3B and gpt-oss-20b,
 * recurrent layers in those of Qwen3.5-4B and Granite 4.
 *
 * usage: kernels [isa] [type|experts|recurrent|attention|tiles]
 *                [OUTxIN] [ROWS ...]
 *
 * tiles: products of floats alone and beside instructions of AMX.
 * OUTxIN: of products, instead of three matrices of Qwen3-0.6B's size.
 * ROWS: of products, instead of 1 to 512.  LLM_PRODUCTS: a word of products=.
 *
 * Times are CPU times of the thread, the least of several, so that other
 * processes on the same cores have little effect.  GB/s: bytes of weights, as
 * in the file, or of keys and values; GMAC/s: multiply-accumulate operations.
 * Products and attention take turns with the peak of their instruction, and are
 * a share of it; GMAC/s and shares are medians of these turns.
 */

#define _GNU_SOURCE

#include "engine/base/products.h"
#include "kernels/kernels.h"
#include "t/bench/peaks.h"
#include "t/unit/blocks.h"

#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#define MAX_ROWS   512
#define MAX_CTX    33280
#define MAX_COUNTS 64
#define MAX_TURNS  200
#define LEAST_TURNS  15                 /* of a product */
#define SPEND      0.2                  /* seconds per measurement */
#define READ       ((size_t) 128 << 20) /* bytes that peak_read() reads */


typedef struct {
    const char         *name;
    uint32_t            heads;
    uint32_t            kv_heads;
    uint32_t            dim;
} attention_t;

/* attention as models of this type's weights have it */
typedef struct {
    const char         *name;
    uint32_t            type;
    int                 bf16;           /* 1: in bfloat16, if the CPU can */
    int                 q8;             /* 1: the cache is int8 */
} precision_t;

/* numbers of rows of products */
static uint32_t  counts[MAX_COUNTS] = { 1, 2, 4, 8, 16, 32, 128, 512 };
static uint32_t  n_counts = 8;

static const precision_t  precisions[] = {
    { "bf16", LLM_TYPE_Q8_0, 1, 0 },
    { "f32", LLM_TYPE_F16, 0, 0 },
    { "q8_0", LLM_TYPE_Q8_0, 0, 1 }
};


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


static llm_exec_t *
open_device(const char *isa, uint32_t weight_type, int kv_q8)
{
    llm_err_t        err;
    llm_exec_t      *exec;
    llm_exec_opts_t  opts;

    memset(&opts, 0, sizeof(opts));
    opts.threads = 1;
    opts.isa = isa;
    opts.products = getenv("LLM_PRODUCTS");
    opts.weight_type = weight_type;
    opts.kv_q8 = kv_q8;
    opts.max_tokens = MAX_ROWS;
    opts.max_seqs = 1;
    opts.max_pages = MAX_CTX / LLM_KV_PAGE;

    if (llm_ops_cpu.open(&exec, &opts, &err) != LLM_OK) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }

    return exec;
}


/* a batch with the last rows of one sequence of len tokens */

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
    b->pages[LLM_KV_FULL] = pages;
    b->out_rows = pos;
}


static void
random_rows(llm_exec_t *exec, llm_act_t *a, uint32_t rows, uint32_t cols,
    uint32_t r)
{
    float     *x;
    size_t     i;

    x = zeroed((size_t) rows * cols * sizeof(float));

    for (i = 0; i < (size_t) rows * cols; i++) {
        r = r * 1664525 + 1013904223;
        x[i] = (float) (r >> 8) / 8388608.0f - 1.0f;
    }

    exec->ops->write(exec, a, 0, rows, x);
    free(x);
}


/* n values between -1 and 0 */

static llm_vec_t *
random_vec(llm_exec_t *exec, uint32_t n)
{
    float      *x;
    uint32_t    i, r;
    llm_vec_t  *v;

    x = zeroed(n * sizeof(float));

    for (i = 0, r = 1; i < n; i++) {
        r = r * 1664525 + 1013904223;
        x[i] = (float) (r >> 8) / -16777216.0f;
    }

    v = exec->ops->vec_create(exec, x, n, NULL);
    free(x);

    return v;
}


/* bytes from 0x20 to 0x3f, so that floats in them are finite and normal: many
   CPUs take a hundred times as long for denormal ones */

static uint8_t *
random_bytes(size_t size)
{
    size_t     i;
    uint8_t   *p;
    uint32_t   r;

    p = zeroed(size);

    for (i = 0, r = 7; i < size; i++) {
        r = r * 1664525 + 1013904223;
        p[i] = (uint8_t) (0x20 | (r >> 24 & 0x1f));
    }

    return p;
}


/* GMAC/s of the instruction that attention, or a product of floats, mostly
   consists of */

static double
peak_of(llm_exec_t *exec, const precision_t *p, const char **of)
{
    char  line[128];

    exec->ops->describe(exec, line, sizeof(line));

    if (p->q8 && strstr(line, "AVX-512")) {
        *of = "vpdpwssd";
        return peak_i16();
    }

    if (p->bf16 && strstr(line, "AMX")) {
        *of = "tdpbf16ps";
        return peak_amx(0);
    }

    if (p->bf16 && strstr(line, "BF16")) {
        *of = "vdpbf16ps";
        return peak_bf16();
    }

    if (strstr(line, "AVX-512")) {
        *of = "f32 products of 512 bits";
        return peak_f32(1);
    }

    *of = "f32 products of 256 bits";

    return peak_f32(0);
}


/* the same of products of a type */

static double
product_peak(llm_exec_t *exec, uint32_t type, const char **of)
{
    int          quant = llm_type_block(type) > 1;
    char         line[128];
    precision_t  p = { .bf16 = type == LLM_TYPE_BF16 };

    exec->ops->describe(exec, line, sizeof(line));

    if (quant && strstr(line, "AMX")) {

        if (llm_products_is(getenv("LLM_PRODUCTS"), LLM_PRODUCTS_BF16_ALL)) {
            p.bf16 = 1;
            return peak_of(exec, &p, of);
        }

        *of = "tdpbssd";
        return peak_amx(1);
    }

    if (quant && strstr(line, "AVX-512")) {
        *of = "vpdpbusd";
        return peak_i8();
    }

    if (quant && strstr(line, "AVX-VNNI")) {
        *of = "vpdpbusd of 256 bits";
        return peak_i8_256();
    }

    if (quant && strstr(line, "AVX2")) {
        *of = "vpmaddubsw and vpaddw";
        return peak_u8_256();
    }

    return peak_of(exec, &p, of);
}


static int
compare(const void *one, const void *two)
{
    double  a = *(const double *) one, b = *(const double *) two;

    return a < b ? -1 : a > b;
}


static double
median(double *x, size_t n)
{
    qsort(x, n, sizeof(double), compare);

    return x[n / 2];
}


static void
bench_linear(llm_exec_t *exec, uint32_t type, uint32_t n_out, uint32_t n_in,
    llm_rows_t kind)
{
    double            t, best, spent, macs, peak;
    double            took[MAX_TURNS], share[MAX_TURNS];
    size_t            size, i, k, n;
    uint8_t          *m;
    uint32_t          rows;
    llm_act_t        *x, *y;
    const char       *of;
    llm_batch_t       b;
    llm_linear_t      l;
    llm_weight_t     *w[8];
    const llm_ops_t  *o = exec->ops;

    size = llm_type_row_size(type, n_in) * n_out;
    m = random_bytes(size);

    for (i = 0; llm_type_block(type) > 1 && i < size;
         i += llm_type_block_size(type))
    {
        blocks_scale(type, m + i, 0.01f, 0.01f);
    }

    /* copies take turns, so that weights are read from memory, not from the
       CPU's cache */
    for (n = 0; n < llm_nelems(w) && (n == 0 || n * size < 64 << 20); n++) {
        w[n] = o->weight_create(exec, type, n_out, n_in, m,
                                LLM_WEIGHT_LINEAR, NULL);
    }

    x = o->act_create(exec, MAX_ROWS, n_in, LLM_ACT_VALUE, NULL);
    y = o->act_create(exec, MAX_ROWS, n_out, LLM_ACT_VALUE, NULL);
    random_rows(exec, x, MAX_ROWS, n_in, 1);

    printf("%-7s %5u x %-5u%s", llm_type_name(type), n_out, n_in,
           kind == LLM_ROWS_OUT ? " fine" : "     ");

    of = "";
    peak = 0;

    for (i = 0; i < n_counts; i++) {

        rows = counts[i];
        best = 1e9;
        macs = (double) rows * n_out * n_in * 1e-9;

        for (spent = 0, k = 0;
             k < LEAST_TURNS || (k < MAX_TURNS && spent < SPEND);
             spent += t, k++)
        {
            peak = product_peak(exec, type, &of);
            set_batch(&b, rows, rows);
            o->begin(exec, &b, NULL);
            l = (llm_linear_t) { w[k % n], NULL, y, 0 };

            t = cpu_time();
            o->linear(exec, kind, x, &l, 1);
            t = cpu_time() - t;

            o->end(exec, NULL);
            best = llm_min(best, t);
            took[k] = t;
            share[k] = macs / t / peak;
        }

        if (rows <= 4) {
            printf("  %u: %.1f GB/s", rows, (double) size / best * 1e-9);

        } else {
            printf("  %u: %.0f GMAC/s (%.1f %%)", rows, macs / median(took, k),
                   100 * median(share, k));
        }
    }

    printf(", %% of %.0f (%s)\n", peak, of);

    while (n) {
        o->weight_free(exec, w[--n]);
    }

    o->act_free(exec, x);
    o->act_free(exec, y);
    free(m);
}


/* GB/s of one thread */

static double
peak_read(void)
{
    double           t;
    static uint8_t  *p;

    if (p == NULL) {
        p = aligned_alloc((size_t) 1 << 21, READ);

        if (p == NULL) {
            fprintf(stderr, "no memory\n");
            exit(1);
        }

        (void) madvise(p, READ, MADV_HUGEPAGE);
        memset(p, 1, READ);
    }

    t = cpu_time();
    peak_sum(p, READ);
    t = cpu_time() - t;

    return (double) READ / t * 1e-9;
}


/* writes random keys and values of len tokens */

static void
fill_cache(llm_exec_t *exec, const llm_heads_t *h, llm_kv_t *kv, uint32_t len)
{
    uint32_t          at, n, cols;
    llm_act_t        *q, *k, *v;
    llm_batch_t       b;
    const llm_ops_t  *o = exec->ops;

    static const llm_rope_t  none = { .mscale = 1 };

    cols = h->n_kv_heads * h->head_dim_k;
    q = o->act_create(exec, MAX_ROWS, h->n_heads * h->head_dim_k,
                      LLM_ACT_VALUE, NULL);
    k = o->act_create(exec, MAX_ROWS, cols, LLM_ACT_VALUE, NULL);
    v = o->act_create(exec, MAX_ROWS, cols, LLM_ACT_VALUE, NULL);

    for (at = 0; at < len; at += n) {
        n = llm_min(len - at, MAX_ROWS);
        random_rows(exec, k, n, cols, at + 1);
        random_rows(exec, v, n, cols, at + 2);
        set_batch(&b, n, at + n);
        o->begin(exec, &b, NULL);
        o->rope_kv(exec, h, &none, q, k, v, kv);
        o->end(exec, NULL);
    }

    o->act_free(exec, q);
    o->act_free(exec, k);
    o->act_free(exec, v);
}


/*
 * Attention of rows behind depth tokens, in turns with the peak of its
 * instruction, or with reads of memory for a single row; medians.
 */

static void
bench_attention(llm_exec_t *exec, const attention_t *m,
    const precision_t *p, uint32_t rows, uint32_t depth)
{
    double            t, pairs, work, spent, took[MAX_TURNS], peak[MAX_TURNS];
    size_t            n;
    uint32_t          len;
    llm_act_t        *q, *out;
    llm_kv_t         *kv;
    const char       *of = "reads";
    llm_batch_t       b;
    llm_heads_t       h;
    llm_kv_opts_t     opts;
    const llm_ops_t  *o = exec->ops;

    len = depth + rows;
    opts = (llm_kv_opts_t) { .n_layers = 1, .n_pages = MAX_CTX / LLM_KV_PAGE,
                             .n_kv_heads = m->kv_heads, .n_heads = m->heads,
                             .head_dim_k = m->dim, .head_dim_v = m->dim };
    h = (llm_heads_t) { .n_heads = m->heads, .n_kv_heads = m->kv_heads,
                        .head_dim_k = m->dim, .head_dim_v = m->dim,
                        .scale = 0.1f };

    kv = o->kv_create(exec, &opts, NULL);
    q = o->act_create(exec, MAX_ROWS, m->heads * m->dim, LLM_ACT_VALUE, NULL);
    out = o->act_create(exec, MAX_ROWS, m->heads * m->dim, LLM_ACT_VALUE,
                        NULL);
    random_rows(exec, q, MAX_ROWS, m->heads * m->dim, 1);
    fill_cache(exec, &h, kv, len);

    /* pairs of query and key under the causal mask; or bytes */
    pairs = (double) rows * (len - (rows - 1) / 2.0);
    work = pairs * m->heads * m->dim * 2;

    if (rows == 1) {
        work = (double) o->kv_page_size(exec, &opts) / LLM_KV_PAGE * len;
    }

    for (n = 0, spent = 0; n < 3 || (n < MAX_TURNS && spent < 3 * SPEND);
         spent += t, n++)
    {
        peak[n] = rows == 1 ? peak_read() : peak_of(exec, p, &of);
        set_batch(&b, rows, len);
        o->begin(exec, &b, NULL);

        t = cpu_time();
        o->attention(exec, &h, q, kv, out);
        t = cpu_time() - t;

        o->end(exec, NULL);
        took[n] = t;
    }

    t = median(took, n);
    work = work / t * 1e-9;

    printf("  %-4s %4u rows behind %5u: %8.3f ms, %.1f %s", p->name, rows,
           depth, t * 1e3, work, rows == 1 ? "GB/s" : "GMAC/s");
    printf(", %.0f %% of %.1f (%s)\n", 100 * work / median(peak, n),
           median(peak, n), of);

    o->kv_free(exec, kv);
    o->act_free(exec, q);
    o->act_free(exec, out);
}


static void
bench_attentions(const char *isa, const attention_t *m)
{
    uint32_t     i, p;
    llm_exec_t  *exec;

    static const uint32_t  sizes[][2] = {
        { 512, 0 }, { 512, 4096 }, { 512, 16384 }, { 1, 4096 }, { 1, 16384 },
        { 1, 32768 }
    };

    printf("attention of %s, %u/%u heads of %u\n", m->name, m->heads,
           m->kv_heads, m->dim);

    for (p = 0; p < llm_nelems(precisions); p++) {
        exec = open_device(isa, precisions[p].type, precisions[p].q8);

        for (i = 0; i < llm_nelems(sizes); i++) {
            bench_attention(exec, m, &precisions[p], sizes[i][0], sizes[i][1]);
        }

        exec->ops->close(exec);
    }
}


typedef struct {
    const char         *name;
    uint32_t            type;
    uint32_t            n_experts;
    uint32_t            n_used;
    uint32_t            n_in;
    uint32_t            n_ff;
    llm_glu_t           act;
} mixture_t;


/* experts with the same weights; n_experts 0: a plain matrix */

static llm_weight_t *
random_weight(llm_exec_t *exec, uint32_t type, uint32_t n_experts,
    uint32_t n_out, uint32_t n_in)
{
    uint8_t          *src;
    llm_weight_t     *w;
    const llm_ops_t  *o = exec->ops;

    src = random_bytes(llm_type_row_size(type, n_in) * n_out);

    w = n_experts ? o->experts_create(exec, type, n_experts, n_out, n_in, src,
                                      0, NULL)
                  : o->weight_create(exec, type, n_out, n_in, src,
                                     LLM_WEIGHT_LINEAR, NULL);
    free(src);

    return w;
}


/*
 * For one row, decoding, prints the GB/s of the chosen experts, and for
 * comparison those of linear() with a plain matrix as large as half of all
 * gate matrices.
 */

static void
bench_experts(llm_exec_t *exec, const mixture_t *m)
{
    double             t, best, best_plain, spent, bytes, plain, macs;
    uint32_t           i, rows, n_out;
    llm_act_t         *x, *y, *logits, *py;
    llm_batch_t        b;
    llm_route_t        route;
    llm_linear_t       l;
    llm_choice_t      *c;
    llm_weight_t      *gate, *up, *down;
    llm_experts_t      e;
    const llm_ops_t   *o = exec->ops;
    llm_choice_opts_t  opts = { MAX_ROWS, m->n_experts, m->n_used, m->n_in,
                                m->n_ff };

    static const uint32_t  counts[] = { 1, 2, 8, 32, 128, 512 };

    memset(&e, 0, sizeof(e));
    e.gate = gate = random_weight(exec, m->type, m->n_experts, m->n_ff,
                                  m->n_in);
    e.up = up = random_weight(exec, m->type, m->n_experts, m->n_ff, m->n_in);
    e.down = down = random_weight(exec, m->type, m->n_experts, m->n_in,
                                  m->n_ff);
    e.act = m->act;

    route = (llm_route_t) { .n_experts = m->n_experts, .n_used = m->n_used,
                            .normalize = 1, .scale = 1 };

    c = o->choice_create(exec, &opts, NULL);
    x = o->act_create(exec, MAX_ROWS, m->n_in, LLM_ACT_VALUE, NULL);
    y = o->act_create(exec, MAX_ROWS, m->n_in, LLM_ACT_RESIDUAL, NULL);
    logits = o->act_create(exec, MAX_ROWS, m->n_experts, LLM_ACT_PRODUCT,
                           NULL);
    random_rows(exec, x, MAX_ROWS, m->n_in, 1);

    n_out = m->n_ff * m->n_experts / 2;
    py = o->act_create(exec, 1, n_out, LLM_ACT_PRODUCT, NULL);
    l = (llm_linear_t) { random_weight(exec, m->type, 0, n_out, m->n_in), NULL,
                         py, 0 };

    plain = (double) llm_type_row_size(m->type, m->n_in) * n_out;
    bytes = (double) llm_type_row_size(m->type, m->n_in) * m->n_ff * 2
            + (double) llm_type_row_size(m->type, m->n_ff) * m->n_in;
    macs = 3.0 * m->n_in * m->n_ff;

    printf("%s: %u of %u experts, %u x %u, %s\n", m->name, m->n_used,
           m->n_experts, m->n_in, m->n_ff, llm_type_name(m->type));

    for (i = 0; i < llm_nelems(counts); i++) {

        rows = counts[i];
        best = best_plain = 1e9;

        for (spent = 0; spent < SPEND * 2; spent += t) {
            /* other experts each time, so that they are read from memory, not
               from the CPU's cache */
            random_rows(exec, logits, rows, m->n_experts,
                        (uint32_t) (spent * 1e9));
            set_batch(&b, rows, rows);
            o->begin(exec, &b, NULL);

            t = cpu_time();
            o->route(exec, LLM_ROWS_ALL, &route, logits, c);
            o->experts(exec, LLM_ROWS_ALL, &e, x, c, y);
            t = cpu_time() - t;
            best = llm_min(best, t);

            if (rows == 1) {
                t = cpu_time();
                o->linear(exec, LLM_ROWS_ALL, x, &l, 1);
                t = cpu_time() - t;
                best_plain = llm_min(best_plain, t);
            }

            o->end(exec, NULL);
        }

        printf("  %3u: %.3f ms, %.0f GMAC/s", rows, best * 1e3,
               macs * rows * m->n_used / best * 1e-9);

        if (rows == 1) {
            printf(", %.1f GB/s; one matrix %.1f GB/s",
                   bytes * m->n_used / best * 1e-9,
                   plain / best_plain * 1e-9);
        }

        printf("\n");
    }

    o->weight_free(exec, (llm_weight_t *) l.w);
    o->act_free(exec, py);
    o->weight_free(exec, gate);
    o->weight_free(exec, up);
    o->weight_free(exec, down);
    o->choice_free(exec, c);
    o->act_free(exec, x);
    o->act_free(exec, y);
    o->act_free(exec, logits);
}


/* a recurrent layer: n_heads states of n_rows x n_cols, n_groups heads of keys
   (delta net) or groups (scan) */
typedef struct {
    const char         *name;
    int                 is_delta;
    uint32_t            n_heads;
    uint32_t            n_groups;
    uint32_t            n_rows;
    uint32_t            n_cols;
} recurrent_t;


/* prints ns per row, and the GB/s that reading and writing the state once for
   each row would take */

static void
bench_recurrent(llm_exec_t *exec, const recurrent_t *m)
{
    double             t, best[2], spent, floats;
    uint32_t           i, rows, inner, channels, slot;
    llm_act_t         *x, *y, *dt, *out;
    llm_vec_t         *w, *v;
    llm_conv_t         conv;
    llm_scan_t         scan;
    llm_batch_t        b;
    llm_delta_t        delta;
    llm_state_t       *st;
    const llm_ops_t   *o = exec->ops;
    llm_state_layer_t  layer;
    llm_state_opts_t   opts = { 1, 1, &layer };

    static const uint32_t  counts[] = { 1, 8, 512 };

    slot = 0;
    inner = m->n_heads * m->n_cols;
    channels = inner + 2 * m->n_groups * m->n_rows;
    floats = (double) inner * m->n_rows;
    layer = (llm_state_layer_t) { channels, 4, m->n_heads, m->n_rows,
                                  m->n_cols };

    st = o->state_create(exec, &opts, NULL);
    x = o->act_create(exec, MAX_ROWS, channels, LLM_ACT_PRODUCT, NULL);
    y = o->act_create(exec, MAX_ROWS, channels, LLM_ACT_PRODUCT, NULL);
    dt = o->act_create(exec, MAX_ROWS, m->n_heads, LLM_ACT_PRODUCT, NULL);
    out = o->act_create(exec, MAX_ROWS, inner, LLM_ACT_PRODUCT, NULL);
    random_rows(exec, x, MAX_ROWS, channels, 1);
    random_rows(exec, dt, MAX_ROWS, m->n_heads, 2);
    w = random_vec(exec, 4 * channels);
    v = random_vec(exec, m->n_heads);

    conv = (llm_conv_t) { 0, w, NULL, 1 };
    delta = (llm_delta_t) { 0, m->n_groups, m->n_heads, m->n_rows, m->n_cols,
                            1, v, v };
    scan = (llm_scan_t) { 0, m->n_heads, m->n_cols, m->n_groups, m->n_rows,
                          0, v, v, v };

    printf("%s: %u heads of %u x %u, %u channels\n", m->name, m->n_heads,
           m->n_rows, m->n_cols, channels);

    for (i = 0; i < llm_nelems(counts); i++) {

        rows = counts[i];
        best[0] = best[1] = 1e9;

        for (spent = 0; spent < SPEND; spent += t) {
            set_batch(&b, rows, rows);
            b.slots = &slot;
            o->begin(exec, &b, NULL);

            t = cpu_time();
            o->conv(exec, &conv, x, st, y);
            t = cpu_time() - t;
            best[0] = llm_min(best[0], t);

            t = cpu_time();

            if (m->is_delta) {
                o->delta(exec, &delta, y, dt, dt, st, out);

            } else {
                o->scan(exec, &scan, y, dt, st, out);
            }

            t = cpu_time() - t;
            best[1] = llm_min(best[1], t);
            o->end(exec, NULL);
        }

        printf("  %3u: %.3f ms, %.0f ns a row and %.1f GB/s; convolution "
               "%.3f ms\n", rows, best[1] * 1e3, best[1] / rows * 1e9,
               floats * 8 * rows / best[1] * 1e-9, best[0] * 1e3);
    }

    o->state_free(exec, st);
    o->act_free(exec, x);
    o->act_free(exec, y);
    o->act_free(exec, dt);
    o->act_free(exec, out);
    o->vec_free(exec, w);
    o->vec_free(exec, v);
}


/* the rows of products, if there are any arguments */

static void
set_counts(int argc, char **argv)
{
    int  i;

    for (i = 0; i < argc; i++) {
        if (i == MAX_COUNTS) {
            fprintf(stderr, "kernels: %d numbers of rows at most\n",
                    MAX_COUNTS);
            exit(1);
        }

        counts[i] = (uint32_t) strtoul(argv[i], NULL, 10);

        if (counts[i] == 0 || counts[i] > MAX_ROWS) {
            fprintf(stderr, "kernels: %s rows: 1 to %d are possible\n",
                    argv[i], MAX_ROWS);
            exit(1);
        }

        n_counts = (uint32_t) i + 1;
    }
}


int
main(int argc, char **argv)
{
    char         line[128];
    uint32_t     type, n_out, n_in;
    llm_exec_t  *exec;
    const char  *isa, *only;

    static const mixture_t  mixtures[] = {
        { "Qwen3-30B-A3B", LLM_TYPE_Q4_K, 128, 8, 2048, 768, LLM_GLU_SILU },
        { "gpt-oss-20b", LLM_TYPE_Q4_0, 32, 4, 2880, 2880, LLM_GLU_CLAMPED },
    };

    static const recurrent_t  recurrents[] = {
        { "Qwen3.5-4B", 1, 32, 16, 128, 128 },
        { "Granite 4 Tiny", 0, 48, 1, 128, 64 },
    };

    static const attention_t  attentions[] = {
        { "Qwen3-0.6B", 16, 8, 128 },
        { "Qwen3-8B", 32, 8, 128 },
        { "Llama 3.2 1B", 32, 8, 64 },
    };

    isa = argc > 1 && strcmp(argv[1], "best") ? argv[1] : NULL;
    only = argc > 2 ? argv[2] : NULL;

    n_out = 0;

    if (argc > 3 && sscanf(argv[3], "%ux%u", &n_out, &n_in) == 2) {
        if (n_out == 0 || n_in == 0 || n_in % 256) {
            fprintf(stderr, "kernels: %s: IN must be a multiple of 256\n",
                    argv[3]);
            exit(1);
        }

        argc--;
        argv++;
    }

    set_counts(argc - 3, argv + 3);

    exec = open_device(isa, LLM_TYPE_F32, 0);
    exec->ops->describe(exec, line, sizeof(line));
    printf("%s\n", line);

    for (type = 0; type < LLM_TYPE_END; type++) {
        if (llm_type_name(type) == NULL
            || (only && strcasecmp(only, llm_type_name(type))))
        {
            continue;
        }

        if (n_out) {
            bench_linear(exec, type, n_out, n_in, LLM_ROWS_ALL);
            continue;
        }

        bench_linear(exec, type, 3072, 1024, LLM_ROWS_ALL);
        bench_linear(exec, type, 1024, 3072, LLM_ROWS_ALL);
        bench_linear(exec, type, 1024, 1024, LLM_ROWS_OUT);
    }

    if (only == NULL || strcmp(only, "experts") == 0) {
        for (type = 0; type < llm_nelems(mixtures); type++) {
            bench_experts(exec, &mixtures[type]);
        }
    }

    if (only == NULL || strcmp(only, "recurrent") == 0) {
        for (type = 0; type < llm_nelems(recurrents); type++) {
            bench_recurrent(exec, &recurrents[type]);
        }
    }

    if (only && strcmp(only, "tiles") == 0 && strstr(line, "AMX")) {
        printf("products of floats, 512 bits: %.0f GMAC/s, beside tiles %.0f\n",
               peak_f32(1), peak_f32_beside_tiles());
    }

    exec->ops->close(exec);

    if (only == NULL || strcmp(only, "attention") == 0) {
        for (type = 0; type < llm_nelems(attentions); type++) {
            bench_attentions(isa, &attentions[type]);
        }
    }

    return 0;
}
