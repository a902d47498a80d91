/*
 * Passes over a row of logits.  Plain C with the compiler's vectors: eight
 * lanes whatever the machine, so that sums are the same everywhere.
 *
 * A row is looked at in blocks of LLM_ROW_BLOCK; the maximum of each block
 * is kept, for it tells which blocks can be skipped later.
 */

#ifndef LLM_SAMPLE_ROWS_H
#define LLM_SAMPLE_ROWS_H

#include <stdint.h>

#define LLM_ROW_BLOCK        64
#define llm_row_blocks(n)    (((n) + LLM_ROW_BLOCK - 1) / LLM_ROW_BLOCK)

/* exp(x) for x <= 0, within 2 units of the last place; 0 below -87 */
float llm_row_exp(float x);

/*
 * Fills block_max[llm_row_blocks(n)].  Returns 1 when a logit is NaN or
 * plus infinity, else 0.
 */
int llm_row_scan(const float *row, uint32_t n, float *block_max);

/* the lowest index of the largest element, given the blocks' maxima */
uint32_t llm_row_argmax(const float *row, uint32_t n,
    const float *block_max);

/*
 * The sum of exp((row[i] - max) * scale), a block at a time in the order of
 * the row, in double; block_sum (may be NULL) gets each block's own.
 * scale > 0.
 */
double llm_row_sum_exp(const float *row, uint32_t n, float max, float scale,
    double *block_sum);

#endif /* LLM_SAMPLE_ROWS_H */
