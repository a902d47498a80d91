/*
 * GPUs that compute the same layers together (kernels/team.h): how they wait
 * for each other, and how one reads the columns that the others have computed,
 * in their memory.
 *
 * The first device's begin(), submit() and end() (step.cu) are those of all.  A
 * decode step is one graph: capture begins in the first one's stream, those of
 * the others join it by waiting for that one, and it ends after them.
 *
 * Invariant: GPUs of a team are alike and get the same steps, so their grids
 * are the same, too.  A failed call is reported by begin() or end().
 */

#include "kernels/cuda/internal.h"

#include <stdio.h>

#define LLM_TEAM_THREADS  256

static const char  llm_team_what[] = "wait for another GPU";


/* records what the device was given so far */

static void
llm_cuda_mark(llm_cuda_t *d)
{
    llm_cuda_enter(&d->exec);
    (void) llm_cuda_check(d, cudaEventRecord(d->mark, d->stream),
                          llm_team_what);
}


/* the next kernel is not launched early */

static void
llm_cuda_await(llm_cuda_t *d, const llm_cuda_t *other)
{
    (void) llm_cuda_check(d, cudaStreamWaitEvent(d->stream, other->mark, 0),
                          llm_team_what);
    d->late = 1;
}


void
llm_cuda_team_in(llm_cuda_t *d)
{
    uint32_t  i;

    for (i = 1; i < d->n_team; i++) {
        llm_cuda_mark(d->team[i]);
        llm_cuda_await(d, d->team[i]);
    }

    if (d->n_team > 1) {
        llm_cuda_enter(&d->exec);
    }
}


void
llm_cuda_team_out(llm_cuda_t *d)
{
    uint32_t  i;

    if (d->n_team == 1) {
        return;
    }

    llm_cuda_mark(d);

    for (i = 1; i < d->n_team; i++) {
        llm_cuda_await(d->team[i], d);
    }
}


/* ---- joining ---- */

/* one of a team: it reads the memory of the others, and learns from the first
   one what that has drawn */

static int
llm_cuda_join_one(llm_cuda_t *first, llm_cuda_t *d, llm_err_t *err)
{
    uint32_t           i;
    const llm_cuda_t  *other;

    llm_cuda_enter(&d->exec);

    if (cudaEventCreateWithFlags(&d->mark, cudaEventDisableTiming)
        != cudaSuccess)
    {
        d->mark = NULL;
        (void) cudaGetLastError();
        return llm_fail(err, "CUDA: no memory for an event of device %d",
                        d->gpu->index);
    }

    for (i = 0; i < first->n_team; i++) {
        other = first->team[i];

        if (other == d) {
            continue;
        }

        if (!llm_cuda_peer(d, other)) {
            return llm_fail(err, "split=rows: CUDA: device %d cannot read the "
                            "memory of device %d directly; split=layers does "
                            "not need that", d->gpu->index,
                            other->gpu->index);
        }

        d->peers |= (uint64_t) 1 << other->gpu->index;
    }

    return d == first ? LLM_OK : llm_cuda_receives(d, first, 1, err);
}


