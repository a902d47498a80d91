/*
 * The layouts of weights, and packing of GGUF's rows into them; blocks.c reads
 * the blocks of the file.
 *
 * A panel is LLM_PANEL rows.  F32 and F16 are [n_in][16]; BF16 is
 * [n_in / 2][16][2], with n_in padded to a multiple of 32.
 *
 * A quantised panel is the codes of its blocks of 32, then its scales.  The
 * codes of a block are eight groups of [16 rows][4 elements], one byte each.
 * In types with fewer than eight bits, groups share planes of 64 bytes:
 *   nibbles   two groups a plane, the even group in the low nibbles
 *   bits      eight groups a plane, bit j is group j
 *   pairs     four groups a plane, group j in plane j / 4 from bit 2 (j % 4) on
 * Codes of 4, 5 and 6 bits are nibbles, then the bits, or pairs, above them;
 * codes of 2 and 3 bits are pairs, then the third bits.  Codes are unsigned.
 * A product multiplies by codes, or by what format.book has for them;
 * format.zero is the factor that stands for the value 0.
 *
 * Scales, as packs.def names them, [16] each:
 *   H32, HM32   binary16 d, and m, as in the file
 *   E32, E16    a byte of exponent; a byte of e4m3 for each half
 *   KM32        for eight blocks: binary16 d and dmin, then for each block a
 *               byte of scale and one of minimum
 *   KH16        for eight blocks: binary16 d, then for each half of a block a
 *               byte of scale
 *   K32, K16    for eight blocks: float32 d times the book's unit, then a byte
 *               of scale for each block, or for each half
 *   M16         for eight blocks: float32 d and dmin, then a byte for each
 *               half: scale in the low nibble, minimum in the high one
 */

#include "kernels/cpu/blocks.h"
#include "engine/base/machine.h"


typedef struct {
    llm_weight_t        *w;
    uint32_t             step;          /* panels of an item */
} llm_pack_job_t;


/* a quantised type: its packing, the function that reads its blocks, its
   book or NULL */

typedef struct {
    llm_pack_t           pack;
    llm_pack_read_pt     read;
    const llm_book_t    *book;
} llm_pack_type_t;

