/*
 * Passes over a row of logits, in plain C with the compiler's vectors.
 *
 * A row is processed in blocks of LLM_ROW_BLOCK; the maximum of each block is
 * kept, because it shows which blocks can be skipped later.
 *
 * Invariant: sums have LLM_ROW_LANES lanes, whatever the width of the machine's
 * vectors is, so results are the same to the bit on every machine.
 */

#ifndef LLM_SAMPLE_ROWS_H
#define LLM_SAMPLE_ROWS_H

#include <stdint.h>

#define LLM_ROW_BLOCK        64
#define LLM_ROW_LANES        16
#define llm_row_blocks(n)    (((n) + LLM_ROW_BLOCK - 1) / LLM_ROW_BLOCK)

typedef struct {
    uint32_t   width;                   /* floats in a vector */

    /*
     * Fills block_max[llm_row_blocks(n)].  Returns 1 if a logit is NaN or
     * plus infinity, else 0.
     */
    int      (*scan)(const float *row, uint32_t n, float *block_max);

    /*
     * The sum of exp((row[i] - max) * scale), block after block, in double;
     * block_sum (may be NULL) gets the sum of each block.  scale > 0.
     */
    double   (*sum_exp)(const float *row, uint32_t n, float max, float scale,
        double *block_sum);
} llm_row_passes_t;

/* the passes of this machine, from the fastest, i = 0; NULL: there are no
   more */
const llm_row_passes_t *llm_row_passes(uint32_t i);

/* the lowest index of the largest element; block_max: from scan() */
uint32_t llm_row_argmax(const float *row, uint32_t n,
    const float *block_max);
/* the same of a row that was not scanned, n > 0; what is no number is no
   maximum, unless the first element is none */
uint32_t llm_row_best(const float *row, uint32_t n);

/* exp(x) for x <= 0, within 2 ulp; 0 if x is below -87 or NaN */
float llm_row_exp(float x);

#endif /* LLM_SAMPLE_ROWS_H */
