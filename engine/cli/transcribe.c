/*
 * The command transcribe: what is said in a file of sound, by a Whisper model.
 */

#include "engine/api/transcript.h"
#include "engine/cli/cli.h"
#include "engine/speech/crew.h"

typedef struct {
    llm_whisper_t            *whisper;
    llm_vocab_t              *vocab;
    llm_speech_rules_t        rules;
    llm_speech_opts_t         opts;
    llm_speech_sound_t        sound;
    double                    seconds;
    llm_transcript_format_t   format;
} llm_cli_speech_t;


static int
llm_cli_speech_opts(llm_cli_speech_t *t, const llm_cli_t *c, llm_err_t *err)
{
    llm_str_t  name;

    t->format = LLM_TRANSCRIPT_TEXT;

    if (c->format) {
        name = (llm_str_t) { strlen(c->format), c->format };

        if (llm_transcript_format(name, &t->format) != LLM_OK) {
            return llm_fail(err, "--format: \"%s\" is unknown (text, json, "
                            "verbose_json, srt and vtt are known)", c->format);
        }
    }

    if (c->thresholds && strcmp(c->thresholds, "off") != 0
        && strcmp(c->thresholds, "on") != 0)
    {
        return llm_fail(err, "--thresholds: \"%s\" is unknown (on and off are "
                        "known)", c->thresholds);
    }

    t->opts.language = -1;

    if (c->language) {
        name = (llm_str_t) { strlen(c->language), c->language };

        if (llm_transcript_language(name, &t->opts.language, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    t->opts.translate = c->translate;
    t->opts.words = c->words;
    t->opts.timestamps = !c->no_timestamps;
    t->opts.condition = !c->no_condition;
    t->opts.thresholds = !c->thresholds || strcmp(c->thresholds, "off") != 0;
    t->opts.temperature = c->temperature;
    t->opts.seed = c->sampling.seed;

    /* without thresholds no text fails, so there is one temperature */

    if (!t->opts.thresholds && c->temperature < 0) {
        t->opts.temperature = 0;
    }

    if (c->prompt) {
        t->opts.prompt = (llm_str_t) { strlen(c->prompt), c->prompt };
    }

    return LLM_OK;
}


static int
llm_cli_speech_load(llm_cli_speech_t *t, const llm_cli_t *c, llm_err_t *err)
{
    llm_whisper_opts_t         o;
    const llm_whisper_info_t  *info;

    memset(&o, 0, sizeof(o));

    if (llm_cli_model_opts(c, &o.model, err) != LLM_OK) {
        return LLM_ERROR;
    }

    o.model.max_seqs = 1;
    o.model.max_out = LLM_SPEECH_OUT;
    o.n_states = 1;

    t->whisper = llm_whisper_load(c->file, &o, err);

    if (t->whisper == NULL) {
        return LLM_ERROR;
    }

    t->vocab = llm_cli_vocab(c->file, err);

    if (t->vocab == NULL) {
        return LLM_ERROR;
    }

    info = llm_whisper_info(t->whisper);
    t->opts.vocab = t->vocab;
    t->opts.rules = &t->rules;

    return llm_speech_rules_load(&t->rules, info, t->vocab, err);
}


static int
llm_cli_speech_sound(llm_cli_speech_t *t, const llm_cli_t *c, llm_err_t *err)
{
    int          rc;
    llm_sound_t  sound;

    if (llm_cli_samples(c->audio, &sound, err) != LLM_OK) {
        return LLM_ERROR;
    }

    t->seconds = sound.seconds;
    rc = llm_speech_sound_init(&t->sound,
                               llm_whisper_info(t->whisper)->n_mels,
                               sound.samples, sound.n, err);
    llm_sound_free(&sound);

    return rc;
}


static int
llm_cli_speech_write(llm_cli_speech_t *t, llm_speech_t *s, llm_err_t *err)
{
    int               rc;
    llm_buf_t         out;
    llm_transcript_t  transcript;

    if (llm_speech_transcript(s, &transcript, err) != LLM_OK) {
        return LLM_ERROR;
    }

    transcript.duration = t->seconds;
    llm_buf_init(&out, 0);

    rc = llm_transcript_write(&out, &transcript, t->format,
                              LLM_TRANSCRIPT_SEGMENTS
                              | (t->opts.words ? LLM_TRANSCRIPT_WORDS
                                                 | LLM_TRANSCRIPT_INNER : 0));

    if (rc == LLM_OK && out.len && out.data[out.len - 1] != '\n') {
        rc = llm_buf_addc(&out, '\n');
    }

    rc = (rc == LLM_OK) ? llm_cli_write(out.data, out.len, err)
                        : llm_fail(err, "no memory for a transcript");
    llm_buf_free(&out);

    return rc;
}


static int
llm_cli_speech_run(llm_cli_speech_t *t, llm_err_t *err)
{
    int            rc;
    llm_speech_t  *s;

    s = llm_speech_create(&t->opts, t->sound.frames, err);

    if (s == NULL) {
        return LLM_ERROR;
    }

    rc = llm_speech_run(s, t->whisper, &t->sound, err);

    if (rc == LLM_OK) {
        rc = llm_cli_speech_write(t, s, err);
    }

    llm_speech_free(s);

    return rc;
}


int
llm_cli_transcribe(const llm_cli_t *c, llm_err_t *err)
{
    int               rc;
    llm_cli_speech_t  t;

    memset(&t, 0, sizeof(t));

    rc = llm_cli_speech_opts(&t, c, err) == LLM_OK
         && llm_cli_speech_load(&t, c, err) == LLM_OK
         && llm_cli_speech_sound(&t, c, err) == LLM_OK
         ? llm_cli_speech_run(&t, err) : LLM_ERROR;

    llm_speech_sound_free(&t.sound);
    llm_speech_rules_free(&t.rules);
    llm_vocab_free(t.vocab);
    llm_whisper_free(t.whisper);

    return rc;
}
