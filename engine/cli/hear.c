/*
 * Speech models on the command line: a file of sound becomes an encoder's rows,
 * or the decoder's logits of ids that stand on it.  Sound beyond the first
 * window is not heard.
 */

#include "engine/base/file.h"
#include "engine/cli/cli.h"
#include "engine/model/whisper.h"
#include "engine/speech/crew.h"


/* bounds of a file: more than any subtitled film has */
#define LLM_CLI_SOUND_BYTES    ((uint64_t) 1 << 30)
#define LLM_CLI_SOUND_SECONDS  (24 * 3600)
#define LLM_CLI_SOUND_TIME     (600 * 1000)     /* ms, to decode it */


int
llm_cli_samples(const char *path, llm_sound_t *sound, llm_err_t *err)
{
    int                  rc;
    llm_buf_t            b;
    llm_err_t            why;
    llm_media_pool_t    *pool;
    llm_media_limits_t   limits;
    llm_media_source_t   source = { .fd = -1 };

    llm_media_limits_default(&limits);
    limits.bytes = LLM_CLI_SOUND_BYTES;
    limits.seconds = LLM_CLI_SOUND_SECONDS;
    limits.samples = UINT64_MAX / sizeof(float);
    limits.timeout = LLM_CLI_SOUND_TIME;

    pool = NULL;
    llm_buf_init(&b, LLM_CLI_SOUND_BYTES);
    rc = llm_file_read(path, &b, err);

    if (rc == LLM_OK) {
        pool = llm_media_pool_create(NULL, 1);
        source.data = b.len ? b.data : "";
        source.len = b.len;
        rc = pool ? llm_media_sound(pool, &source, &limits, LLM_MEL_RATE,
                                    sound, &why)
                  : llm_fail(&why, "no memory for a decoder");

        if (rc != LLM_OK) {
            (void) llm_fail(err, "%s: %s", path, why.msg);
        }
    }

    llm_media_pool_free(pool);
    llm_buf_free(&b);

    return rc;
}


static llm_whisper_t *
llm_cli_hear(const llm_cli_t *c, llm_err_t *err)
{
    llm_whisper_opts_t  o;

    memset(&o, 0, sizeof(o));

    if (llm_cli_model_opts(c, &o.model, err) != LLM_OK) {
        return NULL;
    }

    o.model.batch = c->batch;
    o.model.max_seqs = 1;
    o.model.log = llm_cli_log;
    o.model.log_data = (void *) c;

    return llm_whisper_load(c->file, &o, err);
}


/* encodes the first window of the samples */

static int
llm_cli_hear_window(llm_whisper_t *w, const llm_sound_t *sound,
    llm_err_t *err)
{
    int                        rc;
    float                     *mel;
    llm_speech_sound_t         s;
    const llm_whisper_info_t  *i;

    i = llm_whisper_info(w);

    if (llm_speech_sound_init(&s, i->n_mels, sound->samples, sound->n, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    mel = malloc((size_t) i->n_mels * i->n_frames * sizeof(float));

    if (mel == NULL) {
        llm_speech_sound_free(&s);
        return llm_fail(err, "no memory for a spectrogram");
    }

    llm_speech_sound_window(&s, 0, i->n_frames, mel);
    llm_whisper_begin(w, 0, mel, 0);

    do {
        rc = llm_whisper_encode(w, err);
    } while (rc == LLM_MORE);

    free(mel);
    llm_speech_sound_free(&s);

    return rc;
}


/* the model of c->file, after the first window of c->audio; NULL and *err */

static llm_whisper_t *
llm_cli_hear_file(const llm_cli_t *c, llm_err_t *err)
{
    int             rc;
    llm_sound_t     sound;
    llm_whisper_t  *w;

    if (llm_cli_samples(c->audio, &sound, err) != LLM_OK) {
        return NULL;
    }

    w = llm_cli_hear(c, err);
    rc = w ? llm_cli_hear_window(w, &sound, err) : LLM_ERROR;
    llm_sound_free(&sound);

    if (rc != LLM_OK) {
        llm_whisper_free(w);
        return NULL;
    }

    return w;
}


int
llm_cli_hear_states(const llm_cli_t *c, llm_err_t *err)
{
    int                        rc;
    llm_whisper_t             *w;
    const llm_whisper_info_t  *i;

    if (c->pooling == NULL || strcmp(c->pooling, "none") != 0) {
        return llm_fail(err, "--audio: give --pooling none: the rows of an "
                        "encoder of speech are not pooled");
    }

    w = llm_cli_hear_file(c, err);

    if (w == NULL) {
        return LLM_ERROR;
    }

    i = llm_whisper_info(w);
    rc = llm_cli_write(llm_whisper_states(w), (size_t) i->n_audio_ctx
                       * i->n_audio_state * sizeof(float), err);
    llm_whisper_free(w);

    return rc;
}


/* the rows of a step whose results are wanted */

static int
llm_cli_hear_step(llm_whisper_t *w, const llm_whisper_rows_t *r,
    llm_err_t *err)
{
    uint32_t  i;

    if (llm_whisper_step(w, r, 1, err) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < r->n_out; i++) {
        if (llm_cli_write(llm_whisper_logits(w, i),
                          llm_whisper_info(w)->n_vocab * sizeof(float), err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_cli_hear_logits(const llm_cli_t *c, const llm_ids_t *ids, llm_err_t *err)
{
    int                  rc;
    size_t               i;
    uint32_t             batch;
    llm_whisper_t       *w;
    llm_whisper_rows_t   r;

    w = llm_cli_hear_file(c, err);

    if (w == NULL) {
        return LLM_ERROR;
    }

    rc = LLM_OK;
    batch = llm_model_batch(llm_whisper_model(w));
    memset(&r, 0, sizeof(r));

    if (ids->len > llm_whisper_info(w)->n_text_ctx) {
        rc = llm_fail(err, "standard input: %zu ids, and the decoder takes "
                      "%u", ids->len, llm_whisper_info(w)->n_text_ctx);
    }

    for (i = 0; rc == LLM_OK && i < ids->len; i += r.n) {
        r.pos = (uint32_t) i;
        r.tokens = ids->data + i;
        r.n = (uint32_t) llm_min((size_t) batch, ids->len - i);
        r.n_out = c->all ? r.n : i + r.n == ids->len;
        rc = llm_cli_hear_step(w, &r, err);
    }

    llm_whisper_free(w);

    return rc;
}
