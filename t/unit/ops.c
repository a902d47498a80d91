/*
 * The CPU backend's products and row operations against the reference, for
 * every instruction set, type and a table of shapes; and the same bits for
 * one row and many, one thread and many.
 *
 * Bounds.  Where x is rounded, the error of an output is at most the sum of
 * |w| times half a step of its block (int8: max / 254, bfloat16: |x| / 256,
 * and much less for rows that want logits); float32 sums of n terms add
 * n 2^-24 of the sum of |w x|.  x that int8 holds exactly leaves the float32
 * error alone: this checks the layouts.
 */

#include "t/unit/ops.h"
#include "t/unit/blocks.h"

#include <string.h>


static const uint32_t  types[] = {
#define LLM_TYPE(NAME, name, number, block, bytes)  LLM_TYPE_##NAME,
#include "kernels/types.def"
};

/* outputs, blocks of the type (elements where a block is one), rows */
static const struct {
    uint32_t      n_out;
    uint32_t      n_blocks;
    uint32_t      n_floats;
    uint32_t      rows;
} shapes[] = {
    { 1, 1, 1, 1 },
    { 16, 2, 33, 2 },
    { 7, 3, 100, 3 },
    { 40, 1, 64, 5 },
    { 33, 4, 127, 9 },
    { 100, 5, 96, 17 },
    { 250, 3, 257, 37 },
    { 129, 2, 300, 130 },
};

static const uint32_t  thread_counts[] = { 1, 3 };


static int
is_float(uint32_t type)
{
    return llm_type_block(type) == 1;
}


/* a random matrix of GGUF rows: any codes, scales of modest size */

static uint8_t *
make_matrix(uint32_t type, uint32_t n_out, uint32_t n_in, uint64_t seed)
{
    float      d;
    size_t     i, size;
    uint8_t   *m;
    uint16_t   h;

    size = llm_type_row_size(type, n_in) * n_out;
    m = ops_alloc(size);

    for (i = 0; !is_float(type) && i < size; i++) {
        m[i] = (uint8_t) ops_random(&seed);
    }

    for (i = 0; i < size; i += llm_type_block_size(type)) {
        d = ops_normal(&seed);

        switch (type) {

        case LLM_TYPE_F32:
            memcpy(m + i, &d, 4);
            break;

        case LLM_TYPE_F16:
        case LLM_TYPE_BF16:
            h = type == LLM_TYPE_F16 ? llm_f32_to_f16(d) : llm_f32_to_bf16(d);
            memcpy(m + i, &h, 2);
            break;

        default:
            blocks_scale(type, m + i, 0.01f * d, 0.01f * ops_normal(&seed));
        }
    }

    return m;
}


/* x that int8 holds exactly: whole numbers, one of them 127, times 2^-6 */

static void
make_exact(float *x, size_t n, uint64_t seed)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        x[i] = (float) ((int) (ops_random(&seed) % 255) - 127) / 64.0f;

        if (i % 32 == 17) {
            x[i] = 127.0f / 64.0f;
        }
    }
}


static void
product(llm_exec_t *exec, llm_rows_t kind, uint32_t type, const void *m,
    const float *bias, const float *x, uint32_t n_out, uint32_t n_in,
    uint32_t rows, uint32_t step, float *y)
{
    uint32_t          row, n;
    llm_act_t        *ax, *ay;
    llm_vec_t        *b;
    llm_batch_t       batch;
    llm_linear_t      l;
    llm_weight_t     *w;
    const llm_ops_t  *o = exec->ops;

    w = o->weight_create(exec, type, n_out, n_in, m, LLM_WEIGHT_LINEAR, NULL);
    b = bias ? o->vec_create(exec, bias, n_out, NULL) : NULL;
    ax = ops_act(exec, NULL, rows, n_in);
    ay = ops_act(exec, NULL, rows, n_out);

    for (row = 0; row < rows; row += n) {
        n = llm_min(step, rows - row);

        /* y starts as ones where it is added to */
        l = (llm_linear_t) { w, b, ay, bias != NULL };
        o->write(exec, ax, 0, n, x + (size_t) row * n_in);

        if (bias) {
            float  one[300];

            for (size_t i = 0; i < llm_nelems(one); i++) {
                one[i] = 1;
            }

            for (uint32_t i = 0; i < n; i++) {
                o->write(exec, ay, i, 1, one);
            }
        }

        ops_begin_rows(exec, &batch, n);
        o->linear(exec, kind, ax, &l, 1);
        o->end(exec, NULL);

        ops_read(exec, ay, y + (size_t) row * n_out, n, n_out);
    }

    o->act_free(exec, ax);
    o->act_free(exec, ay);
    o->vec_free(exec, b);
    o->weight_free(exec, w);
}


