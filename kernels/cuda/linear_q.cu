/*
 * Products of packed weights with few rows, which unpack in registers just
 * before the tensor cores.  Weights of a class that are multiplied by the same
 * rows, for instance q, k and v, are one launch.
 *
 * Invariant: how the sum over K is divided among a block's warps depends only
 * on the weight's shape, and the warps' sums are added in order; linear_16.cu
 * does the same for many rows.
 */

#include "kernels/cuda/unpack.h"

/* of a single row of x: most bytes of it in shared memory, where sums are
   behind it (on Ada a block has 99 KiB); blocks that an H100 has at once, and
   most tiles of a block if there are more */
#define LLM_ONE_BYTES   (94 << 10)
#define LLM_ONE_BLOCKS  512
#define LLM_ONE_TILES   8

/* weights of a launch, in the order of the grid's blocks */
typedef struct {
    llm_packed_t      p[LLM_FEW_WEIGHTS];
    llm_out_t         o[LLM_FEW_WEIGHTS];
    uint32_t          end[LLM_FEW_WEIGHTS];     /* one more than the weight's
                                                   last block */
    uint32_t          tiles;            /* of 16 rows, of a block */
} llm_few_q_t;


/* block: 16 rows of a weight by NT * 8 folded rows of x */

template<int CLS, int NT, int BF16> __global__ void
__launch_bounds__(LLM_K_PARTS * 32)
llm_k_linear_q(llm_few_q_t f, const uint16_t *x)
{
    int               n, m;
    float             acc[1][NT][4];
    uint32_t          lane, warp, q, end, tile;
    const uint8_t    *record;
    const uint16_t   *at[NT];
    llm_packed_t      p;
    llm_lane_t<CLS>   l;

    LLM_SHARED(mem);

    for (m = 0; blockIdx.x >= f.end[m]; m++) { /* void */ }

    p = f.p[m];
    tile = blockIdx.x - (m ? f.end[m - 1] : 0);
    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    q = llm_k_part(p.quads, warp);
    end = llm_k_part(p.quads, warp + 1);
    record = p.records + ((size_t) tile * p.quads + q)
                         * llm_record_bytes(CLS);

    llm_lane_load<CLS>(record, lane, l);

#pragma unroll
    for (n = 0; n < NT; n++) {
        at[n] = x + ((size_t) (n * 8 + lane / 4) * p.quads + q)
                    * LLM_QUAD_COLS + lane % 4 * 8;
    }

    llm_zero<1, NT>(acc);

#pragma unroll 1
    while (q < end) {
        record += llm_record_bytes(CLS);
        llm_quad_product<CLS, NT, 0>(p, l, record, ++q < end, at, BF16, acc);

#pragma unroll
        for (n = 0; n < NT; n++) {
            at[n] += LLM_QUAD_COLS;
        }
    }

    llm_put_tile<NT>(f.o[m], (float *) mem, acc[0], tile);
}


/*
 * Block: f.tiles * 16 rows of a weight by a single row of x, n_in columns wide,
 * which the block copies to shared memory.  The first quad of a tile is loaded
 * while the last one of the tile before it is multiplied.
 */

template<int CLS, int BF16> __global__ void
__launch_bounds__(LLM_K_PARTS * 32)
llm_k_linear_one(llm_few_q_t f, const uint16_t *x, uint32_t n_in)
{
    int               m;
    float             sum, acc[1][1][4], *s;
    uint32_t          lane, warp, first, n, q, quads, i, t;
    const uint8_t    *record;
    const uint16_t   *row, *at[1];
    llm_packed_t      p;
    llm_lane_t<CLS>   l;

    LLM_SHARED(mem);

    for (m = 0; blockIdx.x >= f.end[m]; m++) { /* void */ }

    p = f.p[m];
    first = (blockIdx.x - (m ? f.end[m - 1] : 0)) * f.tiles;
    n = llm_min(f.tiles, p.row_tiles - first);
    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    q = llm_k_part(p.quads, warp);
    quads = llm_k_part(p.quads, warp + 1) - q;
    record = p.records + ((size_t) first * p.quads + q)
                         * llm_record_bytes(CLS);
    row = (const uint16_t *) mem + q * LLM_QUAD_COLS;
    s = (float *) (mem + p.quads * LLM_QUAD_COLS * sizeof(uint16_t));

    llm_lane_load<CLS>(record, lane, l);

    for (i = threadIdx.x; i < p.quads * (LLM_QUAD_COLS / 8);
         i += LLM_K_PARTS * 32)
    {
        llm_cp_async16(mem + i * 16, x + (i * 8 < n_in ? i * 8 : 0),
                       i * 8 < n_in);
    }

    llm_cp_async_commit();
    llm_cp_async_wait<0>();
    __syncthreads();

    for (t = 0; t < n; t++) {
        llm_zero<1, 1>(acc);
        at[0] = row;

#pragma unroll 1
        for (q = 1; q <= quads; q++) {
            record += (q < quads ? 1 : p.quads - quads + 1)
                      * llm_record_bytes(CLS);

            llm_quad_product<CLS, 1, 1>(p, l, record,
                                        q < quads || t + 1 < n, at, BF16,
                                        acc);
            at[0] += LLM_QUAD_COLS;
        }

        /* the row stands for eight, of which the first is wanted */

        if (lane % 4 == 0) {
            i = (t * LLM_K_PARTS + warp) * LLM_TILE_ROWS + lane / 4;
            s[i] = acc[0][0][0];
            s[i + 8] = acc[0][0][2];
        }
    }

    __syncthreads();

    for (i = threadIdx.x; i < n * LLM_TILE_ROWS; i += LLM_K_PARTS * 32) {
        for (sum = 0, t = 0; t < LLM_K_PARTS; t++) {
            sum += s[(i / LLM_TILE_ROWS * LLM_K_PARTS + t) * LLM_TILE_ROWS
                     + i % LLM_TILE_ROWS];
        }

        llm_put(f.o[m], 0, first * LLM_TILE_ROWS + i, sum);
    }
}


