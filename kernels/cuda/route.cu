/*
 * A row's choice of experts, the same as in kernels/cpu/route.c, and sorting
 * all pairs by expert.
 *
 * Invariant: sums and comparisons are of doubles, and a tie goes to the lower
 * number, so the choice is the CPU's.  Whatever the logits are, a row's experts
 * differ from each other.  The pairs of an expert are in any order: no result
 * depends on it.
 */

#include "kernels/cuda/route.h"

#include <assert.h>

/* most blocks of a grid's second dimension */
#define LLM_MOST_SEGMENTS  65535

#define LLM_GROUP_THREADS  256


/* number of segments of at most `size` pairs, in the worst case */

static uint32_t
llm_route_segments(size_t pairs, uint32_t n_experts, uint32_t size)
{
    return (uint32_t) ((pairs + (size - 1) * llm_min(pairs,
                                                     (size_t) n_experts))
                       / size);
}


/* sets the pointers to the choice's arrays; returns the bytes of all */

static size_t
llm_choice_layout(llm_choice_t *c, uint8_t *base)
{
    size_t    off, pairs, in, ff;
    uint32_t  most;

#define LLM_CHOICE_ARRAY(field, type, size)                                  \
    c->field = (type *) (base + off);                                        \
    off += llm_align((size_t) (size), 256)

    off = 0;
    pairs = (size_t) c->opts.max_rows * c->opts.n_used;
    in = llm_align((size_t) c->opts.n_in, LLM_QUAD_COLS);
    ff = llm_align((size_t) c->opts.n_ff, LLM_QUAD_COLS);
    most = llm_route_segments(pairs, c->opts.n_experts, LLM_SEGMENT_FEW);

    LLM_CHOICE_ARRAY(expert, uint32_t, pairs * 4);
    LLM_CHOICE_ARRAY(weight, float, pairs * 4);
    LLM_CHOICE_ARRAY(order, uint32_t, pairs * 4);
    LLM_CHOICE_ARRAY(segments, llm_segment_t, most * sizeof(llm_segment_t));
    LLM_CHOICE_ARRAY(n_segments, uint32_t, 4);
    LLM_CHOICE_ARRAY(hidden, uint16_t, pairs * ff * 2);
    LLM_CHOICE_ARRAY(gate, float, pairs * ff * 4);
    LLM_CHOICE_ARRAY(up, float, pairs * ff * 4);
    LLM_CHOICE_ARRAY(out, float, pairs * in * 4);
    c->x = (uint16_t *) c->out;

#undef LLM_CHOICE_ARRAY

    return off;
}


llm_choice_t *
llm_cuda_choice_create(llm_exec_t *exec, const llm_choice_opts_t *opts,
    llm_err_t *err)
{
    size_t         pairs;
    llm_cuda_t    *d = (llm_cuda_t *) exec;
    llm_choice_t  *c;

    if (opts->n_used == 0 || opts->n_used > opts->n_experts
        || opts->n_experts > LLM_MAX_EXPERTS)
    {
        (void) llm_fail(err, "CUDA: a layer cannot use %u of %u experts (at "
                        "most %u experts)", opts->n_used, opts->n_experts,
                        LLM_MAX_EXPERTS);
        return NULL;
    }

    pairs = (size_t) opts->max_rows * opts->n_used;

    if (pairs > (size_t) LLM_MOST_SEGMENTS * LLM_SEGMENT_FEW
        || llm_route_segments(pairs, opts->n_experts, LLM_SEGMENT_FEW)
           > LLM_MOST_SEGMENTS)
    {
        (void) llm_fail(err, "CUDA: a step of %u rows with %u experts each is "
                        "too large: set a smaller batch=", opts->max_rows,
                        opts->n_used);
        return NULL;
    }

    c = (llm_choice_t *) calloc(1, sizeof(llm_choice_t));
    if (c == NULL) {
        (void) llm_fail(err, "no memory for a choice of experts");
        return NULL;
    }

    c->opts = *opts;

    if (llm_cuda_alloc((void **) &c->memory, llm_choice_layout(c, NULL),
                       "the experts' rows", err)
        != LLM_OK)
    {
        free(c);
        return NULL;
    }

    (void) llm_choice_layout(c, c->memory);

    /* columns that pad folded rows must be zeros, also in rows that no step has
       written yet */

    if (llm_cuda_clear(d, c->memory, llm_choice_layout(c, c->memory),
                       "clearing of the experts' rows", err)
        != LLM_OK)
    {
        llm_cuda_choice_free(exec, c);
        return NULL;
    }

    return c;
}