/* how x is made, and which rows are asked for */

typedef enum {
    OPS_COARSE = 0,
    OPS_FINE,                           /* LLM_ROWS_OUT: x in more bits */
    OPS_EXACT,
    OPS_MODES
} ops_mode_t;


/* the largest of each 32 of a row, [rows][n_in / 32] */

static float *
largest(const float *x, uint32_t n_in, uint32_t rows)
{
    float     *max, *at;
    uint32_t   r, k;

    max = ops_alloc((size_t) rows * ((n_in + 31) / 32) * sizeof(float));

    for (r = 0; r < rows; r++) {
        at = max + (size_t) r * ((n_in + 31) / 32);

        for (k = 0; k < n_in; k++) {
            at[k / 32] = fmaxf(k % 32 ? at[k / 32] : 0,
                               fabsf(x[(size_t) r * n_in + k]));
        }
    }

    return max;
}


/* the largest error over its bound (see above) */

static double
worst(uint32_t type, const uint8_t *m, const float *x, const float *y,
    const float *want, uint32_t n_out, uint32_t n_in, uint32_t rows,
    ops_mode_t mode)
{
    int           coded;
    float        *w, *max;
    double        bound, sum, worst, e;
    uint32_t      i, k, r;
    const float  *xr, *most;

    /* half a step of int8 or int15 in parts of max; half a unit of x */
    static const double  int8[] = { 1 / 254.0, 1 / 32512.0, 0 };
    static const double  bf16[] = { 1 / 256.0, 1 / 65536.0, 1 / 256.0 };

    w = ops_alloc((n_in + 32) * sizeof(float));
    max = largest(x, n_in, rows);
    coded = !is_float(type);
    worst = 0;

    for (i = 0; i < n_out; i++) {
        llm_dequantize(type, m + i * llm_type_row_size(type, n_in), w,
                       n_in);

        for (r = 0; r < rows; r++) {
            xr = x + (size_t) r * n_in;
            most = max + (size_t) r * ((n_in + 31) / 32);
            bound = sum = 0;

            for (k = 0; k < n_in; k++) {
                e = fabs((double) w[k] * xr[k]);
                sum += e;

                if (coded) {
                    bound += fabs(w[k]) * most[k / 32] * int8[mode];
                }
            }

            if (type == LLM_TYPE_BF16) {
                bound = sum * bf16[mode];
            }

            bound += 1e-6 + (sum + 1) * (n_in + 8) * 6e-8;
            e = fabs((double) y[(size_t) r * n_out + i]
                     - want[(size_t) r * n_out + i]);
            worst = fmax(worst, isfinite(e) ? e / bound : 1e9);
        }
    }

    free(max);
    free(w);

    return worst;
}


/*
 * Activations that are no numbers, or whose inverse is none: what is made of
 * their own rows is NaN or infinite, or next to nothing, and the others' bits
 * are as ever.
 */

