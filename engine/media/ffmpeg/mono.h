/*
 * FFmpeg's sample formats to float32 samples of one channel.
 */

#ifndef LLM_FFMPEG_MONO_H
#define LLM_FFMPEG_MONO_H

#include "engine/base/base.h"

#include <libavutil/frame.h>

/* x: [frame->nb_samples], the mean of the channels; finite.  LLM_ABSENT: a
   format that none of our decoders has */
int llm_mono(const AVFrame *frame, uint32_t channels, float *x);

#endif /* LLM_FFMPEG_MONO_H */
