/*
 * Sizes and tiles of an image by the rules of the families' processors; see
 * rule.h.  All arithmetic is in float64, with Python's roundings, as theirs is.
 */

#include "engine/media/rule.h"

#include <math.h>

#define LLM_SIZE_RATIO  200             /* longest side by the shortest */
#define LLM_SIZE_MOST   4096            /* pixels of a side before it is cut */


static int
llm_size_ratio(uint32_t width, uint32_t height, llm_err_t *err)
{
    return llm_fail_with(err, 400, "image_too_small", NULL, "an image of %u x "
                         "%u pixels is too narrow for this model",
                         (unsigned) width, (unsigned) height);
}


/* v rounded up to whole multiples of m */

static uint32_t
llm_size_up(double v, uint32_t m)
{
    return (uint32_t) (ceil(v / m) * m);
}


/* one entry of this size */

static void
llm_size_one(llm_image_plan_t *p, double width, double height)
{
    p->width = (uint32_t) width;
    p->height = (uint32_t) height;
    p->n_entries = 1;
}


/* nearest multiples of a cell; scaled if the area is out of bounds */

static int
llm_size_area(const llm_image_rule_t *r, double w, double h,
    llm_image_plan_t *p, llm_err_t *err)
{
    double  cell, area, to_w, to_h, beta, scale;

    cell = (double) r->patch * r->merge;

    if (r->frames > 1 && (h < cell || w < cell)) {
        scale = llm_max(cell / h, cell / w);
        h = trunc(h * scale);
        w = trunc(w * scale);
    }

    if (llm_max(w, h) / llm_min(w, h) > LLM_SIZE_RATIO) {
        return llm_size_ratio((uint32_t) w, (uint32_t) h, err);
    }

    /* to the nearest, half to even */
    to_w = nearbyint(w / cell) * cell;
    to_h = nearbyint(h / cell) * cell;
    area = r->frames * to_w * to_h;

    if (area > (double) r->max_pixels) {
        beta = sqrt(r->frames * h * w / (double) r->max_pixels);
        to_w = llm_max(cell, floor(w / beta / cell) * cell);
        to_h = llm_max(cell, floor(h / beta / cell) * cell);

    } else if (area < (double) r->min_pixels) {
        beta = sqrt((double) r->min_pixels / (r->frames * h * w));
        to_w = ceil(w * beta / cell) * cell;
        to_h = ceil(h * beta / cell) * cell;
    }

    llm_size_one(p, to_w, to_h);

    return LLM_OK;
}


static int
llm_size_square(const llm_image_rule_t *r, double w, double h,
    llm_image_plan_t *p, llm_err_t *err)
{
    (void) w;
    (void) h;
    (void) err;

    llm_size_one(p, r->side, r->side);

    return LLM_OK;
}


/* scaled, up or down, to the area of max_tokens cells, then cut down to whole
   cells; a side has at least one */

static int
llm_size_fill(const llm_image_rule_t *r, double w, double h,
    llm_image_plan_t *p, llm_err_t *err)
{
    double  cell, factor, to_w, to_h, most;

    (void) err;

    cell = (double) r->patch * r->merge;
    factor = sqrt(r->max_tokens * cell * cell / (w * h));
    to_w = floor(factor * w / cell) * cell;
    to_h = floor(factor * h / cell) * cell;
    most = r->max_tokens * cell;

    if (to_h == 0) {
        to_h = cell;
        to_w = llm_min(floor(w / h) * cell, most);

    } else if (to_w == 0) {
        to_w = cell;
        to_h = llm_min(floor(h / w) * cell, most);
    }

    llm_size_one(p, to_w, to_h);

    return LLM_OK;
}


static int
llm_size_edge(const llm_image_rule_t *r, double w, double h,
    llm_image_plan_t *p, llm_err_t *err)
{
    double    ratio;
    uint32_t  cell;

    (void) err;

    cell = r->patch * r->merge;
    ratio = llm_max(w / r->longest, h / r->longest);

    if (ratio > 1) {
        w = llm_max(floor(w / ratio), 1);
        h = llm_max(floor(h / ratio), 1);
    }

    llm_size_one(p, llm_size_up(w, cell), llm_size_up(h, cell));

    return LLM_OK;
}


/* w x h with the longer side set to `longest`, the other one even */

static void
llm_size_longest(double longest, double *w, double *h)
{
    double  ratio;

    ratio = *w / *h;

    if (*w >= *h) {
        *w = longest;
        *h = trunc(*w / ratio);
        *h += fmod(*h, 2);

    } else {
        *h = longest;
        *w = trunc(*h * ratio);
        *w += fmod(*w, 2);
    }

    *w = llm_max(*w, 1);
    *h = llm_max(*h, 1);
}