static void
test_broken(const char *isa, uint32_t type)
{
    enum { ROWS = 20, OUTS = 40 };

    int           k, good;
    float        *x, *y, *want, v;
    uint8_t      *m;
    uint32_t      i, row;
    llm_exec_t   *exec;
    llm_rows_t    kind;

    static const float  values[] = {
        NAN, -NAN, INFINITY, -INFINITY, 1e-42f, 3e-38f, 0.0f, -0.0f
    };

    /* activations are rounded four blocks at a time: the last ones are fewer */
    const uint32_t  cols = llm_type_block(type) == 32 ? 480 : 512;

    x = ops_alloc(ROWS * cols * sizeof(float));
    y = ops_alloc(ROWS * OUTS * sizeof(float));
    want = ops_alloc(ROWS * OUTS * sizeof(float));
    m = make_matrix(type, OUTS, cols, 3);
    good = 1;

    for (k = 0; k < 2; k++) {
        kind = k ? LLM_ROWS_OUT : LLM_ROWS_ALL;
        ops_fill(x, ROWS * cols, 9);

        exec = ops_open(&llm_ops_cpu, isa, 2);
        product(exec, kind, type, m, NULL, x, OUTS, cols, ROWS, ROWS, want);

        for (row = 1; row < ROWS; row += 2) {
            v = values[row / 2 % llm_nelems(values)];

            if (isfinite(v)) {
                for (i = 0; i < cols; i++) {
                    x[row * cols + i] = i % 2 ? v : -v;
                }
            }

            x[row * cols + row * 25] = v;
        }

        product(exec, kind, type, m, NULL, x, OUTS, cols, ROWS, ROWS, y);
        exec->ops->close(exec);

        for (i = 0; i < ROWS * OUTS; i++) {
            row = i / OUTS;
            v = values[row / 2 % llm_nelems(values)];

            good &= row % 2 == 0 ? memcmp(&y[i], &want[i], 4) == 0
                    : isfinite(v) ? fabsf(y[i]) < 1e-30f
                    : !isfinite(y[i]);
        }
    }

    ok(good, "%s: %s of activations that are no numbers", isa,
       llm_type_name(type));

    free(x);
    free(y);
    free(want);
    free(m);
}


/* tiles give quantised weights the bits of AVX-512, and AVX-VNNI those of AVX2 */

static void
test_twin(const char *isa, const char *twin, uint32_t type, const uint8_t *m,
    const float *x, uint32_t n_out, uint32_t n_in, uint32_t rows)
{
    int          k, same;
    float       *y, *want;
    llm_exec_t  *exec, *other;
    llm_rows_t   kind;

    exec = ops_open(&llm_ops_cpu, isa, 2);
    other = ops_open(&llm_ops_cpu, twin, 1);
    y = ops_alloc((size_t) rows * n_out * sizeof(float));
    want = ops_alloc((size_t) rows * n_out * sizeof(float));

    for (k = 0, same = 1; k < 2; k++) {
        kind = k ? LLM_ROWS_OUT : LLM_ROWS_ALL;
        product(exec, kind, type, m, NULL, x, n_out, n_in, rows, rows, y);
        product(other, kind, type, m, NULL, x, n_out, n_in, rows, rows, want);
        same &= memcmp(y, want, (size_t) rows * n_out * sizeof(float)) == 0;
    }

    ok(same, "%s: %s [%u, %u] by %u rows: the bits of %s", isa,
       llm_type_name(type), n_out, n_in, rows, twin);

    exec->ops->close(exec);
    other->ops->close(other);
    free(y);
    free(want);
}


static void
test_product(const char *isa, uint32_t type, size_t shape)
{
    int           mode;
    float        *x, *y, *y1, *want, *bias, *b;
    size_t        ny;
    double        w[OPS_MODES];
    uint8_t      *m;
    uint32_t      n_out, n_in, rows, i, same;
    llm_exec_t   *exec, *ref;
    llm_rows_t    kind;
    const char   *twin;

    twin = strcmp(isa, "amx") == 0 ? "avx512"
           : strcmp(isa, "avxvnni") == 0 ? "avx2" : NULL;
    rows = shapes[shape].rows;
    n_out = shapes[shape].n_out;
    n_in = !is_float(type) ? shapes[shape].n_blocks
                         * (uint32_t) llm_type_block(type)
                       : shapes[shape].n_floats;

    ny = (size_t) rows * n_out;
    x = ops_alloc((size_t) rows * n_in * sizeof(float));
    y = ops_alloc(ny * sizeof(float));
    y1 = ops_alloc(ny * sizeof(float));
    want = ops_alloc(ny * sizeof(float));
    bias = ops_alloc(n_out * sizeof(float));

    m = make_matrix(type, n_out, n_in, shape + 1);
    ops_fill(bias, n_out, 7);

    ref = ops_open(&llm_ops_reference, NULL, 1);
    same = 1;

    for (mode = 0; mode < OPS_MODES; mode++) {

        kind = mode == OPS_FINE ? LLM_ROWS_OUT : LLM_ROWS_ALL;
        b = mode == OPS_EXACT ? bias : NULL;

        if (mode == OPS_EXACT) {
            make_exact(x, (size_t) rows * n_in, shape + 40);

        } else {
            ops_fill(x, (size_t) rows * n_in, shape + 20);
        }

        product(ref, kind, type, m, b, x, n_out, n_in, rows, rows, want);

        for (i = 0; i < llm_nelems(thread_counts); i++) {
            exec = ops_open(&llm_ops_cpu, isa, thread_counts[i]);

            product(exec, kind, type, m, b, x, n_out, n_in, rows, rows, y);

            if (i == 0) {
                memcpy(y1, y, ny * sizeof(float));
                w[mode] = worst(type, m, x, y, want, n_out, n_in, rows, mode);
            }

            same &= memcmp(y, y1, ny * sizeof(float)) == 0;

            /* the same rows one by one, and in uneven pieces */
            product(exec, kind, type, m, b, x, n_out, n_in, rows,
                    i ? 7 : 1, y);
            same &= memcmp(y, y1, ny * sizeof(float)) == 0;

            exec->ops->close(exec);
        }
    }

    ok(w[OPS_COARSE] <= 1 && w[OPS_FINE] <= 1 && w[OPS_EXACT] <= 1,
       "%s: %s [%u, %u] by %u rows is within its bounds (%.2g, %.2g, %.2g)",
       isa, llm_type_name(type), n_out, n_in, rows, w[OPS_COARSE],
       w[OPS_FINE], w[OPS_EXACT]);
    ok(same, "%s: %s [%u, %u]: the same bits for any rows and threads", isa,
       llm_type_name(type), n_out, n_in);

    if (twin && !is_float(type)) {
        ops_fill(x, (size_t) rows * n_in, shape + 60);
        test_twin(isa, twin, type, m, x, n_out, n_in, rows);
    }

    ref->ops->close(ref);
    free(x);
    free(y);
    free(y1);
    free(want);
    free(bias);
    free(m);
}


