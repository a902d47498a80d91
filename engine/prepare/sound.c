/*
 * Sound: it is decoded, by a process of its own where it needs a library; that
 * of a transcription is made into a spectrogram.
 *
 * The file's bytes are in memory that a broken worker can change meanwhile, and
 * WAV files are read in this process, so they are read from a copy.
 */

#include "engine/media/sound.h"
#include "engine/prepare/prepare.h"

#include <stdio.h>

/* of a sound whose seconds have no bound in the configuration */
#define LLM_PREP_SECONDS  86400u

/* most samples per second of a file that is as long as allowed */
#define LLM_PREP_RATE     192000u

/* samples of a file that is not large, five minutes at 48000 a second, and the
   milliseconds that it may take */
#define LLM_PREP_LIGHT    (300u * 48000)
#define LLM_PREP_SHORT    3000

/* milliseconds that any may take: less than a request waits in the queue, so
   that its error comes first */
#define LLM_PREP_TIMEOUT  45000


/* an error of this machine: the log says which, and clients must not */

static int
llm_prep_sound_failed(const llm_prep_env_t *env, llm_err_t *err)
{
    char  msg[sizeof(err->msg) + 256];

    snprintf(msg, sizeof(msg), "model \"%s\": a sound is not decoded: %s",
             env->name, err->msg);

    if (env->log) {
        env->log(env->log_data, LLM_LOG_ERR, msg);
    }

    return llm_fail_with(err, 503, NULL, NULL, "Audio cannot be decoded by "
                         "this server now. Its log says why.");
}


static void
llm_prep_sound_limits(const llm_prep_how_t *how, size_t len, uint32_t seconds,
    llm_media_limits_t *limits)
{
    llm_media_limits_default(limits);
    limits->bytes = llm_max(len, (size_t) 1);
    limits->seconds = llm_min(seconds, LLM_PREP_SECONDS);
    limits->samples = (uint64_t) limits->seconds * LLM_PREP_RATE;
    limits->timeout = LLM_PREP_TIMEOUT;

    if (how && !how->large) {
        limits->light = LLM_PREP_LIGHT;
        limits->timeout = LLM_PREP_SHORT;
    }
}


/* decodes the file, others run meanwhile */

static int
llm_prep_sound_run(const llm_prep_env_t *env, const llm_prep_how_t *how,
    const llm_media_source_t *source, const llm_media_limits_t *limits,
    llm_sound_t *sound, llm_err_t *err)
{
    int  rc;

    if (how && how->rest) {
        how->rest(how->data, 1);
    }

    rc = llm_media_sound(env->pool, source, limits, LLM_MEL_RATE, sound, err);

    if (how && how->rest) {
        how->rest(how->data, 0);
    }

    return rc;
}


int
llm_prep_sound_decode(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, uint32_t index, uint32_t seconds,
    const char *param, llm_sound_t *sound, llm_err_t *err)
{
    int                  rc;
    char                 what[sizeof(err->msg)], code[sizeof(err->code)];
    void                *copy;
    size_t               len;
    const void          *data;
    llm_media_limits_t   limits;
    llm_media_source_t   source = { .fd = -1 };

    data = llm_claim_data(&r->media, index, &len);

    if (data == NULL) {
        return llm_fail(err, "malformed request to the engine");
    }

    copy = malloc(len + 1);

    if (copy == NULL) {
        return llm_fail_with(err, 503, NULL, NULL, "no memory for the sound");
    }

    memcpy(copy, data, len);
    llm_prep_sound_limits(how, len, seconds, &limits);

    if (limits.light == 0) {
        llm_claim_drop(&r->media, index);
    }

    source.data = copy;
    source.len = len;
    source.cancelled = &r->cancelled;
    rc = llm_prep_sound_run(env, how, &source, &limits, sound, err);
    free(copy);

    if (rc == LLM_LATER) {
        r->prep.next = LLM_NEXT_LARGE;
        return LLM_LATER;
    }

    llm_claim_drop(&r->media, index);

    if (rc == LLM_OK || llm_media_is_cancelled(&source)) {
        return rc;
    }

    if (err->status != 400) {
        return llm_prep_sound_failed(env, err);
    }

    snprintf(what, sizeof(what), "%s", err->msg);
    snprintf(code, sizeof(code), "%s", err->code[0] ? err->code
                                                    : "invalid_value");

    return llm_fail_with(err, 400, code, param, "%.*s",
                         (int) sizeof(what) - 1, what);
}


static void
llm_prep_sound_opts(const llm_prep_env_t *env, const llm_request_t *msg,
    llm_speech_opts_t *o)
{
    memset(o, 0, sizeof(*o));
    o->rules = env->speech;
    o->vocab = env->vocab;
    o->language = msg->language;
    o->translate = msg->translate != 0;
    o->timestamps = 1;
    o->words = msg->words != 0;
    o->condition = 1;
    o->thresholds = 1;
    o->temperature = msg->heat >= 0 && msg->heat <= 1 ? msg->heat : -1;
    o->seed = msg->chance;
    o->prompt.data = llm_ref_data(msg, msg->spoken);
    o->prompt.len = msg->spoken.len;
}


int
llm_prep_sound(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err)
{
    int                 rc;
    llm_heard_t        *h;
    llm_sound_t         sound;
    llm_speech_opts_t   opts;

    if (r->media.n != 1) {
        return llm_fail(err, "malformed request to the engine");
    }

    rc = llm_prep_sound_decode(env, r, how, 0, r->msg->max_seconds
                                               ? r->msg->max_seconds
                                               : UINT32_MAX,
                               "file", &sound, err);
    if (rc != LLM_OK) {
        return rc;
    }

    h = r->heard = calloc(1, sizeof(*h));

    if (h == NULL) {
        llm_sound_free(&sound);
        return llm_fail_with(err, 503, NULL, NULL, "no memory for the sound");
    }

    llm_buf_init(&h->out, 0);
    llm_prep_sound_opts(env, r->msg, &opts);

    if (sound.n == 0) {
        llm_sound_free(&sound);
        return llm_fail_with(err, 400, "invalid_value", "file",
                             "The file has no sound: it is empty.");
    }

    h->seconds = sound.seconds;
    h->pieces = (r->msg->flags & LLM_REQ_PIECES) != 0;

    if (llm_speech_sound_init(&h->sound, env->speech->info.n_mels,
                              sound.samples, sound.n, err)
        != LLM_OK)
    {
        llm_sound_free(&sound);
        return LLM_ERROR;
    }

    llm_sound_free(&sound);
    h->sound_bytes = h->sound.n * env->speech->info.n_mels * sizeof(float);
    h->most = (uint64_t) (h->sound.frames / env->speech->info.n_frames + 1)
              * (env->speech->info.n_text_ctx / 2);
    h->speech = llm_speech_create(&opts, h->sound.frames, err);

    return h->speech ? LLM_OK : LLM_ERROR;
}
