/*
 * Mixtures of experts: their weights, and the products of the pairs that
 * route.cu has ordered by expert.
 *
 * A block multiplies 16 rows of an expert's matrix by the pairs of a segment
 * (route.h), as linear_q.cu does with few rows; only weights of chosen experts
 * are read.  A row's results are added up in the order of its choices.
 *
 * Invariant: an element is LLM_K_PARTS chains over K, cut by the weight's shape
 * and added in order, whatever the pair's segment and its size, so a row's bits
 * do not depend on other rows.
 *
 * Grids have blocks for the most segments of the step's bucket, and buffers,
 * which llm_choice_t owns, have room for the most pairs: nothing waits for the
 * host.
 */

#include "kernels/cuda/route.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/values.h"

#include <assert.h>

#define LLM_PAIR_THREADS  256


/* ---- weights ---- */

/* a warp packs a tile of class 16 */

__global__ void
llm_k_pack_16(llm_packed_t p, uint32_t type, uint32_t n_in,
    const uint8_t *raw, size_t row_size, int bf16)
{
    uint16_t  *to;
    uint32_t   i, lane, row, col;

    lane = threadIdx.x;
    to = (uint16_t *) (llm_pack_record(p, blockIdx.x, blockIdx.y / 4)
                       + blockIdx.y % 4 * 1024 + lane * 16);

    for (i = 0; i < 16; i++) {
        row = blockIdx.x * LLM_TILE_ROWS + llm_pack_row(lane, i);
        col = blockIdx.y * LLM_TILE_COLS + llm_pack_col(lane, i);
        to[i / 8 * 256 + i % 8] = row < p.n_out && col < n_in
            ? llm_store16(llm_deq(type, raw + row * row_size, col), bf16)
            : (uint16_t) 0;
    }
}


/* packs the matrix of one expert from raw rows on the device */

static void
llm_expert_pack(llm_cuda_t *d, const llm_weight_t *w, uint32_t e,
    const uint8_t *raw)
{
    llm_packed_t  p;

    llm_packed_view(&p, w->cls, w->type, w->n_out, w->n_in,
                    w->packed + e * w->stride);

    if (w->cls == LLM_CLASS_16) {
        llm_launch(llm_k_pack_16, dim3(p.row_tiles, p.quads * 4), 32, 0,
                   d->stream, p, w->type, w->n_in, raw, w->row_size,
                   d->bf16);

    } else if (w->cls == LLM_CLASS_FP8) {
        llm_pack_fp8(d, &p, w->type, w->n_in, raw, w->row_size);

    } else {
        llm_pack(d, &p, w->type, w->n_in, raw, w->row_size);
    }
}


/* uploads and packs the experts one after another, through the same memory */