/* tiles of every height, and with more rows than are unpacked in registers: the
   bits of one row at a time */

static void
test_heights(const char *isa, uint32_t type)
{
    enum { ROWS = 100, COLS = 512, OUTS = 70 };

    int           k, same;
    float        *x, *y, *want;
    uint8_t      *m;
    uint32_t      step, n_in;
    llm_exec_t   *exec;
    llm_rows_t    kind;
    const size_t  size = ROWS * OUTS * sizeof(float);

    x = ops_alloc(ROWS * COLS * sizeof(float));
    y = ops_alloc(size);
    want = ops_alloc(size);
    n_in = is_float(type) ? 333 : COLS;
    m = make_matrix(type, OUTS, n_in, 4);
    ops_fill(x, ROWS * COLS, 11);

    exec = ops_open(&llm_ops_cpu, isa, 1);

    for (k = 0, same = 1; k < 2; k++) {
        kind = k ? LLM_ROWS_OUT : LLM_ROWS_ALL;
        product(exec, kind, type, m, NULL, x, OUTS, n_in, ROWS, 1, want);

        for (step = 2; step <= ROWS; step += step < 20 ? 1 : 16) {
            product(exec, kind, type, m, NULL, x, OUTS, n_in, ROWS, step, y);
            same &= memcmp(y, want, size) == 0;
        }
    }

    ok(same, "%s: %s by 1 to %d rows, the same bits", isa,
       llm_type_name(type), ROWS);

    exec->ops->close(exec);
    free(x);
    free(y);
    free(want);
    free(m);
}


/* several outputs of one x, of types that round it differently */

