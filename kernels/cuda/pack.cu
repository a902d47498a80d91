/*
 * Quantised weights: the layout of linear.h, and packing into it.  What reads
 * it is in unpack.h; coded.cu packs coded types, linear_8.cu makes fp8.
 */

#include "kernels/cuda/pack.h"


int
llm_packed_class(uint32_t type)
{
    switch (type) {

#define LLM_QUANT(NAME, name, number, block, bytes, pack, cls)               \
    case LLM_TYPE_##NAME:                                                    \
        return cls;
#include "kernels/types.def"

    default:
        return 0;
    }
}


/* the book of a coded type */

static void
llm_packed_book(uint32_t type, uint32_t words[4])
{
    uint32_t       i, code;
    const int8_t  *values;

    values = llm_type_codes(type);
    memset(words, 0, 4 * sizeof(uint32_t));

    for (i = 0; values && i < 16; i++) {
        code = llm_packed_code(i, values[i]);
        words[code / 4] |= (uint32_t) abs(values[i]) << code % 4 * 8;
    }
}


void
llm_packed_view(llm_packed_t *p, int cls, uint32_t type, uint32_t n_out,
    uint32_t n_in, const uint8_t *base)
{
    p->cls = cls;
    p->n_out = n_out;
    p->row_tiles = (n_out + LLM_TILE_ROWS - 1) / LLM_TILE_ROWS;
    p->quads = (n_in + LLM_QUAD_COLS - 1) / LLM_QUAD_COLS;
    p->records = base;
    p->scales = cls == LLM_CLASS_16 ? NULL
                : (const float *) (base + (size_t) p->row_tiles * p->quads
                                          * llm_record_bytes(cls));
    llm_packed_book(type, p->book);
}


size_t
llm_packed_size(int cls, uint32_t n_out, uint32_t n_in)
{
    llm_packed_t  p;

    llm_packed_view(&p, cls, LLM_TYPE_F32, n_out, n_in, NULL);

    return (size_t) p.row_tiles
           * ((size_t) p.quads * llm_record_bytes(cls)
              + (cls == LLM_CLASS_16 ? 0 : LLM_TILE_ROWS * sizeof(float)));
}


/* the quantum of element i (unsigned except for Q8_0), its scale and minimum:
   the value is scale * q + min, for Q6_K scale * (q - 32) */

static __device__ uint32_t
llm_quantum(uint32_t type, const uint8_t *row, uint32_t i, float *scale,
    float *min)
{
    float     zero, one;
    uint32_t  q;

    const uint8_t  *b;
    uint32_t        s, m, r;

    switch (type) {

    case LLM_TYPE_Q8_0:
        b = row + i / 32 * LLM_BYTES_Q8_0;
        *scale = llm_h2f(llm_load_u16(b));
        *min = 0;
        return b[2 + i % 32];

    case LLM_TYPE_Q6_K:
        b = row + i / 256 * LLM_BYTES_Q6_K;
        r = i % 256;
        s = r % 128 / 32;
        q = b[r / 128 * 64 + (s & 1) * 32 + r % 32];
        q = s < 2 ? q & 15 : q >> 4;
        q |= ((uint32_t) b[128 + r / 128 * 32 + r % 32] >> 2 * s & 3) << 4;
        *scale = llm_h2f(llm_load_u16(b + 208))
                 * (float) (int8_t) b[192 + r / 16];
        *min = 0;
        return q;

    case LLM_TYPE_Q4_K:
    case LLM_TYPE_Q5_K:
        b = row + i / 256 * (type == LLM_TYPE_Q4_K ? LLM_BYTES_Q4_K
                                                   : LLM_BYTES_Q5_K);
        r = i % 256;
        llm_k_scale(b + 4, r / 32, &s, &m);
        *scale = llm_h2f(llm_load_u16(b)) * (float) s;
        *min = -llm_h2f(llm_load_u16(b + 2)) * (float) m;

        q = b[(type == LLM_TYPE_Q4_K ? 16 : 48) + r / 64 * 32 + r % 32];
        q = r / 32 & 1 ? q >> 4 : q & 15;

        if (type == LLM_TYPE_Q5_K) {
            q |= ((uint32_t) b[16 + r % 32] >> r / 32 & 1) << 4;
        }

        return q;

    default:
        break;
    }

    /* blocks of 32: Q4_0, Q4_1, Q5_0, Q5_1 */

    zero = 0;
    b = row + i / 32 * (type == LLM_TYPE_Q4_0 ? LLM_BYTES_Q4_0
                        : type == LLM_TYPE_Q4_1 ? LLM_BYTES_Q4_1
                        : type == LLM_TYPE_Q5_0 ? LLM_BYTES_Q5_0
                        : LLM_BYTES_Q5_1);
    one = llm_h2f(llm_load_u16(b));

    switch (type) {
    case LLM_TYPE_Q4_0: zero = -8.0f * one; b += 2; break;
    case LLM_TYPE_Q5_0: zero = -16.0f * one; b += 2; break;
    default: zero = llm_h2f(llm_load_u16(b + 2)); b += 4; break;
    }

    *scale = one;
    *min = zero;
    q = 0;

    if (type == LLM_TYPE_Q5_0 || type == LLM_TYPE_Q5_1) {
        q = ((uint32_t) b[i % 32 / 8] >> i % 8 & 1) << 4;
        b += 4;
    }

    return q | (i % 32 < 16 ? b[i % 16] & 15u : (uint32_t) b[i % 16] >> 4);
}