static int
llm_experts_load(llm_cuda_t *d, llm_weight_t *w, const uint8_t *src,
    size_t stride, llm_err_t *err)
{
    size_t     size;
    uint8_t   *raw;
    uint32_t   e;

    size = w->row_size * w->n_out;

    if (llm_cuda_alloc((void **) &w->packed, w->stride * w->n_experts,
                       "the weights of experts", err)
        != LLM_OK
        || llm_cuda_alloc((void **) &raw, size, "an expert's weights", err)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (e = 0; e < w->n_experts; e++) {
        llm_cuda_upload(d, raw, src + e * stride, size);
        llm_expert_pack(d, w, e, raw);
    }

    (void) llm_cuda_check(d, cudaGetLastError(), "packing of experts");
    (void) llm_cuda_check(d, cudaStreamSynchronize(d->stream),
                          "upload of experts");
    llm_cuda_free(d, raw);

    return llm_cuda_report(d, err);
}


llm_weight_t *
llm_cuda_experts_create(llm_exec_t *exec, uint32_t type, uint32_t n_experts,
    uint32_t n_out, uint32_t n_in, const void *src, size_t stride,
    llm_err_t *err)
{
    llm_cuda_t    *d = (llm_cuda_t *) exec;
    llm_weight_t  *w;

    w = (llm_weight_t *) calloc(1, sizeof(llm_weight_t));
    if (w == NULL) {
        (void) llm_fail(err, "no memory for the weights of experts");
        return NULL;
    }

    w->type = type;
    w->n_out = n_out;
    w->n_in = n_in;
    w->n_experts = n_experts;
    w->row_size = llm_type_row_size(type, n_in);
    w->cls = llm_packed_class(type);

    if (w->cls == 0) {
        w->cls = d->opts.weights_fp8 ? LLM_CLASS_FP8 : LLM_CLASS_16;
    }

    w->stride = llm_packed_size(w->cls, n_out, n_in);

    if (llm_experts_load(d, w, (const uint8_t *) src, stride, err)
        != LLM_OK)
    {
        llm_cuda_weight_free(exec, w);
        return NULL;
    }

    return w;
}


/* ---- inputs and results of the products ---- */

/* converts rows of x to folded 16-bit rows; with `weight` each pair gets a row,
   times the pair's weight */

__global__ void
llm_k_expert_in(const uint32_t *count, const void *x, int is16,
    uint32_t n_in, uint32_t stride, const float *weight, uint32_t n_used,
    uint16_t *y, int bf16)
{
    float     f;
    size_t    row;
    uint32_t  i, c, n;

    n = weight ? n_used : 1;

    if (blockIdx.x >= *count * n) {
        return;
    }

    row = blockIdx.x / n;
    f = weight ? weight[blockIdx.x] : 1.0f;

    for (i = threadIdx.x; i < stride; i += blockDim.x) {
        c = llm_fold(i);
        y[(size_t) blockIdx.x * stride + i] = c < n_in
            ? llm_store16(f * llm_load(x, row * n_in + c, is16, bf16), bf16)
            : (uint16_t) 0;
    }
}


/* act(gate) * up of a pair, folded or not; without a gate act(up) */

__global__ void
llm_k_expert_act(const uint32_t *count, uint32_t n_used, llm_act_fn_t fn,
    const float *gate, const float *up, uint32_t n_ff, uint32_t stride,
    int folded, uint16_t *y, int bf16)
{
    float     v;
    size_t    at;
    uint32_t  i, c;

    if (blockIdx.x >= *count * n_used) {
        return;
    }

    for (i = threadIdx.x; i < stride; i += blockDim.x) {
        c = folded ? llm_fold(i) : i;
        v = 0;

        if (c < n_ff) {
            at = (size_t) blockIdx.x * n_ff + c;
            v = gate ? llm_glu_one(fn, gate[at], up[at])
                     : llm_glu_one(fn, up[at], 1.0f);
        }

        y[(size_t) blockIdx.x * stride + i] = llm_store16(v, bf16);
    }
}


/* folds the hidden layers of a pair, which lie in n slices of their rows */

__global__ void
llm_k_expert_fold(const uint32_t *count, uint32_t n_used, uint32_t n,
    const uint16_t *x, uint32_t n_ff, uint32_t stride, uint16_t *y)
{
    uint32_t  i, c, k, width;

    if (blockIdx.x >= *count * n_used) {
        return;
    }

    k = blockIdx.x % n_used;
    width = n_ff / n;
    x += (size_t) (blockIdx.x - k) * n_ff;

    for (i = threadIdx.x; i < stride; i += blockDim.x) {
        c = llm_fold(i);
        y[(size_t) blockIdx.x * stride + i] = c < n_ff
            ? x[((size_t) (c / width) * n_used + k) * width + c % width]
            : (uint16_t) 0;
    }
}


/* adds up the results of a row's pairs in order, times their weights; weight
   NULL: times 1 */

__global__ void
llm_k_expert_add(const uint32_t *count, uint32_t n_used, const float *weight,
    const float *out, uint32_t cols, int add, float *y)
{
    float     sum;
    size_t    pair;
    uint32_t  i, k;

    if (blockIdx.x >= *count) {
        return;
    }

    pair = (size_t) blockIdx.x * n_used;
    y += (size_t) blockIdx.x * cols;

    for (i = threadIdx.x; i < cols; i += blockDim.x) {
        sum = add ? y[i] : 0.0f;

        for (k = 0; k < n_used; k++) {
            sum = __fmaf_rn(weight ? weight[pair + k] : 1.0f,
                            out[(pair + k) * cols + i], sum);
        }

        y[i] = sum;
    }
}


/* ---- products ---- */

typedef struct {
    llm_packed_t          w;            /* of expert 0 */
    size_t                stride;       /* bytes from one expert to the next */
    const float          *factors;      /* [n_experts] or NULL */
    const float          *bias;         /* an expert's is bias_cols after that
                                           of the one before it; or NULL */
    uint32_t              bias_cols;
    float                *y;            /* [pairs][n_out] */
} llm_expert_product_t;

typedef struct {
    llm_expert_product_t  p[2];
    const llm_segment_t  *segments;
    const uint32_t       *n_segments;
    const uint32_t       *order;
    const uint16_t       *x;            /* folded */
    uint32_t              share;        /* pairs that share a row of x */
} llm_expert_args_t;


/* block (row tile of the weight, segment, product) */

template<int CLS, int NT, int BF16> __global__ void
__launch_bounds__(LLM_K_PARTS * 32)
llm_k_experts(llm_expert_args_t a)
{
    int                   n;
    float                 v, acc[1][NT][4], *s;
    uint32_t              i, q, r, c, pair, col, warp, end;
    const uint8_t        *record;
    const uint16_t       *x[NT];
    llm_packed_t          p;
    llm_lane_t<CLS>       l;
    llm_segment_t         seg;
    llm_expert_product_t  e;

    enum { N = NT * 8 };

    LLM_SHARED(mem);

    if (blockIdx.y >= *a.n_segments) {
        return;
    }

    seg = a.segments[blockIdx.y];
    p = llm_packed_of(blockIdx.z ? a.p[1].w : a.p[0].w,
                      blockIdx.z ? a.p[1].stride : a.p[0].stride, seg.expert);
    s = (float *) mem;
    warp = threadIdx.x / 32;
    q = llm_k_part(p.quads, warp);
    end = llm_k_part(p.quads, warp + 1);
    record = p.records + ((size_t) blockIdx.x * p.quads + q)
                         * llm_record_bytes(CLS);

    /* a segment that is not full repeats its last pair */

#pragma unroll
    for (n = 0; n < NT; n++) {
        c = (uint32_t) n * 8 + threadIdx.x % 32 / 4;
        c = c < seg.n ? c : seg.n - 1;
        x[n] = a.x + ((size_t) (a.order[seg.first + c] / a.share) * p.quads
                      + q) * LLM_QUAD_COLS + threadIdx.x % 4 * 8;
    }

    llm_zero<1, NT>(acc);

    for (; q < end; q++) {
        llm_lane_load<CLS>(record, threadIdx.x % 32, l);
        llm_quad_product<CLS, NT, 0>(p, l, record, 0, x, BF16, acc);
        record += llm_record_bytes(CLS);

#pragma unroll
        for (n = 0; n < NT; n++) {
            x[n] += LLM_QUAD_COLS;
        }
    }

    llm_share_parts<NT>(s, acc[0]);

    /* not before the loop, where it would take registers */
    e = blockIdx.z ? a.p[1] : a.p[0];

    for (i = threadIdx.x; i < LLM_TILE_ROWS * N; i += LLM_K_PARTS * 32) {
        r = i % LLM_TILE_ROWS;
        c = i / LLM_TILE_ROWS;
        col = blockIdx.x * LLM_TILE_ROWS + r;

        if (c >= seg.n || col >= p.n_out) {
            continue;
        }

        pair = a.order[seg.first + c];
        v = llm_sum_parts<NT>(s, r, c);
        v = p.scales ? __fmul_rn(v, p.scales[col]) : v;
        v = e.factors ? __fmul_rn(v, e.factors[seg.expert]) : v;
        v = e.bias ? v + e.bias[(size_t) seg.expert * e.bias_cols + col] : v;
        e.y[(size_t) pair * p.n_out + col] = v;
    }
}


/* launches n products with weights of class CLS and of the same shape */

template<int CLS, int BF16> static void
llm_experts_launch(llm_cuda_t *d, const llm_choice_t *c,
    const llm_expert_args_t *a, uint32_t n)
{
    dim3    grid;
    size_t  shared;

    grid = dim3(a->p[0].w.row_tiles, c->most, n);
    shared = (size_t) LLM_K_PARTS * LLM_TILE_ROWS * c->segment
             * sizeof(float);

    if (c->segment == LLM_SEGMENT_FEW) {
        llm_launch((llm_k_experts<CLS, LLM_SEGMENT_FEW / 8, BF16>), grid,
                   LLM_K_PARTS * 32, shared, d->stream, *a);

    } else {
        llm_launch((llm_k_experts<CLS, LLM_SEGMENT_MANY / 8, BF16>), grid,
                   LLM_K_PARTS * 32, shared, d->stream, *a);
    }
}


template<int CLS> static void
llm_experts_class(llm_cuda_t *d, const llm_choice_t *c,
    const llm_expert_args_t *a, uint32_t n)
{
    if (d->bf16) {
        llm_experts_launch<CLS, 1>(d, c, a, n);

    } else {
        llm_experts_launch<CLS, 0>(d, c, a, n);
    }
}


static void
llm_experts_products(llm_cuda_t *d, const llm_choice_t *c,
    const llm_expert_args_t *a, uint32_t n)
{
    switch (a->p[0].w.cls) {
    LLM_CLASS_CASE(LLM_CLASS_FP8, llm_experts_class, d, c, a, n)
    LLM_CLASS_CASE(LLM_CLASS_16, llm_experts_class, d, c, a, n)
    LLM_QUANT_CASES(llm_experts_class, d, c, a, n)
    }
}


/* how much of the experts a call is about: part i of n */
typedef struct {
    uint32_t              i;
    uint32_t              n;
} llm_expert_part_t;


static void
llm_expert_product(llm_expert_product_t *p, const llm_expert_part_t *part,
    const llm_weight_t *w, const llm_vec_t *bias, float *y)
{
    llm_packed_view(&p->w, w->cls, w->type, w->n_out, w->n_in, w->packed);
    p->stride = w->stride;
    p->factors = w->factors;
    p->bias_cols = w->n_out * part->n;
    p->bias = bias ? bias->data + (size_t) w->n_out * part->i : NULL;
    p->y = y;
}


static void
llm_experts_args(const llm_choice_t *c, llm_expert_args_t *a)
{
    a->segments = c->segments;
    a->n_segments = c->n_segments;
    a->order = c->order;
}


/* gate and up, in one launch if their weights have the same class */

static void
llm_experts_up(llm_cuda_t *d, const llm_experts_t *e,
    const llm_expert_part_t *part, llm_choice_t *c, llm_expert_args_t *a)
{
    llm_expert_product(&a->p[0], part, e->up, e->up_bias, c->up);

    if (e->gate == NULL) {
        llm_experts_products(d, c, a, 1);
        return;
    }

    llm_expert_product(&a->p[1], part, e->gate, e->gate_bias, c->gate);

    if (e->gate->cls == e->up->cls) {
        llm_experts_products(d, c, a, 2);
        return;
    }

    llm_experts_products(d, c, a, 1);
    a->p[0] = a->p[1];
    llm_experts_products(d, c, a, 1);
}


/* the hidden layers, folded rows of `stride` columns, or as they are */

static void
llm_experts_hidden(llm_cuda_t *d, llm_rows_t rows, const llm_experts_t *e,
    const llm_expert_part_t *part, const llm_act_t *x, llm_choice_t *c,
    int folded, uint16_t *y)
{
    uint32_t            n, n_ff, stride;
    const float        *weight;
    llm_act_fn_t        fn;
    const uint32_t     *count;
    llm_expert_args_t   a;

    n = llm_cuda_rows(d, rows);
    n_ff = e->up->n_out;
    count = llm_cuda_count(d, rows);
    stride = (uint32_t) llm_align((size_t) x->cols, LLM_QUAD_COLS);
    weight = e->weigh_input ? c->weight : NULL;

    assert(x->cols <= c->opts.n_in && n_ff <= c->opts.n_ff
           && e->up->n_experts == c->n_experts);

    llm_launch(llm_k_expert_in, weight ? n * c->n_used : n, LLM_PAIR_THREADS,
               0, d->stream, count, (const void *) x->data, x->is16, x->cols,
               stride, weight, c->n_used, c->x, d->bf16);

    llm_experts_args(c, &a);
    a.x = c->x;
    a.share = weight ? 1 : c->n_used;
    llm_experts_up(d, e, part, c, &a);

    memset(&fn, 0, sizeof(fn));
    fn.kind = e->act;
    stride = folded ? (uint32_t) llm_align((size_t) n_ff, LLM_QUAD_COLS)
                    : n_ff;

    llm_launch(llm_k_expert_act, n * c->n_used, LLM_PAIR_THREADS, 0,
               d->stream, count, c->n_used, fn,
               (const float *) (e->gate ? c->gate : NULL),
               (const float *) c->up, n_ff, stride, folded, y, d->bf16);
}


/* the results, from the hidden layers in c */

static void
llm_experts_out(llm_cuda_t *d, llm_rows_t rows, const llm_experts_t *e,
    const llm_expert_part_t *part, llm_choice_t *c, llm_act_t *y)
{
    llm_expert_args_t  a;

    assert(e->down->n_out == y->cols && y->cols <= c->opts.n_in && !y->is16);

    llm_experts_args(c, &a);
    a.x = c->hidden;
    a.share = 1;
    llm_expert_product(&a.p[0], part, e->down, e->down_bias, c->out);
    llm_experts_products(d, c, &a, 1);

    llm_launch(llm_k_expert_add, llm_cuda_rows(d, rows), LLM_PAIR_THREADS, 0,
               d->stream, llm_cuda_count(d, rows), c->n_used,
               (const float *) (e->weigh_input ? NULL : c->weight),
               (const float *) c->out, y->cols, e->add, (float *) y->data);
}


void
llm_cuda_experts(llm_exec_t *exec, llm_rows_t rows, const llm_experts_t *e,
    const llm_act_t *x, llm_choice_t *c, llm_act_t *y)
{
    llm_cuda_t         *d = (llm_cuda_t *) exec;
    llm_expert_part_t   all = { 0, 1 };

    llm_experts_hidden(d, rows, e, &all, x, c, 1, c->hidden);
    llm_experts_out(d, rows, e, &all, c, y);
}


void
llm_cuda_experts_up(llm_exec_t *exec, llm_rows_t rows, const llm_experts_t *e,
    uint32_t i, uint32_t n, const llm_act_t *x, llm_choice_t *c, llm_act_t *y)
{
    llm_expert_part_t  part = { i, n };

    assert(y->is16 && y->cols == c->n_used * e->up->n_out);

    llm_experts_hidden((llm_cuda_t *) exec, rows, e, &part, x, c, 0,
                       (uint16_t *) y->data);
}


void
llm_cuda_experts_down(llm_exec_t *exec, llm_rows_t rows,
    const llm_experts_t *e, uint32_t i, uint32_t n, const llm_act_t *x,
    llm_choice_t *c, llm_act_t *y)
{
    uint32_t            n_ff;
    llm_cuda_t         *d = (llm_cuda_t *) exec;
    llm_expert_part_t   part = { i, n };

    n_ff = e->down->n_in;

    assert(x->is16 && x->cols == c->n_used * n_ff && n_ff % n == 0
           && n_ff <= c->opts.n_ff);

    llm_launch(llm_k_expert_fold, llm_cuda_rows(d, rows) * c->n_used,
               LLM_PAIR_THREADS, 0, d->stream, llm_cuda_count(d, rows),
               c->n_used, n, (const uint16_t *) x->data, n_ff,
               (uint32_t) llm_align((size_t) n_ff, LLM_QUAD_COLS), c->hidden);
    llm_experts_out(d, rows, e, &part, c, y);
}
