/*
 * The towers of Qwen2.5-VL, Qwen3-VL and Qwen 3.5: RoPE of rows and columns,
 * and four patches become a row.  In most layers of Qwen2.5-VL, patches see
 * those of their window.  The others also have positions by a table that is
 * stretched to the image, and Qwen3-VL gives the model what some of the layers
 * made (deepstack), each by a merger of its own.
 */

#include "engine/model/tower_internal.h"

#include <stdio.h>

/* pixels of a window's side in Qwen2.5-VL, which no file says */
#define LLM_TOWER_WINDOW  112


/* where the table's rows are for patch i of n, from corner to corner: the first
   row before it and the share of the next one */

static uint32_t
llm_tower_at(uint32_t i, uint32_t n, uint32_t side, float *share)
{
    double    at;
    uint32_t  low;

    at = n > 1 ? (double) i * (side - 1) / (n - 1) : 0;
    low = llm_min((uint32_t) at, side - 1);
    *share = (float) (at - low);

    return low;
}


static void
llm_tower_qwen3_position(const llm_tower_t *t, const llm_tower_shape_t *s,
    uint32_t y, uint32_t x, float *row)
{
    float         fy, fx, f[4];
    uint32_t      c, k, y0, x0, y1, x1, side;
    const float  *from[4];

    side = t->table_side;
    y0 = llm_tower_at(y, s->patch_rows, side, &fy);
    x0 = llm_tower_at(x, s->patch_cols, side, &fx);
    y1 = llm_min(y0 + 1, side - 1);
    x1 = llm_min(x0 + 1, side - 1);

    from[0] = t->table + (size_t) (y0 * side + x0) * t->width;
    from[1] = t->table + (size_t) (y0 * side + x1) * t->width;
    from[2] = t->table + (size_t) (y1 * side + x0) * t->width;
    from[3] = t->table + (size_t) (y1 * side + x1) * t->width;
    f[0] = (1 - fy) * (1 - fx);
    f[1] = (1 - fy) * fx;
    f[2] = fy * (1 - fx);
    f[3] = fy * fx;

    for (c = 0; c < t->width; c++) {
        row[c] = 0;

        for (k = 0; k < 4; k++) {
            row[c] += f[k] * from[k][c];
        }
    }
}


/* the merger of a layer, for part i of the rows */

static int
llm_tower_deepstack(llm_tower_load_t *l, uint32_t layer, uint32_t i)
{
    char                 name[64];
    uint32_t             mid, out;
    llm_tower_t         *t = l->t;
    llm_tower_merger_t  *m = &t->mergers[i];

    mid = t->mid;
    out = t->info.n_embd;
    t->layers[layer].keeps = 1;

    if (llm_tower_norm(l, &m->norm, t->cell, 1, "v.deepstack.%u.norm", layer)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    snprintf(name, sizeof(name), "v.deepstack.%u.fc1", layer);

    if (llm_tower_linear(l, &m->linear[0], t->cell, &mid, name) != LLM_OK) {
        return LLM_ERROR;
    }

    snprintf(name, sizeof(name), "v.deepstack.%u.fc2", layer);

    return llm_tower_linear(l, &m->linear[1], mid, &out, name);
}


static int
llm_tower_qwen3_deepstack(llm_tower_load_t *l)
{
    uint32_t              i;
    llm_tower_t          *t = l->t;
    const llm_gguf_kv_t  *kv;

    kv = llm_gguf_find(t->gguf, "clip.vision.is_deepstack_layers");

    if (kv == NULL) {
        return LLM_OK;
    }

    if (kv->type != LLM_GGUF_ARRAY || kv->item != LLM_GGUF_BOOL
        || kv->count != t->info.n_layers)
    {
        return llm_fail(l->err, "%s: clip.vision.is_deepstack_layers: not %u "
                        "flags", llm_gguf_name(t->gguf), t->info.n_layers);
    }

    for (i = 0; i < t->info.n_layers; i++) {
        if (!llm_gguf_item_int(kv, i)) {
            continue;
        }

        if (t->n_parts == LLM_TOWER_PARTS) {
            return llm_fail(l->err, "%s: clip.vision.is_deepstack_layers: more "
                            "than %d layers", llm_gguf_name(t->gguf),
                            LLM_TOWER_PARTS - 1);
        }

        if (llm_tower_deepstack(l, i, t->n_parts++) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* what all of them have: RoPE, the main merger */

static int
llm_tower_qwen_merger(llm_tower_load_t *l)
{
    uint32_t      out;
    llm_tower_t  *t = l->t;

    t->cell = t->info.merge * t->info.merge * t->width;
    out = t->info.n_embd;

    if (llm_tower_rope(l, 10000, LLM_ROPE_NEOX, LLM_TOWER_ALIKE) != LLM_OK
        || llm_tower_linear(l, &t->mergers[0].linear[0], t->cell, &t->mid,
                            "mm.0") != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_tower_linear(l, &t->mergers[0].linear[1], t->mid, &out,
                            "mm.2");
}


static int
llm_tower_qwen3_read(llm_tower_load_t *l)
{
    l->t->merge_eps = 1e-6f;

    if (llm_tower_square(l) != LLM_OK || llm_tower_qwen_merger(l) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_tower_qwen3_deepstack(l);
}


/* the last of every `period` layers sees all patches */

static int
llm_tower_qwen25_read(llm_tower_load_t *l)
{
    uint32_t      i, period, step;
    llm_tower_t  *t = l->t;

    period = 0;
    step = t->info.patch * t->info.merge;

    if (llm_tower_u32(l, "n_wa_pattern", 0, LLM_TOWER_LAYERS, &period)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (period && LLM_TOWER_WINDOW / step == 0) {
        return llm_fail(l->err, "%s: clip.vision.patch_size: %u is more than a "
                        "window", llm_gguf_name(t->gguf), t->info.patch);
    }

    t->window = period ? LLM_TOWER_WINDOW / step : 0;

    for (i = 0; period && i < t->info.n_layers; i++) {
        t->layers[i].windowed = (i + 1) % period != 0;
    }

    return llm_tower_qwen_merger(l);
}


static void
llm_tower_qwen3_project(const llm_tower_t *t)
{
    uint32_t    i;
    llm_act_t  *const *a = t->act_of;

    t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, a[LLM_TA_CELL_H]);
    llm_tower_two(t, &t->mergers[0], 0);

    for (i = 1; i < t->n_parts; i++) {
        t->ops->input(t->exec, LLM_ROWS_ALL, i * t->cell, 0, a[LLM_TA_CELL]);
        llm_tower_normalize(t, &t->mergers[i].norm, t->merge_eps,
                            a[LLM_TA_CELL], a[LLM_TA_CELL_H], 0);
        llm_tower_two(t, &t->mergers[i], i);
    }
}


const llm_tower_kind_t  llm_tower_qwen3vl = {
    .projector = "qwen3vl_merger",
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU,
    .merge = 2,
    .post_norm = 1,
    .read = llm_tower_qwen3_read,
    .position = llm_tower_qwen3_position,
    .project = llm_tower_qwen3_project
};

const llm_tower_kind_t  llm_tower_qwen25vl = {
    .projector = "qwen2.5vl_merger",
    .other = "qwen2.5o",
    .norm = LLM_NORM_RMS,
    .act = LLM_GLU_SILU,
    .merge = 2,
    .post_norm = 1,
    .read = llm_tower_qwen25_read,
    .project = llm_tower_qwen3_project
};
