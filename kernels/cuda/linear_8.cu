/*
 * Converts weights to fp8 when they are loaded: a row's scale is its largest
 * magnitude divided by 448; elements are divided by the scale and rounded to
 * the nearest e4m3, in the tiles of linear.h.  Products: linear_q.cu for few
 * rows, linear_16.cu for many.
 */

#include "kernels/cuda/linear.h"

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


/* a warp packs a tile: see linear.h */

__global__ void
llm_k_fp8_pack(llm_packed_t p, uint32_t tile_row, uint32_t type,
    uint32_t n_in, const uint8_t *raw, size_t row_size)
{
    float      v, scale;
    uint8_t   *bytes;
    uint32_t   a, j, lane, row, col;

    lane = threadIdx.x;
    tile_row += blockIdx.y;
    bytes = (uint8_t *) p.bytes
            + ((size_t) tile_row * p.blocks + blockIdx.x) * 512 + lane * 16;

    for (a = 0; a < 4; a++) {
        for (j = 0; j < 4; j++) {
            row = tile_row * LLM_TILE_ROWS + lane / 4 + (j & 2 ? 8 : 0);
            col = blockIdx.x * LLM_TILE_COLS + (a & 2 ? 16 : 0)
                  + (a & 1 ? 8 : 0) + lane % 4 * 2 + (j & 1);
            v = row < p.n_out && col < n_in
                ? llm_deq(type, raw + row * row_size, col) : 0.0f;
            scale = p.scales[row];

            bytes[4 * a + j] = llm_f2e(v == 0.0f ? 0.0f : v / scale);
        }
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

        llm_launch(llm_k_fp8_pack, dim3(p->blocks, n), 32, 0, d->stream, *p,
                   at, type, n_in, raw, row_size);
    }
}
