/*
 * Spectrograms of whole sounds; see spectrogram.h.
 */

#include "engine/speech/spectrogram.h"


/* rows of the first n frames of len samples; the rest is set */

static int
llm_speech_sound_rows(llm_speech_sound_t *sound, llm_mel_t *mel,
    const float *samples, size_t len, size_t n, llm_err_t *err)
{
    uint32_t  n_mels;

    sound->n = n;
    sound->mel = mel;

    if (mel == NULL) {
        return LLM_ERROR;
    }

    n_mels = llm_mel_bands(mel);
    sound->rows = malloc(n * n_mels * sizeof(float));

    if (sound->rows == NULL) {
        llm_speech_sound_free(sound);
        return llm_fail_with(err, 503, NULL, NULL, "no memory for the "
                             "spectrogram of %zu seconds of sound",
                             len / LLM_MEL_RATE);
    }

    llm_mel_log(sound->mel, samples, len, 0, n, sound->rows);
    sound->max = llm_mel_max(sound->rows, n * n_mels);

    return LLM_OK;
}


int
llm_speech_sound_init(llm_speech_sound_t *sound, uint32_t n_mels,
    const float *samples, size_t n, llm_err_t *err)
{
    memset(sound, 0, sizeof(*sound));
    sound->frames = llm_mel_frames(n);

    return llm_speech_sound_rows(sound, llm_mel_create(n_mels, NULL, err),
                                 samples, n, llm_mel_silent(n), err);
}


/* whole frames alone, of which the last one sees a mirror image after the end,
   as the first one does before the beginning */

static int
llm_speech_sound_mirrored(llm_speech_sound_t *sound,
    const llm_sound_rule_t *rule, const float *samples, size_t n,
    llm_err_t *err)
{
    int     rc;
    float  *all;
    size_t  i, len;

    len = llm_max(n, (size_t) rule->least);
    all = calloc(len + LLM_MEL_WINDOW / 2, sizeof(float));

    if (all == NULL) {
        return llm_fail_with(err, 503, NULL, NULL, "no memory for %zu seconds "
                             "of sound", len / LLM_MEL_RATE);
    }

    memcpy(all, samples, n * sizeof(float));

    for (i = 0; i < LLM_MEL_WINDOW / 2 && i + 2 <= len; i++) {
        all[len + i] = all[len - 2 - i];
    }

    sound->ends = 1;
    sound->frames = llm_mel_frames(len);
    rc = llm_speech_sound_rows(sound, llm_mel_create(rule->n_mels, NULL, err),
                               all, len + LLM_MEL_WINDOW / 2, sound->frames,
                               err);
    free(all);

    return rc;
}


int
llm_speech_sound_of(llm_speech_sound_t *sound, const llm_sound_rule_t *rule,
    const float *samples, size_t n, llm_err_t *err)
{
    if (!rule->sliced && !rule->usm) {
        return llm_speech_sound_init(sound, rule->n_mels, samples, n, err);
    }

    memset(sound, 0, sizeof(*sound));

    if (rule->usm) {
        sound->frames = llm_mel_usm_frames(llm_max(n, (size_t) rule->least));

        return llm_speech_sound_rows(sound,
                                     llm_mel_create_usm(rule->n_mels, err),
                                     samples, n, sound->frames, err);
    }

    return llm_speech_sound_mirrored(sound, rule, samples, n, err);
}


void
llm_speech_sound_free(llm_speech_sound_t *sound)
{
    llm_mel_free(sound->mel);
    free(sound->rows);
    memset(sound, 0, sizeof(*sound));
}


void
llm_speech_sound_window(const llm_speech_sound_t *sound, size_t frame,
    size_t n_frames, float *out)
{
    size_t    own;
    uint32_t  i;

    llm_mel_window(sound->mel, sound->rows, sound->n, sound->max, frame,
                   n_frames, out);

    own = llm_min(sound->n - llm_min(frame, sound->n), n_frames);

    for (i = 0; sound->ends && i < llm_mel_bands(sound->mel); i++) {
        memset(out + i * n_frames + own, 0, (n_frames - own) * sizeof(float));
    }
}