int
llm_linear_q_folds(uint32_t rows, uint32_t n_in)
{
    return rows > 1 || llm_align((size_t) n_in, LLM_QUAD_COLS)
                       * sizeof(uint16_t) > LLM_ONE_BYTES;
}


/* sets the ends of the weights' blocks; returns their number */

static uint32_t
llm_few_q_blocks(llm_few_q_t *f, uint32_t n, uint32_t tiles)
{
    uint32_t  i, all;

    f->tiles = tiles;

    for (i = 0, all = 0; i < LLM_FEW_WEIGHTS; i++) {
        if (i < n) {
            all += (f->p[i].row_tiles + tiles - 1) / tiles;
        }

        f->end[i] = all;
    }

    return all;
}


template<int CLS, int BF16> static void
llm_linear_one_launch(llm_cuda_t *d, llm_few_q_t *f, uint32_t n,
    const uint16_t *x, uint32_t n_in)
{
    size_t    sums;
    uint32_t  tiles, blocks;

    tiles = llm_few_q_blocks(f, n, 1) + LLM_ONE_BLOCKS - 1;
    tiles = llm_min(tiles / LLM_ONE_BLOCKS, (uint32_t) LLM_ONE_TILES);
    blocks = llm_few_q_blocks(f, n, tiles);
    sums = LLM_K_PARTS * LLM_TILE_ROWS * sizeof(float);

    llm_cuda_use_shared<llm_k_linear_one<CLS, BF16>>(
        d, LLM_ONE_BYTES + LLM_ONE_TILES * sums);
    llm_launch((llm_k_linear_one<CLS, BF16>), blocks, LLM_K_PARTS * 32,
               f->p[0].quads * LLM_QUAD_COLS * sizeof(uint16_t) + tiles * sums,
               d->stream, *f, x, n_in);
}


template<int CLS, int NT, int BF16> static void
llm_linear_q_launch(llm_cuda_t *d, llm_few_q_t *f, uint32_t n,
    const uint16_t *x)
{
    llm_launch((llm_k_linear_q<CLS, NT, BF16>), llm_few_q_blocks(f, n, 1),
               LLM_K_PARTS * 32,
               LLM_K_PARTS * LLM_TILE_ROWS * NT * 8 * sizeof(float),
               d->stream, *f, x);
}


template<int CLS, int BF16> static void
llm_linear_q_rows(llm_cuda_t *d, uint32_t rows, llm_few_q_t *f, uint32_t n,
    const uint16_t *x, uint32_t n_in)
{
    if (!llm_linear_q_folds(rows, n_in)) {
        llm_linear_one_launch<CLS, BF16>(d, f, n, x, n_in);

    } else if (rows <= 8) {
        llm_linear_q_launch<CLS, 1, BF16>(d, f, n, x);

    } else {
        llm_linear_q_launch<CLS, 2, BF16>(d, f, n, x);
    }
}


template<int CLS> static void
llm_linear_q_class(llm_cuda_t *d, uint32_t rows, llm_few_q_t *f, uint32_t n,
    const uint16_t *x, uint32_t n_in)
{
    if (d->bf16) {
        llm_linear_q_rows<CLS, 1>(d, rows, f, n, x, n_in);

    } else {
        llm_linear_q_rows<CLS, 0>(d, rows, f, n, x, n_in);
    }
}


void
llm_linear_q(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    uint32_t n_in, const llm_packed_t *p, const llm_out_t *o, uint32_t n)
{
    uint32_t     i;
    llm_few_q_t  f;

    memset(&f, 0, sizeof(f));

    for (i = 0; i < n; i++) {
        f.p[i] = p[i];
        f.o[i] = o[i];
    }

    switch (p->cls) {
    LLM_CLASS_CASE(LLM_CLASS_FP8, llm_linear_q_class, d, rows, &f, n, x, n_in)
    LLM_QUANT_CASES(llm_linear_q_class, d, rows, &f, n, x, n_in)
    }
}
