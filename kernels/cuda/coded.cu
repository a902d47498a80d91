/*
 * Coded types on the device: rows of an embedding, and packing into the tiles
 * of linear.h.  The functions of coded.h read blocks, 32 elements at a time; no
 * kernel here depends on a type's format.
 */

#include "kernels/cuda/linear.h"
#include "kernels/coded.h"

#define LLM_EMBED_THREADS  64


/* reads elements 32 i to 32 i + 31 of a row, and the type's kind of scales and
   its book, the values of its codes */

static __device__ void
llm_read_coded(uint32_t type, const uint8_t *row, uint32_t i, llm_coded_t *b,
    llm_scales_t *scales, llm_book_id_t *book)
{
    switch (type) {

#define LLM_QUANT(NAME, name, number, block, bytes, pack, cls)
#define LLM_CODED(NAME, name, number, block, bytes, scales_, bits, book_)    \
    case LLM_TYPE_##NAME:                                                    \
        llm_coded_##name(row + i / (block / 32) * (bytes), i % (block / 32), \
                         b);                                                 \
        *scales = LLM_SCALES_##scales_;                                      \
        *book = LLM_BOOK_##book_;                                            \
        break;
#include "kernels/types.def"

    default:
        break;
    }
}


/* the scales d of those elements and the minima m that are added, for each half
   of them */

static __device__ void
llm_scale_coded(const llm_coded_t *b, llm_scales_t scales,
    llm_book_id_t book, float d[2], float m[2])
{
    llm_coded_scales(b, scales, llm_books[book].unit, d, m);
}


__global__ void
llm_k_embed_coded(const uint32_t *count, const uint32_t *at, uint32_t type,
    const uint8_t *w, size_t row_size, uint32_t cols, int add, float *x)
{
    float           d[2], m[2], v, *y;
    uint32_t        i, k, row;
    llm_coded_t     b;
    const uint8_t  *src;
    llm_scales_t    scales;
    llm_book_id_t   book;

    row = blockIdx.x;

    if (row >= *count) {
        return;
    }

    src = w + (size_t) at[row] * row_size;

    for (i = threadIdx.x; i < cols / 32; i += blockDim.x) {
        llm_read_coded(type, src, i, &b, &scales, &book);
        llm_scale_coded(&b, scales, book, d, m);
        y = x + (size_t) row * cols + i * 32;

        for (k = 0; k < 32; k++) {
            v = __fadd_rn(__fmul_rn(d[k / 16],
                                    (float) llm_books[book].values[b.q[k]]),
                          m[k / 16]);
            y[k] = add ? y[k] + v : v;
        }
    }
}


void
llm_embed_coded(llm_cuda_t *d, const llm_weight_t *w, const uint32_t *at,
    int add, llm_act_t *x)
{
    llm_launch(llm_k_embed_coded, d->rows, LLM_EMBED_THREADS, 0, d->stream,
               d->step.counts + LLM_N_TOKENS, at, w->type,
               (const uint8_t *) w->raw, w->row_size, x->cols, add,
               (float *) x->data);
}


/* packs two numbers to f16, the first in the low half */

static __device__ uint32_t
llm_coded_pair(const float v[2], float unit)
{
    return (uint32_t) llm_store16(v[0] * unit, 0)
           | (uint32_t) llm_store16(v[1] * unit, 0) << 16;
}


/*
 * A warp packs a tile: 16 threads read a row each, then each lane writes its
 * codes (linear.h); rows after the last are zeros.
 */

__global__ void
llm_k_pack_coded(llm_packed_t p, uint32_t type, const uint8_t *raw,
    size_t row_size)
{
    float           d[2], m[2];
    size_t          tile;
    uint8_t        *bytes;
    uint32_t        i, j, q, lane, row, col, *pairs;
    llm_coded_t    *rows;
    llm_scales_t    scales;
    llm_book_id_t   book;

    LLM_SHARED(mem);

    rows = (llm_coded_t *) mem;
    tile = (size_t) blockIdx.y * p.blocks + blockIdx.x;
    lane = threadIdx.x;

    if (lane < LLM_TILE_ROWS) {
        row = blockIdx.y * LLM_TILE_ROWS + lane;
        d[0] = d[1] = m[0] = m[1] = 0;

        if (row < p.n_out) {
            llm_read_coded(type, raw + row * row_size, blockIdx.x,
                           &rows[lane], &scales, &book);
            llm_scale_coded(&rows[lane], scales, book, d, m);

        } else {
            for (i = 0; i < 32; i++) {
                rows[lane].q[i] = 0;
            }
        }

        pairs = (uint32_t *) p.pairs + tile * LLM_TILE_ROWS + lane;
        *pairs = llm_coded_pair(d, LLM_CODED_UNIT);

        if (p.cls == LLM_CLASS_MINS) {
            pairs = (uint32_t *) p.bits + tile * LLM_TILE_ROWS + lane;
            *pairs = llm_coded_pair(m, 1.0f);
        }
    }

    __syncthreads();

    bytes = (uint8_t *) p.bytes + tile * 256 + lane * 8;

    for (i = 0; i < 8; i++) {
        for (q = 0, j = 2 * i; j < 2 * i + 2; j++) {
            row = lane / 4 + (j & 2 ? 8 : 0);
            col = (j & 8 ? 16 : 0) + (j & 4 ? 8 : 0) + lane % 4 * 2 + (j & 1);
            q |= (uint32_t) rows[row].q[col] << 4 * (j & 1);
        }

        bytes[i] = (uint8_t) q;
    }
}


void
llm_pack_coded(llm_cuda_t *d, const llm_packed_t *p, uint32_t row_tiles,
    uint32_t type, const uint8_t *raw, size_t row_size)
{
    llm_launch(llm_k_pack_coded, dim3(p->blocks, row_tiles), 32,
               LLM_TILE_ROWS * sizeof(llm_coded_t), d->stream, *p, type, raw,
               row_size);
}
