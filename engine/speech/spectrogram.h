/*
 * The log-mel spectrogram of a whole sound, of which encoders take windows: of
 * Whisper, and of models that hear in chats.
 */

#ifndef LLM_SPEECH_SPECTROGRAM_H
#define LLM_SPEECH_SPECTROGRAM_H

#include "engine/media/mel.h"
#include "engine/media/rule.h"

/* the spectrogram of a whole sound, 32 KB (of 80 bands) for a second of it */
typedef struct {
    llm_mel_t    *mel;
    float        *rows;                 /* logarithms, [n][bands] */
    size_t        n;
    size_t        frames;               /* that have sound */
    float         max;                  /* of all rows */
    int           ends;                 /* after its frames there are zeros;
                                           else silence */
} llm_speech_sound_t;

/* n samples at LLM_MEL_RATE, of one channel, which may be freed afterwards;
   LLM_ERROR and *err: no memory */
int llm_speech_sound_init(llm_speech_sound_t *sound, uint32_t n_mels,
    const float *samples, size_t n, llm_err_t *err);
/* the same, as an encoder of spectrograms with this rule takes it */
int llm_speech_sound_of(llm_speech_sound_t *sound,
    const llm_sound_rule_t *rule, const float *samples, size_t n,
    llm_err_t *err);
void llm_speech_sound_free(llm_speech_sound_t *sound);

/* what an encoder takes of the window from a frame on: [bands][n_frames] */
void llm_speech_sound_window(const llm_speech_sound_t *sound, size_t frame,
    size_t n_frames, float *out);

#endif /* LLM_SPEECH_SPECTROGRAM_H */
