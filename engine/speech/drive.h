/*
 * A transcription with a model of one's own: answers what it asks for, one
 * thing after the other.
 *
 * llm_speech_sound_t owns the spectrogram of the whole sound, 32 KB (of 80
 * bands) for a second of it.
 */

#ifndef LLM_SPEECH_DRIVE_H
#define LLM_SPEECH_DRIVE_H

#include "engine/media/mel.h"
#include "engine/speech/speech.h"

typedef struct {
    llm_mel_t    *mel;
    float        *rows;                 /* logarithms, [n][bands] */
    size_t        n;
    size_t        frames;               /* that have sound */
    float         max;
} llm_speech_sound_t;

/* n samples at LLM_MEL_RATE, of one channel, which may be freed afterwards;
   LLM_ERROR and *err: no memory */
int llm_speech_sound_init(llm_speech_sound_t *sound, uint32_t n_mels,
    const float *samples, size_t n, llm_err_t *err);
void llm_speech_sound_free(llm_speech_sound_t *sound);

/* what an encoder takes of the window from a frame on: [bands][n_frames] */
void llm_speech_sound_window(const llm_speech_sound_t *sound, size_t frame,
    size_t n_frames, float *out);

/*
 * Runs s to its end with sequence 0 and state 0 of w.  LLM_ERROR and *err: the
 * model failed, or no memory; what is known then is in s.
 */
int llm_speech_run(llm_speech_t *s, llm_whisper_t *w,
    const llm_speech_sound_t *sound, llm_err_t *err);

#endif /* LLM_SPEECH_DRIVE_H */
