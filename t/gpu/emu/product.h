/*
 * A product of kernels/cuda/blas.h on the emulator, computed at once.
 */

#ifndef LLM_EMU_PRODUCT_H
#define LLM_EMU_PRODUCT_H

#include "kernels/cuda/blas.h"

/* y = x w^T (+ y); backwards: K is added from its end, so that the bits differ
   from those of our kernels */
void emu_product(const llm_blas_args_t &a, int bf16, bool backwards = false);

#endif /* LLM_EMU_PRODUCT_H */
