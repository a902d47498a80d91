/*
 * Products of BF16 weights with AMX tiles have the bits that Intel's manual
 * says of TDPBF16PS, whatever rows, outputs and panels a piece has: an emulator
 * of the instruction computes them in plain C.  On a machine without tiles the
 * emulator alone is compared with float64.
 */

#include "t/unit/ops.h"

#include <float.h>

#define TILE_K     32                   /* elements of a tile's row */
#define MAX_IN     1056
#define MAX_OUT    81
#define MAX_TILES  100                  /* rows */

typedef struct {
    uint32_t  rows;
    uint32_t  n_out;
    uint32_t  n_in;
} tiles_case_t;

/* tiles that are full, or lack rows, outputs, a second panel, elements of k;
   more panels than a piece has */
static const tiles_case_t  cases[] = {
    { 32, 64, 64 }, { 1, 16, 32 }, { 37, 40, 96 }, { 17, 33, 70 },
    { 16, 5, 1 }, { 100, 81, 1056 }, { 3, 20, 1031 }
};

static float     x[MAX_TILES * MAX_IN];
static uint16_t  w[MAX_OUT * MAX_IN];
static float     got[MAX_TILES * MAX_OUT], want[MAX_TILES * MAX_OUT];


/* denormal numbers are zeros for tiles */

static float
flushed(float v)
{
    return fabsf(v) < FLT_MIN ? copysignf(0, v) : v;
}


static float
tile_fma(float a, float b, float sum)
{
    return flushed(fmaf(flushed(a), flushed(b), sum));
}


static uint16_t
rounded(float v)
{
    return llm_f32_to_bf16(flushed(v));
}


/*
 * TDPBF16PS for one row and one output: the even elements of k and the odd
 * ones are summed on their own from 0, with one rounding for a product and its
 * addition; then both sums are added, and their sum to the tile.
 */

static float
tile_dot(float sum, const uint16_t *a, const uint16_t *b, uint32_t n)
{
    float     part[2] = { 0, 0 };
    uint32_t  k;

    for (k = 0; k < n; k++) {
        part[k % 2] = tile_fma(llm_bf16_to_f32(a[k]), llm_bf16_to_f32(b[k]),
                               part[k % 2]);
    }

    return flushed(sum + flushed(part[0] + part[1]));
}


/* a product as the kernels order it: along k, with the low parts of x after the
   high ones of the same elements */

static void
emulate(const tiles_case_t *c, int fine)
{
    float     v, sum;
    uint32_t  r, o, i, k, n;
    uint16_t  high[TILE_K], low[TILE_K];

    for (r = 0; r < c->rows; r++) {
        for (o = 0; o < c->n_out; o++) {
            for (sum = 0, k = 0; k < c->n_in; k += n) {
                n = llm_min(c->n_in - k, TILE_K);

                for (i = 0; i < n; i++) {
                    v = x[r * c->n_in + k + i];
                    high[i] = rounded(v);
                    low[i] = rounded(v - llm_bf16_to_f32(high[i]));
                }

                sum = tile_dot(sum, high, w + o * c->n_in + k, n);

                if (fine) {
                    sum = tile_dot(sum, low, w + o * c->n_in + k, n);
                }
            }

            want[r * c->n_out + o] = sum;
        }
    }
}


static void
compute(llm_exec_t *exec, const tiles_case_t *c, uint32_t rows,
    llm_rows_t kind)
{
    llm_act_t        *from, *to;
    llm_batch_t       b;
    llm_linear_t      l;
    llm_weight_t     *m;
    const llm_ops_t  *o = exec->ops;

    m = o->weight_create(exec, LLM_TYPE_BF16, c->n_out, c->n_in, w,
                         LLM_WEIGHT_LINEAR, NULL);
    from = ops_act(exec, x, rows, c->n_in);
    to = ops_act(exec, NULL, rows, c->n_out);
    l = (llm_linear_t) { m, NULL, to, 0 };

    ops_begin_rows(exec, &b, rows);
    o->linear(exec, kind, from, &l, 1);
    o->end(exec, NULL);
    ops_read(exec, to, got, rows, c->n_out);

    o->weight_free(exec, m);
    o->act_free(exec, from);
    o->act_free(exec, to);
}


/* normal numbers, among them some whose products and sums are denormal */

static void
fill(uint64_t seed)
{
    size_t    i;
    uint64_t  r;

    ops_fill(x, llm_nelems(x), seed);
    r = seed + 1;

    for (i = 0; i < llm_nelems(w); i++) {
        w[i] = llm_f32_to_bf16(ops_normal(&r));
    }

    for (i = 0; i < llm_nelems(x); i += 7) {
        x[i] *= i % 2 ? 1e-39f : 1e-30f;
    }

    for (i = 0; i < llm_nelems(w); i += 5) {
        w[i] = llm_f32_to_bf16(i % 2 ? 1e-39f : 1e-12f);
    }
}


static void
check(llm_exec_t *exec, const tiles_case_t *c, int fine)
{
    double      sum, d, far;
    size_t      n;
    uint32_t    r, o, k;
    llm_rows_t  kind;

    emulate(c, fine);
    kind = fine ? LLM_ROWS_OUT : LLM_ROWS_ALL;

    if (exec) {
        for (r = c->rows; r; r = r > 16 ? r / 2 : r - 1) {
            n = r * c->n_out * sizeof(float);
            compute(exec, c, r, kind);

            if (memcmp(got, want, n) != 0) {
                break;
            }
        }

        ok(r == 0, "%u x %u x %u%s: the bits of the manual, for any rows",
           c->rows, c->n_out, c->n_in, fine ? ", fine" : "");
        return;
    }

    for (far = 0, r = 0; r < c->rows; r++) {
        for (o = 0; o < c->n_out; o++) {
            for (sum = 0, k = 0; k < c->n_in; k++) {
                sum += (double) x[r * c->n_in + k]
                       * (double) llm_bf16_to_f32(w[o * c->n_in + k]);
            }

            d = fabs(sum - (double) want[r * c->n_out + o]);
            far = llm_max(far, d / sqrt(c->n_in));
        }
    }

    ok(far < (fine ? 1e-4 : 2e-2), "%u x %u x %u%s: near float64: %.2g",
       c->rows, c->n_out, c->n_in, fine ? ", fine" : "", far);
}


int
main(void)
{
    size_t       i;
    llm_exec_t  *exec;

    exec = ops_open(&llm_ops_cpu, "amx", 2);

    printf("# %s\n", exec ? "tiles of this CPU" : "no tiles: emulated");

    for (i = 0; i < llm_nelems(cases); i++) {
        fill(i + 1);
        check(exec, &cases[i], 0);
        check(exec, &cases[i], 1);
    }

    if (exec) {
        exec->ops->close(exec);
    }

    return done_testing();
}
