/*
 * Images on the command line: decoded, resized as the model's processor does
 * it, and encoded by its tower; see cli.h.
 */

#include "engine/base/file.h"
#include "engine/cli/cli.h"


int
llm_cli_rule(const llm_cli_t *c, llm_image_rule_t *rule, llm_err_t *err)
{
    int          rc;
    llm_gguf_t  *g;

    g = llm_gguf_open_header(c->mmproj, err);
    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = llm_image_rule_read(rule, g, err);
    llm_gguf_close(g);

    if (rc == LLM_OK) {
        llm_image_rule_limit(rule, c->image_tokens);
    }

    return rc;
}


int
llm_cli_decode(const char *path, llm_image_t *image, llm_err_t *err)
{
    int                  rc;
    llm_buf_t            b;
    llm_media_pool_t    *pool;
    llm_media_limits_t   limits;
    llm_media_source_t   source;

    llm_media_limits_default(&limits);
    llm_buf_init(&b, limits.bytes);

    pool = NULL;
    rc = llm_file_read(path, &b, err);

    if (rc == LLM_OK) {
        pool = llm_media_pool_create(NULL, 1);

        if (pool == NULL) {
            rc = llm_fail(err, "no memory for a decoder");
        }
    }

    if (rc == LLM_OK) {
        source.data = b.data ? b.data : "";
        source.len = b.len;
        source.fd = -1;
        rc = llm_media_image(pool, &source, &limits, image, err);
    }

    llm_media_pool_free(pool);
    llm_buf_free(&b);

    return rc;
}


int
llm_cli_picture(const char *path, const llm_image_rule_t *rule,
    llm_cli_picture_t *p, llm_err_t *err)
{
    int          rc;
    llm_image_t  image;

    memset(p, 0, sizeof(llm_cli_picture_t));

    if (llm_cli_decode(path, &image, err) != LLM_OK) {
        return LLM_ERROR;
    }

    rc = llm_image_plan(rule, image.width, image.height, &p->plan, err);

    if (rc == LLM_OK) {
        p->pixels = malloc(llm_image_plan_size(&p->plan));
        rc = p->pixels ? llm_image_prepare(rule, &p->plan, &image, p->pixels,
                                           err)
                       : llm_fail(err, "%s: no memory for its pixels", path);
    }

    llm_image_free(&image);

    return rc;
}


void
llm_cli_picture_free(llm_cli_picture_t *p)
{
    free(p->pixels);
    free(p->rows);
}


llm_tower_t *
llm_cli_tower(const llm_cli_t *c, llm_model_t *m, llm_err_t *err)
{
    llm_model_opts_t  o;
    llm_tower_opts_t  to = { .model = &o };

    if (llm_cli_model_opts(c, &o, err) != LLM_OK) {
        return NULL;
    }

    return llm_tower_load(c->mmproj, m, &to, err);
}


/* n entries in one job */

static int
llm_cli_encode_some(llm_tower_t *t, const llm_tower_entry_t *e, uint32_t n,
    float *rows, llm_err_t *err)
{
    int               rc;
    llm_tower_job_t  *job;

    job = llm_tower_begin(t, e, n, rows, err);

    if (job == NULL) {
        return LLM_ERROR;
    }

    do {
        rc = llm_tower_step(job, err);
    } while (rc == LLM_MORE);

    llm_tower_end(job);

    return rc;
}


int
llm_cli_encode(llm_tower_t *t, llm_cli_picture_t *p, llm_err_t *err)
{
    size_t                   size;
    uint32_t                 i, k, n, most, cols;
    llm_tower_entry_t        e[LLM_TOWER_ENTRIES];
    llm_tower_shape_t        s;
    const llm_image_plan_t  *plan = &p->plan;

    cols = llm_tower_info(t)->n_cols;
    size = (size_t) plan->width * plan->height * 3;
    p->rows = malloc((size_t) plan->n_tokens * cols * sizeof(float));

    if (p->rows == NULL) {
        return llm_fail(err, "no memory for the rows of an image");
    }

    if (llm_tower_shape(t, plan->width, plan->height, &s, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (s.n_rows != plan->n_rows) {
        return llm_fail(err, "the tower gives %u rows, where %u were planned",
                        s.n_rows, plan->n_rows);
    }

    most = llm_tower_info(t)->max_patches
           / (s.patch_rows * s.patch_cols + 1);
    most = llm_max(1u, llm_min(most, (uint32_t) LLM_TOWER_ENTRIES));

    for (i = 0; i < plan->n_entries; i += n) {
        n = llm_min(most, plan->n_entries - i);

        for (k = 0; k < n; k++) {
            e[k].w = plan->width;
            e[k].h = plan->height;
            e[k].rgb = p->pixels + (i + k) * size;
        }

        if (llm_cli_encode_some(t, e, n, p->rows + (size_t) i * s.n_rows
                                                   * cols, err) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
