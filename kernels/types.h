/*
 * The element types of weights, the rows of types.def: GGUF's numbers, ggml's
 * block formats (src/ggml-common.h of github.com/ggml-org/ggml gives the byte
 * layout), and conversions of their values.
 *
 * Functions and constants without state; shared by the engine and every
 * backend.
 */

#ifndef LLM_TYPES_H
#define LLM_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
#define LLM_TYPE(NAME, name, number, block, bytes)  LLM_TYPE_##NAME = number,
#include "kernels/types.def"
    LLM_TYPE_END                        /* the highest number + 1 */
} llm_type_t;

/* bytes of a block of each type */
enum {
#define LLM_TYPE(NAME, name, number, block, bytes)  LLM_BYTES_##NAME = bytes,
#include "kernels/types.def"
};

/* "Q4_K", or NULL for a type that is not supported */
const char *llm_type_name(uint32_t type);
/* elements and bytes of one block; 0 for a type that is not supported */
size_t llm_type_block(uint32_t type);
size_t llm_type_block_size(uint32_t type);
/* bytes of n elements, n a multiple of the block */
size_t llm_type_row_size(uint32_t type, size_t n);

/* the values [16] of a coded type's codes; NULL for other types */
const int8_t *llm_type_codes(uint32_t type);

/*
 * Converts n elements of a row to float32, exactly as the format defines
 * them; n must be a multiple of the block.  Every kernel is checked against
 * this function.
 */
void llm_dequantize(uint32_t type, const void *src, float *dst, size_t n);

/* converts one block, a function for each type */
#define LLM_TYPE(NAME, name, number, block, bytes)                           \
    void llm_block_##name(const uint8_t *b, float *dst);
#include "kernels/types.def"

float llm_f16_to_f32(uint16_t h);
uint16_t llm_f32_to_f16(float f);       /* round to nearest even */
float llm_bf16_to_f32(uint16_t h);
uint16_t llm_f32_to_bf16(float f);

/*
 * FP8 E4M3 (OCP 8-bit floating point, revision 1.0): four bits of exponent,
 * three of mantissa, no infinity, one NaN of each sign.  Values that are too
 * large, infinity included, become the largest number.
 */
float llm_e4m3_to_f32(uint8_t e);
uint8_t llm_f32_to_e4m3(float f);       /* round to nearest even */

#endif /* LLM_TYPES_H */