/* scales and minima of the 32 elements from column `col` on, of both halves */

static __device__ __forceinline__ void
llm_quantum_scales(uint32_t type, const uint8_t *row, uint32_t col,
    float d[2], float m[2])
{
    (void) llm_quantum(type, row, col, &d[0], &m[0]);
    (void) llm_quantum(type, row, col + 16, &d[1], &m[1]);
}


/* a warp for each row, also for those that pad the last tile */

__global__ void
llm_k_scale_rows(uint32_t type, uint32_t n_out, uint32_t n_in,
    const uint8_t *raw, size_t row_size, float *scales)
{
    float     most, scale, d[2], m[2];
    uint32_t  i;

    most = 0;

    for (i = threadIdx.x * 32; blockIdx.x < n_out && i < n_in; i += 32 * 32) {
        llm_quantum_scales(type, raw + blockIdx.x * row_size, i, d, m);
        most = llm_pack_most(most, d, m);
    }

    scale = llm_pack_scale(most);

    if (threadIdx.x == 0) {
        scales[blockIdx.x] = scale;
    }
}


/* a warp packs a quad */

__global__ void
llm_k_pack(llm_packed_t p, uint32_t at, uint32_t type, uint32_t n_in,
    const uint8_t *raw, size_t row_size)
{
    float             d[2], m[2];
    uint8_t          *record;
    uint32_t          i, lane, row_tile, tile, row, col, v;
    llm_pack_lane_t   l = { 0, 0 };

    lane = threadIdx.x;
    row_tile = at + blockIdx.y;
    record = llm_pack_record(p, row_tile, blockIdx.x);

    for (tile = 0; tile < 4; tile++) {
        for (i = 0; i < 16; i++) {
            row = row_tile * LLM_TILE_ROWS + llm_pack_row(lane, i);
            col = blockIdx.x * LLM_QUAD_COLS + tile * LLM_TILE_COLS
                  + llm_pack_col(lane, i);
            v = row < p.n_out && col < n_in
                ? llm_quantum(type, raw + row * row_size, col, d, m) : 0;
            llm_pack_quantum(p.cls, record, tile, lane, i, v, &l);
        }

        llm_pack_put(p.cls, record, tile, lane, &l);

        if (lane < LLM_TILE_ROWS) {
            row = row_tile * LLM_TILE_ROWS + lane;
            col = blockIdx.x * LLM_QUAD_COLS + tile * LLM_TILE_COLS;
            d[0] = d[1] = m[0] = m[1] = 0;

            if (row < p.n_out && col < n_in) {
                llm_quantum_scales(type, raw + row * row_size, col, d, m);
            }

            llm_pack_scales(p.cls, record, tile, lane, p.scales[row], d, m);
        }
    }
}


void
llm_pack(llm_cuda_t *d, const llm_packed_t *p, uint32_t type, uint32_t n_in,
    const uint8_t *raw, size_t row_size)
{
    int       coded;
    uint32_t  at, n;

    coded = p->cls == LLM_CLASS_CODED || p->cls == LLM_CLASS_MINS;

    if (coded) {
        llm_scale_rows_coded(d, p, type, n_in, raw, row_size);

    } else {
        llm_launch(llm_k_scale_rows, p->row_tiles * LLM_TILE_ROWS, 32, 0,
                   d->stream, type, p->n_out, n_in, raw, row_size,
                   (float *) p->scales);
    }

    /* a grid's second dimension is at most 65535 */

    for (at = 0; at < p->row_tiles; at += n) {
        n = llm_min(p->row_tiles - at, 65535u);

        if (coded) {
            llm_pack_coded(d, p, at, n, type, n_in, raw, row_size);

        } else {
            llm_launch(llm_k_pack, dim3(p->quads, n), 32, 0, d->stream, *p,
                       at, type, n_in, raw, row_size);
        }
    }
}
