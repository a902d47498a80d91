/*
 * Reads the blocks of quantised types, for packing: a function for each
 * LLM_QUANT row of kernels/types.def.
 */

#ifndef LLM_CPU_BLOCKS_H
#define LLM_CPU_BLOCKS_H

#include "kernels/coded.h"
#include "kernels/cpu/cpu.h"

/* 32 elements; pack.c describes the scales */
typedef llm_coded_t  llm_pack_block_t;

/* the i-th 32 elements of the file's block at p */
typedef void (*llm_pack_read_pt)(const uint8_t *p, uint32_t i,
    llm_pack_block_t *b);

#define LLM_QUANT(NAME, name, number, block, bytes, pack, class)             \
    void llm_pack_##name(const uint8_t *p, uint32_t i, llm_pack_block_t *b);
#include "kernels/types.def"

#endif /* LLM_CPU_BLOCKS_H */
