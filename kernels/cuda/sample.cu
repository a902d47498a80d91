/*
 * From rows of logits to tokens: the sampler's chain of engine/sample.
 *
 * First, many blocks find the largest logit of each part of a row.  Then one
 * block for each row does the rest: probabilities before edits, edits, cuts
 * (reach.h), the draw.
 */

#include "kernels/cuda/reach.h"

/* elements of a part; more if there would be more than LLM_DRAW_PARTS parts */
#define LLM_DRAW_PART     4096
#define LLM_PART_THREADS  128

typedef struct {
    const uint32_t         *counts;
    const int32_t          *tokens;
    const uint32_t         *follows;
    const uint32_t         *out_rows;
    const llm_cuda_draw_t  *draws;
    const llm_edit_t       *edits;
    float                  *before;
    const uint32_t         *masks;
    uint32_t                mask_words;
    uint64_t               *parts;
    uint32_t                n_parts;
    float                  *logits;
    uint32_t                n;
    llm_cuda_drawn_t       *drawn;
    llm_candidate_t        *top;
} llm_draw_args_t;

/* ---- the steps of a draw ---- */

/* writes the n_top most likely tokens before edits; returns the logarithm of
   the row's sum of weights */

static __device__ double
llm_draw_top(llm_draw_shared_t *sh, const llm_draw_args_t *a,
    const llm_row_t *v, uint32_t n_top, llm_cuda_drawn_t *out)
{
    double            p, log_sum;
    uint32_t          i, k, place, id;
    uint64_t          rank;
    llm_tally_t       t;
    llm_candidate_t  *top;

    rank = llm_rank_of(-FLT_MAX);
    t = llm_tally(sh, v, rank);
    log_sum = log((double) t.mass / LLM_MASS_ONE);

    if (n_top == 0 || t.count == 0) {
        return log_sum;
    }

    if (t.count > n_top) {
        rank = llm_reach(sh, v, rank, &t, n_top, 0);
    }

    llm_list(sh, v, rank, LLM_DRAW_BAD);

    top = a->top + (size_t) blockIdx.x * LLM_DRAW_TOP;

    for (i = threadIdx.x; i < sh->n_list; i += blockDim.x) {
        place = 0;

        for (k = 0; k < sh->n_list; k++) {
            place += sh->list[k] > sh->list[i];
        }

        id = llm_rank_id(sh->list[i]);
        p = (double) v->row[id] - v->max - log_sum;
        top[place].id = (int32_t) id;
        top[place].logprob = (float) (p < 0 ? p : 0);
    }

    out->n_top = sh->n_list;
    __syncthreads();

    return log_sum;
}


/*
 * The row's input token, if the previous step drew it, so that the host's edits
 * do not count it, and if there are penalties; else -1.
 */

static __device__ int32_t
llm_draw_fresh(const llm_draw_args_t *a, const llm_cuda_draw_t *d)
{
    uint32_t  row;

    row = a->out_rows[blockIdx.x];

    if (a->follows[row] == LLM_NO_DRAW
        || (d->repetition == 1 && d->frequency == 0 && d->presence == 0))
    {
        return -1;
    }

    return a->tokens[row];
}


static __device__ float
llm_draw_edited(const llm_cuda_draw_t *d, float l, float bias, uint32_t seen)
{
    uint32_t  count;

    l = __fadd_rn(l, bias);

    if (seen && d->repetition != 1) {
        l = l > 0 ? l / d->repetition : __fmul_rn(l, d->repetition);
    }

    count = seen & ~LLM_EDIT_SEEN;

    if (count) {
        l = __fadd_rn(l, -__fmul_rn((float) count, d->frequency));
        l = __fadd_rn(l, -d->presence);
    }

    return l;
}


/* applies bias, penalties and bans; keeps the logits before edits for the
   token's probability */

