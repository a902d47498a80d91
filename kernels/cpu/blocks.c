/*
 * Reads the blocks of GGUF's quantised types as codes and scales; see blocks.h.
 *
 * Layouts: github.com/ggml-org/ggml, src/ggml-common.h.
 */

#include "kernels/cpu/blocks.h"


static uint16_t
llm_pack_u16(const uint8_t *p)
{
    return (uint16_t) (p[0] | p[1] << 8);
}


/*
 * q[k] |= (src[k] >> down & mask) << up for n bytes, a multiple of 8, at once:
 * bits that come from the next byte are masked, and codes have at most 8 bits.
 */

static inline void
llm_pack_bits(uint8_t *q, const uint8_t *src, uint32_t n, uint32_t down,
    uint32_t mask, uint32_t up)
{
    uint32_t  k;
    uint64_t  v, w;

    for (k = 0; k < n; k += 8) {
        memcpy(&v, src + k, 8);
        memcpy(&w, q + k, 8);

        w |= (v >> down & mask * 0x0101010101010101) << up;

        memcpy(q + k, &w, 8);
    }
}


/* codes of 16 bytes of nibbles: low nibbles first, then high ones */

static void
llm_pack_nibbles(const uint8_t *src, uint8_t *q)
{
    memset(q, 0, LLM_BLOCK);
    llm_pack_bits(q, src, LLM_BLOCK / 2, 0, 15, 0);
    llm_pack_bits(q + LLM_BLOCK / 2, src, LLM_BLOCK / 2, 4, 15, 0);
}


static void
llm_pack_fifth(const uint8_t *qh, uint8_t *q)
{
    uint32_t  i;

    for (i = 0; i < LLM_BLOCK; i++) {
        q[i] |= (uint8_t) ((qh[i / 8] >> i % 8 & 1) << 4);
    }
}


/* scale and minimum of block i, of the 8 pairs in Q4_K and Q5_K, 6 bits each */

static void
llm_pack_k4_scales(const uint8_t *s, uint32_t i, llm_pack_block_t *b)
{
    if (i < 4) {
        b->s0 = s[i] & 63;
        b->s1 = s[i + 4] & 63;

    } else {
        b->s0 = (uint8_t) ((s[i + 4] & 15) | s[i - 4] >> 6 << 4);
        b->s1 = (uint8_t) (s[i + 4] >> 4 | s[i] >> 6 << 4);
    }
}


static void
llm_pack_q45_k(const uint8_t *p, uint32_t i, int fifth, llm_pack_block_t *b)
{
    const uint8_t  *qs;

    b->d = llm_pack_u16(p);
    b->m = llm_pack_u16(p + 2);
    llm_pack_k4_scales(p + 4, i, b);

    qs = p + 16 + (fifth ? 32 : 0) + i / 2 * 32;

    memset(b->q, 0, LLM_BLOCK);
    llm_pack_bits(b->q, qs, LLM_BLOCK, i % 2 * 4, 15, 0);

    if (fifth) {
        llm_pack_bits(b->q, p + 16, LLM_BLOCK, i, 1, 4);
    }
}


void
llm_pack_q4_k(const uint8_t *p, uint32_t i, llm_pack_block_t *b)
{
    llm_pack_q45_k(p, i, 0, b);
}


void
llm_pack_q5_k(const uint8_t *p, uint32_t i, llm_pack_block_t *b)
{
    llm_pack_q45_k(p, i, 1, b);
}


void
llm_pack_q6_k(const uint8_t *p, uint32_t i, llm_pack_block_t *b)
{
    uint32_t        part;
    const uint8_t  *ql, *qh, *sc;

    /* two halves of 128, each of four parts of 32 */
    part = i % 4;
    ql = p + i / 4 * 64 + part % 2 * 32;
    qh = p + 128 + i / 4 * 32;
    sc = p + 192 + i * 2;

    b->d = llm_pack_u16(p + 208);
    b->m = 0;
    b->s0 = sc[0];
    b->s1 = sc[1];

    memset(b->q, 0, LLM_BLOCK);
    llm_pack_bits(b->q, ql, LLM_BLOCK, part / 2 * 4, 15, 0);
    llm_pack_bits(b->q, qh, LLM_BLOCK, part * 2, 3, 4);
}


void
llm_pack_q8_0(const uint8_t *p, uint32_t i, llm_pack_block_t *b)
{
    uint64_t  v;

    b->d = llm_pack_u16(p);
    b->m = 0;

    for (i = 0; i < LLM_BLOCK; i += 8) {
        memcpy(&v, p + 2 + i, 8);
        v ^= 0x8080808080808080;
        memcpy(b->q + i, &v, 8);
    }
}


void
llm_pack_q4_0(const uint8_t *p, uint32_t i, llm_pack_block_t *b)
{
    (void) i;

    b->d = llm_pack_u16(p);
    b->m = 0;
    llm_pack_nibbles(p + 2, b->q);
}


void
llm_pack_q4_1(const uint8_t *p, uint32_t i, llm_pack_block_t *b)
{
    (void) i;

    b->d = llm_pack_u16(p);
    b->m = llm_pack_u16(p + 2);
    llm_pack_nibbles(p + 4, b->q);
}


void
llm_pack_q5_0(const uint8_t *p, uint32_t i, llm_pack_block_t *b)
{
    (void) i;

    b->d = llm_pack_u16(p);
    b->m = 0;
    llm_pack_nibbles(p + 6, b->q);
    llm_pack_fifth(p + 2, b->q);
}


void
llm_pack_q5_1(const uint8_t *p, uint32_t i, llm_pack_block_t *b)
{
    (void) i;

    b->d = llm_pack_u16(p);
    b->m = llm_pack_u16(p + 2);
    llm_pack_nibbles(p + 8, b->q);
    llm_pack_fifth(p + 4, b->q);
}


#define LLM_CODED(NAME, name, number, block, bytes, scales, bits, book)      \
    void                                                                     \
    llm_pack_##name(const uint8_t *p, uint32_t i, llm_pack_block_t *b)       \
    {                                                                        \
        llm_coded_##name(p, i, b);                                           \
    }
#include "kernels/types.def"
