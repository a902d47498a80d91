/*
 * The layouts of weights, and packing GGUF's rows into them, whose blocks
 * blocks.c reads.
 *
 * A panel is LLM_PANEL rows.  F32 and F16 are [n_in][16]; BF16 is
 * [n_in / 2][16][2], n_in filled up to a multiple of 32.
 *
 * A quantised panel is its codes, block of 32 after block, then its scales.
 * A block's codes are eight groups of [16 rows][4 elements], one byte each.
 * Of types with fewer than eight bits, two groups share 64 bytes: the even
 * one has the low nibbles; the bits above the nibbles follow in planes of
 * 64 bytes: bit j of a byte for group j where there is one, bits 2 (j % 4)
 * of plane j / 4 where there are two.  Codes are unsigned; format.zero is
 * the code of the value 0.
 *
 * The scales of a block are d[16], then m[16] if it has a minimum, binary16
 * as in the file.  Those of the K types come for eight blocks at once:
 * d[16], dmin[16] if there is a minimum, then for each block two bytes a
 * row: [16] scales and [16] minima, or the scales of its halves (Q6_K).
 */

#include "kernels/cpu/blocks.h"


typedef struct {
    llm_weight_t        *w;
    uint32_t             step;          /* panels of an item */
} llm_pack_job_t;


/* a quantised type: how it is packed, and what reads its blocks */

typedef struct {
    llm_pack_t           pack;
    llm_pack_read_pt     read;
} llm_pack_type_t;