static __device__ void
llm_draw_edit(llm_draw_shared_t *sh, const llm_draw_args_t *a,
    const llm_cuda_draw_t *d, float *row)
{
    int32_t      fresh;
    uint32_t     i, seen;
    llm_edit_t   e;

    fresh = llm_draw_fresh(a, d);

    if (threadIdx.x == 0) {
        sh->fresh = fresh;              /* until it is found among the edits */
        sh->fresh_raw = fresh < 0 ? 0 : row[fresh];
    }

    __syncthreads();

    for (i = threadIdx.x; i < d->n_edits; i += blockDim.x) {
        e = a->edits[d->edit + i];
        seen = e.seen;

        if (e.id == fresh) {
            seen = (seen + 1) | LLM_EDIT_SEEN;
            sh->fresh = -1;
        }

        a->before[d->edit + i] = row[e.id];
        row[e.id] = llm_draw_edited(d, row[e.id], e.bias, seen);
    }

    __syncthreads();

    if (threadIdx.x == 0 && sh->fresh >= 0) {
        row[fresh] = llm_draw_edited(d, sh->fresh_raw, 0,
                                     LLM_EDIT_SEEN | 1);
    }

    __syncthreads();

    for (i = threadIdx.x; i < d->n_banned; i += blockDim.x) {
        e = a->edits[d->edit + d->n_edits + i];

        if ((uint32_t) e.id < a->n) {
            row[e.id] = -INFINITY;
        }
    }

    __syncthreads();
}


/* a token's rank; LLM_DRAW_BAD, the highest rank, if the logit is NaN or plus
   infinity */

static __device__ __forceinline__ uint64_t
llm_draw_rank(float v, uint32_t id)
{
    return v < INFINITY ? llm_rank(v, id) : LLM_DRAW_BAD;
}


/*
 * Applies the mask; returns the best rank that is left, or LLM_DRAW_BAD: edits
 * may have turned finite logits into infinities or NaN.
 */

static __device__ uint64_t
llm_draw_mask(llm_draw_shared_t *sh, const llm_draw_args_t *a,
    const llm_cuda_draw_t *d, float *row)
{
    uint32_t         i;
    uint64_t         rank, best;
    const uint32_t  *mask;

    mask = d->mask == LLM_CUDA_NO_MASK
           ? NULL : a->masks + (size_t) d->mask * a->mask_words;
    best = 0;

#pragma unroll 4
    for (i = threadIdx.x; i < a->n; i += blockDim.x) {
        if (mask && !(mask[i / 32] >> (i % 32) & 1)) {
            row[i] = -INFINITY;
        }

        rank = llm_draw_rank(row[i], i);
        best = rank > best ? rank : best;
    }

    return llm_block_best(sh, best);
}


/*
 * Applies min-p, top-k and top-p; returns the lowest rank of the tokens that
 * stay, and their mass, which is 0 only if the scale is infinite.
 */

static __device__ uint64_t
llm_draw_cut(llm_draw_shared_t *sh, const llm_cuda_draw_t *d,
    const llm_row_t *v, uint64_t *mass)
{
    float        bound;
    double       need;
    uint64_t     rank;
    llm_tally_t  t;

    bound = fminf(__fadd_rn(v->max, d->min_gap), v->max);
    rank = llm_rank_of(fmaxf(bound, -FLT_MAX));
    t = llm_tally(sh, v, rank);
    *mass = 0;

    if (t.mass == 0) {
        return rank;
    }

    if (d->top_k && t.count > d->top_k) {
        rank = llm_reach(sh, v, rank, &t, d->top_k, 0);
    }

    if (d->top_p < 1) {
        need = (double) d->top_p * (double) t.mass;
        rank = llm_reach(sh, v, rank, &t, need > 1 ? need : 1, 1);
    }

    *mass = t.mass;

    return rank;
}


/*
 * The token at share u of `total`, the mass (not 0) of the tokens of this rank
 * or better, in the order of ids.  Each warp adds up its part of the row; then
 * the block goes through the part where that share is reached, a few tokens for
 * each thread.
 */

