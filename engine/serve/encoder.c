/*
 * The encoder of images, and of sound, of mmproj=FILE, as an instance's
 * scheduler uses it: a piece at a time, between two steps of the model; see
 * engine/model/tower.h and engine/sched/encode.c.
 *
 * The instance owns the encoder and frees it before its model.  After the load
 * the scheduler's thread alone uses it.
 */

#include "engine/serve/engine.h"
#include "engine/model/tower.h"

/* rows of media that are kept for other prompts with the same image, in
   bytes */
#define LLM_ENCODED_BYTES  ((size_t) 64 << 20)

struct llm_encoder_s {
    llm_image_rule_t    rule;           /* what its entries are made by */
    llm_tower_t        *tower;
    llm_tower_job_t    *job;            /* NULL: none */
    float              *rows;           /* its result */
    size_t              bytes;
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


static int
llm_encoder_begin(llm_encoder_t *e, const llm_media_t *m, llm_err_t *err)
{
    llm_tower_entry_t  entry = { m->w, m->h, m->rgb, m->samples };
    llm_tower_shape_t  s;

    s.n_rows = m->h;

    if (!m->heard
        && llm_tower_shape(e->tower, m->w, m->h, &s, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (s.n_rows != m->n) {
        return llm_fail(err, "an image of %u rows in a prompt that has %u for "
                        "it", s.n_rows, m->n);
    }

    e->bytes = (size_t) s.n_rows * llm_tower_info(e->tower)->n_cols
               * sizeof(float);
    e->rows = malloc(e->bytes);

    if (e->rows == NULL) {
        return llm_fail(err, "no memory for the rows of an image");
    }

    e->job = llm_tower_begin(e->tower, &entry, 1, e->rows, err);

    return e->job ? LLM_OK : LLM_ERROR;
}


static int
llm_encoder_encode(void *data, llm_media_t *m, llm_err_t *err)
{
    int             rc;
    llm_encoder_t  *e = data;

    if (e->job == NULL && llm_encoder_begin(e, m, err) != LLM_OK) {
        llm_encoder_stop(e);
        return LLM_ERROR;
    }

    rc = llm_tower_step(e->job, err);

    if (rc == LLM_MORE) {
        return LLM_MORE;
    }

    if (rc == LLM_OK) {
        m->rows = e->rows;
        m->row_bytes = e->bytes;
        e->rows = NULL;
    }

    llm_encoder_stop(e);

    return rc;
}


/* reads how images become entries, none larger than the encoder takes */

static int
llm_encoder_rule(llm_encoder_t *e, const char *path, llm_err_t *err)
{
    int                      rc;
    llm_gguf_t              *g;
    const llm_tower_info_t  *info;

    g = llm_gguf_open_header(path, err);

    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = llm_image_rule_read(&e->rule, g, err);
    llm_gguf_close(g);

    if (rc == LLM_OK && e->rule.sizing == LLM_SIZING_AREA) {
        info = llm_tower_info(e->tower);
        llm_image_rule_limit(&e->rule, info->max_patches
                                       / (info->merge * info->merge));
    }

    return rc;
}


int
llm_instance_encoder(llm_instance_t *m, const llm_model_opts_t *opts,
    llm_err_t *err)
{
    llm_runner_t          *run = &m->runner;
    llm_tower_opts_t       to = { .model = opts };
    const llm_hparams_t   *hp = llm_model_hparams(m->model);

    if (!llm_model_takes_rows(m->model)) {
        return llm_fail(err, "%s: the model's device takes no images",
                        m->conf.mmproj);
    }

    m->encoder = calloc(1, sizeof(llm_encoder_t));

    if (m->encoder == NULL) {
        return llm_fail(err, "%s: no memory for the encoder",
                        m->conf.mmproj);
    }

    m->encoder->tower = llm_tower_load(m->conf.mmproj, m->model, &to, err);

    if (m->encoder->tower == NULL
        || llm_encoder_rule(m->encoder, m->conf.mmproj, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    run->n_given = llm_tower_info(m->encoder->tower)->n_cols;
    run->turns = hp->turns;
    run->spans = hp->spans;
    run->encode = llm_encoder_encode;
    run->encode_stop = llm_encoder_stop;
    run->encoder = m->encoder;
    run->encoded_bytes = LLM_ENCODED_BYTES;
    m->env.takes = LLM_MEDIUM_IMAGE;

    if (m->encoder->rule.frame && llm_tower_info(m->encoder->tower)->frame) {
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
        free(m->encoder);
        m->encoder = NULL;
        m->env.takes = 0;
        m->env.rule = NULL;
    }
}
