/*
 * Coded types on the device: rows of an embedding, and packing into the tiles
 * of linear.h.  The functions of coded.h read blocks, 32 elements at a time; no
 * kernel here depends on a type's format.
 */

#include "kernels/cuda/pack.h"
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


/* a warp for each row, as llm_k_scale_rows() */

__global__ void
llm_k_scale_rows_coded(uint32_t type, uint32_t n_out, uint32_t n_in,
    const uint8_t *raw, size_t row_size, float *scales)
{
    float           most, scale, d[2], m[2];
    uint32_t        i;
    llm_coded_t     b;
    llm_scales_t    kind;
    llm_book_id_t   book;

    most = 0;

    for (i = threadIdx.x; blockIdx.x < n_out && i < n_in / 32; i += 32) {
        llm_read_coded(type, raw + blockIdx.x * row_size, i, &b, &kind,
                       &book);
        llm_scale_coded(&b, kind, book, d, m);
        most = llm_pack_most(most, d, m);
    }

    scale = llm_pack_scale(most);

    if (threadIdx.x == 0) {
        scales[blockIdx.x] = scale;
    }
}


void
llm_scale_rows_coded(llm_cuda_t *d, const llm_packed_t *p, uint32_t type,
    uint32_t n_in, const uint8_t *raw, size_t row_size)
{
    llm_launch(llm_k_scale_rows_coded, p->row_tiles * LLM_TILE_ROWS, 32, 0,
               d->stream, type, p->n_out, n_in, raw, row_size,
               (float *) p->scales);
}


/*
 * A warp packs a quad: of each tile 16 threads read a row, then each lane
 * writes its codes (pack.h); rows and columns after the last are zeros.
 */

__global__ void
llm_k_pack_coded(llm_packed_t p, uint32_t at, uint32_t type, uint32_t n_in,
    const uint8_t *raw, size_t row_size)
{
    float             d[2], m[2];
    uint8_t          *record;
    uint32_t          i, tile, lane, row, row_tile, block;
    llm_coded_t      *rows;
    llm_scales_t      scales;
    llm_book_id_t     book;
    llm_pack_lane_t   l = { 0, 0 };

    LLM_SHARED(mem);

    rows = (llm_coded_t *) mem;
    lane = threadIdx.x;
    row_tile = at + blockIdx.y;
    record = llm_pack_record(p, row_tile, blockIdx.x);

    for (tile = 0; tile < 4; tile++) {
        if (lane < LLM_TILE_ROWS) {
            row = row_tile * LLM_TILE_ROWS + lane;
            block = blockIdx.x * 4 + tile;
            d[0] = d[1] = m[0] = m[1] = 0;

            if (row < p.n_out && block < n_in / 32) {
                llm_read_coded(type, raw + row * row_size, block, &rows[lane],
                               &scales, &book);
                llm_scale_coded(&rows[lane], scales, book, d, m);

                for (i = 0; p.cls == LLM_CLASS_CODED && i < 32; i++) {
                    rows[lane].q[i] = (uint8_t) llm_packed_code(
                        rows[lane].q[i],
                        llm_books[book].values[rows[lane].q[i]]);
                }

            } else {
                for (i = 0; i < 32; i++) {
                    rows[lane].q[i] = 0;
                }
            }

            llm_pack_scales(p.cls, record, tile, lane, p.scales[row], d, m);
        }

        __syncthreads();

        for (i = 0; i < 16; i++) {
            llm_pack_quantum(p.cls, record, tile, lane, i,
                             rows[llm_pack_row(lane, i)]
                             .q[llm_pack_col(lane, i)], &l);
        }

        llm_pack_put(p.cls, record, tile, lane, &l);
        __syncthreads();
    }
}


void
llm_pack_coded(llm_cuda_t *d, const llm_packed_t *p, uint32_t at,
    uint32_t row_tiles, uint32_t type, uint32_t n_in, const uint8_t *raw,
    size_t row_size)
{
    llm_launch(llm_k_pack_coded, dim3(p->quads, row_tiles), 32,
               LLM_TILE_ROWS * sizeof(llm_coded_t), d->stream, *p, at, type,
               n_in, raw, row_size);
}
