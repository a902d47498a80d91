/*
 * Which rows go to which experts, on the device: what route() leaves for
 * experts().
 *
 * A pair is a choice of a row: pair n_used * row + k is its k-th.  A segment
 * is some pairs that chose the same expert, whose products one block computes.
 * How many there are is only known on the device; grids are made for the most
 * that a step's bucket can have.
 */

#ifndef LLM_CUDA_ROUTE_H
#define LLM_CUDA_ROUTE_H

#include "kernels/cuda/linear.h"

/* most pairs of a segment: with few pairs for an expert, and with many */
#define LLM_SEGMENT_FEW   8
#define LLM_SEGMENT_MANY  32

typedef struct {
    uint32_t           expert;
    uint32_t           first;           /* in order[] */
    uint32_t           n;               /* pairs */
} llm_segment_t;

struct llm_choice_s {
    llm_choice_opts_t  opts;

    /* of the layer that route() was called for last */
    uint32_t           n_experts;
    uint32_t           n_used;
    uint32_t           segment;         /* most pairs of one */
    uint32_t           most;            /* segments, by the step's bucket */

    /* on the device */
    uint8_t           *memory;          /* that all of these are in */
    uint32_t          *expert;          /* [pairs] */
    float             *weight;          /* [pairs] */
    uint32_t          *order;           /* [pairs] those of an expert beside
                                           each other */
    llm_segment_t     *segments;
    uint32_t          *n_segments;
    uint16_t          *x;               /* [rows or pairs][n_in] folded */
    uint16_t          *hidden;          /* [pairs][n_ff] folded */
    float             *gate;            /* [pairs][n_ff] */
    float             *up;
    float             *out;             /* [pairs][n_in], in the place of x,
                                           which nobody reads by then */
};

#endif /* LLM_CUDA_ROUTE_H */
