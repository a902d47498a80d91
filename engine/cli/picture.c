/*
 * Images on the command line: decoded, resized as the model's processor does
 * it, and encoded by its tower; see cli.h.
 */

#include "engine/base/file.h"
#include "engine/base/products.h"
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

    if (rc == LLM_OK && rule->projector == NULL) {
        return llm_fail(err, "%s: it has no encoder of images", c->mmproj);
    }

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
    llm_media_source_t   source = { .fd = -1 };

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
        rc = llm_media_image(pool, &source, &limits, NULL, image, err);
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
}


llm_tower_t *
llm_cli_tower(const llm_cli_t *c, llm_model_t *m, int sound, llm_err_t *err)
{
    llm_model_opts_t  o;
    llm_tower_opts_t  to = { .model = &o, .sound = sound };

    if (llm_cli_model_opts(c, &o, err) != LLM_OK) {
        return NULL;
    }

    if (m == NULL && llm_products_is(o.products, LLM_PRODUCTS_FP8)) {
        (void) llm_fail(err, "--products fp8 is for language models: encoders "
                        "of images and sound take " LLM_PRODUCTS_BF16 " and "
                        LLM_PRODUCTS_BF16_ALL " alone");
        return NULL;
    }

    return llm_tower_load(c->mmproj, m, &to, err);
}


int
llm_cli_encode_some(llm_tower_t *t, const llm_tower_entry_t *e, uint32_t n,
    float *rows, uint64_t *longest, llm_err_t *err)
{
    int               rc;
    uint64_t          us;
    llm_tower_job_t  *job;

    job = llm_tower_begin(t, e, n, rows, err);

    if (job == NULL) {
        return LLM_ERROR;
    }

    do {
        us = llm_now_us();
        rc = llm_tower_step(job, err);

        if (longest) {
            *longest = llm_max(*longest, llm_now_us() - us);
        }
    } while (rc == LLM_MORE);

    llm_tower_end(job);

    return rc;
}


int
llm_cli_encode(llm_tower_t *t, const llm_tower_entry_t *e, uint32_t n,
    uint32_t n_rows, float *rows, uint64_t *longest, llm_err_t *err)
{
    size_t             size;
    uint32_t           i, most, take;
    llm_tower_shape_t  s;

    if (llm_tower_shape(t, e->w, e->h, &s, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (s.n_rows != n_rows) {
        return llm_fail(err, "the tower gives %u rows, where %u were planned",
                        s.n_rows, n_rows);
    }

    size = (size_t) s.n_rows * llm_tower_info(t)->n_cols;
    most = llm_tower_info(t)->max_patches
           / (s.patch_rows * s.patch_cols + 1);
    most = llm_max(1u, llm_min(most, (uint32_t) LLM_TOWER_ENTRIES));

    for (i = 0; i < n; i += take) {
        take = llm_min(most, n - i);

        if (llm_cli_encode_some(t, e + i, take, rows + i * size, longest, err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
