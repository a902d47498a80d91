/*
 * The encoders of images and of sound of mmproj=FILE, as an instance's
 * scheduler uses them: a piece at a time, between two steps of the model; see
 * engine/model/tower.h and engine/sched/encode.c.  A tower of images may take
 * frames of samples, too; spectrograms have a tower of their own.
 *
 * The instance owns the encoder and frees it before its model.  After the load
 * the scheduler's thread alone uses it.
 */

#include "engine/serve/engine.h"
#include "engine/model/tower.h"

/* rows of media that are kept for other prompts with the same image, in
   bytes */
#define LLM_ENCODED_BYTES  ((size_t) 64 << 20)

/* the part of llm_queue's memory= that the rows and pixels of an image may
   take: two that follow each other are there at the same time */
#define LLM_ENCODER_PART   3

_Static_assert(LLM_MEDIA_TOGETHER <= LLM_TOWER_ENTRIES,
               "a job has room for all media that are encoded together");

struct llm_encoder_s {
    llm_image_rule_t    rule;           /* what its entries are made by */
    llm_tower_t        *tower;          /* of images; NULL: none */
    llm_tower_t        *ear;            /* of spectrograms; NULL: none */
    uint32_t            n_cols;         /* of their rows */
    llm_tower_job_t    *job;            /* NULL: none */
    float              *rows;           /* its result */
};


static void
llm_encoder_stop(void *data)
{
    llm_encoder_t  *e = data;

    llm_tower_end(e->job);
    free(e->rows);
    e->job = NULL;
    e->rows = NULL;
}


static size_t
llm_encoder_bytes(const llm_encoder_t *e, const llm_media_t *m)
{
    return (size_t) m->n * e->n_cols * sizeof(float);
}


/* the rows that an entry will give; LLM_ERROR and *err: the tower does not take
   it */

static int
llm_encoder_rows(const llm_encoder_t *e, const llm_media_t *m, uint32_t *n,
    llm_err_t *err)
{
    llm_tower_shape_t  s;

    if (m->heard) {
        *n = m->own ? llm_tower_heard(e->ear, m->own) : m->h;
        return LLM_OK;
    }

    if (llm_tower_shape(e->tower, m->w, m->h, &s, err) != LLM_OK) {
        return LLM_ERROR;
    }

    *n = s.n_rows;

    return LLM_OK;
}


static int
llm_encoder_begin(llm_encoder_t *e, llm_media_t *const *m, uint32_t n,
    llm_err_t *err)
{
    size_t             size;
    uint32_t           i, rows;
    llm_tower_entry_t  entries[LLM_TOWER_ENTRIES];

    for (i = 0, size = 0; i < n; i++) {
        entries[i] = (llm_tower_entry_t) {
            m[i]->w, m[i]->h, m[i]->rgb, m[i]->samples, m[i]->own
        };

        if (llm_encoder_rows(e, m[i], &rows, err) != LLM_OK) {
            return LLM_ERROR;
        }

        if (rows != m[i]->n) {
            return llm_fail(err, "%s of %u rows in a prompt that has %u for "
                            "it", m[i]->samples ? "a sound" : "an image", rows,
                            m[i]->n);
        }

        size += llm_encoder_bytes(e, m[i]);
    }

    e->rows = malloc(size);

    if (e->rows == NULL) {
        return llm_fail(err, "no memory for the rows of %s",
                        m[0]->samples ? "a sound" : "an image");
    }

    e->job = llm_tower_begin(m[0]->own ? e->ear : e->tower, entries, n,
                             e->rows, err);

    return e->job ? LLM_OK : LLM_ERROR;
}


/* the rows of a job to its media; a single one gets them as they are */

static int
llm_encoder_give(llm_encoder_t *e, llm_media_t *const *m, uint32_t n,
    llm_err_t *err)
{
    char      *from;
    uint32_t   i;

    for (i = 0, from = (char *) e->rows; i < n; i++) {
        m[i]->row_bytes = llm_encoder_bytes(e, m[i]);
        m[i]->rows = n > 1 ? malloc(m[i]->row_bytes) : e->rows;

        if (m[i]->rows == NULL) {
            m[i]->row_bytes = 0;
            break;
        }

        if (n == 1) {
            e->rows = NULL;
            return LLM_OK;
        }

        memcpy(m[i]->rows, from, m[i]->row_bytes);
        from += m[i]->row_bytes;
    }

    if (i == n) {
        return LLM_OK;
    }

    while (i-- > 0) {
        free(m[i]->rows);
        m[i]->rows = NULL;
        m[i]->row_bytes = 0;
    }

    (void) llm_fail(err, "no memory for the rows of images");

    return LLM_ABSENT;
}


static int
llm_encoder_encode(void *data, llm_media_t *const *m, uint32_t n,
    llm_err_t *err)
{
    int             rc;
    llm_encoder_t  *e = data;

    if (e->job == NULL && llm_encoder_begin(e, m, n, err) != LLM_OK) {
        llm_encoder_stop(e);
        return LLM_ABSENT;
    }

    rc = llm_tower_step(e->job, err);

    if (rc == LLM_MORE) {
        return LLM_MORE;
    }

    if (rc == LLM_OK) {
        rc = llm_encoder_give(e, m, n, err);
    }

    llm_encoder_stop(e);

    return rc;
}


