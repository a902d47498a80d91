/*
 * Recurrent layers: states of sequences, the short convolution, the gated
 * delta rule and the selective scan; see kernels.h for what they compute.
 *
 * Invariant: a column of a head goes through the rows of its sequence one by
 * one; how a sum is divided among warps depends only on the head's size, and
 * what is kept from row to row is float32.  So a sequence has the same bits
 * however it is divided into steps.
 *
 * A slot has the layers in order, each with the last inputs of its convolution
 * and then the matrices of its heads.  llm_state_t owns all slots.
 */

#include "kernels/cuda/internal.h"

#define LLM_CONV_THREADS  256

/* columns of a head that a block takes, one a lane, and the warps that divide
   its rows among them */
#define LLM_STATE_COLS    32
#define LLM_STATE_WARPS   8
#define LLM_STATE_THREADS (LLM_STATE_COLS * LLM_STATE_WARPS)

/* most rows of a head's matrix: a block's columns of it, and q and k, are in
   shared memory, of which every GPU has 99 KB */
#define LLM_STATE_ROWS    640

struct llm_state_s {
    llm_state_opts_t   opts;
    size_t             slot;            /* floats of a slot */
    size_t            *first;           /* [n_layers] where each layer begins in
                                           a slot, floats */
    float             *data;            /* on the device: [n_slots][slot] */
};

/* a layer's states, for kernels */
typedef struct {
    float             *data;            /* the layer in slot 0 */
    size_t             slot;            /* floats from one slot to the next */
} llm_state_view_t;


/* ---- memory ---- */

static size_t
llm_state_conv(const llm_state_layer_t *l)
{
    return l->conv_width ? (size_t) (l->conv_width - 1) * l->conv_channels
                         : 0;
}


/* floats of a slot; SIZE_MAX: too many.  first[], unless NULL, becomes where
   each layer begins */

static size_t
llm_state_floats(const llm_state_opts_t *o, size_t *first)
{
    size_t                    n, heads;
    uint32_t                  i;
    const llm_state_layer_t  *l;

    n = 0;

    for (i = 0; i < o->n_layers; i++) {
        l = &o->layers[i];

        if (first) {
            first[i] = n;
        }

        if (llm_mul_overflow((size_t) l->n_rows * l->n_cols,
                             (size_t) l->n_heads, &heads)
            || llm_add_overflow(heads, llm_state_conv(l), &heads)
            || llm_add_overflow(n, heads, &n)
            || n > SIZE_MAX / 2 / sizeof(float))
        {
            return SIZE_MAX;
        }

        n = llm_align(n, 16);
    }

    return n;
}


size_t
llm_cuda_state_size(llm_exec_t *exec, const llm_state_opts_t *o)
{
    size_t  n;

    (void) exec;
    n = llm_state_floats(o, NULL);

    return n == SIZE_MAX ? n : n * sizeof(float);
}


void
llm_cuda_state_free(llm_exec_t *exec, llm_state_t *st)
{
    if (st) {
        llm_cuda_free((llm_cuda_t *) exec, st->data);
        free(st->first);
        free(st);
    }
}


static int
llm_state_fits(const llm_state_opts_t *o, llm_err_t *err)
{
    uint32_t  i;

    for (i = 0; i < o->n_layers; i++) {
        if (o->layers[i].n_rows > LLM_STATE_ROWS) {
            return llm_fail(err, "CUDA: recurrent states of %u rows: at most "
                            "%u are supported", o->layers[i].n_rows,
                            LLM_STATE_ROWS);
        }
    }

    return LLM_OK;
}


llm_state_t *
llm_cuda_state_create(llm_exec_t *exec, const llm_state_opts_t *o,
    llm_err_t *err)
{
    size_t        size;
    llm_cuda_t   *d = (llm_cuda_t *) exec;
    llm_state_t  *st;

    size = llm_cuda_state_size(exec, o);

    if (size == SIZE_MAX
        || llm_mul_overflow(size, (size_t) o->n_slots, &size))
    {
        (void) llm_fail(err, "CUDA: no memory for %u recurrent states",
                        o->n_slots);
        return NULL;
    }

    if (llm_state_fits(o, err) != LLM_OK) {
        return NULL;
    }

    st = (llm_state_t *) calloc(1, sizeof(llm_state_t));

    if (st) {
        st->opts = *o;
        st->first = (size_t *) calloc(llm_max(o->n_layers, 1u),
                                      sizeof(size_t));
    }

    if (st == NULL || st->first == NULL) {
        free(st);
        (void) llm_fail(err, "no memory for recurrent states");
        return NULL;
    }

    st->slot = llm_state_floats(o, st->first);

    if (llm_cuda_alloc((void **) &st->data, size, "recurrent states", err)
        != LLM_OK
        || llm_cuda_clear(d, st->data, size, "clearing of states", err)
           != LLM_OK)
    {
        llm_cuda_state_free(exec, st);
        return NULL;
    }

    return st;
}