static int
llm_size_split(const llm_image_rule_t *r, double w, double h,
    llm_image_plan_t *p, llm_err_t *err)
{
    double    ratio;
    uint32_t  to_w, to_h;

    (void) err;

    llm_size_longest(r->longest, &w, &h);

    if (llm_max(w, h) > LLM_SIZE_MOST) {
        llm_size_longest(LLM_SIZE_MOST, &w, &h);
    }

    p->first_width = (uint32_t) w;
    p->first_height = (uint32_t) h;
    ratio = w / h;

    if (w >= h) {
        to_w = llm_size_up(w, r->side);
        to_h = llm_size_up(trunc(to_w / ratio), r->side);

    } else {
        to_h = llm_size_up(h, r->side);
        to_w = llm_size_up(trunc(to_h * ratio), r->side);
    }

    llm_size_one(p, r->side, r->side);
    p->tile_rows = llm_max(to_h / r->side, 1);
    p->tile_cols = llm_max(to_w / r->side, 1);

    return LLM_OK;
}


/* Grids in the order of their number of tiles, narrow ones first.  Of two that
   are as close, the one with more tiles only if the image fills half of it. */

static int
llm_size_grid(const llm_image_rule_t *r, double w, double h,
    llm_image_plan_t *p, llm_err_t *err)
{
    double    ratio, off, best;
    uint32_t  n, cols, rows;

    (void) err;

    best = INFINITY;
    ratio = w / h;
    p->tile_rows = 1;
    p->tile_cols = 1;

    for (n = r->min_tiles; n <= r->max_tiles; n++) {
        for (cols = 1; cols <= n; cols++) {
            if (n % cols) {
                continue;
            }

            rows = n / cols;
            off = fabs(ratio - (double) cols / rows);

            if (off < best
                || (off == best && w * h > 0.5 * r->side * r->side * n))
            {
                best = off;
                p->tile_rows = rows;
                p->tile_cols = cols;
            }
        }
    }

    llm_size_one(p, r->side, r->side);

    return LLM_OK;
}


/* whole patches are counted, and a side of less than a patch has none; what is
   added to make the cells whole counts only for a bound that was set */

static int
llm_size_extend(const llm_image_rule_t *r, double w, double h,
    llm_image_plan_t *p, llm_err_t *err)
{
    double    patches, most, scale, to_w, to_h;
    uint32_t  cell;

    (void) err;

    cell = r->patch * r->merge;
    patches = floor(w / r->patch) * floor(h / r->patch);
    most = (double) r->max_tokens * r->merge * r->merge;
    scale = patches > most ? sqrt(most / patches) : 1;

    for ( ;; ) {
        to_w = llm_max(trunc(w * scale), 1);
        to_h = llm_max(trunc(h * scale), 1);
        llm_size_one(p, llm_size_up(to_w, cell), llm_size_up(to_h, cell));

        if (r->most == 0 || (p->width == cell && p->height == cell)
            || (uint64_t) (p->width / cell) * (p->height / cell) <= r->most)
        {
            break;
        }

        scale *= 0.98;
    }

    p->first_width = (uint32_t) to_w;
    p->first_height = (uint32_t) to_h;
    p->extended = 1;

    return LLM_OK;
}


typedef int (*llm_size_pt)(const llm_image_rule_t *r, double w, double h,
    llm_image_plan_t *p, llm_err_t *err);

static const llm_size_pt  llm_sizes[] = {
    [LLM_SIZING_AREA] = llm_size_area,
    [LLM_SIZING_SQUARE] = llm_size_square,
    [LLM_SIZING_FILL] = llm_size_fill,
    [LLM_SIZING_EDGE] = llm_size_edge,
    [LLM_SIZING_SPLIT] = llm_size_split,
    [LLM_SIZING_GRID] = llm_size_grid,
    [LLM_SIZING_MIDDLE] = llm_size_square,
    [LLM_SIZING_EXTEND] = llm_size_extend
};


int
llm_image_plan(const llm_image_rule_t *rule, uint32_t width, uint32_t height,
    llm_image_plan_t *p, llm_err_t *err)
{
    uint32_t  cell, tiles;

    memset(p, 0, sizeof(*p));
    p->tile_rows = 1;
    p->tile_cols = 1;

    if (width == 0 || height == 0) {
        return llm_fail_with(err, 400, "image_too_small", NULL,
                             "an image has no pixels");
    }

    if (llm_sizes[rule->sizing](rule, width, height, p, err) != LLM_OK) {
        return LLM_ERROR;
    }

    tiles = p->tile_rows * p->tile_cols;
    p->whole = tiles > 1;
    p->n_entries = tiles + (uint32_t) p->whole;

    if (rule->max_side
        && llm_max(p->width, p->height) / rule->patch > rule->max_side)
    {
        return llm_size_ratio(width, height, err);
    }

    cell = rule->patch * rule->merge;
    p->cols = p->width / cell;
    p->rows = p->height / cell;
    p->n_rows = p->rows * p->cols + (rule->breaks ? p->rows - 1 : 0);
    p->n_tokens = p->n_rows * p->n_entries;

    return LLM_OK;
}
