/*
 * Sound at another sample rate: a windowed sinc (Kaiser) in polyphase form,
 * for input in pieces of any size.  What is above 0.94 of the lower rate's half
 * is removed, by 90 dB from that half on.
 *
 * Invariant: the output does not depend on how the input is cut.
 * llm_resample_t owns its table and the input that later output still needs,
 * less than 10 MB; one thread uses it at a time.
 */

#ifndef LLM_RESAMPLE_H
#define LLM_RESAMPLE_H

#include "engine/base/base.h"

typedef struct llm_resample_s  llm_resample_t;

/* rates in Hz, within the bounds of wav.h; equal ones leave the samples as they
   are.  NULL and *err: another rate, or no memory */
llm_resample_t *llm_resample_create(uint32_t from, uint32_t to,
    llm_err_t *err);
void llm_resample_free(llm_resample_t *r);

/* samples of the output of n samples in all: n * to / from, rounded up */
uint64_t llm_resample_total(const llm_resample_t *r, uint64_t n);
/* the most that llm_resample_push() writes for n samples, and
   llm_resample_end() for n = 0 */
size_t llm_resample_room(const llm_resample_t *r, size_t n);

/* adds n samples; returns the number of samples written to out */
size_t llm_resample_push(llm_resample_t *r, const float *in, size_t n,
    float *out);
/* the rest of the output, once: silence follows the input */
size_t llm_resample_end(llm_resample_t *r, float *out);

#endif /* LLM_RESAMPLE_H */