void
llm_cuda_state_copy(llm_exec_t *exec, llm_state_t *st, uint32_t src,
    uint32_t dst)
{
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    if (src != dst) {
        (void) llm_cuda_check(d, cudaMemcpyAsync(st->data + dst * st->slot,
                                                 st->data + src * st->slot,
                                                 st->slot * sizeof(float),
                                                 cudaMemcpyDeviceToDevice,
                                                 d->stream),
                              "copy of a state");
    }
}


/* ---- the short convolution ---- */

typedef struct {
    llm_state_view_t   st;
    const float       *x;
    const float       *w;               /* [width][channels] */
    const float       *bias;            /* or NULL */
    float             *y;
    uint32_t           width;
    uint32_t           channels;
    int                silu;
} llm_conv_args_t;


/* block (row, channels); the state is still that before the step */

__global__ void
llm_k_conv(llm_cuda_step_t cs, llm_conv_args_t a)
{
    float         v, in;
    uint32_t      c, k, row, seq, row0, t;
    const float  *kept;

    row = blockIdx.x;
    c = blockIdx.y * blockDim.x + threadIdx.x;

    if (row >= cs.counts[LLM_N_TOKENS] || c >= a.channels) {
        return;
    }

    seq = cs.row_seq[row];
    row0 = cs.seq_rows[seq];
    kept = a.st.data + cs.slots[seq] * a.st.slot;
    v = a.bias ? a.bias[c] : 0.0f;

    for (k = 0; k < a.width; k++) {
        /* input t; the first width - 1 inputs are the kept ones */
        t = row - row0 + k;

        if (t + 1 >= a.width) {
            in = a.x[(size_t) (row0 + t + 1 - a.width) * a.channels + c];

        } else {
            in = cs.pos[row0] ? kept[(size_t) t * a.channels + c] : 0.0f;
        }

        v = __fmaf_rn(a.w[(size_t) k * a.channels + c], in, v);
    }

    a.y[(size_t) row * a.channels + c] = a.silu ? v / (1.0f + expf(-v)) : v;
}


/* block (sequence, channels): keeps the last inputs, the oldest first */

__global__ void
llm_k_conv_keep(llm_cuda_step_t cs, llm_conv_args_t a)
{
    float     *kept;
    uint32_t   c, k, seq, row0, n, t;

    seq = blockIdx.x;
    c = blockIdx.y * blockDim.x + threadIdx.x;

    if (seq >= cs.counts[LLM_N_SEQS] || c >= a.channels) {
        return;
    }

    row0 = cs.seq_rows[seq];
    n = cs.seq_rows[seq + 1] - row0;
    kept = a.st.data + cs.slots[seq] * a.st.slot + c;

    for (k = 0; k + 1 < a.width; k++) {
        t = n + k;

        if (t + 1 >= a.width) {
            kept[(size_t) k * a.channels]
                = a.x[(size_t) (row0 + t + 1 - a.width) * a.channels + c];

        } else {
            kept[(size_t) k * a.channels]
                = cs.pos[row0] ? kept[(size_t) t * a.channels] : 0.0f;
        }
    }
}