void
llm_cuda_choice_free(llm_exec_t *exec, llm_choice_t *c)
{
    if (c) {
        llm_cuda_free((llm_cuda_t *) exec, c->memory);
        free(c);
    }
}


/* ---- the choice ---- */

typedef struct {
    llm_route_score_t  score;
    uint32_t           n_experts;
    uint32_t           n_used;
    uint32_t           n_groups;
    uint32_t           n_groups_used;
    int                group_pairs;
    int                normalize;
    float              floor;
    float              eps;
    float              scale;
    const float       *bias;
    const float       *factor;
} llm_route_args_t;

/* a warp's shared memory: doubles first */
typedef struct {
    double            *s;               /* [n_experts] scores */
    double            *p;               /* [n_experts] what experts are chosen
                                           by */
    double            *groups;          /* [n_groups] */
    uint32_t          *open;            /* a bit for each group: it is chosen */
    uint32_t          *chosen;          /* [n_used] */
} llm_route_shared_t;

#define LLM_GROUP_WORDS  (LLM_MAX_EXPERTS / 32)


static size_t
llm_route_shared_size(const llm_route_args_t *r)
{
    return (2 * (size_t) r->n_experts + r->n_groups) * sizeof(double)
           + (LLM_GROUP_WORDS + r->n_used) * sizeof(uint32_t);
}


/* NaN counts as the smallest value */

static __device__ __forceinline__ double
llm_route_order(double v)
{
    return v != v ? -INFINITY : v;
}


/*
 * Takes the largest of n values that is not taken yet, the first of equal ones;
 * returns its index.  Bit k of a lane's `taken` is for value lane + 32 k.
 */

static __device__ uint32_t
llm_route_take(const double *p, uint32_t n, uint32_t *taken)
{
    int       k;
    double    v, best;
    uint32_t  i, at, lane;

    lane = threadIdx.x;
    best = -INFINITY;
    at = n;

    for (i = lane; i < n; i += 32) {
        v = llm_route_order(p[i]);

        if (!(*taken >> i / 32 & 1) && (at == n || v > best)) {
            best = v;
            at = i;
        }
    }

    for (k = 16; k > 0; k /= 2) {
        v = __shfl_xor_sync(LLM_FULL_WARP, best, k);
        i = __shfl_xor_sync(LLM_FULL_WARP, at, k);

        if (i < n && (at == n || v > best || (v == best && i < at))) {
            best = v;
            at = i;
        }
    }

    if (at % 32 == lane) {
        *taken |= 1u << at / 32;
    }

    return at;
}


/* the scores s of all experts; each lane computes some of them */

static __device__ void
llm_route_scores(const llm_route_args_t &r, const float *logits, double *s)
{
    int       k;
    double    max, sum;
    uint32_t  e;

    max = -INFINITY;
    sum = 0;

    for (e = threadIdx.x; e < r.n_experts; e += 32) {
        max = fmax(max, (double) logits[e]);
    }

    for (k = 16; k > 0; k /= 2) {
        max = fmax(max, __shfl_xor_sync(LLM_FULL_WARP, max, k));
    }

    for (e = threadIdx.x; e < r.n_experts; e += 32) {
        s[e] = logits[e];

        if (r.score == LLM_ROUTE_SOFTMAX) {
            s[e] = exp(s[e] - max);
            sum += s[e];

        } else if (r.score == LLM_ROUTE_SIGMOID) {
            s[e] = 1 / (1 + exp(-s[e]));
        }
    }

    if (r.score != LLM_ROUTE_SOFTMAX) {
        return;
    }

    for (k = 16; k > 0; k /= 2) {
        sum += __shfl_xor_sync(LLM_FULL_WARP, sum, k);
    }

    for (e = threadIdx.x; e < r.n_experts; e += 32) {
        s[e] /= sum;
    }
}


