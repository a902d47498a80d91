/*
 * Finding a cut of a row.  Every cut of the sampler's chain keeps the best
 * tokens of the row in one order: larger logits first, and of equal logits the
 * lower id first.
 *
 * A token's place in that order is its rank, a 64-bit number: the upper half is
 * the logit as an integer that grows with it, the lower half the id's
 * complement.  A cut is a search for the highest rank such that the tokens of
 * this rank or better are enough, by number or by mass.  Passes over the row
 * halve an interval of ranks until the undecided tokens fit in shared memory.
 *
 * Invariant: weights have the same bits as on the host (no product is fused
 * with a sum) and are added as integers, multiples of 2^-44 of the largest, so
 * the result does not depend on which thread adds what, on the batch, the
 * number of threads or the order of blocks.
 *
 * Functions with an llm_draw_shared_t are called by all threads of a block
 * together, with the same arguments, and every thread gets the result.
 */

#ifndef LLM_CUDA_REACH_H
#define LLM_CUDA_REACH_H

#include "kernels/cuda/internal.h"

#include <float.h>

/* most undecided tokens that are compared with each other */
#define LLM_DRAW_LIST     1024

/* passes that halve the interval of values; later ones halve that of ranks */
#define LLM_DRAW_SMOOTH   24

/* the rank of a logit that is NaN or plus infinity */
#define LLM_DRAW_BAD      (~(uint64_t) 0)

#define LLM_MASS_ONE      17592186044416.0f         /* 2^44 */

typedef unsigned long long  llm_u64;    /* the type for atomics */

/* number and mass of the tokens of a rank or better */
typedef struct {
    uint64_t           mass;
    uint32_t           count;
} llm_tally_t;

/* in a block's shared memory */
typedef struct {
    uint64_t           best[32];        /* of each warp; first: in
                                           llm_k_draw_parts() all there is */
    llm_tally_t        tally[32];
    llm_tally_t        at;              /* the result of a search */
    llm_u64            rank;
    uint64_t           list[LLM_DRAW_LIST];
    uint64_t           mass[LLM_DRAW_LIST];
    uint32_t           n_list;
    int32_t            id;
    float              raw;             /* the token's logit before edits */
    int32_t            fresh;           /* a token that was edited but is not
                                           in the list of edits; -1: none */
    float              fresh_raw;       /* that token's logit before edits */
} llm_draw_shared_t;

/* a row; a token's weight is exp((logit - max) * scale); scale 0: no weights */
typedef struct {
    const float            *row;
    uint32_t                n;
    float                   max;
    float                   scale;
} llm_row_t;


/* ---- ranks and weights ---- */

static __device__ __forceinline__ uint32_t
llm_key(float v)
{
    uint32_t  u;

    u = __float_as_uint(v + 0.0f);      /* -0 becomes 0 */

    return u & 0x80000000u ? ~u : u | 0x80000000u;
}


static __device__ __forceinline__ float
llm_key_value(uint32_t key)
{
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}


static __device__ __forceinline__ uint64_t
llm_rank(float v, uint32_t id)
{
    return (uint64_t) llm_key(v) << 32 | (0xffffffffu - id);
}


/* the lowest rank of tokens with this value */

static __device__ __forceinline__ uint64_t
llm_rank_of(float v)
{
    return (uint64_t) llm_key(v) << 32;
}


static __device__ __forceinline__ uint32_t
llm_rank_id(uint64_t rank)
{
    return 0xffffffffu - (uint32_t) rank;
}


/* llm_row_exp() of engine/sample/rows.c, operation by operation */

static __device__ __forceinline__ float
llm_weight_exp(float x)
{
    float  n, r, p;

    if (!(x >= -87.0f)) {
        return 0;
    }

    n = __fadd_rn(__fmul_rn(x, 1.44269504f), 12582912.0f);
    n = __fadd_rn(n, -12582912.0f);
    r = __fadd_rn(x, -__fmul_rn(n, 0.693359375f));
    r = __fadd_rn(r, -__fmul_rn(n, -2.12194440e-4f));
    p = __fadd_rn(__fmul_rn(r, 1.0f / 5040), 1.0f / 720);
    p = __fadd_rn(__fmul_rn(p, r), 1.0f / 120);
    p = __fadd_rn(__fmul_rn(p, r), 1.0f / 24);
    p = __fadd_rn(__fmul_rn(p, r), 1.0f / 6);
    p = __fadd_rn(__fmul_rn(p, r), 0.5f);
    p = __fadd_rn(__fmul_rn(p, r), 1.0f);
    p = __fadd_rn(__fmul_rn(p, r), 1.0f);

    return __int_as_float(__float_as_int(p) + (int) n * (1 << 23));
}


static __device__ __forceinline__ uint64_t
llm_mass(const llm_row_t *v, float logit)
{
    return (uint64_t) (llm_weight_exp(__fmul_rn(__fadd_rn(logit, -v->max),
                                                v->scale))
                       * LLM_MASS_ONE);
}


/* ---- results over all threads of a block ---- */

static __device__ uint64_t
llm_block_best(llm_draw_shared_t *sh, uint64_t best)
{
    uint32_t  i;
    uint64_t  other;

    for (i = 16; i > 0; i /= 2) {
        other = __shfl_xor_sync(LLM_FULL_WARP, best, (int) i);
        best = other > best ? other : best;
    }

    if (threadIdx.x % 32 == 0) {
        sh->best[threadIdx.x / 32] = best;
    }

    __syncthreads();

    for (i = 0; i < blockDim.x / 32; i++) {
        best = sh->best[i] > best ? sh->best[i] : best;
    }

    __syncthreads();

    return best;
}