static const llm_pack_type_t  llm_pack_types[LLM_TYPE_END] = {
#define LLM_QUANT(NAME, name, number, block, bytes, packed, class)           \
    [LLM_TYPE_##NAME] = { LLM_PACK_##packed, llm_pack_##name },
#include "kernels/types.def"
};

static const llm_cpu_format_t  llm_pack_formats[] = {
    [LLM_PACK_Q8_0] = { LLM_PACK_Q8_0, 8, 0, 0, 128, 512,  32 },
    [LLM_PACK_Q4_0] = { LLM_PACK_Q4_0, 4, 0, 0,   8, 256,  32 },
    [LLM_PACK_Q4_1] = { LLM_PACK_Q4_1, 4, 1, 0,   0, 256,  64 },
    [LLM_PACK_Q5_0] = { LLM_PACK_Q5_0, 5, 0, 0,  16, 320,  32 },
    [LLM_PACK_Q5_1] = { LLM_PACK_Q5_1, 5, 1, 0,   0, 320,  64 },
    [LLM_PACK_Q4_K] = { LLM_PACK_Q4_K, 4, 1, 1,   0, 256, 320 },
    [LLM_PACK_Q5_K] = { LLM_PACK_Q5_K, 5, 1, 1,   0, 320, 320 },
    [LLM_PACK_Q6_K] = { LLM_PACK_Q6_K, 6, 0, 1,  32, 384, 288 }
};


/* row r's codes into a zeroed block of a panel */

static void
llm_pack_codes(uint8_t *dst, uint32_t bits, uint32_t r, const uint8_t *q)
{
    uint32_t  i, j;

    dst += r * 4;

    for (j = 0; j < 8; j++, q += 4) {

        if (bits == 8) {
            memcpy(dst + j * 64, q, 4);
            continue;
        }

        for (i = 0; i < 4; i++) {
            dst[j / 2 * 64 + i] |= (uint8_t) ((q[i] & 15) << j % 2 * 4);

            if (bits == 5) {
                dst[256 + i] |= (uint8_t) (q[i] >> 4 << j);

            } else if (bits == 6) {
                dst[256 + j / 4 * 64 + i] |= (uint8_t) (q[i] >> 4
                                                        << j % 4 * 2);
            }
        }
    }
}


static void
llm_pack_scales(const llm_weight_t *w, uint8_t *scales, uint32_t block,
    uint32_t r, const llm_pack_block_t *b)
{
    uint8_t   *s;
    uint16_t  *d;

    if (!w->format.is_k) {
        d = (uint16_t *) (void *) (scales + block * w->format.scale_size);
        d[r] = b->d;

        if (w->format.has_min) {
            d[LLM_PANEL + r] = b->m;
        }

        return;
    }

    s = scales + block / 8 * w->format.scale_size;
    d = (uint16_t *) (void *) s;
    d[r] = b->d;
    s += 32;

    if (w->format.has_min) {
        d[LLM_PANEL + r] = b->m;
        s += 32;
    }

    s += block % 8 * 32;
    s[r] = b->s0;
    s[LLM_PANEL + r] = b->s1;
}


static void
llm_pack_quant(const llm_weight_t *w, uint8_t *dst, const uint8_t *row,
    uint32_t r)
{
    size_t            size;
    uint32_t          b, k;
    llm_pack_block_t  block;
    llm_pack_read_pt  read;

    k = llm_type_block(w->type) / LLM_BLOCK;
    size = llm_type_block_size(w->type);
    read = llm_pack_types[w->type].read;

    for (b = 0; b < w->n_in / LLM_BLOCK; b++) {
        read(row + b / k * size, b % k, &block);
        llm_pack_codes(dst + b * w->format.code_size, w->format.bits, r,
                       block.q);
        llm_pack_scales(w, dst + w->codes_size, b, r, &block);
    }
}


static void
llm_pack_float(const llm_weight_t *w, uint8_t *dst, const uint8_t *row,
    uint32_t r)
{
    size_t  k;

    for (k = 0; k < w->n_in; k++) {
        switch (w->type) {

        case LLM_TYPE_F32:
            memcpy(dst + (k * LLM_PANEL + r) * 4, row + k * 4, 4);
            break;

        case LLM_TYPE_F16:
            memcpy(dst + (k * LLM_PANEL + r) * 2, row + k * 2, 2);
            break;

        default:  /* BF16, in pairs */
            memcpy(dst + ((k / 2 * LLM_PANEL + r) * 2 + k % 2) * 2,
                   row + k * 2, 2);
        }
    }
}


static void
llm_pack_item(void *arg, uint32_t item, uint32_t thread)
{
    uint8_t              *dst;
    uint32_t              p, r, end, row;
    const uint8_t        *src;
    const llm_weight_t   *w;
    const llm_pack_job_t *job = arg;

    (void) thread;

    w = job->w;
    end = llm_min((item + 1) * job->step, w->n_panels);

    for (p = item * job->step; p < end; p++) {
        dst = w->data + p * w->panel_size;

        for (r = 0; r < LLM_PANEL; r++) {
            row = p * LLM_PANEL + r;
            if (row >= w->n_out) {
                break;
            }

            src = w->src + row * w->row_size;

            if (w->format.bits) {
                llm_pack_quant(w, dst, src, r);

            } else {
                llm_pack_float(w, dst, src, r);
            }
        }
    }
}


/* type, n_out, n_in, src and row_size are set; fills in the rest */

int
llm_cpu_pack(llm_cpu_t *cpu, llm_weight_t *w, llm_err_t *err)
{
    size_t          size;
    llm_pack_job_t  job;

    w->n_panels = w->n_out / LLM_PANEL + (w->n_out % LLM_PANEL != 0);

    w->format = llm_pack_formats[llm_pack_types[w->type].pack];

    if (w->format.bits) {
        size = w->n_in / LLM_BLOCK;
        w->codes_size = size * w->format.code_size;
        size = (w->format.is_k ? size / 8 : size) * w->format.scale_size;
        w->panel_size = llm_align(w->codes_size + size, 64);

    } else {
        size = w->type == LLM_TYPE_F32 ? 4 : 2;
        w->codes_size = size * LLM_PANEL
                        * (w->type == LLM_TYPE_BF16
                           ? llm_align(w->n_in, 32) : w->n_in);
        w->panel_size = llm_align(w->codes_size, 64);
    }

    if (llm_mul_overflow(w->panel_size, w->n_panels, &w->size)
        || (w->slab = llm_cpu_slab_take(cpu, w->size, &w->data)) == NULL)
    {
        return llm_fail(err, "cpu: no memory for a matrix of %u x %u",
                        w->n_out, w->n_in);
    }

    job.w = w;
    job.step = 4;

    llm_pool_run(cpu->pool, llm_pack_item, &job,
                 (w->n_panels + job.step - 1) / job.step);

    return LLM_OK;
}


/*
 * Two panels as codes of a byte with float32 scales and minima, or four of
 * floats; and what AMX keeps of sums and of a chunk.
 */

size_t
llm_cpu_pack_scratch(const llm_weight_t *w)
{
    size_t  n;

    n = llm_align(w->n_in, 32);
    n = w->format.bits ? 2 * n / LLM_BLOCK * (512 + 3 * 64) : 4 * n * 64;

    return n + LLM_GEMM_SCRATCH;
}