void
llm_cuda_conv(llm_exec_t *exec, const llm_conv_t *c, const llm_act_t *x,
    llm_state_t *st, llm_act_t *y)
{
    uint32_t                  blocks;
    llm_cuda_t               *d = (llm_cuda_t *) exec;
    llm_conv_args_t           a;
    const llm_state_layer_t  *l = &st->opts.layers[c->layer];

    a.st.data = st->data + st->first[c->layer];
    a.st.slot = st->slot;
    a.x = (const float *) x->data;
    a.w = c->w->data;
    a.bias = c->bias ? c->bias->data : NULL;
    a.y = (float *) y->data;
    a.width = l->conv_width;
    a.channels = l->conv_channels;
    a.silu = c->silu;

    blocks = (a.channels + LLM_CONV_THREADS - 1) / LLM_CONV_THREADS;

    llm_launch(llm_k_conv, dim3(d->rows, blocks), LLM_CONV_THREADS, 0,
               d->stream, d->step, a);
    llm_launch(llm_k_conv_keep, dim3(d->seqs, blocks), LLM_CONV_THREADS, 0,
               d->stream, d->step, a);
}


/* ---- matrices of heads ---- */

/*
 * What the delta rule and the scan have in common, for a row with q, k and v:
 *
 *   the scan:        d = weight v,  S = g S + k d^T,  y = S^T q + skip v
 *   the delta rule:  d = weight (v - g S^T k'),  S = g S + k' d^T,  y = S^T q'
 *
 * k' and q' are divided by their lengths, as in kernels.h.
 */
typedef struct {
    llm_state_view_t   st;              /* of the layer's heads */
    const float       *x;
    uint32_t           x_cols;
    uint32_t           q;               /* first column of q of head 0 in x, as
                                           the next two of k and v */
    uint32_t           k;
    uint32_t           v;
    const float       *dt;              /* [rows][n_heads]; the delta rule's
                                           alpha */
    const float       *beta;            /* NULL: the scan */
    float             *y;
    uint32_t           n_heads;
    uint32_t           first;           /* number of the first of them in the
                                           layer: not 0 on a team's devices */
    uint32_t           n_groups;        /* heads of q and k */
    uint32_t           each;            /* heads of the layer for each group */
    int                tiled;           /* head h has group h % n_groups, not
                                           h / each */
    uint32_t           n_rows;
    uint32_t           n_cols;
    const float       *a;               /* [n_heads], as the next two */
    const float       *dt_bias;
    const float       *skip;            /* or NULL */
    float              dt_min;
} llm_state_args_t;

/* a block's shared memory */
typedef struct {
    float             *s;               /* [n_rows][LLM_STATE_COLS] */
    float             *q;               /* [n_rows] */
    float             *k;
    float             *parts;           /* [2][warps][LLM_STATE_COLS] */
    float             *sums;            /* [2][warps] */
} llm_state_shared_t;


static size_t
llm_state_shared_size(uint32_t n_rows)
{
    return ((size_t) n_rows * (LLM_STATE_COLS + 2)
            + 2 * LLM_STATE_WARPS * LLM_STATE_COLS + 2 * LLM_STATE_WARPS)
           * sizeof(float);
}


static __device__ __forceinline__ float
llm_softplus(float x)
{
    return x > 20.0f ? x : log1pf(expf(x));
}


/* adds up the warps' parts of a column */

static __device__ __forceinline__ float
llm_state_sum(const float *parts)
{
    int       w;
    float     sum;
    uint32_t  lane;

    lane = threadIdx.x % 32;

    for (sum = 0, w = 0; w < LLM_STATE_WARPS; w++) {
        sum += parts[w * LLM_STATE_COLS + lane];
    }

    return sum;
}


/*
 * Copies q and k of a row to shared memory, for the delta rule with the warps'
 * sums of their squares, and waits for all threads.
 */

static __device__ void
llm_state_fetch(const llm_state_args_t &a, const llm_state_shared_t &sh,
    const float *x, uint32_t group)
{
    float         q, k, sums[2];
    uint32_t      i;
    const float  *xq, *xk;

    xq = x + a.q + group * a.n_rows;
    xk = x + a.k + group * a.n_rows;
    sums[0] = sums[1] = 0;

    for (i = threadIdx.x; i < a.n_rows; i += LLM_STATE_THREADS) {
        q = xq[i];
        k = xk[i];
        sh.q[i] = q;
        sh.k[i] = k;
        sums[0] += q * q;
        sums[1] += k * k;
    }

    if (a.beta) {
        sums[0] = llm_warp_sum(sums[0]);
        sums[1] = llm_warp_sum(sums[1]);

        if (threadIdx.x % 32 == 0) {
            sh.sums[threadIdx.x / 32] = sums[0];
            sh.sums[LLM_STATE_WARPS + threadIdx.x / 32] = sums[1];
        }
    }

    __syncthreads();
}