static __device__ llm_tally_t
llm_block_tally(llm_draw_shared_t *sh, llm_tally_t t)
{
    uint32_t  i;

    for (i = 16; i > 0; i /= 2) {
        t.mass += __shfl_xor_sync(LLM_FULL_WARP, t.mass, (int) i);
        t.count += __shfl_xor_sync(LLM_FULL_WARP, t.count, (int) i);
    }

    if (threadIdx.x % 32 == 0) {
        sh->tally[threadIdx.x / 32] = t;
    }

    __syncthreads();

    t.mass = 0;
    t.count = 0;

    for (i = 0; i < blockDim.x / 32; i++) {
        t.mass += sh->tally[i].mass;
        t.count += sh->tally[i].count;
    }

    __syncthreads();

    return t;
}


/* number and mass of the tokens of a rank or better; mass 0 if the row has no
   scale */

static __device__ llm_tally_t
llm_tally(llm_draw_shared_t *sh, const llm_row_t *v, uint64_t rank)
{
    float        x;
    uint32_t     i;
    llm_tally_t  t = { 0, 0 };

#pragma unroll 4
    for (i = threadIdx.x; i < v->n; i += blockDim.x) {
        x = v->row[i];

        if (llm_rank(x, i) >= rank) {
            t.count++;
            t.mass += v->scale > 0 ? llm_mass(v, x) : 0;
        }
    }

    return llm_block_tally(sh, t);
}


/* lists the ranks in [lo, hi), at most LLM_DRAW_LIST of them, in any order */

static __device__ void
llm_list(llm_draw_shared_t *sh, const llm_row_t *v, uint64_t lo, uint64_t hi)
{
    float     x;
    uint32_t  i, at;
    uint64_t  rank;

    if (threadIdx.x == 0) {
        sh->n_list = 0;
    }

    __syncthreads();

#pragma unroll 4
    for (i = threadIdx.x; i < v->n; i += blockDim.x) {
        x = v->row[i];
        rank = llm_rank(x, i);

        if (rank >= lo && rank < hi) {
            at = atomicAdd(&sh->n_list, 1u);
            sh->list[at] = rank;
            sh->mass[at] = v->scale > 0 ? llm_mass(v, x) : 0;
        }
    }

    __syncthreads();
}


/* ---- the search for a cut ---- */

static __device__ __forceinline__ double
llm_amount(llm_tally_t t, int by_mass)
{
    return by_mass ? (double) t.mass : (double) t.count;
}


/*
 * The next rank to try between two ranks.  First strides from the largest value
 * on that double, because the cut is usually near the largest; then the middle
 * between the values; at last the middle between the ranks, so that the search
 * always ends.
 */

static __device__ uint64_t
llm_halfway(const llm_row_t *v, uint64_t lo, uint64_t hi, uint32_t turn,
    float *stride)
{
    uint64_t  mid;

    if (turn < LLM_DRAW_SMOOTH) {

        if (*stride > 0) {
            mid = llm_rank_of(v->max - *stride);
            *stride *= 2;

        } else {
            mid = llm_rank_of(llm_key_value((uint32_t) (lo >> 32)) * 0.5f
                              + llm_key_value((uint32_t) (hi >> 32)) * 0.5f);
        }

        if (mid > lo && mid < hi) {
            return mid;
        }

        *stride = 0;
    }

    return lo + (hi - lo) / 2;
}


/*
 * The highest rank for which the tokens of this rank or better are at least
 * `need`, by mass or by number; *at becomes their tally.  On entry `lo` is a
 * rank with enough tokens, and *at their tally.
 */

static __device__ uint64_t
llm_reach(llm_draw_shared_t *sh, const llm_row_t *v, uint64_t lo,
    llm_tally_t *at, double need, int by_mass)
{
    float        stride;
    uint32_t     i, k, turn;
    uint64_t     hi, mid;
    llm_tally_t  t, above = { 0, 0 };

    hi = llm_rank_of(v->max) + ((uint64_t) 1 << 32);
    stride = v->scale > 0 ? 4 / v->scale : 4;

    for (turn = 0; at->count - above.count > LLM_DRAW_LIST; turn++) {
        mid = llm_halfway(v, lo, hi, turn, &stride);
        t = llm_tally(sh, v, mid);

        if (llm_amount(t, by_mass) >= need) {
            lo = mid;
            *at = t;
            stride = 0;

        } else {
            hi = mid;
            above = t;
        }
    }

    llm_list(sh, v, lo, hi);

    if (threadIdx.x == 0) {
        sh->rank = lo;
        sh->at = *at;
    }

    __syncthreads();

    /* compares each undecided token with all of them */

    mid = lo;

    for (i = threadIdx.x; i < sh->n_list; i += blockDim.x) {
        t = above;

        for (k = 0; k < sh->n_list; k++) {
            if (sh->list[k] >= sh->list[i]) {
                t.mass += sh->mass[k];
                t.count++;
            }
        }

        if (sh->list[i] > mid && llm_amount(t, by_mass) >= need) {
            mid = sh->list[i];
            *at = t;
        }
    }

    if (mid > lo) {
        (void) atomicMax(&sh->rank, (llm_u64) mid);
    }

    __syncthreads();

    if (mid > lo && mid == sh->rank) {
        sh->at = *at;                   /* one thread: no two ranks are equal */
    }

    __syncthreads();

    *at = sh->at;
    mid = sh->rank;
    __syncthreads();

    return mid;
}

#endif /* LLM_CUDA_REACH_H */
