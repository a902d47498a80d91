/*
 * WAV files in memory: RIFF and RF64, with samples of 8, 16, 24 or 32 bits, of
 * 32 or 64 bits in floating point, A-law or mu-law, also by
 * WAVE_FORMAT_EXTENSIBLE.  Other codecs inside a WAV file are refused by name.
 *
 * Invariant: all frames of an opened file lie inside its bytes, and its rate
 * and number of channels are within the bounds below.  The caller owns the
 * bytes and keeps them while it reads; nothing is allocated here.
 */

#ifndef LLM_WAV_H
#define LLM_WAV_H

#include "engine/base/base.h"

/* bounds of any audio that is read, whatever its format is */
#define LLM_AUDIO_MIN_RATE      1000    /* Hz */
#define LLM_AUDIO_MAX_RATE    384000
#define LLM_AUDIO_MAX_CHANNELS    32
#define LLM_AUDIO_LOUD     1048576.0    /* samples beyond it are cut off */

typedef enum {
    LLM_WAV_U8 = 0,
    LLM_WAV_S16,
    LLM_WAV_S24,
    LLM_WAV_S32,
    LLM_WAV_F32,
    LLM_WAV_F64,
    LLM_WAV_ALAW,
    LLM_WAV_ULAW
} llm_wav_code_t;

typedef struct {
    llm_wav_code_t        code;
    uint32_t              rate;         /* frames per second */
    uint32_t              channels;
    uint32_t              width;        /* bytes of one sample */
    uint64_t              frames;
    const unsigned char  *data;         /* [frames][channels] */
} llm_wav_t;

/* 1: the bytes begin as a WAV file does */
int llm_wav_is(const void *data, size_t len);

/*
 * Reads the headers of a whole file of len bytes.  LLM_ERROR, *err with status
 * 400 and the offset of what is wrong; LLM_ABSENT, *err: it is whole, but its
 * samples are of a kind that is not read here.  A size of the data that was
 * never filled in, as programs write to pipes, means that the data end with the
 * file; any other size has to be true.
 */
int llm_wav_open(llm_wav_t *w, const void *data, size_t len, llm_err_t *err);

/*
 * Converts n frames from `first` on to one channel, the mean of all; full
 * scale is 1.0.  out: [n].  The caller keeps first + n <= w->frames.  A sample
 * that is no finite number counts as 0, and those beyond LLM_AUDIO_LOUD as it.
 */
void llm_wav_mono(const llm_wav_t *w, uint64_t first, size_t n, float *out);

#endif /* LLM_WAV_H */