static void
test_fused(const char *isa)
{
    enum { N_IN = 512, ROWS = 21, N = 4 };

    static const uint32_t  kinds[N] = {
        LLM_TYPE_Q8_0, LLM_TYPE_Q4_K, LLM_TYPE_Q2_K, LLM_TYPE_F16
    };
    static const uint32_t  outs[N] = { 48, 20, 65, 31 };

    int                good;
    float             *x, *y, *alone;
    uint8_t           *m[N];
    uint32_t           i;
    llm_act_t         *ax, *ay[N];
    llm_exec_t        *exec;
    llm_batch_t        batch;
    llm_linear_t       l[N];
    llm_weight_t      *w[N];
    const llm_ops_t   *o = &llm_ops_cpu;

    exec = ops_open(o, isa, 2);
    x = ops_alloc(ROWS * N_IN * sizeof(float));
    y = ops_alloc(ROWS * 65 * sizeof(float));
    alone = ops_alloc(ROWS * 65 * sizeof(float));

    ops_fill(x, ROWS * N_IN, 3);
    ax = ops_act(exec, x, ROWS, N_IN);

    for (i = 0; i < N; i++) {
        m[i] = make_matrix(kinds[i], outs[i], N_IN, i + 9);
        w[i] = o->weight_create(exec, kinds[i], outs[i], N_IN,
                                m[i], LLM_WEIGHT_LINEAR, NULL);
        ay[i] = ops_act(exec, NULL, ROWS, outs[i]);
        l[i] = (llm_linear_t) { w[i], NULL, ay[i], 0 };
    }

    ops_begin_rows(exec, &batch, ROWS);
    o->linear(exec, LLM_ROWS_OUT, ax, l, N);
    o->end(exec, NULL);

    for (i = 0, good = 1; i < N; i++) {
        ops_read(exec, ay[i], y, ROWS, outs[i]);
        product(exec, LLM_ROWS_OUT, kinds[i], m[i], NULL, x, outs[i], N_IN,
                ROWS, ROWS, alone);
        good &= memcmp(y, alone, ROWS * outs[i] * sizeof(float)) == 0;
    }

    ok(good, "%s: four products of one x are what each is alone", isa);

    ops_begin_rows(exec, &batch, ROWS);
    batch.n_out = 0;
    o->linear(exec, LLM_ROWS_OUT, ax, l, N);
    o->end(exec, NULL);
    ops_read(exec, ay[N - 1], y, ROWS, outs[N - 1]);
    ok(memcmp(y, alone, ROWS * outs[N - 1] * sizeof(float)) == 0,
       "%s: no rows wanted, none written", isa);

    for (i = 0; i < N; i++) {
        o->weight_free(exec, w[i]);
        o->act_free(exec, ay[i]);
        free(m[i]);
    }

    o->act_free(exec, ax);
    o->close(exec);
    free(x);
    free(y);
    free(alone);
}


typedef struct {
    float  *norm;
    float  *silu;
    float  *gelu;
    float  *gather;
} ops_rows_t;

static void
run_rows(llm_exec_t *exec, const float *x, const float *up, const float *w,
    uint32_t rows, uint32_t cols, uint32_t step, ops_rows_t *r)
{
    size_t            at;
    uint32_t          row, n, i;
    uint32_t          order[OPS_MAX_ROWS];
    llm_act_t        *ax, *au, *an, *as, *ag, *ay;
    llm_vec_t        *v;
    llm_norm_t        norm;
    llm_batch_t       b;
    const llm_ops_t  *o = exec->ops;

    v = o->vec_create(exec, w, cols, NULL);
    norm = (llm_norm_t) { .eps = 1e-6f, .w = v };
    an = ops_act(exec, NULL, rows, cols);
    as = ops_act(exec, NULL, rows, cols);
    ag = ops_act(exec, NULL, rows, cols);
    ay = ops_act(exec, NULL, rows, cols);
    ax = ops_act(exec, NULL, rows, cols);
    au = ops_act(exec, NULL, rows, cols);

    for (row = 0; row < rows; row += n) {
        n = llm_min(step, rows - row);
        at = (size_t) row * cols;

        o->write(exec, ax, 0, n, x + at);
        o->write(exec, au, 0, n, up + at);

        ops_begin_rows(exec, &b, n);

        for (i = 0; i < n; i += 2) {
            order[i / 2] = i;
        }

        b.n_out = (n + 1) / 2;
        b.out_rows = order;

        o->glu(exec, LLM_ROWS_ALL, LLM_GLU_SILU, ax, au, as);
        o->glu(exec, LLM_ROWS_ALL, LLM_GLU_GELU, ax, au, ag);
        o->norm(exec, LLM_ROWS_ALL, ax, &norm, an);
        o->gather(exec, ax, ay);
        o->end(exec, NULL);

        ops_read(exec, an, r->norm + at, n, cols);
        ops_read(exec, as, r->silu + at, n, cols);
        ops_read(exec, ag, r->gelu + at, n, cols);
        ops_read(exec, ay, r->gather + (size_t) (row + 1) / 2 * cols,
                 b.n_out, cols);
    }

    o->act_free(exec, ax);
    o->act_free(exec, au);
    o->act_free(exec, an);
    o->act_free(exec, as);
    o->act_free(exec, ag);
    o->act_free(exec, ay);
    o->vec_free(exec, v);
}