/* 1 / sqrt(|x|^2 + 1e-6), from the warps' sums of squares */

static __device__ __forceinline__ float
llm_state_scale(const float *sums)
{
    int    w;
    float  sum;

    for (sum = 0, w = 0; w < LLM_STATE_WARPS; w++) {
        sum += sums[w];
    }

    return rsqrtf(sum + 1e-6f);
}


/* takes one row: v is the lane's element of it; returns the element of y */

static __device__ float
llm_state_row(const llm_state_args_t &a, const llm_state_shared_t &sh,
    uint32_t row, uint32_t head, float v)
{
    float     g, dt, d, q_scale, k_scale, sum, s, *col;
    size_t    at;
    uint32_t  i, lane, warp, begin, end;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    begin = a.n_rows * warp / LLM_STATE_WARPS;
    end = a.n_rows * (warp + 1) / LLM_STATE_WARPS;
    col = sh.s + lane;
    at = (size_t) row * a.n_heads + head;

    dt = llm_softplus(a.dt[at] + a.dt_bias[head]);
    q_scale = 1;

    if (a.beta) {
        g = expf(a.a[head] * dt);
        k_scale = llm_state_scale(sh.sums + LLM_STATE_WARPS);
        q_scale = llm_state_scale(sh.sums) * rsqrtf((float) a.n_rows);

        for (sum = 0, i = begin; i < end; i++) {
            sum = __fmaf_rn(col[i * LLM_STATE_COLS], sh.k[i], sum);
        }

        sh.parts[warp * LLM_STATE_COLS + lane] = sum;
        __syncthreads();

        sum = llm_state_sum(sh.parts);
        d = 1.0f / (1.0f + expf(-a.beta[at])) * k_scale
            * __fmaf_rn(-g * k_scale, sum, v);

    } else {
        dt = fmaxf(dt, a.dt_min);
        g = expf(a.a[head] * dt);
        d = dt * v;
    }

    for (sum = 0, i = begin; i < end; i++) {
        s = __fmaf_rn(sh.k[i], d, g * col[i * LLM_STATE_COLS]);
        col[i * LLM_STATE_COLS] = s;
        sum = __fmaf_rn(sh.q[i], s, sum);
    }

    sh.parts[(LLM_STATE_WARPS + warp) * LLM_STATE_COLS + lane] = sum;
    __syncthreads();

    sum = llm_state_sum(sh.parts + LLM_STATE_WARPS * LLM_STATE_COLS)
          * q_scale;

    return a.skip ? __fmaf_rn(a.skip[head], v, sum) : sum;
}


/* block (columns, head, sequence): all rows of the sequence */

__global__ void __launch_bounds__(LLM_STATE_THREADS)
llm_k_state(llm_cuda_step_t cs, llm_state_args_t a)
{
    float                v, y, *state;
    uint32_t             i, row, end, seq, head, group, lane, warp, col;
    llm_state_shared_t   sh;

    LLM_SHARED(mem);

    head = blockIdx.y;
    seq = blockIdx.z;

    if (seq >= cs.counts[LLM_N_SEQS]) {
        return;
    }

    sh.s = (float *) mem;
    sh.q = sh.s + a.n_rows * LLM_STATE_COLS;
    sh.k = sh.q + a.n_rows;
    sh.parts = sh.k + a.n_rows;
    sh.sums = sh.parts + 2 * LLM_STATE_THREADS;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    col = blockIdx.x * LLM_STATE_COLS + lane;
    row = cs.seq_rows[seq];
    end = cs.seq_rows[seq + 1];
    group = a.tiled ? (a.first + head) % a.n_groups
                    : (a.first + head) / a.each;
    state = a.st.data + cs.slots[seq] * a.st.slot
            + (size_t) head * a.n_rows * a.n_cols + col;

    for (i = warp; i < a.n_rows; i += LLM_STATE_WARPS) {
        sh.s[i * LLM_STATE_COLS + lane]
            = cs.pos[row] && col < a.n_cols ? state[(size_t) i * a.n_cols]
                                            : 0.0f;
    }

    for ( /* void */ ; row < end; row++) {
        llm_state_fetch(a, sh, a.x + (size_t) row * a.x_cols, group);

        v = col < a.n_cols ? a.x[(size_t) row * a.x_cols + a.v
                                 + head * a.n_cols + col]
                           : 0.0f;
        y = llm_state_row(a, sh, row, head, v);

        if (warp == 0 && col < a.n_cols) {
            a.y[((size_t) row * a.n_heads + head) * a.n_cols + col] = y;
        }
    }

    __syncthreads();

    for (i = warp; col < a.n_cols && i < a.n_rows; i += LLM_STATE_WARPS) {
        state[(size_t) i * a.n_cols] = sh.s[i * LLM_STATE_COLS + lane];
    }
}