static __device__ int32_t
llm_draw_at(llm_draw_shared_t *sh, const llm_row_t *v, uint64_t rank,
    uint64_t total, double u)
{
    uint32_t     i, k, len, each, warps, begin, end;
    uint64_t     at, sum, own, other, before;
    llm_tally_t  t = { 0, 0 };

    warps = blockDim.x / 32;
    len = (v->n + warps - 1) / warps;
    at = (uint64_t) (u * (double) total);
    at = at < total ? at : total - 1;

    begin = threadIdx.x / 32 * len;
    end = begin + len < v->n ? begin + len : v->n;

#pragma unroll 4
    for (i = begin + threadIdx.x % 32; i < end; i += 32) {
        t.mass += llm_rank(v->row[i], i) >= rank ? llm_mass(v, v->row[i]) : 0;
    }

    (void) llm_block_tally(sh, t);

    for (k = 0, before = 0; before + sh->tally[k].mass <= at; k++) {
        before += sh->tally[k].mass;
    }

    __syncthreads();

    each = (len + blockDim.x - 1) / blockDim.x;
    begin = k * len;
    end = begin + len < v->n ? begin + len : v->n;
    begin += threadIdx.x * each;
    end = begin + each < end ? begin + each : end;

    for (own = 0, i = begin; i < end; i++) {
        own += llm_rank(v->row[i], i) >= rank ? llm_mass(v, v->row[i]) : 0;
    }

    /* the mass before this thread's tokens */

    for (sum = own, i = 1; i < 32; i *= 2) {
        other = __shfl_up_sync(LLM_FULL_WARP, sum, i);
        sum += threadIdx.x % 32 >= i ? other : 0;
    }

    if (threadIdx.x % 32 == 31) {
        sh->tally[threadIdx.x / 32].mass = sum;
    }

    __syncthreads();

    for (sum += before - own, k = 0; k < threadIdx.x / 32; k++) {
        sum += sh->tally[k].mass;
    }

    if (sum <= at && at < sum + own) {
        for (i = begin; sum <= at; i++) {
            sum += llm_rank(v->row[i], i) >= rank ? llm_mass(v, v->row[i])
                                                  : 0;
        }

        sh->id = (int32_t) (i - 1);
    }

    __syncthreads();

    return sh->id;
}


/* the token's logit before edits */

static __device__ float
llm_draw_raw(llm_draw_shared_t *sh, const llm_draw_args_t *a,
    const llm_cuda_draw_t *d, const float *row, int32_t id)
{
    uint32_t  i;

    if (threadIdx.x == 0) {
        sh->raw = row[id];
    }

    __syncthreads();

    for (i = threadIdx.x; i < d->n_edits; i += blockDim.x) {
        if (a->edits[d->edit + i].id == id) {
            sh->raw = a->before[d->edit + i];
        }
    }

    if (threadIdx.x == 0 && sh->fresh == id) {
        sh->raw = sh->fresh_raw;
    }

    __syncthreads();

    return sh->raw;
}


/* ---- the kernels ---- */

/* a failed draw has no token: its request ends, so any token will do */

__global__ void
llm_k_follow(llm_cuda_step_t st, const llm_cuda_drawn_t *drawn)
{
    uint32_t  i, from;

    i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= st.counts[LLM_N_TOKENS] || st.follows[i] == LLM_NO_DRAW) {
        return;
    }

    from = st.follows[i];
    st.tokens[i] = drawn[from].status == LLM_DRAWN_TOKEN ? drawn[from].id : 0;
}


void
llm_cuda_follow(llm_cuda_t *d)
{
    const llm_cuda_drawn_t  *drawn;

    drawn = d->followed ? d->followed : d->draws.drawn;

    if (drawn) {
        llm_launch(llm_k_follow, (d->rows + 255) / 256, 256, 0, d->stream,
                   d->step, drawn);
    }
}


/* the best rank of each part of a row; LLM_DRAW_BAD: a logit is NaN or plus
   infinity */

__global__ void
llm_k_draw_parts(llm_draw_args_t a)
{
    uint32_t     i, len, begin, end;
    uint64_t     rank, best;
    const float *row;

    LLM_SHARED(mem);

    if (blockIdx.y >= a.counts[LLM_N_OUT]
        || a.draws[blockIdx.y].kind != LLM_DRAW_TOKEN)
    {
        return;
    }

    row = a.logits + (size_t) blockIdx.y * a.n;
    len = (a.n + a.n_parts - 1) / a.n_parts;
    begin = blockIdx.x * len;
    end = begin + len < a.n ? begin + len : a.n;
    best = 0;

#pragma unroll 4
    for (i = begin + threadIdx.x; i < end; i += LLM_PART_THREADS) {
        rank = llm_draw_rank(row[i], i);
        best = rank > best ? rank : best;
    }

    best = llm_block_best((llm_draw_shared_t *) mem, best);

    if (threadIdx.x == 0) {
        a.parts[(size_t) blockIdx.y * a.n_parts + blockIdx.x] = best;
    }
}


/* a row's draw */

