/*
 * The command bench for what is not text: transcriptions, one at a time and
 * several at once, which share the model's steps, as seconds and as a share of
 * the sound's length; and an encoder of images.
 *
 * The sound's language is taken to be English, and no window is decoded twice,
 * so the work depends on the sound and the model alone.
 */

#include "engine/cli/cli.h"
#include "engine/speech/crew.h"

#include <stdio.h>

#define LLM_BENCH_REPS   5
#define LLM_BENCH_CLIPS  4

typedef struct {
    llm_whisper_t            *whisper;
    llm_vocab_t              *vocab;
    llm_speech_rules_t        rules;
    llm_speech_opts_t         opts;
    llm_sound_t               sound;
    uint32_t                  clips;    /* at once */
    llm_speech_t            **speech;   /* [clips] */
    llm_speech_sound_t       *mel;      /* [clips] */
    uint64_t                  tokens;   /* of all clips */
} llm_bench_speech_t;

typedef struct {
    llm_tower_t              *tower;
    llm_cli_picture_t         picture;
    llm_tower_entry_t        *entries;  /* [picture.plan.n_entries] */
    float                    *rows;
} llm_bench_image_t;


static int
llm_bench_speech_load(llm_bench_speech_t *b, const llm_cli_t *c,
    llm_err_t *err)
{
    llm_whisper_opts_t  o;

    memset(&o, 0, sizeof(o));
    b->clips = c->clips ? c->clips : LLM_BENCH_CLIPS;

    if (llm_cli_samples(c->audio, &b->sound, err) != LLM_OK
        || llm_cli_model_opts(c, &o.model, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    o.model.max_seqs = b->clips;
    o.model.max_out = b->clips * LLM_SPEECH_OUT;
    o.n_states = b->clips;

    b->whisper = llm_whisper_load(c->file, &o, err);
    b->vocab = b->whisper ? llm_cli_vocab(c->file, err) : NULL;

    if (b->vocab == NULL) {
        return LLM_ERROR;
    }

    b->speech = calloc(b->clips, sizeof(*b->speech));
    b->mel = calloc(b->clips, sizeof(*b->mel));

    if (b->speech == NULL || b->mel == NULL) {
        return llm_fail(err, "no memory for %u transcriptions", b->clips);
    }

    b->opts.vocab = b->vocab;
    b->opts.rules = &b->rules;
    b->opts.timestamps = 1;

    return llm_speech_rules_load(&b->rules, llm_whisper_info(b->whisper),
                                 b->vocab, err);
}


static void
llm_bench_speech_free(llm_bench_speech_t *b)
{
    free(b->speech);
    free(b->mel);
    llm_speech_rules_free(&b->rules);
    llm_vocab_free(b->vocab);
    llm_whisper_free(b->whisper);
    llm_sound_free(&b->sound);
}


/* puts n transcriptions into the crew and runs them to their end */

static int
llm_bench_speech_crew(llm_bench_speech_t *b, llm_speech_crew_t *crew,
    uint32_t n, llm_err_t *err)
{
    int       rc;
    uint32_t  i, place;

    for (i = 0; i < n; i++) {
        if (llm_speech_sound_init(&b->mel[i],
                                  llm_whisper_info(b->whisper)->n_mels,
                                  b->sound.samples, b->sound.n, err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        b->speech[i] = llm_speech_create(&b->opts, b->mel[i].frames, err);

        if (b->speech[i] == NULL) {
            return LLM_ERROR;
        }

        (void) llm_speech_crew_add(crew, b->speech[i], &b->mel[i], &place);
    }

    do {
        rc = llm_speech_crew_step(crew, err);
    } while (rc == LLM_MORE);

    for (i = 0; i < n && rc == LLM_OK; i++) {
        rc = llm_speech_crew_state(crew, i, err);
    }

    return rc;
}


/* the seconds that n transcriptions at once take, from samples to texts */

static int
llm_bench_speech_once(llm_bench_speech_t *b, uint32_t n, double *seconds,
    llm_err_t *err)
{
    int                 rc;
    uint32_t            i;
    uint64_t            start;
    llm_speech_crew_t  *crew;

    start = llm_now_us();
    b->tokens = 0;
    memset(b->speech, 0, n * sizeof(*b->speech));
    memset(b->mel, 0, n * sizeof(*b->mel));

    crew = llm_speech_crew_create(b->whisper, n, err);
    rc = crew ? llm_bench_speech_crew(b, crew, n, err) : LLM_ERROR;

    llm_speech_crew_free(crew);

    for (i = 0; i < n; i++) {
        b->tokens += b->speech[i] ? llm_speech_tokens(b->speech[i]) : 0;
        llm_speech_free(b->speech[i]);
        llm_speech_sound_free(&b->mel[i]);
    }

    *seconds = (double) (llm_now_us() - start) * 1e-6;

    return rc;
}


/* a row of the table: n clips at once */

static int
llm_bench_speech_row(const llm_cli_t *c, llm_bench_speech_t *b, uint32_t n,
    llm_err_t *err)
{
    int                   rc;
    char                  device[128];
    double               *t;
    uint32_t              i, reps;
    const llm_hparams_t  *hp;

    reps = c->reps ? c->reps : LLM_BENCH_REPS;
    t = malloc(reps * sizeof(double));

    if (t == NULL) {
        return llm_fail(err, "no memory for %u repetitions", reps);
    }

    for (i = 0, rc = LLM_OK; rc == LLM_OK && i < reps; i++) {
        rc = llm_bench_speech_once(b, n, &t[i], err);
    }

    if (rc == LLM_OK) {
        llm_cli_sort(t, reps);
        hp = llm_model_hparams(llm_whisper_model(b->whisper));
        llm_model_device(llm_whisper_model(b->whisper), device,
                         sizeof(device));
        printf("| %s | %.2f MiB | %s | %u | %llu | %.3f | %.4f |\n",
               hp->name, (double) hp->n_bytes / (1 << 20), device, n,
               (unsigned long long) b->tokens, t[reps / 2],
               t[reps / 2] / (n * b->sound.seconds));
        fflush(stdout);
    }

    free(t);

    return rc;
}


int
llm_cli_bench_speech(const llm_cli_t *c, llm_err_t *err)
{
    int                 rc;
    double              t;
    llm_bench_speech_t  b;

    memset(&b, 0, sizeof(b));
    rc = llm_bench_speech_load(&b, c, err);

    if (rc == LLM_OK) {
        printf("| model | size | device | clips at once | tokens | seconds "
               "| of real time |\n"
               "| --- | ---: | --- | ---: | ---: | ---: | ---: |\n");

        /* the first one, to warm up, is not counted */
        rc = llm_bench_speech_once(&b, 1, &t, err);
    }

    if (rc == LLM_OK) {
        rc = llm_bench_speech_row(c, &b, 1, err);
    }

    if (rc == LLM_OK && b.clips > 1) {
        rc = llm_bench_speech_row(c, &b, b.clips, err);
    }

    llm_bench_speech_free(&b);

    return rc;
}


static int
llm_bench_image_load(llm_bench_image_t *b, const llm_cli_t *c,
    llm_err_t *err)
{
    size_t                   size;
    uint32_t                 i;
    llm_image_rule_t         rule;
    const llm_image_plan_t  *plan = &b->picture.plan;

    if (llm_cli_rule(c, &rule, err) != LLM_OK
        || llm_cli_picture(c->images.v[0], &rule, &b->picture, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    b->tower = llm_cli_tower(c, NULL, 0, err);

    if (b->tower == NULL) {
        return LLM_ERROR;
    }

    b->rows = malloc((size_t) plan->n_tokens
                     * llm_tower_info(b->tower)->n_cols * sizeof(float));
    b->entries = calloc(plan->n_entries, sizeof(*b->entries));

    if (b->rows == NULL || b->entries == NULL) {
        return llm_fail(err, "no memory for the rows of an image");
    }

    size = (size_t) plan->width * plan->height * 3;

    for (i = 0; i < plan->n_entries; i++) {
        b->entries[i].w = plan->width;
        b->entries[i].h = plan->height;
        b->entries[i].rgb = b->picture.pixels + i * size;
    }

    return LLM_OK;
}


static int
llm_bench_image_run(const llm_cli_t *c, llm_bench_image_t *b, llm_err_t *err)
{
    int                      rc;
    double                  *t;
    uint32_t                 i, reps;
    uint64_t                 start, longest;
    const llm_image_plan_t  *plan = &b->picture.plan;

    reps = c->reps ? c->reps : LLM_BENCH_REPS;
    t = malloc((reps + 1) * sizeof(double));

    if (t == NULL) {
        return llm_fail(err, "no memory for %u repetitions", reps);
    }

    longest = 0;

    for (i = 0, rc = LLM_OK; rc == LLM_OK && i <= reps; i++) {
        start = llm_now_us();
        rc = llm_cli_encode(b->tower, b->entries, plan->n_entries,
                            plan->n_rows, b->rows, &longest, err);
        t[i] = (double) (llm_now_us() - start) * 1e-6;
    }

    if (rc == LLM_OK) {
        llm_cli_sort(t + 1, reps);      /* the first one was to warm up */
        printf("| projector | size | images | pixels | rows | seconds "
               "| longest piece |\n"
               "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
               "| %s | %.2f MiB | %u | %u x %u | %u | %.3f | %.3f |\n",
               llm_tower_info(b->tower)->projector,
               (double) llm_tower_info(b->tower)->n_bytes / (1 << 20),
               plan->n_entries, plan->width, plan->height, plan->n_tokens,
               t[1 + reps / 2], (double) longest * 1e-6);
    }

    free(t);

    return rc;
}


int
llm_cli_bench_image(const llm_cli_t *c, llm_err_t *err)
{
    int                rc;
    llm_cli_t          tower = *c;
    llm_bench_image_t  b;

    memset(&b, 0, sizeof(b));
    tower.mmproj = c->file;

    rc = llm_bench_image_load(&b, &tower, err) == LLM_OK
         ? llm_bench_image_run(c, &b, err) : LLM_ERROR;

    llm_tower_free(b.tower);
    llm_cli_picture_free(&b.picture);
    free(b.entries);
    free(b.rows);

    return rc;
}
