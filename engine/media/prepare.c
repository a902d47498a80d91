/*
 * The pixels that an encoder gets, and what stands around them in a prompt; see
 * rule.h.
 */

#include "engine/media/rule.h"

#include <stdio.h>


size_t
llm_image_plan_size(const llm_image_plan_t *p)
{
    return (size_t) p->n_entries * p->width * p->height * 3;
}


/* resizes, and frees what was resized */

static int
llm_prepare_step(llm_image_t *image, uint32_t width, uint32_t height,
    llm_resample_t filter, llm_err_t *err)
{
    int          rc;
    llm_image_t  out;

    rc = llm_image_resize(image, width, height, filter, &out, err);
    llm_image_free(image);

    if (rc == LLM_OK) {
        *image = out;
    }

    return rc;
}


static uint8_t *
llm_prepare_tiles(const llm_image_plan_t *p, const llm_image_t *canvas,
    uint8_t *out)
{
    size_t    stride, len;
    uint32_t  row, col, y;

    stride = (size_t) canvas->width * 3;
    len = (size_t) p->width * 3;

    for (row = 0; row < p->tile_rows; row++) {
        for (col = 0; col < p->tile_cols; col++) {
            for (y = 0; y < p->height; y++, out += len) {
                memcpy(out, canvas->rgb + (row * p->height + y) * stride
                            + col * len, len);
            }
        }
    }

    return out;
}


/* black to the right of the image and below it; frees the image */

static int
llm_prepare_extend(llm_image_t *image, uint32_t width, uint32_t height,
    llm_err_t *err)
{
    int          rc;
    uint32_t     y;
    llm_image_t  out;

    rc = llm_image_create(&out, width, height);

    if (rc == LLM_OK) {
        memset(out.rgb, 0, (size_t) width * height * 3);

        for (y = 0; y < image->height; y++) {
            memcpy(out.rgb + (size_t) y * width * 3,
                   image->rgb + (size_t) y * image->width * 3,
                   (size_t) image->width * 3);
        }
    }

    llm_image_free(image);

    if (rc != LLM_OK) {
        return llm_fail_with(err, 503, NULL, NULL, "no memory for an image of "
                             "%u x %u pixels", (unsigned) width,
                             (unsigned) height);
    }

    *image = out;

    return LLM_OK;
}


/* the mean colour, rounded down, around it */

static int
llm_prepare_middle(const llm_image_rule_t *rule, const llm_image_t *image,
    llm_image_t *canvas, llm_err_t *err)
{
    int      c;
    uint8_t  color[3];

    for (c = 0; c < 3; c++) {
        color[c] = (uint8_t) llm_min(llm_max(rule->mean[c] * 255, 0.0f),
                                     255.0f);
    }

    return llm_image_resize_square(image, rule->side, color, rule->filter,
                                   canvas, err);
}


/* the image in its final size */

static int
llm_prepare_canvas(const llm_image_rule_t *rule, const llm_image_plan_t *p,
    const llm_image_t *image, llm_image_t *canvas, llm_err_t *err)
{
    uint32_t  width, height;

    width = p->width * p->tile_cols;
    height = p->height * p->tile_rows;

    if (rule->sizing == LLM_SIZING_MIDDLE) {
        return llm_prepare_middle(rule, image, canvas, err);
    }

    if (p->first_width == 0) {
        return llm_image_resize(image, width, height, rule->filter, canvas,
                                err);
    }

    if (llm_image_resize(image, p->first_width, p->first_height, rule->filter,
                         canvas, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return p->extended
           ? llm_prepare_extend(canvas, width, height, err)
           : llm_prepare_step(canvas, width, height, rule->filter, err);
}


/* a processor that has a size before the final one makes the whole from the
   canvas, another one from the image itself */

int
llm_image_prepare(const llm_image_rule_t *rule, const llm_image_plan_t *p,
    const llm_image_t *image, uint8_t *out, llm_err_t *err)
{
    int          rc;
    llm_image_t  canvas, whole;

    memset(&whole, 0, sizeof(whole));

    if (llm_prepare_canvas(rule, p, image, &canvas, err) != LLM_OK) {
        return LLM_ERROR;
    }

    rc = LLM_OK;
    out = llm_prepare_tiles(p, &canvas, out);

    if (p->whole) {
        rc = llm_image_resize(p->first_width ? &canvas : image, p->width,
                              p->height, rule->filter, &whole, err);

        if (rc == LLM_OK) {
            memcpy(out, whole.rgb, (size_t) p->width * p->height * 3);
        }
    }

    llm_image_free(&whole);
    llm_image_free(&canvas);

    return rc;
}


/* a text whose format may have a row and a column */

static int
llm_layout_text(const llm_image_layout_t *to, const char *text, uint32_t row,
    uint32_t col)
{
    int          n;
    char         buf[128];
    const char  *p;

    if (text == NULL) {
        return LLM_OK;
    }

    p = strstr(text, "%R");

    if (p == NULL) {
        return to->text(to->ctx, text, strlen(text));
    }

    /* "...%R...%C..." */

    n = snprintf(buf, sizeof(buf), "%.*s%u%.*s%u%s", (int) (p - text), text,
                 (unsigned) row, (int) (strstr(p, "%C") - p - 2), p + 2,
                 (unsigned) col, strstr(p, "%C") + 2);

    return to->text(to->ctx, buf, (size_t) n);
}


static int
llm_layout_tiles(const llm_image_rule_t *rule, const llm_image_plan_t *p,
    const llm_image_layout_t *to, uint32_t *entry)
{
    int       rc;
    uint32_t  row, col;

    rc = LLM_OK;

    for (row = 0; row < p->tile_rows; row++) {
        for (col = 0; rc == LLM_OK && col < p->tile_cols; col++) {
            rc = llm_layout_text(to, rule->words.tile, row + 1, col + 1);

            if (rc == LLM_OK) {
                rc = to->entry(to->ctx, (*entry)++);
            }
        }

        if (rc == LLM_OK && row + 1 < p->tile_rows) {
            rc = llm_layout_text(to, rule->words.row, 0, 0);
        }
    }

    return rc;
}


int
llm_image_layout(const llm_image_rule_t *rule, const llm_image_plan_t *p,
    const llm_image_layout_t *to)
{
    int       rc;
    uint32_t  entry;

    entry = 0;
    rc = llm_layout_text(to, rule->words.begin, 0, 0);

    if (rc == LLM_OK && p->whole) {
        rc = llm_layout_tiles(rule, p, to, &entry);
    }

    if (rc == LLM_OK) {
        rc = llm_layout_text(to, p->whole ? rule->words.whole
                                          : rule->words.alone, 0, 0);
    }

    if (rc == LLM_OK) {
        rc = to->entry(to->ctx, entry);
    }

    return rc == LLM_OK ? llm_layout_text(to, rule->words.end, 0, 0) : rc;
}