/* lowers the most tokens of an image to what fits into its part of the memory
   for all requests */

static void
llm_encoder_limit(llm_instance_t *m, uint32_t most)
{
    size_t                   cell, each, fit;
    const llm_tower_info_t  *info = llm_tower_info(m->encoder->tower);

    cell = (size_t) info->patch * info->merge;
    each = LLM_ENCODER_PART * (info->n_cols * sizeof(float) + 3 * cell * cell);
    fit = m->env.max_bytes / each;

    if (m->env.max_bytes == 0 || fit >= most) {
        return;
    }

    llm_image_rule_limit(&m->encoder->rule, (uint32_t) llm_max(fit, 1u));
    llm_engine_log(m->engine, LLM_LOG_NOTICE, "model \"%s\": images have at "
                   "most %zu tokens, and larger ones are made smaller: %u "
                   "tokens need llm_queue memory=%zum", m->conf.name,
                   llm_max(fit, 1u), most, (most * each >> 20) + 1);
}


/* reads how images and sound become entries, which says what encoders there
   are */

static int
llm_encoder_rule(llm_instance_t *m, llm_err_t *err)
{
    int          rc;
    llm_gguf_t  *g;

    g = llm_gguf_open_header(m->conf.mmproj, err);

    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = llm_image_rule_read(&m->encoder->rule, g, err);
    llm_gguf_close(g);

    return rc;
}


/* no image is larger than the encoder takes */

static void
llm_encoder_bound(llm_instance_t *m)
{
    uint32_t                 most;
    llm_encoder_t           *e = m->encoder;
    const llm_tower_info_t  *info;

    if (e->tower && e->rule.sizing == LLM_SIZING_AREA) {
        info = llm_tower_info(e->tower);
        most = info->max_patches / (info->merge * info->merge);
        llm_image_rule_limit(&e->rule, most);
        llm_encoder_limit(m, most);
    }
}


/* loads the encoders that the file has */

static int
llm_encoder_load(llm_instance_t *m, const llm_model_opts_t *opts,
    llm_err_t *err)
{
    llm_encoder_t     *e = m->encoder;
    llm_tower_opts_t   images = { .model = opts };
    llm_tower_opts_t   sound = { .model = opts, .sound = 1 };

    if (e->rule.projector) {
        e->tower = llm_tower_load(m->conf.mmproj, m->model, &images, err);

        if (e->tower == NULL) {
            return LLM_ERROR;
        }

        e->n_cols = llm_tower_info(e->tower)->n_cols;
    }

    if (e->rule.sound.projector && e->rule.sound.frame == 0) {
        e->ear = llm_tower_load(m->conf.mmproj, m->model, &sound, err);

        if (e->ear == NULL) {
            return LLM_ERROR;
        }

        e->n_cols = llm_tower_info(e->ear)->n_cols;
    }

    llm_model_towers_loaded(m->model);

    return LLM_OK;
}


/* does an encoder take what the rule makes of a sound? */

static int
llm_encoder_hears(const llm_encoder_t *e)
{
    if (e->rule.sound.projector == NULL) {
        return 0;
    }

    return e->rule.sound.frame
           ? e->tower && llm_tower_info(e->tower)->frame
             == e->rule.sound.frame
           : e->ear && llm_tower_info(e->ear)->max_frames
             == e->rule.sound.chunk;
}


int
llm_instance_encoder(llm_instance_t *m, const llm_model_opts_t *opts,
    llm_err_t *err)
{
    llm_runner_t            *run = &m->runner;
    const llm_hparams_t     *hp = llm_model_hparams(m->model);
    const llm_tower_info_t  *info;

    if (!llm_model_takes_rows(m->model)) {
        return llm_fail(err, "%s: the model's device takes no images",
                        m->conf.mmproj);
    }

    m->encoder = calloc(1, sizeof(llm_encoder_t));

    if (m->encoder == NULL) {
        return llm_fail(err, "%s: no memory for the encoder",
                        m->conf.mmproj);
    }

    if (llm_encoder_rule(m, err) != LLM_OK
        || llm_encoder_load(m, opts, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_encoder_bound(m);

    if (m->encoder->tower) {
        info = llm_tower_info(m->encoder->tower);
        run->encode_pixels = (uint64_t) info->together * info->patch
                             * info->patch;
        m->env.takes |= LLM_MEDIUM_IMAGE;
    }

    run->n_given = m->encoder->n_cols;
    run->turns = hp->turns;
    run->spans = hp->spans;
    run->encode = llm_encoder_encode;
    run->encode_stop = llm_encoder_stop;
    run->encoder = m->encoder;
    run->encoded_bytes = LLM_ENCODED_BYTES;

    if (llm_encoder_hears(m->encoder)) {
        m->env.takes |= LLM_MEDIUM_AUDIO;
    }

    m->env.rule = &m->encoder->rule;

    return LLM_OK;
}


void
llm_instance_close_encoder(llm_instance_t *m)
{
    if (m->encoder) {
        llm_encoder_stop(m->encoder);
        llm_tower_free(m->encoder->tower);
        llm_tower_free(m->encoder->ear);
        free(m->encoder);
        m->encoder = NULL;
        m->env.takes = 0;
        m->env.rule = NULL;
    }
}
