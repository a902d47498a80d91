/*
 * A transcription and a model; see drive.h.
 */

#include "engine/speech/drive.h"

typedef struct {
    llm_speech_t              *s;
    llm_whisper_t             *w;
    const llm_speech_sound_t  *sound;
    int                        words;
    float                     *window;  /* [bands][n_frames] */
} llm_speech_drive_t;


int
llm_speech_sound_init(llm_speech_sound_t *sound, uint32_t n_mels,
    const float *samples, size_t n, llm_err_t *err)
{
    memset(sound, 0, sizeof(*sound));

    sound->mel = llm_mel_create(n_mels, NULL, err);

    if (sound->mel == NULL) {
        return LLM_ERROR;
    }

    sound->frames = llm_mel_frames(n);
    sound->n = llm_mel_silent(n);
    sound->rows = malloc(sound->n * n_mels * sizeof(float));

    if (sound->rows == NULL) {
        llm_speech_sound_free(sound);
        return llm_fail_with(err, 503, NULL, NULL, "no memory for the "
                             "spectrogram of %zu seconds of sound",
                             n / LLM_MEL_RATE);
    }

    llm_mel_log(sound->mel, samples, n, 0, sound->n, sound->rows);
    sound->max = llm_mel_max(sound->rows, sound->n * n_mels);

    return LLM_OK;
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
    llm_mel_window(sound->mel, sound->rows, sound->n, sound->max, frame,
                   n_frames, out);
}


static int
llm_speech_drive_window(llm_speech_drive_t *d, size_t frame, llm_err_t *err)
{
    int  rc;

    llm_speech_sound_window(d->sound, frame, llm_whisper_info(d->w)->n_frames,
                            d->window);
    llm_whisper_begin(d->w, 0, d->window, d->words);

    do {
        rc = llm_whisper_encode(d->w, err);
    } while (rc == LLM_MORE);

    return rc == LLM_OK ? llm_speech_encoded(d->s, err) : rc;
}


static void
llm_speech_drive_rows(const llm_speech_ask_t *ask, llm_whisper_rows_t *rows)
{
    memset(rows, 0, sizeof(*rows));
    rows->tokens = ask->tokens;
    rows->n = ask->n;
    rows->pos = ask->pos;
    rows->n_out = ask->n_out;
}


static int
llm_speech_drive_step(llm_speech_drive_t *d, const llm_speech_ask_t *ask,
    llm_err_t *err)
{
    llm_whisper_rows_t  rows;

    llm_speech_drive_rows(ask, &rows);

    if (llm_whisper_step(d->w, &rows, 1, err) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_speech_logits(d->s, llm_whisper_logits(d->w, 0),
                             llm_whisper_logits(d->w, ask->n_out - 1), err);
}


static int
llm_speech_drive_align(llm_speech_drive_t *d, const llm_speech_ask_t *ask,
    llm_err_t *err)
{
    int                        rc;
    float                     *weights;
    llm_whisper_rows_t         rows;
    const llm_whisper_info_t  *info;

    info = llm_whisper_info(d->w);
    weights = malloc((size_t) info->n_align * ask->n * info->n_audio_ctx
                     * sizeof(float) + 1);

    if (weights == NULL) {
        return llm_fail_with(err, 503, NULL, NULL,
                             "no memory for the times of words");
    }

    llm_speech_drive_rows(ask, &rows);
    rc = llm_whisper_align(d->w, &rows, weights, err);

    if (rc == LLM_OK) {
        rc = llm_speech_aligned(d->s, weights, err);
    }

    free(weights);

    return rc;
}


static int
llm_speech_drive(llm_speech_drive_t *d, llm_err_t *err)
{
    int               rc;
    llm_speech_ask_t  ask;

    for (rc = LLM_OK; rc == LLM_OK; /* void */ ) {
        llm_speech_next(d->s, &ask);

        switch (ask.want) {

        case LLM_SPEECH_WINDOW:
            rc = llm_speech_drive_window(d, ask.frame, err);
            break;

        case LLM_SPEECH_LANGUAGE:
        case LLM_SPEECH_STEP:
            rc = llm_speech_drive_step(d, &ask, err);
            break;

        case LLM_SPEECH_ALIGN:
            rc = llm_speech_drive_align(d, &ask, err);
            break;

        default:
            return LLM_OK;
        }
    }

    return rc;
}


int
llm_speech_run(llm_speech_t *s, llm_whisper_t *w,
    const llm_speech_sound_t *sound, llm_err_t *err)
{
    int                        rc;
    llm_speech_drive_t         d;
    const llm_whisper_info_t  *info;

    info = llm_whisper_info(w);
    d.s = s;
    d.w = w;
    d.sound = sound;
    d.words = llm_speech_has_words(s);
    d.window = malloc((size_t) info->n_mels * info->n_frames * sizeof(float));

    if (d.window == NULL) {
        return llm_fail_with(err, 503, NULL, NULL, "no memory for a window of "
                             "sound");
    }

    rc = llm_speech_drive(&d, err);
    free(d.window);

    return rc;
}