static void
llm_state_launch(llm_cuda_t *d, const llm_state_t *st, uint32_t layer,
    llm_state_args_t *a)
{
    size_t  shared;

    a->st.data = st->data + st->first[layer]
                 + llm_state_conv(&st->opts.layers[layer]);
    a->st.slot = st->slot;
    shared = llm_state_shared_size(a->n_rows);

    llm_cuda_use_shared<llm_k_state>(d, shared);

    llm_launch(llm_k_state,
               dim3((a->n_cols + LLM_STATE_COLS - 1) / LLM_STATE_COLS,
                    a->n_heads, d->seqs),
               LLM_STATE_THREADS, shared, d->stream, d->step, *a);
}


/* device i of n computes an nth of the heads */

void
llm_cuda_delta_part(llm_exec_t *exec, const llm_delta_t *p, uint32_t i,
    uint32_t n, const llm_act_t *x, const llm_act_t *alpha,
    const llm_act_t *beta, llm_state_t *st, llm_act_t *y)
{
    llm_state_args_t  a;

    memset(&a, 0, sizeof(a));
    a.x = (const float *) x->data;
    a.x_cols = x->cols;
    a.n_heads = p->n_v_heads / n;
    a.first = a.n_heads * i;
    a.k = p->n_k_heads * p->dim_k;
    a.v = 2 * a.k + a.first * p->dim_v;
    a.dt = (const float *) alpha->data;
    a.beta = (const float *) beta->data;
    a.y = (float *) y->data;
    a.n_groups = p->n_k_heads;
    a.each = p->n_v_heads / p->n_k_heads;
    a.tiled = p->tiled;
    a.n_rows = p->dim_k;
    a.n_cols = p->dim_v;
    a.a = p->a->data;
    a.dt_bias = p->dt->data;

    llm_state_launch((llm_cuda_t *) exec, st, p->layer, &a);
}


void
llm_cuda_delta(llm_exec_t *exec, const llm_delta_t *p, const llm_act_t *x,
    const llm_act_t *alpha, const llm_act_t *beta, llm_state_t *st,
    llm_act_t *y)
{
    llm_cuda_delta_part(exec, p, 0, 1, x, alpha, beta, st, y);
}


void
llm_cuda_scan_part(llm_exec_t *exec, const llm_scan_t *p, uint32_t i,
    uint32_t n, const llm_act_t *x, const llm_act_t *dt, llm_state_t *st,
    llm_act_t *y)
{
    llm_state_args_t  a;

    memset(&a, 0, sizeof(a));
    a.x = (const float *) x->data;
    a.x_cols = x->cols;
    a.n_heads = p->n_heads / n;
    a.first = a.n_heads * i;
    a.v = a.first * p->dim;
    a.k = p->n_heads * p->dim;
    a.q = a.k + p->n_groups * p->n_state;
    a.dt = (const float *) dt->data;
    a.y = (float *) y->data;
    a.n_groups = p->n_groups;
    a.each = p->n_heads / p->n_groups;
    a.n_rows = p->n_state;
    a.n_cols = p->dim;
    a.a = p->a->data;
    a.dt_bias = p->dt_bias->data;
    a.skip = p->d->data;
    a.dt_min = p->dt_min;

    llm_state_launch((llm_cuda_t *) exec, st, p->layer, &a);
}


void
llm_cuda_scan(llm_exec_t *exec, const llm_scan_t *p, const llm_act_t *x,
    const llm_act_t *dt, llm_state_t *st, llm_act_t *y)
{
    llm_cuda_scan_part(exec, p, 0, 1, x, dt, st, y);
}
