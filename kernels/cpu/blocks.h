/*
 * Reading the blocks of quantised types, for packing: a function for each
 * row of kernels/types.def.
 */

#ifndef LLM_CPU_BLOCKS_H
#define LLM_CPU_BLOCKS_H

#include "kernels/cpu/cpu.h"

/* 32 elements; pack.c says what scales are */
typedef struct {
    uint8_t              q[LLM_BLOCK];  /* codes, unsigned */
    uint16_t             d;
    uint16_t             m;
    uint8_t              s0;
    uint8_t              s1;
} llm_pack_block_t;

/* the i-th 32 elements of the file's block at p */
typedef void (*llm_pack_read_pt)(const uint8_t *p, uint32_t i,
    llm_pack_block_t *b);

#define LLM_QUANT(NAME, name, number, block, bytes, pack, class)             \
    void llm_pack_##name(const uint8_t *p, uint32_t i, llm_pack_block_t *b);
#include "kernels/types.def"

#endif /* LLM_CPU_BLOCKS_H */
