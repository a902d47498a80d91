/*
 * The log-mel spectrogram that Whisper hears: 16 kHz, windows of 400 samples
 * (periodic Hann), one each 160 samples around its sample, the power of 201
 * bins, 80 or 128 bands, logarithms to the base of 10.
 *
 * Before the first sample stands its mirror image, after the last one silence
 * without end: a frame of any number can be asked for.
 *
 * That of Gemma 4's encoder, a Universal Speech Model (arXiv:2303.01037), has
 * windows of 320 samples with as many zeros as 512 points need, silence before
 * the first sample, the magnitude of 257 bins, and natural logarithms.
 *
 * Invariant: a frame is computed in double precision from its own samples, so
 * it does not depend on which frames are computed with it.  llm_mel_t owns
 * its tables and is read-only after it was created: any number of threads may
 * use it.
 */

#ifndef LLM_MEL_H
#define LLM_MEL_H

#include "engine/base/base.h"

#define LLM_MEL_RATE     16000          /* samples per second */
#define LLM_MEL_HOP        160          /* samples from frame to frame */
#define LLM_MEL_WINDOW     400
#define LLM_MEL_BINS       201
#define LLM_MEL_MAX        256          /* bands */
#define LLM_MEL_USM_WINDOW 320

typedef struct llm_mel_s  llm_mel_t;

/*
 * filters: [n_mels][LLM_MEL_BINS], weights of the bins, copied; NULL: Slaney's
 * triangles from 0 to 8,000 Hz.  NULL and *err: n_mels is out of range, a
 * weight is no finite number, or no memory.
 */
llm_mel_t *llm_mel_create(uint32_t n_mels, const float *filters,
    llm_err_t *err);
/* the same of a Universal Speech Model, with triangles as of HTK, from 0 to
   8,000 Hz, each 1 high */
llm_mel_t *llm_mel_create_usm(uint32_t n_mels, llm_err_t *err);
void llm_mel_free(llm_mel_t *m);
uint32_t llm_mel_bands(const llm_mel_t *m);

/* frames that n samples have */
static inline size_t
llm_mel_frames(size_t n)
{
    return n / LLM_MEL_HOP;
}


/* the first frame that is silent, as all later ones are: frames reach beyond
   the end of the samples */
static inline size_t
llm_mel_silent(size_t n)
{
    return (n + LLM_MEL_WINDOW / 2 + LLM_MEL_HOP - 1) / LLM_MEL_HOP;
}


/* frames of a Universal Speech Model that n samples have: those that end before
   the last sample */
static inline size_t
llm_mel_usm_frames(size_t n)
{
    return n ? (n - 1) / LLM_MEL_HOP : 0;
}


/*
 * Logarithms of the frames first, ..., first + n - 1 of len samples; frames
 * after the last sample are those of silence.  out: [n][n_mels], each at least
 * -10, or the logarithm of 0.001.
 */
void llm_mel_log(const llm_mel_t *m, const float *samples, size_t len,
    size_t first, size_t n, float *out);

/* the largest of n numbers, n > 0 */
float llm_mel_max(const float *rows, size_t n);

/*
 * What the encoder takes of a window of `count` frames from `first` on, from
 * the logarithms rows [n][n_mels] of the whole sound, after whose last one
 * there is silence: what is less than max - 8 is raised to it, then
 * (x + 4) / 4.  max: the largest of the whole sound.  out: by band,
 * [n_mels][count].  A Universal Speech Model takes the logarithms as they are,
 * and zeros after the last one.
 */
void llm_mel_window(const llm_mel_t *m, const float *rows, size_t n, float max,
    size_t first, size_t count, float *out);

#endif /* LLM_MEL_H */
