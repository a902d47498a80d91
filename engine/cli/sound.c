/*
 * The command sound: what the encoder of a model makes of a file of sound, as
 * one JSON object, or its rows.
 */

#include "engine/api/json.h"
#include "engine/cli/cli.h"
#include "engine/speech/spectrogram.h"


static int
llm_cli_sound_show(const llm_cli_t *c, const llm_sound_rule_t *rule,
    const llm_sound_t *sound, llm_err_t *err)
{
    int               rc;
    llm_buf_t         b;
    llm_sound_plan_t  plan;

    llm_sound_plan(rule, sound->n, &plan);
    llm_buf_init(&b, 0);
    (void) llm_buf_adds(&b, "{\"file\": ");
    (void) llm_json_add_string(&b, c->file, strlen(c->file));
    (void) llm_buf_addf(&b, ", \"projector\": \"%s\", \"seconds\": %.3f, "
                        "\"entries\": %u, \"tokens\": %llu}\n",
                        rule->projector, sound->seconds,
                        (unsigned) plan.n_entries,
                        (unsigned long long) plan.n_tokens);

    rc = b.failed ? llm_fail(err, "no memory for the output")
                  : llm_cli_write(b.data, b.len, err);

    llm_buf_free(&b);

    return rc;
}


static int
llm_cli_sound_rule(const char *path, llm_sound_rule_t *rule, llm_err_t *err)
{
    int          rc;
    llm_gguf_t  *g;

    g = llm_gguf_open_header(path, err);

    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = llm_sound_rule_read(rule, g)
         ? LLM_OK : llm_fail(err, "%s: it has no encoder of sound that is "
                             "known", path);
    llm_gguf_close(g);

    return rc;
}


/* writes the rows of an entry; rows: room for them */

static int
llm_cli_sound_entry(llm_tower_t *t, const llm_tower_entry_t *e, uint32_t n,
    float *rows, llm_err_t *err)
{
    if (llm_cli_encode_some(t, e, 1, rows, NULL, err) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_cli_write(rows, (size_t) n * llm_tower_info(t)->n_cols
                               * sizeof(float), err);
}


/* the rows of spectrograms */

static int
llm_cli_sound_mels(llm_tower_t *t, const llm_sound_rule_t *rule,
    const llm_sound_t *sound, llm_err_t *err)
{
    int                 rc;
    float              *rows, *mel;
    uint32_t            i;
    llm_sound_plan_t    plan;
    llm_tower_entry_t   e = { .w = rule->n_mels };
    llm_speech_sound_t  s;

    llm_sound_plan(rule, sound->n, &plan);

    if (llm_speech_sound_of(&s, rule, sound->samples, sound->n, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    rows = malloc((size_t) llm_sound_rows(rule, rule->chunk)
                  * llm_tower_info(t)->n_cols * sizeof(float));
    mel = malloc((size_t) rule->chunk * rule->n_mels * sizeof(float));
    rc = rows && mel ? LLM_OK : llm_fail(err, "no memory for a sound's rows");

    for (i = 0; rc == LLM_OK && i < plan.n_entries; i++) {
        e.own = i + 1 < plan.n_entries ? plan.frames : plan.last;
        e.h = i + 1 < plan.n_entries ? plan.frames : plan.seen;
        e.samples = mel;
        llm_speech_sound_window(&s, (size_t) i * plan.frames, e.h, mel);
        rc = llm_cli_sound_entry(t, &e, llm_sound_rows(rule, e.own), rows,
                                 err);
    }

    free(rows);
    free(mel);
    llm_speech_sound_free(&s);

    return rc;
}


/* the rows of frames of samples */

static int
llm_cli_sound_frames(llm_tower_t *t, uint32_t frame, const llm_sound_t *sound,
    llm_err_t *err)
{
    int                rc;
    float             *rows, *samples;
    uint32_t           n;
    llm_tower_entry_t  e = { .w = frame };

    n = (uint32_t) ((sound->n + frame - 1) / frame);
    rows = malloc((size_t) n * llm_tower_info(t)->n_cols * sizeof(float));
    samples = calloc((size_t) n * frame, sizeof(float));

    if (rows && samples) {
        memcpy(samples, sound->samples, sound->n * sizeof(float));
        e.h = n;
        e.samples = samples;
        rc = llm_cli_sound_entry(t, &e, n, rows, err);

    } else {
        rc = llm_fail(err, "no memory for a sound's rows");
    }

    free(rows);
    free(samples);

    return rc;
}


static int
llm_cli_sound_rows(const llm_cli_t *c, const llm_sound_rule_t *rule,
    const llm_sound_t *sound, llm_err_t *err)
{
    int           rc;
    llm_tower_t  *t;

    t = llm_cli_tower(c, NULL, rule->frame == 0, err);

    if (t == NULL) {
        return LLM_ERROR;
    }

    rc = rule->frame ? llm_cli_sound_frames(t, rule->frame, sound, err)
                     : llm_cli_sound_mels(t, rule, sound, err);
    llm_tower_free(t);

    return rc;
}


int
llm_cli_sound(const llm_cli_t *c, llm_err_t *err)
{
    int               rc;
    llm_sound_t       sound;
    llm_sound_rule_t  rule;

    if (c->mmproj == NULL) {
        return llm_fail(err, "sound: --mmproj FILE is missing: the encoder "
                        "that came with the model");
    }

    if (llm_cli_sound_rule(c->mmproj, &rule, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_cli_samples(c->file, &sound, err) != LLM_OK) {
        return LLM_ERROR;
    }

    rc = sound.n == 0 ? llm_fail(err, "%s: it has no sound", c->file)
         : c->rows ? llm_cli_sound_rows(c, &rule, &sound, err)
                   : llm_cli_sound_show(c, &rule, &sound, err);
    llm_sound_free(&sound);

    return rc;
}