/* what a group is chosen by: its largest p, or the sum of the two largest */

static __device__ double
llm_route_group(const llm_route_args_t &r, const double *p, uint32_t size)
{
    double    v, first, second;
    uint32_t  i;

    first = llm_route_order(p[0]);
    second = -INFINITY;

    for (i = 1; i < size; i++) {
        v = llm_route_order(p[i]);
        second = fmax(second, fmin(first, v));
        first = fmax(first, v);
    }

    return r.group_pairs && size > 1 ? first + second : first;
}


/* chooses groups, and marks the experts of all other groups as taken */

static __device__ void
llm_route_groups(const llm_route_args_t &r, const llm_route_shared_t &sh,
    uint32_t *taken)
{
    uint32_t  i, g, size, mine;

    size = r.n_experts / r.n_groups;

    for (g = threadIdx.x; g < r.n_groups; g += 32) {
        sh.groups[g] = llm_route_group(r, sh.p + g * size, size);
    }

    for (i = threadIdx.x; i < LLM_GROUP_WORDS; i += 32) {
        sh.open[i] = 0;
    }

    __syncwarp();

    for (mine = 0, i = 0; i < r.n_groups_used; i++) {
        g = llm_route_take(sh.groups, r.n_groups, &mine);

        if (threadIdx.x == 0) {
            sh.open[g / 32] |= 1u << g % 32;
        }
    }

    __syncwarp();

    for (i = threadIdx.x; i < r.n_experts; i += 32) {
        g = i / size;
        *taken |= (~sh.open[g / 32] >> g % 32 & 1) << i / 32;
    }
}


/* one lane: computes the weights of the chosen experts, in the order of
   choice */

static __device__ void
llm_route_weigh(const llm_route_args_t &r, const llm_route_shared_t &sh,
    float *weight)
{
    double    w, max, sum;
    uint32_t  i, e;

    max = -INFINITY;
    sum = 0;

    for (i = 0; i < r.n_used; i++) {
        max = fmax(max, sh.s[sh.chosen[i]]);
    }

    for (i = 0; i < r.n_used; i++) {
        w = sh.s[sh.chosen[i]];
        sum += r.score == LLM_ROUTE_CHOSEN ? exp(w - max) : w;
    }

    if (r.score != LLM_ROUTE_CHOSEN && r.normalize) {
        sum = sum < (double) r.floor ? (double) r.floor : sum;
        sum += (double) r.eps;

    } else if (r.score != LLM_ROUTE_CHOSEN) {
        sum = 1;
    }

    for (i = 0; i < r.n_used; i++) {
        e = sh.chosen[i];
        w = r.score == LLM_ROUTE_CHOSEN ? exp(sh.s[e] - max) : sh.s[e];
        w = w / sum * (double) r.scale;
        weight[i] = (float) (r.factor ? w * (double) r.factor[e] : w);
    }
}


/* a warp for each row */

__global__ void
llm_k_route(const uint32_t *count, llm_route_args_t r, const float *logits,
    uint32_t *expert, float *weight)
{
    uint32_t             i, e, taken;
    llm_route_shared_t   sh;

    LLM_SHARED(mem);

    if (blockIdx.x >= *count) {
        return;
    }

    sh.s = (double *) mem;
    sh.p = sh.s + r.n_experts;
    sh.groups = sh.p + r.n_experts;
    sh.open = (uint32_t *) (sh.groups + r.n_groups);
    sh.chosen = sh.open + LLM_GROUP_WORDS;

    logits += (size_t) blockIdx.x * r.n_experts;
    expert += (size_t) blockIdx.x * r.n_used;
    weight += (size_t) blockIdx.x * r.n_used;

    llm_route_scores(r, logits, sh.s);

    for (i = threadIdx.x; i < r.n_experts; i += 32) {
        sh.p[i] = r.bias ? sh.s[i] + (double) r.bias[i]
                  : r.n_groups && r.group_pairs ? sh.s[i]
                  : (double) logits[i];
    }

    __syncwarp();
    taken = 0;

    if (r.n_groups) {
        llm_route_groups(r, sh, &taken);
    }

    for (i = 0; i < r.n_used; i++) {
        e = llm_route_take(sh.p, r.n_experts, &taken);

        if (threadIdx.x == 0) {
            sh.chosen[i] = e;
            expert[i] = e;
        }
    }

    if (threadIdx.x == 0) {
        llm_route_weigh(r, sh, weight);
    }
}