int
llm_cuda_join(llm_exec_t *const *execs, uint32_t n, llm_err_t *err)
{
    uint32_t     i;
    llm_cuda_t  *d, *first = (llm_cuda_t *) execs[0];

    for (i = 0; i < n; i++) {
        d = (llm_cuda_t *) execs[i];

        if (d->gpu->capability != first->gpu->capability
            || d->gpu->compiled != first->gpu->compiled)
        {
            return llm_fail(err, "split=rows: CUDA: device %d, %s, is not like "
                            "device %d, %s; with split=layers they may differ",
                            d->gpu->index, d->gpu->name, first->gpu->index,
                            first->gpu->name);
        }

        first->team[i] = d;
    }

    first->n_team = n;

    for (i = 0; i < n; i++) {
        if (llm_cuda_join_one(first, first->team[i], err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* ---- collecting ---- */

/* slices of rows, which lie on several GPUs; in units of the kernel's type */
typedef struct {
    const void       *x[LLM_MAX_DEVICES];
    uint32_t          first[LLM_MAX_DEVICES + 1];   /* a slice's first column in
                                                       the whole row; last the
                                                       row's width */
} llm_slices_t;


template<class T> __global__ void
llm_k_collect(llm_slices_t s, T *y)
{
    uint32_t   i, k, width, at;
    const T   *x;

    /* constant indexes, so that the slices stay where parameters are */

    i = llm_row_value();
    at = 0;
    width = 0;
    x = NULL;

#pragma unroll
    for (k = 0; k < LLM_MAX_DEVICES; k++) {
        if (i >= s.first[k] && i < s.first[k + 1]) {
            x = (const T *) s.x[k];
            at = i - s.first[k];
            width = s.first[k + 1] - s.first[k];
        }
    }

    if (x) {
        y[(size_t) blockIdx.x * s.first[LLM_MAX_DEVICES] + i]
            = x[(size_t) blockIdx.x * width + at];
    }
}


/* all rows of the bucket, as operations compute them */

template<class T> static void
llm_cuda_side_by_side(llm_cuda_t *d, uint32_t rows, llm_slices_t s,
    llm_act_t *y)
{
    uint32_t  i, size, width;

    size = y->is16 ? sizeof(uint16_t) : sizeof(float);

    for (i = 0; i <= LLM_MAX_DEVICES; i++) {
        s.first[i] = s.first[i] * size / (uint32_t) sizeof(T);
    }

    width = s.first[LLM_MAX_DEVICES];

    llm_launch_peers(llm_k_collect<T>,
                     dim3(rows, (width + LLM_TEAM_THREADS - 1)
                                / LLM_TEAM_THREADS),
                     LLM_TEAM_THREADS, 0, d->stream, s, (T *) y->data);
}


static void
llm_cuda_collect_one(llm_cuda_t *d, uint32_t n, llm_rows_t which,
    const llm_act_t *const *x, llm_act_t *y)
{
    uint32_t     i, rows, cols;
    size_t       size, odd;
    llm_slices_t  s;

    size = y->is16 ? sizeof(uint16_t) : sizeof(float);

    for (i = 0, cols = 0, odd = 0; i < LLM_MAX_DEVICES; i++) {
        s.first[i] = cols;
        s.x[i] = NULL;

        if (i < n && x[i]) {
            s.x[i] = x[i]->data;
            cols += x[i]->cols;
            odd |= cols * size;
        }
    }

    s.first[LLM_MAX_DEVICES] = cols;
    rows = llm_cuda_rows(d, which);

    if (rows == 0) {
        return;
    }

    if (odd % sizeof(uint4) == 0) {
        llm_cuda_side_by_side<uint4>(d, rows, s, y);

    } else {
        llm_cuda_side_by_side<uint16_t>(d, rows, s, y);
    }
}


void
llm_cuda_collect(llm_exec_t *const *execs, uint32_t n, llm_rows_t rows,
    const llm_act_t *const *x, llm_act_t *const *y)
{
    uint32_t     i, k;
    llm_cuda_t  *d;

    for (i = 0; i < n; i++) {
        if (!llm_cuda_alive(((llm_cuda_t *) execs[i])->gpu)) {
            return;                     /* end() says so */
        }
    }

    for (i = 0; i < n; i++) {
        llm_cuda_mark((llm_cuda_t *) execs[i]);
    }

    for (i = 0; i < n; i++) {
        d = (llm_cuda_t *) execs[i];
        llm_cuda_enter(execs[i]);

        for (k = 0; k < n; k++) {
            if (k != i) {
                llm_cuda_await(d, (llm_cuda_t *) execs[k]);
            }
        }

        if (y[i]) {
            llm_cuda_collect_one(d, n, rows, x, y[i]);
        }
    }
}
