/*
 * What the tests of the operations share: devices of every instruction set
 * that this CPU has, random numbers, buffers, and one-call steps.
 */

#ifndef LLM_TEST_OPS_H
#define LLM_TEST_OPS_H

#include "kernels/kernels.h"
#include "t/unit/tap.h"

#include <math.h>

#define OPS_MAX_ROWS   600
#define OPS_MAX_SEQS   8
#define OPS_MAX_PAGES  256

#ifndef OPS_ISAS
#define OPS_ISAS  "avx2", "avxvnni", "avx512", "amx"
#endif

static const char  *const ops_isas[] __attribute__((unused)) = { OPS_ISAS };


static inline uint64_t
ops_random(uint64_t *state)
{
    uint64_t  z;

    z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;

    return z ^ z >> 31;
}


/* about normal: mean 0, deviation 1 */

static inline float
ops_normal(uint64_t *state)
{
    int    i;
    float  sum;

    for (i = 0, sum = 0; i < 12; i++) {
        sum += (float) (ops_random(state) >> 40) / 16777216.0f;
    }

    return sum - 6.0f;
}


static inline void
ops_fill(float *x, size_t n, uint64_t seed)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        x[i] = ops_normal(&seed);
    }
}


static inline void *
ops_alloc(size_t size)
{
    void  *p;

    p = calloc(1, size ? size : 1);
    if (p == NULL) {
        printf("Bail out! no memory\n");
        exit(1);
    }

    return p;
}


/* for a model of this type's weights, and a cache of int8 (kv 1) or float32
   (kv 2); NULL where the CPU lacks the instruction set */

static inline llm_exec_t *
ops_open_for(const llm_ops_t *ops, const char *isa, uint32_t threads,
    uint32_t weight_type, int kv)
{
    llm_exec_t      *exec;
    llm_exec_opts_t  opts;

    memset(&opts, 0, sizeof(opts));
    opts.threads = threads;
    opts.index = -1;
    opts.isa = isa;
    opts.max_tokens = OPS_MAX_ROWS;
    opts.max_seqs = OPS_MAX_SEQS;
    opts.max_pages = OPS_MAX_PAGES;
    opts.weight_type = weight_type;
    opts.kv_q8 = kv == 1;
    opts.kv_f32 = kv == 2;

    return ops->open(&exec, &opts, NULL) == LLM_OK ? exec : NULL;
}


static inline llm_exec_t *
ops_open(const llm_ops_t *ops, const char *isa, uint32_t threads)
{
    return ops_open_for(ops, isa, threads, LLM_TYPE_F32, 0);
}


/*
 * Attention is tried in float32, as models of float weights have it; as those
 * of quantised weights have it, in bfloat16, where the CPU multiplies that;
 * with a cache of int8, and with one of float32.  Keys and values are then
 * rounded to 11 or 8 bits, or to 8 bits of the largest, or not, and with
 * bfloat16 queries and weights, too.
 */

typedef struct {
    uint32_t      type;
    int           kv;                   /* as of ops_open_for() */
    const char   *name;
    double        bound;
} ops_attention_t;

static const ops_attention_t  ops_attention[] __attribute__((unused)) = {
    { LLM_TYPE_F16, 0, "F16", 1e-3 },
    { LLM_TYPE_F16, 2, "F16, KV in float32", 1e-5 },
    { LLM_TYPE_F32, 2, "F32, KV in float32", 1e-5 },
    { LLM_TYPE_Q8_0, 0, "Q8_0", 1e-2 },
    { LLM_TYPE_Q8_0, 1, "Q8_0, KV in int8", 2e-2 }
};


/* rows of src in a buffer of the device */

static inline llm_act_t *
ops_act(llm_exec_t *exec, const float *src, uint32_t rows, uint32_t cols)
{
    llm_act_t  *a;

    a = exec->ops->act_create(exec, rows, cols, LLM_ACT_RESIDUAL, NULL);

    if (src) {
        exec->ops->write(exec, a, 0, rows, src);
    }

    return a;
}


/* a step of n rows of one sequence, from position pos on, on these pages of
   OPS_MAX_PAGES; no row wants logits */

static inline void
ops_seq_batch(llm_batch_t *b, uint32_t pos, uint32_t n, const uint32_t *pages)
{
    uint32_t         i;
    static int32_t   tokens[OPS_MAX_ROWS];
    static uint32_t  at[OPS_MAX_ROWS], ends[2], len[1];

    for (i = 0; i < n; i++) {
        at[i] = pos + i;
    }

    memset(b, 0, sizeof(llm_batch_t));
    ends[1] = n;
    len[0] = pos + n;

    b->n_tokens = n;
    b->n_seqs = 1;
    b->max_pages = OPS_MAX_PAGES;
    b->tokens = tokens;
    b->pos = at;
    b->seq_rows = ends;
    b->kv_len = len;

    for (i = 0; i < LLM_KV_KINDS; i++) {
        b->pages[i] = pages;
    }
}


/* a step of n rows that no attention looks at; all of them want logits */

static inline void
ops_rows_batch(llm_batch_t *b, uint32_t n)
{
    static const uint32_t  pages[OPS_MAX_PAGES];

    ops_seq_batch(b, 0, n, pages);
    b->n_out = n;
    b->out_rows = b->pos;               /* row 0 has position 0 */
}


/* and its beginning */

static inline void
ops_begin_rows(llm_exec_t *exec, llm_batch_t *b, uint32_t n)
{
    ops_rows_batch(b, n);
    exec->ops->begin(exec, b, NULL);
}


/* the buffer's rows, after end() */

static inline void
ops_read(llm_exec_t *exec, const llm_act_t *a, float *dst, uint32_t rows,
    uint32_t cols)
{
    memcpy(dst, exec->ops->map(exec, a, 0, rows),
           (size_t) rows * cols * sizeof(float));
}


/* root mean square of a - b over that of b */

static inline double
ops_distance(const float *a, const float *b, size_t n)
{
    double  d, s;
    size_t  i;

    for (i = 0, d = 0, s = 0; i < n; i++) {
        d += ((double) a[i] - b[i]) * ((double) a[i] - b[i]);
        s += (double) b[i] * b[i];
    }

    return s > 0 ? sqrt(d / s) : sqrt(d);
}

#endif /* LLM_TEST_OPS_H */