static void
test_rows(const char *isa, uint32_t cols, uint32_t rows)
{
    int           i, same;
    float        *x, *up, *w, **f;
    size_t        n, size;
    double        far;
    ops_rows_t    r[3];
    llm_exec_t   *exec, *ref;

    n = (size_t) rows * cols;
    size = n * sizeof(float);
    x = ops_alloc(size);
    up = ops_alloc(size);
    w = ops_alloc(cols * sizeof(float));

    ops_fill(x, n, cols);
    ops_fill(up, n, cols + 1);
    ops_fill(w, cols, cols + 2);
    x[0] = 100;
    x[n - 1] = -100;

    for (i = 0; i < 3; i++) {
        for (f = &r[i].norm; f <= &r[i].gather; f++) {
            *f = ops_alloc(size);
        }
    }

    ref = ops_open(&llm_ops_reference, NULL, 1);
    run_rows(ref, x, up, w, rows, cols, rows, &r[0]);
    ref->ops->close(ref);

    exec = ops_open(&llm_ops_cpu, isa, 2);
    run_rows(exec, x, up, w, rows, cols, rows, &r[1]);
    /* two at a time: gather takes every second row of either */
    run_rows(exec, x, up, w, rows, cols, 2, &r[2]);
    exec->ops->close(exec);

    far = ops_distance(r[1].norm, r[0].norm, n);
    far = fmax(far, ops_distance(r[1].silu, r[0].silu, n));
    far = fmax(far, ops_distance(r[1].gelu, r[0].gelu, n));
    far = fmax(far, ops_distance(r[1].gather, r[0].gather, n));

    /* a few roundings of 2^-24 */
    ok(far < 1e-6, "%s: norm, silu, gelu, gather of %u x %u: %.2g", isa,
       rows, cols, far);

    same = memcmp(r[1].norm, r[2].norm, size) == 0
           && memcmp(r[1].silu, r[2].silu, size) == 0
           && memcmp(r[1].gelu, r[2].gelu, size) == 0
           && memcmp(r[1].gather, r[2].gather, size) == 0;
    ok(same, "%s: the same bits two rows at a time", isa);

    for (i = 0; i < 3; i++) {
        for (f = &r[i].norm; f <= &r[i].gather; f++) {
            free(*f);
        }
    }

    free(x);
    free(up);
    free(w);
}


/* as many results as are wanted, whether the step has fewer rows or more */

static void
test_glu_rows(const llm_ops_t *ops, const char *isa)
{
    enum { ROWS = 20, FEW = 3, COLS = 40 };

    size_t        few, size;
    float        *x, *u, *want, *y;
    uint32_t      i, out[ROWS];
    llm_act_t    *ax, *au, *ay;
    llm_exec_t   *exec;
    llm_batch_t   b;

    size = ROWS * COLS * sizeof(float);
    few = FEW * COLS * sizeof(float);
    x = ops_alloc(size);
    u = ops_alloc(size);
    y = ops_alloc(size);
    want = ops_alloc(size);
    ops_fill(x, ROWS * COLS, 5);
    ops_fill(u, ROWS * COLS, 6);

    for (i = 0; i < ROWS; i++) {
        out[i] = FEW - 1;
    }

    exec = ops_open(ops, isa, 2);
    ax = ops_act(exec, x, ROWS, COLS);
    au = ops_act(exec, u, ROWS, COLS);
    ay = ops_act(exec, NULL, ROWS, COLS);

    ops_begin_rows(exec, &b, ROWS);
    exec->ops->glu(exec, LLM_ROWS_ALL, LLM_GLU_SILU, ax, au, ay);
    exec->ops->end(exec, NULL);
    ops_read(exec, ay, want, ROWS, COLS);

    exec->ops->write(exec, ay, 0, ROWS, x);
    ops_begin_rows(exec, &b, FEW);
    b.n_out = ROWS;
    b.out_rows = out;
    exec->ops->glu(exec, LLM_ROWS_OUT, LLM_GLU_SILU, ax, au, ay);
    exec->ops->end(exec, NULL);
    ops_read(exec, ay, y, ROWS, COLS);
    ok(memcmp(y, want, size) == 0, "%s: silu of more results than rows", isa);

    exec->ops->write(exec, ay, 0, ROWS, x);
    ops_begin_rows(exec, &b, ROWS);
    b.n_out = FEW;
    exec->ops->glu(exec, LLM_ROWS_OUT, LLM_GLU_SILU, ax, au, ay);
    exec->ops->end(exec, NULL);
    ops_read(exec, ay, y, ROWS, COLS);
    ok(memcmp(y, want, few) == 0
       && memcmp(y + FEW * COLS, x + FEW * COLS, size - few) == 0,
       "%s: silu of fewer results than rows", isa);

    exec->ops->act_free(exec, ax);
    exec->ops->act_free(exec, au);
    exec->ops->act_free(exec, ay);
    exec->ops->close(exec);
    free(x);
    free(u);
    free(y);
    free(want);
}