static const llm_pack_type_t  llm_pack_types[LLM_TYPE_END] = {
#define LLM_QUANT(NAME, name, number, block, bytes, packed, class)           \
    [LLM_TYPE_##NAME] = { LLM_PACK_##packed, llm_pack_##name, NULL },
#define LLM_CODED(NAME, name, number, block, bytes, scales, bits, book)      \
    [LLM_TYPE_##NAME] = { LLM_PACK_##scales##_##bits, llm_pack_##name,       \
                          &llm_books[LLM_BOOK_##book] },
#include "kernels/types.def"
};

static const struct {
    uint8_t              blocks;
    uint16_t             size;
    uint8_t              halves;
    uint8_t              has_min;
} llm_pack_scale_facts[] = {
#define LLM_SCALE(NAME, blocks, bytes, halves, min)                          \
    { blocks, bytes, halves, min },
#include "kernels/cpu/packs.def"
};

static const struct {
    uint8_t              bits;
    uint8_t              zero;
    llm_pack_scale_t     scale;
} llm_pack_facts[] = {
    [LLM_PACK_NONE] = { 0, 0, 0 },
#define LLM_PACK(NAME, bits, range, zero, scale, as)                         \
    { bits, zero, LLM_SCALE_##scale },
#include "kernels/cpu/packs.def"
};


/* LLM_STAGE_ bits: the forms of x that a packing needs */

static uint16_t
llm_pack_stage(uint8_t zero, llm_pack_scale_t scale)
{
    uint16_t  what;

    what = LLM_STAGE_Q8;

    if (scale == LLM_SCALE_E16) {
        what |= LLM_STAGE_FINE;
    }

    if (llm_pack_scale_facts[scale].has_min
        && llm_pack_scale_facts[scale].halves == 2)
    {
        what |= LLM_STAGE_HALF;
    }

    switch (zero) {
    case 8:   return what | LLM_STAGE_ZERO << LLM_ZERO_8;
    case 16:  return what | LLM_STAGE_ZERO << LLM_ZERO_16;
    case 32:  return what | LLM_STAGE_ZERO << LLM_ZERO_32;
    case 64:  return what | LLM_STAGE_ZERO << LLM_ZERO_64;
    case 128: return what | LLM_STAGE_ZERO << LLM_ZERO_128;
    default:  return what;
    }
}


/* the format of a type; all 0 for floats */

static llm_cpu_format_t
llm_pack_format(uint32_t type)
{
    int                i;
    llm_pack_t         pack;
    llm_cpu_format_t   f;
    const llm_book_t  *book;

    memset(&f, 0, sizeof(f));
    pack = llm_pack_types[type].pack;

    if (pack == LLM_PACK_NONE) {
        return f;
    }

    f.pack = pack;
    f.scale = llm_pack_facts[pack].scale;
    f.bits = llm_pack_facts[pack].bits;
    f.zero = llm_pack_facts[pack].zero;
    f.code_size = (uint16_t) (f.bits * 64);
    f.scale_size = llm_pack_scale_facts[f.scale].size;
    f.scale_blocks = llm_pack_scale_facts[f.scale].blocks;
    f.stage = llm_pack_stage(f.zero, f.scale);

    book = llm_pack_types[type].book;

    for (i = 0; book && i < 16; i++) {
        f.book[i] = (uint8_t) (book->values[i] + f.zero);
    }

    return f;
}


/* a plane's word: 8 / n bits, from bit `shift` on, of the codes of n groups, four
   at a time */

static inline void
llm_pack_plane(uint8_t *dst, const uint32_t *v, uint32_t n, uint32_t shift)
{
    uint32_t  k, mask, plane;

    mask = ((1u << 8 / n) - 1) * 0x01010101;

    for (k = 0, plane = 0; k < n; k++) {
        plane |= (v[k] >> shift & mask) << k * (8 / n);
    }

    memcpy(dst, &plane, 4);
}


/* writes row r's codes into a block of a panel */

static void
llm_pack_codes(uint8_t *dst, uint32_t bits, uint32_t r, const uint8_t *q)
{
    uint32_t  j, v[8];

    dst += r * 4;
    memcpy(v, q, sizeof(v));

    if (bits == 8) {
        for (j = 0; j < 8; j++) {
            memcpy(dst + j * 64, &v[j], 4);
        }

        return;
    }

    if (bits < 4) {
        llm_pack_plane(dst, v, 4, 0);
        llm_pack_plane(dst + 64, v + 4, 4, 0);

        if (bits == 3) {
            llm_pack_plane(dst + 128, v, 8, 2);
        }

        return;
    }

    for (j = 0; j < 4; j++) {
        llm_pack_plane(dst + j * 64, v + j * 2, 2, 0);
    }

    if (bits == 5) {
        llm_pack_plane(dst + 256, v, 8, 4);

    } else if (bits == 6) {
        llm_pack_plane(dst + 256, v, 4, 4);
        llm_pack_plane(dst + 320, v + 4, 4, 4);
    }
}


static void
llm_pack_scales(const llm_weight_t *w, uint8_t *scales, uint32_t block,
    uint32_t r, const llm_pack_block_t *b)
{
    float     *f;
    uint8_t   *s;
    uint32_t   i;
    uint16_t  *d;

    s = scales + block / w->format.scale_blocks * w->format.scale_size;
    i = block % 8;
    d = (uint16_t *) (void *) s;
    f = (float *) (void *) s;

    switch (w->format.scale) {

    case LLM_SCALE_H32:
        d[r] = b->d;
        return;

    case LLM_SCALE_HM32:
        d[r] = b->d;
        d[LLM_PANEL + r] = b->m;
        return;

    case LLM_SCALE_E32:
        s[r] = b->s0;
        return;

    case LLM_SCALE_E16:
        s += r;
        break;

    case LLM_SCALE_KM32:
        d[r] = b->d;
        d[LLM_PANEL + r] = b->m;
        s += 64 + i * 32 + r;
        break;

    case LLM_SCALE_KH16:
        d[r] = b->d;
        s += 32 + i * 32 + r;
        break;

    case LLM_SCALE_K32:
        f[r] = llm_f16_to_f32(b->d) * llm_pack_types[w->type].book->unit;
        s[64 + i * 16 + r] = b->s0;
        return;

    case LLM_SCALE_K16:
        f[r] = llm_f16_to_f32(b->d) * llm_pack_types[w->type].book->unit;
        s += 64 + i * 32 + r;
        break;

    default: /* LLM_SCALE_M16 */
        f[r] = llm_f16_to_f32(b->d);
        f[LLM_PANEL + r] = llm_f16_to_f32(b->m);
        s += 128 + i * 32 + r;
    }

    s[0] = b->s0;
    s[LLM_PANEL] = b->s1;
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


/* n rows of the file, of F32 or F16, become a panel of BF16 */

static void
llm_pack_rounded(const llm_weight_t *w, uint8_t *dst, const uint8_t *src,
    uint32_t n)
{
    float     f;
    size_t    k;
    uint16_t  b;
    uint32_t  r;

    for (k = 0; k < w->n_in; k++) {
        for (r = 0; r < n; r++) {
            llm_dequantize(w->type, src + r * w->row_size
                                    + k * llm_type_block_size(w->type), &f, 1);
            b = llm_f32_to_bf16(f);
            memcpy(dst + ((k / 2 * LLM_PANEL + r) * 2 + k % 2) * 2, &b, 2);
        }
    }
}


/* n rows of the file, at src, become a panel; whole lines of it are written, one
   after another */

static void
llm_pack_floats(const llm_weight_t *w, uint8_t *dst, const uint8_t *src,
    uint32_t n)
{
    size_t    k, size, step;
    uint32_t  r;

    if (w->panels != w->type) {
        llm_pack_rounded(w, dst, src, n);
        return;
    }

    size = w->type == LLM_TYPE_F32 ? 4 : 2;
    step = w->type == LLM_TYPE_BF16 ? 4 : size;

    for (k = 0; k + step <= w->n_in * size; k += step) {
        for (r = 0; r < n; r++) {
            if (step == 4) {
                memcpy(dst + k * LLM_PANEL + r * 4, src + r * w->row_size + k,
                       4);

            } else {
                memcpy(dst + k * LLM_PANEL + r * 2, src + r * w->row_size + k,
                       2);
            }
        }
    }

    /* the last of an odd number of BF16 */

    for (r = 0; r < n && k < w->n_in * size; r++) {
        memcpy(dst + k * LLM_PANEL + r * 4, src + r * w->row_size + k, 2);
    }
}


static void
llm_pack_item(void *arg, uint32_t item, uint32_t thread)
{
    uint8_t              *dst;
    uint32_t              p, r, n, end, row;
    const uint8_t        *src;
    const llm_weight_t   *w;
    const llm_pack_job_t *job = arg;

    (void) thread;

    w = job->w;
    end = llm_min((item + 1) * job->step, w->n_panels * w->n_experts);

    for (p = item * job->step; p < end; p++) {
        dst = w->data + p * w->panel_size;
        row = p % w->n_panels * LLM_PANEL;
        n = llm_min(w->n_out - row, (uint32_t) LLM_PANEL);
        src = w->src + p / w->n_panels * w->stride + row * w->row_size;

        if (w->format.bits == 0) {
            llm_pack_floats(w, dst, src, n);
            continue;
        }

        for (r = 0; r < n; r++) {
            llm_pack_quant(w, dst, src + r * w->row_size, r);
        }
    }
}


/* sets the layout of a matrix whose type and sizes are set */

static void
llm_pack_layout(llm_weight_t *w)
{
    size_t  size;

    w->n_panels = w->n_out / LLM_PANEL + (w->n_out % LLM_PANEL != 0);

    w->format = llm_pack_format(w->type);

    if (w->format.bits) {
        size = w->n_in / LLM_BLOCK;
        w->codes_size = size * w->format.code_size;
        size = size / w->format.scale_blocks * w->format.scale_size;
        w->panel_size = llm_align(w->codes_size + size, 64);

    } else {
        size = w->panels == LLM_TYPE_F32 ? 4 : 2;
        w->codes_size = size * LLM_PANEL
                        * (w->panels == LLM_TYPE_BF16
                           ? llm_align(w->n_in, 32) : w->n_in);
        w->panel_size = llm_align(w->codes_size, 64);
    }
}


size_t
llm_cpu_weight_size(uint32_t type, uint32_t n_out, uint32_t n_in)
{
    size_t        size;
    llm_weight_t  w = { .type = type, .panels = type, .n_out = n_out, .n_in = n_in };

    llm_pack_layout(&w);

    return llm_mul_overflow(w.panel_size, w.n_panels, &size) ? SIZE_MAX : size;
}


/* address of a panel's first row in the file */

static const uint8_t *
llm_pack_src(const llm_weight_t *w, uint32_t panel)
{
    return w->src + panel / w->n_panels * w->stride
           + (size_t) (panel % w->n_panels) * LLM_PANEL * w->row_size;
}


static void
llm_pack_read(void *arg, uint32_t first, uint32_t n)
{
    uint32_t               last;
    const uint8_t         *src, *end;
    const llm_weight_t    *w;
    const llm_pack_job_t  *job = arg;

    w = job->w;
    last = llm_min((first + n) * job->step, w->n_panels * w->n_experts) - 1;
    src = llm_pack_src(w, first * job->step);
    end = llm_pack_src(w, last)
          + llm_min(w->n_out - last % w->n_panels * LLM_PANEL,
                    (uint32_t) LLM_PANEL) * w->row_size;

    llm_cpu_read_file(src, (size_t) (end - src));
}


int
llm_cpu_pack(llm_cpu_t *cpu, llm_weight_t *w, llm_err_t *err)
{
    size_t          n;
    llm_cpu_load_t  load;
    llm_pack_job_t  job;

    llm_pack_layout(w);

    n = (size_t) w->n_panels * w->n_experts;

    if (n > UINT32_MAX - LLM_PANEL
        || llm_mul_overflow(w->panel_size, n, &w->size))
    {
        return llm_fail(err, "cpu: a matrix of %u x %u is too large",
                        w->n_out, w->n_in);
    }

    if (llm_cpu_packed_take(cpu, w)) {
        return LLM_OK;
    }

    w->slab = llm_cpu_slab_take(cpu, w->size, &w->data);

    if (w->slab == NULL) {
        return llm_fail(err, "cpu: no memory for a matrix of %u x %u, which "
                        "needs %zu MB of the %zu MB that are free",
                        w->n_out, w->n_in, w->size / 1000000 + 1,
                        llm_machine_memory_free("") / 1000000);
    }

    job.w = w;
    job.step = 4;

    load.pack = llm_pack_item;
    load.read = llm_pack_read;
    load.arg = &job;
    load.n = ((uint32_t) n + job.step - 1) / job.step;
    load.bytes = (size_t) job.step * LLM_PANEL * w->row_size;

    llm_cpu_load(cpu, &load);

    return LLM_OK;
}


/*
 * Room for two unpacked panels (a byte for each code, float32 scales and
 * minima), or for four panels of floats; and for the sums and the chunk of the
 * AMX kernels.
 */

size_t
llm_cpu_pack_scratch(const llm_cpu_t *cpu, const llm_weight_t *w)
{
    size_t  n;

    n = llm_align(w->n_in, 32);
    n = w->format.bits ? 2 * n / LLM_BLOCK * (512 + 4 * 64) : 4 * n * 64;

    return n + (cpu->kernels.tiles ? LLM_TILE_SCRATCH : LLM_GEMM_SCRATCH);
}