/*
 * One block, with a thread for each expert: counts an expert's pairs, finds its
 * place in order[], and makes its segments; then the threads write order[].
 */

__global__ void
llm_k_group(const uint32_t *count, uint32_t n_used, uint32_t segment,
    const uint32_t *expert, uint32_t *order, llm_segment_t *segments,
    uint32_t *n_segments)
{
    uint32_t       i, k, n, off, own, pairs, a, b, *next, *end, *seg_end;
    llm_segment_t  s;

    LLM_SHARED(mem);

    i = threadIdx.x;
    next = (uint32_t *) mem;
    end = next + blockDim.x;
    seg_end = end + blockDim.x;
    pairs = *count * n_used;

    next[i] = 0;
    __syncthreads();

    for (k = i; k < pairs; k += blockDim.x) {
        (void) atomicAdd(&next[expert[k]], 1u);
    }

    __syncthreads();

    n = next[i];
    own = (n + segment - 1) / segment;
    end[i] = n;
    seg_end[i] = own;
    __syncthreads();

    for (off = 1; off < blockDim.x; off *= 2) {
        a = i >= off ? end[i - off] : 0;
        b = i >= off ? seg_end[i - off] : 0;
        __syncthreads();
        end[i] += a;
        seg_end[i] += b;
        __syncthreads();
    }

    next[i] = end[i] - n;

    for (k = 0; k < own; k++) {
        s.expert = i;
        s.first = next[i] + k * segment;
        s.n = n - k * segment < segment ? n - k * segment : segment;
        segments[seg_end[i] - own + k] = s;
    }

    if (i == blockDim.x - 1) {
        *n_segments = seg_end[i];
    }

    __syncthreads();

    for (k = i; k < pairs; k += blockDim.x) {
        order[atomicAdd(&next[expert[k]], 1u)] = k;
    }
}


void
llm_cuda_route(llm_exec_t *exec, llm_rows_t rows, const llm_route_t *r,
    const llm_act_t *logits, llm_choice_t *c)
{
    size_t             pairs;
    uint32_t           threads;
    llm_cuda_t        *d = (llm_cuda_t *) exec;
    llm_route_args_t   a;

    pairs = (size_t) llm_cuda_rows(d, rows) * r->n_used;

    assert(r->n_experts <= c->opts.n_experts && r->n_used <= c->opts.n_used
           && pairs <= (size_t) c->opts.max_rows * c->opts.n_used);

    c->n_experts = r->n_experts;
    c->n_used = r->n_used;
    c->segment = pairs <= (size_t) LLM_SEGMENT_FEW / 2 * r->n_experts
                 ? LLM_SEGMENT_FEW : LLM_SEGMENT_MANY;
    c->most = llm_route_segments(pairs, r->n_experts, c->segment);

    a.score = r->score;
    a.n_experts = r->n_experts;
    a.n_used = r->n_used;
    a.n_groups = r->n_groups;
    a.n_groups_used = r->n_groups_used;
    a.group_pairs = r->group_pairs;
    a.normalize = r->normalize;
    a.floor = r->floor;
    a.eps = r->eps;
    a.scale = r->scale;
    a.bias = r->bias ? r->bias->data : NULL;
    a.factor = r->factor ? r->factor->data : NULL;

    threads = (uint32_t) llm_align((size_t) llm_max(r->n_experts,
                                                    LLM_GROUP_THREADS), 32);

    llm_launch(llm_k_route, llm_cuda_rows(d, rows), 32,
               llm_route_shared_size(&a), d->stream, llm_cuda_count(d, rows),
               a, (const float *) logits->data, c->expert, c->weight);

    llm_launch(llm_k_group, 1, threads, 3 * threads * sizeof(uint32_t),
               d->stream, llm_cuda_count(d, rows), r->n_used, c->segment,
               (const uint32_t *) c->expert, c->order, c->segments,
               c->n_segments);
}