static void
test_embed(const char *isa, uint32_t type)
{
    enum { ROWS = 6, VOCAB = 11, COLS = 256 };

    static const int32_t  tokens[ROWS] = { 10, 0, 3, 3, 7, 1 };

    int            good;
    float          want[COLS];
    uint8_t       *m;
    uint32_t       i;
    llm_act_t     *x;
    llm_exec_t    *exec;
    llm_batch_t    b;
    llm_weight_t  *w;

    m = make_matrix(type, VOCAB, COLS, 5);
    exec = ops_open(&llm_ops_cpu, isa, 2);
    x = ops_act(exec, NULL, ROWS, COLS);
    w = exec->ops->weight_create(exec, type, VOCAB, COLS, m,
                                 LLM_WEIGHT_EMBED, NULL);

    ops_begin_rows(exec, &b, ROWS);
    b.tokens = tokens;
    exec->ops->embed(exec, w, x);
    exec->ops->end(exec, NULL);

    for (i = 0, good = 1; i < ROWS; i++) {
        llm_dequantize(type, m + (size_t) tokens[i]
                                    * llm_type_row_size(type, COLS),
                       want, COLS);
        good &= memcmp(exec->ops->map(exec, x, i, 1), want, sizeof(want)) == 0;
    }

    ok(good, "%s: embed %s", isa, llm_type_name(type));

    exec->ops->weight_free(exec, w);
    exec->ops->act_free(exec, x);
    exec->ops->close(exec);
    free(m);
}


static void
test_open(void)
{
    char             line[128];
    llm_err_t        err;
    llm_exec_t      *exec;
    llm_exec_opts_t  opts;

    memset(&opts, 0, sizeof(opts));
    opts.max_tokens = opts.max_seqs = opts.max_pages = 1;

    opts.isa = "vax";
    is_int(llm_ops_cpu.open(&exec, &opts, &err), LLM_ERROR, "no such set");
    ok(strstr(err.msg, "\"vax\"") != NULL, "and it is named: %s", err.msg);

    opts.isa = "reference";
    is_int(llm_ops_cpu.open(&exec, &opts, &err), LLM_OK, "reference opens");
    ok(exec->ops == &llm_ops_reference, "and brings its own operations");
    exec->ops->close(exec);

    opts.isa = NULL;
    opts.threads = 2;
    is_int(llm_ops_cpu.open(&exec, &opts, &err), LLM_OK, "the best set");
    exec->ops->describe(exec, line, sizeof(line));
    ok(line[0], "which is: %s", line);
    ok(exec->ops->memory_free(exec) > 1 << 20, "memory_free: %zu MiB",
       exec->ops->memory_free(exec) >> 20);
    exec->ops->close(exec);
}


int
main(void)
{
    size_t       i, t, s;
    llm_exec_t  *exec;
    const char  *isa;

    test_open();
    test_glu_rows(&llm_ops_reference, "reference");

    for (i = 0; i < llm_nelems(ops_isas); i++) {

        isa = ops_isas[i];
        exec = ops_open(&llm_ops_cpu, isa, 1);

        if (exec == NULL) {
            skip(isa);
            continue;
        }

        exec->ops->close(exec);

        for (t = 0; t < llm_nelems(types); t++) {
            for (s = 0; s < llm_nelems(shapes); s++) {
                test_product(isa, types[t], s);
            }

            test_broken(isa, types[t]);
            test_heights(isa, types[t]);
            test_embed(isa, types[t]);
        }

        test_fused(isa);
        test_glu_rows(&llm_ops_cpu, isa);
        test_rows(isa, 1, 2);
        test_rows(isa, 37, 4);
        test_rows(isa, 256, 18);
        test_rows(isa, 1032, 100);
    }

    return done_testing();
}
