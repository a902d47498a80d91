/*
 * The command image: what the encoder of a model makes of an image file, as one
 * JSON object, or the pixels that it gets.
 */

#include "engine/api/json.h"
#include "engine/base/file.h"
#include "engine/cli/cli.h"
#include "engine/media/rule.h"

typedef struct {
    llm_image_rule_t   rule;
    llm_image_plan_t   plan;
    llm_image_t        image;
} llm_cli_image_t;


static int
llm_cli_image_rule(const llm_cli_t *c, llm_image_rule_t *rule, llm_err_t *err)
{
    int          rc;
    llm_gguf_t  *g;

    if (c->mmproj == NULL) {
        return llm_fail(err, "image: --mmproj FILE is missing: the encoder "
                        "that came with the model");
    }

    g = llm_gguf_open_header(c->mmproj, err);
    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = llm_image_rule_read(rule, g, err);
    llm_gguf_close(g);

    llm_image_rule_limit(rule, c->image_tokens);

    return rc;
}


static int
llm_cli_image_decode(const char *path, llm_image_t *image, llm_err_t *err)
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


static int
llm_cli_image_text(void *ctx, const char *text, size_t len)
{
    llm_buf_t  *b = ctx;

    (void) llm_buf_adds(b, b->data[b->len - 1] == '[' ? "[\"t\", "
                                                      : ", [\"t\", ");
    (void) llm_json_add_string(b, text, len);

    return llm_buf_addc(b, ']');
}


static int
llm_cli_image_entry(void *ctx, uint32_t entry)
{
    llm_buf_t  *b = ctx;

    return llm_buf_addf(b, "%s[\"e\", %u]",
                        b->data[b->len - 1] == '[' ? "" : ", ",
                        (unsigned) entry);
}


static void
llm_cli_image_colors(llm_buf_t *b, const char *name, const float v[3])
{
    (void) llm_buf_addf(b, ", \"%s\": [%.9g, %.9g, %.9g]", name, v[0], v[1],
                        v[2]);
}


/* the grid is that of the family's processor: of patches; of cells if there are
   breaks between their rows; none where all entries are squares of one size */

static void
llm_cli_image_sizes(llm_buf_t *b, const llm_cli_image_t *i)
{
    uint32_t                 k, unit;
    const llm_image_plan_t  *p;

    p = &i->plan;
    (void) llm_buf_addf(b, ", \"size\": [%u, %u], \"entries\": [",
                        (unsigned) i->image.width, (unsigned) i->image.height);

    for (k = 0; k < p->n_entries; k++) {
        (void) llm_buf_addf(b, "%s[%u, %u]", k ? ", " : "",
                            (unsigned) p->width, (unsigned) p->height);
    }

    (void) llm_buf_adds(b, "]");

    switch (i->rule.sizing) {

    case LLM_SIZING_SQUARE:
        break;

    case LLM_SIZING_SPLIT:
    case LLM_SIZING_GRID:
        (void) llm_buf_addf(b, ", \"tiles\": [%u, %u]",
                            (unsigned) p->tile_rows, (unsigned) p->tile_cols);
        break;

    default:
        unit = i->rule.breaks ? 1 : i->rule.merge;
        (void) llm_buf_addf(b, ", \"grid\": [1, %u, %u]",
                            (unsigned) (p->rows * unit),
                            (unsigned) (p->cols * unit));
        break;
    }

    (void) llm_buf_adds(b, ", \"rows\": [");

    for (k = 0; k < p->n_entries; k++) {
        (void) llm_buf_addf(b, "%s%u", k ? ", " : "", (unsigned) p->n_rows);
    }

    (void) llm_buf_addf(b, "], \"tokens\": %u", (unsigned) p->n_tokens);
}


static int
llm_cli_image_show(const llm_cli_t *c, const llm_cli_image_t *i,
    llm_err_t *err)
{
    int                 rc;
    llm_buf_t           b;
    llm_image_layout_t  to = { &b, llm_cli_image_text, llm_cli_image_entry };

    llm_buf_init(&b, 0);
    (void) llm_buf_adds(&b, "{\"file\": ");
    (void) llm_json_add_string(&b, c->file, strlen(c->file));
    (void) llm_buf_addf(&b, ", \"projector\": \"%s\"", i->rule.projector);
    llm_cli_image_sizes(&b, i);
    (void) llm_buf_adds(&b, ", \"layout\": [");

    /* the buffer has bytes, which the callbacks look at, unless it failed */
    if (!b.failed) {
        (void) llm_image_layout(&i->rule, &i->plan, &to);
    }

    (void) llm_buf_adds(&b, "]");
    llm_cli_image_colors(&b, "mean", i->rule.mean);
    llm_cli_image_colors(&b, "std", i->rule.std);
    (void) llm_buf_adds(&b, "}\n");

    rc = b.failed ? llm_fail(err, "no memory for the output")
                  : llm_cli_write(b.data, b.len, err);

    llm_buf_free(&b);

    return rc;
}


static int
llm_cli_image_pixels(const llm_cli_image_t *i, llm_err_t *err)
{
    int       rc;
    size_t    size;
    uint8_t  *pixels;

    size = llm_image_plan_size(&i->plan);

    pixels = malloc(size);
    if (pixels == NULL) {
        return llm_fail(err, "no memory for %zu bytes of pixels", size);
    }

    rc = llm_image_prepare(&i->rule, &i->plan, &i->image, pixels, err);

    if (rc == LLM_OK) {
        rc = llm_cli_write(pixels, size, err);
    }

    free(pixels);

    return rc;
}


int
llm_cli_image(const llm_cli_t *c, llm_err_t *err)
{
    int              rc;
    llm_cli_image_t  i;

    memset(&i, 0, sizeof(i));

    if (llm_cli_image_rule(c, &i.rule, err) != LLM_OK
        || llm_cli_image_decode(c->file, &i.image, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    rc = llm_image_plan(&i.rule, i.image.width, i.image.height, &i.plan, err);

    if (rc == LLM_OK) {
        rc = c->pixels ? llm_cli_image_pixels(&i, err)
                       : llm_cli_image_show(c, &i, err);
    }

    llm_image_free(&i.image);

    return rc;
}
