/*
 * Which rows go to which experts, on the device: the result of route(), used by
 * experts().
 *
 * A pair is a row and one of its experts: pair n_used * row + k is the row's
 * k-th choice.  A segment is some pairs with the same expert, whose products
 * one block computes.  Only the device knows the number of segments; grids have
 * blocks for the most that a step's bucket can have.
 */

#ifndef LLM_CUDA_ROUTE_H
#define LLM_CUDA_ROUTE_H

#include "kernels/cuda/linear.h"

/* most pairs of a segment, if experts have few pairs, and if they have many */
#define LLM_SEGMENT_FEW   8
#define LLM_SEGMENT_MANY  32

typedef struct {
    uint32_t           expert;
    uint32_t           first;           /* in order[] */
    uint32_t           n;               /* pairs */
} llm_segment_t;

struct llm_choice_s {
    llm_choice_opts_t  opts;

    /* of the last call of route() */
    uint32_t           n_experts;
    uint32_t           n_used;
    uint32_t           segment;         /* most pairs of a segment */
    uint32_t           most;            /* most segments of the step's bucket */

    /* on the device */
    uint8_t           *memory;          /* owned; holds all of the following */
    uint32_t          *expert;          /* [pairs] */
    float             *weight;          /* [pairs] */
    uint32_t          *order;           /* [pairs] numbers of pairs, sorted by
                                           expert */
    llm_segment_t     *segments;        /* [n_segments] */
    uint32_t          *n_segments;
    uint16_t          *x;               /* [rows or pairs][n_in] folded */
    uint16_t          *hidden;          /* [pairs][n_ff] folded */
    float             *gate;            /* [pairs][n_ff] */
    float             *up;
    float             *out;             /* [pairs][n_in]; the same memory as x,
                                           which is no longer read then */
};

#endif /* LLM_CUDA_ROUTE_H */
