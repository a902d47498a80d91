/*
 * Products of 16-bit weights with few rows, on tensor cores straight from
 * memory: a lane reads 16 bytes of two rows of the weight at a time.  The
 * columns that an instruction multiplies are not neighbours then, but the
 * same ones in both operands, and a sum does not mind.
 *
 * Invariant: the sum over K is cut among the warps of a block by the
 * weight's shape alone and added in the order of the warps.
 */

#include "kernels/cuda/linear.h"


/* two products of 16 columns out of 16 bytes a lane: acc += W X^T */

template<int NT> static __device__ __forceinline__ void
llm_step_16(const uint16_t *w0, const uint16_t *w1, const uint16_t *x,
    uint32_t ldx, int bf16, float acc[NT][4])
{
    int       n;
    uint4     r0, r1, v;
    uint32_t  a[4], b[2];

    r0 = *(const uint4 *) w0;
    r1 = *(const uint4 *) w1;

#pragma unroll
    for (n = 0; n < NT; n++) {
        v = *(const uint4 *) (x + (size_t) n * 8 * ldx);

        a[0] = r0.x;
        a[1] = r1.x;
        a[2] = r0.y;
        a[3] = r1.y;
        b[0] = v.x;
        b[1] = v.y;

        if (bf16) {
            llm_mma_bf16(acc[n], a, b);

        } else {
            llm_mma_f16(acc[n], a, b);
        }

        a[0] = r0.z;
        a[1] = r1.z;
        a[2] = r0.w;
        a[3] = r1.w;
        b[0] = v.z;
        b[1] = v.w;

        if (bf16) {
            llm_mma_bf16(acc[n], a, b);

        } else {
            llm_mma_f16(acc[n], a, b);
        }
    }
}


/* block (16 rows of the weight, NT * 8 rows); n_in a multiple of 32; the
   weight has rows up to a multiple of 16, x up to one of LLM_FEW_ROWS */

template<int NT> __global__ void
__launch_bounds__(LLM_LINEAR_WARPS * 32)
llm_k_linear_16(const uint16_t *w, const uint16_t *x, uint32_t n_in,
    llm_out_t o)
{
    int              i, n;
    float            acc[NT][4];
    uint32_t         lane, warp, blocks, first, end, k;
    const uint16_t  *w0, *w1, *xr;

    LLM_SHARED(mem);

#pragma unroll
    for (n = 0; n < NT; n++) {
#pragma unroll
        for (i = 0; i < 4; i++) {
            acc[n][i] = 0;
        }
    }

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    blocks = n_in / 32;
    first = (uint32_t) ((uint64_t) blocks * warp / LLM_LINEAR_WARPS);
    end = (uint32_t) ((uint64_t) blocks * (warp + 1) / LLM_LINEAR_WARPS);

    w0 = w + (size_t) (blockIdx.x * LLM_TILE_ROWS + lane / 4) * n_in
         + lane % 4 * 8;
    w1 = w0 + (size_t) 8 * n_in;
    xr = x + (size_t) (blockIdx.y * NT * 8 + lane / 4) * n_in + lane % 4 * 8;

#pragma unroll 4
    for (k = first; k < end; k++) {
        llm_step_16<NT>(w0 + k * 32, w1 + k * 32, xr + k * 32, n_in, o.bf16,
                        acc);
    }

    llm_put_tile<NT>(o, (float *) mem, acc, blockIdx.x);
}


template<int NT> static void
llm_linear_16_launch(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const uint16_t *w, uint32_t n_in, const llm_out_t *o)
{
    size_t  shared;

    shared = (size_t) LLM_LINEAR_WARPS * LLM_TILE_ROWS * NT * 8
             * sizeof(float);

    llm_launch((llm_k_linear_16<NT>),
               dim3((o->n_out + LLM_TILE_ROWS - 1) / LLM_TILE_ROWS,
                    (rows + NT * 8 - 1) / (NT * 8)),
               LLM_LINEAR_WARPS * 32, shared, d->stream, w, x, n_in, *o);
}


void
llm_linear_16(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const uint16_t *w, uint32_t n_in, const llm_out_t *o)
{
    if (rows <= 8) {
        llm_linear_16_launch<1>(d, rows, x, w, n_in, o);

    } else if (rows <= 16) {
        llm_linear_16_launch<2>(d, rows, x, w, n_in, o);

    } else {
        llm_linear_16_launch<4>(d, rows, x, w, n_in, o);
    }
}
