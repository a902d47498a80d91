/*
 * Sound in memory, and the job of decoding one; see sound.h.
 */

#include "engine/media/sound.h"

#include "engine/media/recording.h"
#include "engine/media/resample.h"
#include "engine/media/wav.h"

#include <math.h>

typedef struct {
    llm_sound_t       *sound;
    llm_resample_t    *resample;
    size_t             cap;             /* of sound->samples */
    uint64_t           in;              /* samples that have come */
    uint32_t           from;            /* their rate */
    uint32_t           to;
} llm_sound_sink_t;


static int
llm_sound_room(llm_sound_sink_t *s, size_t n, llm_err_t *err)
{
    float   *p;
    size_t   cap;

    if (n <= s->cap - s->sound->n) {
        return LLM_OK;
    }

    cap = llm_max(s->sound->n + n, s->cap + s->cap / 2);
    p = realloc(s->sound->samples, cap * sizeof(float));

    if (p == NULL) {
        return llm_fail_with(err, 503, NULL, NULL, "no memory for sound");
    }

    s->sound->samples = p;
    s->cap = cap;

    return LLM_OK;
}


static int
llm_sound_start(void *ctx, const llm_media_info_t *info, llm_err_t *err)
{
    llm_sound_sink_t  *s = ctx;

    s->from = info->rate;
    s->resample = llm_resample_create(s->from, s->to, err);

    return s->resample ? LLM_OK : LLM_ERROR;
}


static int
llm_sound_add(void *ctx, const void *data, size_t len, llm_err_t *err)
{
    size_t             n;
    llm_sound_sink_t  *s = ctx;

    n = len / sizeof(float);
    s->in += n;

    if (llm_sound_room(s, llm_resample_room(s->resample, n), err) != LLM_OK) {
        return LLM_ERROR;
    }

    s->sound->n += llm_resample_push(s->resample, data, n,
                                     s->sound->samples + s->sound->n);

    return LLM_OK;
}


static int
llm_sound_wav(llm_sound_sink_t *s, const llm_wav_t *w,
    const llm_media_source_t *source, const llm_media_limits_t *limits,
    llm_err_t *err)
{
    float             x[4096];
    size_t            n;
    uint64_t          i, most;
    llm_media_info_t  info;

    most = llm_min((uint64_t) w->rate * limits->seconds, limits->samples);

    if (w->frames > most) {
        return llm_fail_with(err, 400, "audio_too_long", "file", "the "
                             "sound is %.2f seconds long; at most %.0f are "
                             "allowed",
                             ceil((double) w->frames * 100 / w->rate) / 100,
                             (double) most / w->rate);
    }

    if (limits->light && w->frames > limits->light) {
        return LLM_LATER;
    }

    memset(&info, 0, sizeof(info));
    info.rate = w->rate;

    if (llm_sound_start(s, &info, err) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < w->frames; i += n) {
        if (llm_media_is_cancelled(source)) {
            return llm_fail(err, "the request was cancelled");
        }

        n = (size_t) llm_min(w->frames - i, llm_nelems(x));
        llm_wav_mono(w, i, n, x);

        if (llm_sound_add(s, x, n * sizeof(float), err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_sound_read(llm_sound_sink_t *s, llm_media_pool_t *pool,
    const llm_media_source_t *source, const llm_media_limits_t *limits,
    llm_err_t *err)
{
    int                rc;
    llm_wav_t          w;
    llm_media_kind_t   kind;
    llm_media_sink_t   sink = { s, llm_sound_start, llm_sound_add };

    if (source->len > limits->bytes) {
        return llm_fail_with(err, 413, NULL, "file", "the file has %zu bytes; "
                             "at most %llu are allowed", source->len,
                             (unsigned long long) limits->bytes);
    }

    if (llm_wav_is(source->data, source->len)) {
        rc = llm_wav_open(&w, source->data, source->len, err);

        if (rc == LLM_OK) {
            return llm_sound_wav(s, &w, source, limits, err);
        }

        if (rc != LLM_ABSENT || pool == NULL) {
            return LLM_ERROR;
        }

    } else if (pool == NULL) {
        return llm_fail_with(err, 400, NULL, "file", "the file is no WAV file, "
                             "and no other is read here");
    }

    kind = llm_recording_find(source->data, source->len) == LLM_RECORDING_NONE
           ? LLM_MEDIA_SOUND : LLM_MEDIA_RECORDING;

    return llm_media_decode(pool, kind, source, limits, &sink, err);
}


int
llm_media_sound(llm_media_pool_t *pool, const llm_media_source_t *source,
    const llm_media_limits_t *limits, uint32_t rate, llm_sound_t *out,
    llm_err_t *err)
{
    int               rc;
    llm_sound_sink_t  s;

    memset(out, 0, sizeof(*out));
    memset(&s, 0, sizeof(s));
    s.sound = out;
    s.to = rate;

    rc = llm_sound_read(&s, pool, source, limits, err);

    if (rc == LLM_OK) {
        rc = llm_sound_room(&s, llm_resample_room(s.resample, 0), err);
    }

    if (rc == LLM_OK) {
        out->n += llm_resample_end(s.resample, out->samples + out->n);
        out->rate = rate;
        out->seconds = (double) s.in / s.from;

    } else {
        llm_sound_free(out);
    }

    llm_resample_free(s.resample);

    return rc;
}


void
llm_sound_free(llm_sound_t *sound)
{
    free(sound->samples);
    memset(sound, 0, sizeof(*sound));
}
