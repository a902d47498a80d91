/*
 * Converts weights to fp8 when they are loaded: a row's scale is its largest
 * magnitude divided by 448; elements are divided by the scale and rounded to
 * the nearest e4m3, in the records of linear.h.  Products of class 1:
 * linear_q.cu for few rows, linear_16.cu for many; of class 7: linear_fp8.cu.
 */

#include "kernels/cuda/pack.h"

#define LLM_SCALE_THREADS  256


/* a block for each row; rows that only pad a tile get a scale of 0 */

__global__ void
llm_k_fp8_scale(uint32_t type, uint32_t n_out, uint32_t n_in,
    const uint8_t *raw, size_t row_size, float *scales)
{
    float     max, *s;
    uint32_t  i;

    LLM_SHARED(mem);

    s = (float *) mem;
    max = 0;

    for (i = threadIdx.x; blockIdx.x < n_out && i < n_in;
         i += LLM_SCALE_THREADS)
    {
        max = fmaxf(max, fabsf(llm_deq(type, raw + blockIdx.x * row_size,
                                       i)));
    }

    max = llm_warp_max(max);

    if (threadIdx.x % 32 == 0) {
        s[threadIdx.x / 32] = max;
    }

    __syncthreads();

    if (threadIdx.x == 0) {
        for (i = 1; i < LLM_SCALE_THREADS / 32; i++) {
            max = fmaxf(max, s[i]);
        }

        scales[blockIdx.x] = max / 448.0f;
    }
}


/* a warp packs a tile */

__global__ void
llm_k_fp8_pack(llm_packed_t p, uint32_t at, uint32_t type, uint32_t n_in,
    const uint8_t *raw, size_t row_size)
{
    float      v, scale;
    uint8_t   *bytes;
    uint32_t   i, lane, row, col;

    lane = threadIdx.x;
    bytes = llm_pack_record(p, at + blockIdx.y, blockIdx.x / 4)
            + blockIdx.x % 4 * 512 + lane * 16;

    for (i = 0; i < 16; i++) {
        row = (at + blockIdx.y) * LLM_TILE_ROWS;
        col = blockIdx.x * LLM_TILE_COLS;

        if (p.cls == LLM_CLASS_E4) {
            row += lane / 4 + i / 4 % 2 * 8;
            col += lane % 4 * 4 + i % 4 + i / 8 * 16;

        } else {
            row += llm_pack_row(lane, i);
            col += llm_pack_col(lane, i);
        }

        v = row < p.n_out && col < n_in
            ? llm_deq(type, raw + row * row_size, col) : 0.0f;
        scale = p.scales[row];

        bytes[i] = llm_f2e(v == 0.0f ? 0.0f : v / scale);
    }
}


void
llm_pack_fp8(llm_cuda_t *d, const llm_packed_t *p, uint32_t type,
    uint32_t n_in, const uint8_t *raw, size_t row_size)
{
    uint32_t  at, n;

    llm_launch(llm_k_fp8_scale, p->row_tiles * LLM_TILE_ROWS,
               LLM_SCALE_THREADS, LLM_SCALE_THREADS / 32 * sizeof(float),
               d->stream, type, p->n_out, n_in, raw, row_size,
               (float *) p->scales);

    /* a grid's second dimension is at most 65535 */

    for (at = 0; at < p->row_tiles; at += n) {
        n = llm_min(p->row_tiles - at, 65535u);

        llm_launch(llm_k_fp8_pack, dim3(p->quads * 4, n), 32, 0, d->stream, *p,
                   at, type, n_in, raw, row_size);
    }
}
