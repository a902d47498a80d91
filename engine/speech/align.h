/*
 * When tokens are said: from what the decoder's alignment heads look at to a
 * time of each token.  Pure functions.
 */

#ifndef LLM_SPEECH_ALIGN_H
#define LLM_SPEECH_ALIGN_H

#include "engine/base/base.h"

/*
 * weights: [n_heads][n][n_ctx], where heads look at while n tokens are
 * computed; of a row the first `frames` count, which belong to the sound.
 * Writes to times [rows] the frame (of 0.02 s) at which each of the rows
 * first, ..., first + rows - 1 begins.  weights are overwritten.  LLM_ERROR
 * and *err: no memory.  The caller keeps first + rows <= n, rows > 0, and
 * 0 < frames <= n_ctx.
 */
int llm_speech_align(float *weights, size_t n_heads, size_t n, size_t n_ctx,
    size_t frames, size_t first, size_t rows, uint32_t *times,
    llm_err_t *err);

#endif /* LLM_SPEECH_ALIGN_H */
