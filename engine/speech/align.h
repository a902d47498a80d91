/*
 * When tokens are said: from what the decoder's alignment heads look at to a
 * time of each token, a head at a time, as each takes some milliseconds.
 *
 * The owner of an alignment frees it; it has no pointers to anything else.
 */

#ifndef LLM_SPEECH_ALIGN_H
#define LLM_SPEECH_ALIGN_H

#include "engine/base/base.h"

typedef struct {
    size_t     n;                       /* tokens that are computed */
    size_t     n_ctx;                   /* numbers of a row of weights */
    size_t     frames;                  /* of these count, as they belong to the
                                           sound */
    size_t     first;                   /* token whose time is wanted first */
    size_t     rows;                    /* tokens whose times are wanted */
    size_t     n_heads;                 /* that were added */
    float     *sum;                     /* [rows][frames] of these heads; NULL:
                                           the alignment has not begun */
    double    *mean;                    /* [2][frames] scratch of add() */
} llm_speech_align_t;

/* a holds zeros but for its sizes: first + rows <= n, rows > 0,
   0 < frames <= n_ctx.  LLM_ERROR and *err: no memory */
int llm_speech_align_begin(llm_speech_align_t *a, llm_err_t *err);
/* weights: [n][n_ctx], where a head looks at while the n tokens are computed;
   overwritten */
void llm_speech_align_add(llm_speech_align_t *a, float *weights);
/* writes to times [rows] the frame (of 0.02 s) at which each token begins;
   LLM_ERROR and *err: no memory */
int llm_speech_align_end(llm_speech_align_t *a, uint32_t *times,
    llm_err_t *err);
/* a holds zeros again; it may have held zeros before */
void llm_speech_align_free(llm_speech_align_t *a);

#endif /* LLM_SPEECH_ALIGN_H */
