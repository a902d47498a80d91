/*
 * A tower's patches and cells: sizes of entries, the order of patches in the
 * encoder, the values of a patch, positions by tables, and how the encoder's
 * rows become rows of cells.  All of it is on the host; see tower_internal.h.
 */

#include "engine/model/tower_internal.h"

#include <math.h>

#define LLM_CUBIC  -0.75                /* PyTorch's parameter */


int
llm_tower_shape(const llm_tower_t *t, uint32_t w, uint32_t h,
    llm_tower_shape_t *s, llm_err_t *err)
{
    uint32_t                 step;
    uint64_t                 rows;
    const llm_tower_info_t  *i = &t->info;

    if (t->kind->sound) {
        return llm_fail(err, "%s: an entry of %ux%u pixels: the tower takes "
                        "sound", llm_gguf_name(t->gguf), w, h);
    }

    step = i->patch * i->merge;

    if (i->side && (w != i->side || h != i->side)) {
        return llm_fail(err, "%s: an entry of %ux%u pixels: the tower takes "
                        "%ux%u", llm_gguf_name(t->gguf), w, h, i->side,
                        i->side);
    }

    if (w == 0 || h == 0 || w % step || h % step) {
        return llm_fail(err, "%s: an entry of %ux%u pixels: the sides are not "
                        "multiples of %u", llm_gguf_name(t->gguf), w, h,
                        step);
    }

    s->patch_rows = h / i->patch;
    s->patch_cols = w / i->patch;

    rows = (uint64_t) s->patch_rows * s->patch_cols + t->kind->n_class;

    if (rows > i->max_patches) {
        return llm_fail(err, "%s: an entry of %ux%u pixels has more than %u "
                        "patches", llm_gguf_name(t->gguf), w, h,
                        i->max_patches);
    }

    if (t->max_side && llm_max(s->patch_rows, s->patch_cols) > t->max_side) {
        return llm_fail(err, "%s: an entry of %ux%u pixels: the tower has "
                        "positions for sides of %u", llm_gguf_name(t->gguf),
                        w, h, t->max_side * i->patch);
    }

    s->rows = s->patch_rows / i->merge;
    s->cols = s->patch_cols / i->merge;
    s->n_rows = s->rows * s->cols + (t->break_row ? s->rows - 1 : 0);

    return LLM_OK;
}


void
llm_tower_turns(const llm_hparams_t *hp, const llm_tower_shape_t *s,
    uint32_t at, uint32_t i, uint32_t turns[LLM_TURNS])
{
    turns[0] = hp->turns ? at : at + i;
    turns[1] = hp->turns ? at + i / s->cols : at + i;
    turns[2] = hp->turns ? at + i % s->cols : at + i;
}


uint32_t
llm_tower_length(const llm_hparams_t *hp, const llm_tower_shape_t *s)
{
    return hp->turns ? llm_max(s->rows, s->cols) : s->n_rows;
}


/* lists the patches of a window's cells, from row and column of cells on;
   returns the number of patches so far */

static uint32_t
llm_tower_window(const llm_tower_t *t, const llm_tower_shape_t *s,
    uint32_t row, uint32_t col, uint32_t size, uint32_t n, uint32_t *patches)
{
    uint32_t  y, x, dy, dx, m;

    m = t->info.merge;

    for (y = row; y < llm_min(row + size, s->rows); y++) {
        for (x = col; x < llm_min(col + size, s->cols); x++) {
            for (dy = 0; dy < m; dy++) {
                for (dx = 0; dx < m; dx++) {
                    patches[n++] = (y * m + dy) * s->patch_cols + x * m + dx;
                }
            }
        }
    }

    return n;
}


void
llm_tower_order(const llm_tower_t *t, const llm_tower_shape_t *s,
    uint32_t *patches, uint32_t *windows)
{
    uint32_t  i, n, first, row, col;

    if (t->window == 0) {
        for (i = 0; i < s->patch_rows * s->patch_cols; i++) {
            patches[i] = i;
        }

        return;
    }

    n = 0;

    for (row = 0; row < s->rows; row += t->window) {
        for (col = 0; col < s->cols; col += t->window) {
            first = n;
            n = llm_tower_window(t, s, row, col, t->window, n, patches);

            for (i = first; i < n; i++) {
                windows[2 * i] = first;
                windows[2 * i + 1] = n;
            }
        }
    }
}


/* the norm of a patch's values */

static void
llm_tower_pixel_norm(const llm_tower_t *t, float *row)
{
    double        mean, var;
    uint32_t      i, n;
    const float  *w, *bias;

    n = 3 * t->info.patch * t->info.patch;
    w = t->pixel_norm;
    bias = w + n;

    for (i = 0, mean = 0; i < n; i++) {
        mean += row[i];
    }

    mean /= n;

    for (i = 0, var = 0; i < n; i++) {
        var += (row[i] - mean) * (row[i] - mean);
    }

    var = 1 / sqrt(var / n + t->eps);

    for (i = 0; i < n; i++) {
        row[i] = (float) ((row[i] - mean) * var * w[i] + bias[i]);
    }
}