static __device__ llm_cuda_drawn_t
llm_draw_row(llm_draw_shared_t *sh, const llm_draw_args_t *a,
    const llm_cuda_draw_t *d, float *row)
{
    double            log_sum, p;
    uint32_t          i;
    uint64_t          rank, best, mass;
    llm_row_t         v;
    llm_cuda_drawn_t  out = { LLM_DRAWN_TOKEN, -1, 0, 0 };

    best = 0;

    if (threadIdx.x == 0) {
        sh->fresh = -1;
    }

    for (i = 0; i < a->n_parts; i++) {
        rank = a->parts[(size_t) blockIdx.x * a->n_parts + i];
        best = rank > best ? rank : best;
    }

    if (best == LLM_DRAW_BAD) {
        out.status = LLM_DRAWN_NOT_FINITE;
        return out;
    }

    v.row = row;
    v.n = a->n;
    v.max = llm_key_value((uint32_t) (best >> 32));
    v.scale = 1;
    log_sum = 0;

    if (d->n_top >= 0 && v.max > -INFINITY) {
        log_sum = llm_draw_top(sh, a, &v, (uint32_t) d->n_top, &out) + v.max;
    }

    if (d->n_edits || d->n_banned || d->mask != LLM_CUDA_NO_MASK
        || llm_draw_fresh(a, d) >= 0)
    {
        llm_draw_edit(sh, a, d, row);
        best = llm_draw_mask(sh, a, d, row);

        if (best == LLM_DRAW_BAD) {
            out.status = LLM_DRAWN_NOT_FINITE;
            return out;
        }

        v.max = llm_key_value((uint32_t) (best >> 32));
    }

    if (v.max == -INFINITY) {
        out.status = LLM_DRAWN_NOTHING;
        return out;
    }

    out.id = (int32_t) llm_rank_id(best);
    v.scale = d->scale;

    if (d->scale > 0) {
        rank = llm_draw_cut(sh, d, &v, &mass);

        if (mass == 0) {
            out.status = LLM_DRAWN_NOT_FINITE;
            return out;
        }

        out.id = llm_draw_at(sh, &v, rank, mass, d->u);
    }

    if (d->n_top >= 0) {
        p = (double) llm_draw_raw(sh, a, d, row, out.id) - log_sum;
        out.logprob = (float) (p < 0 ? p : 0);
    }

    return out;
}


__global__ void
__launch_bounds__(1024)
llm_k_draw(llm_draw_args_t a)
{
    llm_cuda_draw_t   d;
    llm_cuda_drawn_t  out;

    LLM_SHARED(mem);

    if (blockIdx.x >= a.counts[LLM_N_OUT]
        || a.draws[blockIdx.x].kind != LLM_DRAW_TOKEN)
    {
        return;
    }

    d = a.draws[blockIdx.x];
    out = llm_draw_row((llm_draw_shared_t *) mem, &a, &d,
                       a.logits + (size_t) blockIdx.x * a.n);

    if (threadIdx.x == 0) {
        a.drawn[blockIdx.x] = out;
    }
}


uint32_t
llm_cuda_draw_parts(uint32_t n)
{
    return llm_min((n + LLM_DRAW_PART - 1) / LLM_DRAW_PART,
                   (uint32_t) LLM_DRAW_PARTS);
}


void
llm_cuda_draw(llm_cuda_t *d)
{
    uint32_t           threads;
    llm_draw_args_t    a;
    llm_cuda_draws_t  *w = &d->draws;

    if (d->logits == NULL || d->out_rows == 0
        || d->gives == LLM_GIVES_HIDDEN)
    {
        return;
    }

    a.counts = d->step.counts;
    a.tokens = d->step.tokens;
    a.follows = d->step.follows;
    a.out_rows = d->step.out_rows;
    a.draws = d->step.draws;
    a.edits = w->edits;
    a.before = w->before;
    a.masks = w->masks;
    a.mask_words = w->mask_words;
    a.parts = w->parts;
    a.n_parts = w->n_parts;
    a.logits = (float *) d->logits->data;
    a.n = d->logits->cols;
    a.drawn = w->drawn;
    a.top = w->top;

    /* small vocabularies have too little work for many threads */

    threads = llm_align(a.n / 64, 32);
    threads = llm_min(llm_max(threads, 64u), 1024u);

    llm_launch(llm_k_draw_parts, dim3(w->n_parts, d->out_rows),
               LLM_PART_THREADS, sizeof(llm_draw_shared_t::best), d->stream,
               a);
    llm_launch(llm_k_draw, d->out_rows, threads, sizeof(llm_draw_shared_t),
               d->stream, a);
}