void
llm_tower_pixels(const llm_tower_t *t, const llm_tower_entry_t *e, uint32_t y,
    uint32_t x, float *row)
{
    uint32_t        p, dy, dx, c;
    const uint8_t  *from;

    p = t->info.patch;

    for (dy = 0; dy < p; dy++) {
        from = e->rgb + ((size_t) (y * p + dy) * e->w + x * p) * 3;

        for (dx = 0; dx < p; dx++) {
            for (c = 0; c < 3; c++) {
                row[(c * p + dy) * p + dx] = t->lut[c][from[3 * dx + c]];
            }
        }
    }

    if (t->pixel_norm) {
        llm_tower_pixel_norm(t, row);
    }
}


void
llm_tower_raster(const llm_tower_t *t, const llm_tower_shape_t *s, uint32_t y,
    uint32_t x, float *row)
{
    size_t  at;

    at = (size_t) t->kind->n_class + y * s->patch_cols + x;
    memcpy(row, t->table + at * t->width, t->width * sizeof(float));
}


/* rows of the table around patch i of n, and their weights; the table's ends
   are repeated */

static void
llm_tower_cubic(uint32_t i, uint32_t n, uint32_t side, uint32_t at[4],
    double f[4])
{
    int     k, low, pos;
    double  x, d;

    x = (i + 0.5) / n * side - 0.5;
    low = (int) floor(x);

    for (k = 0; k < 4; k++) {
        pos = low + k - 1;
        d = fabs(x - pos);
        f[k] = d <= 1 ? ((LLM_CUBIC + 2) * d - (LLM_CUBIC + 3)) * d * d + 1
                      : ((LLM_CUBIC * d - 5 * LLM_CUBIC) * d + 8 * LLM_CUBIC)
                        * d - 4 * LLM_CUBIC;
        pos = llm_min(pos, (int) side - 1);
        at[k] = (uint32_t) llm_max(pos, 0);
    }
}


void
llm_tower_stretch(const llm_tower_t *t, const llm_tower_shape_t *s,
    uint32_t y, uint32_t x, float *row)
{
    double        fy[4], fx[4], sum;
    uint32_t      c, i, k, at_y[4], at_x[4];
    const float  *from;

    llm_tower_cubic(y, s->patch_rows, t->table_side, at_y, fy);
    llm_tower_cubic(x, s->patch_cols, t->table_side, at_x, fx);

    for (c = 0; c < t->width; c++) {
        sum = 0;

        for (i = 0; i < 4; i++) {
            for (k = 0; k < 4; k++) {
                from = t->table + ((size_t) at_y[i] * t->table_side + at_x[k])
                                  * t->width;
                sum += fy[i] * fx[k] * from[c];
            }
        }

        row[c] = (float) sum;
    }
}


/* adds a patch's row to its cell; i: number of the patch in the cell */

static void
llm_tower_join(const llm_tower_t *t, uint32_t i, const float *from, float *to)
{
    uint32_t  c, n;

    n = t->info.merge * t->info.merge;

    switch (t->merge) {

    case LLM_TOWER_JOIN:
        memcpy(to + (size_t) i * t->width, from, t->width * sizeof(float));
        break;

    case LLM_TOWER_UNFOLD:
        for (c = 0; c < t->width; c++) {
            to[(size_t) c * n + i] = from[c];
        }

        break;

    case LLM_TOWER_AVERAGE:
        for (c = 0; c < t->width; c++) {
            to[c] = (i ? to[c] : 0) + from[c] / (float) n;
        }
    }
}


/* what comes after an average */

static void
llm_tower_average(const llm_tower_t *t, float *row)
{
    uint32_t  c;

    for (c = 0; c < t->width; c++) {
        row[c] *= t->merge_scale;

        if (t->shift) {
            row[c] = (row[c] - t->shift[c]) * t->factor[c];
        }
    }
}


void
llm_tower_cell(const llm_tower_t *t, const llm_tower_shape_t *s, uint32_t cell,
    const uint32_t *row_of, const float *rows, float *to)
{
    uint32_t  i, m, y, x;

    m = t->info.merge;
    y = cell / s->cols * m;
    x = cell % s->cols * m;

    for (i = 0; i < m * m; i++) {
        llm_tower_join(t, i, rows + (size_t) row_of[(y + i / m) * s->patch_cols
                                                    + x + i % m] * t->width,
                       to);
    }

    if (t->merge == LLM_TOWER_AVERAGE) {
        llm_tower_average(t, to);
    }
}
