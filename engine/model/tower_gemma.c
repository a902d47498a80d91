/*
 * The towers of Gemma 3 and 4: squares of patches are averaged, normalised and
 * projected.  Gemma 3's is SigLIP, for images of one size.  Gemma 4's has
 * tables of positions for columns and rows, RoPE of both in halves of a head,
 * and norms before and after its blocks; that of the models without an encoder
 * of images (unified) has the tables, and no layers.
 */

#include "engine/model/tower_internal.h"

#include <math.h>


/* the projection is [n_in][n_out] in files */

static int
llm_tower_gemma3_read(llm_tower_load_t *l)
{
    llm_tower_t              *t = l->t;
    llm_tower_matrix_t        m;
    const llm_gguf_tensor_t  *p;

    t->cell = t->width;
    t->merge = LLM_TOWER_AVERAGE;
    t->merge_eps = t->eps;

    if (llm_tower_square(l) != LLM_OK
        || llm_tower_norm(l, &t->mergers[0].norm, t->width, 1,
                          "mm.soft_emb_norm") != LLM_OK)
    {
        return LLM_ERROR;
    }

    p = llm_tower_find(l, "mm.input_projection.weight");

    if (p == NULL) {
        return llm_tower_missing(l, "mm.input_projection.weight");
    }

    if (p->ne[0] != t->info.n_embd || p->ne[1] != t->width
        || p->ne[2] * p->ne[3] != 1)
    {
        return llm_fail(l->err, "%s: mm.input_projection.weight: not %u by %u "
                        "elements", llm_gguf_name(t->gguf), t->info.n_embd,
                        t->width);
    }

    memset(&m, 0, sizeof(m));
    m.t = p;
    m.n = t->info.n_embd;
    m.n_in = t->width;
    m.transposed = 1;
    t->mergers[0].linear[0].w = llm_tower_matrix(l, &m);

    return t->mergers[0].linear[0].w ? LLM_OK : LLM_ERROR;
}


/* the table of columns, then that of rows */

static int
llm_tower_tables(llm_tower_load_t *l)
{
    uint32_t      n;
    llm_tower_t  *t = l->t;

    if (llm_tower_table(l, &n) != LLM_OK) {
        return LLM_ERROR;
    }

    t->table_side = n / 2;
    t->max_side = n / 2;

    if (n == 0 || n % 2) {
        return llm_fail(l->err, "%s: v.position_embd.weight: %u positions are "
                        "not two tables", llm_gguf_name(t->gguf), n);
    }

    return LLM_OK;
}


static int
llm_tower_gemma4_read(llm_tower_load_t *l)
{
    uint32_t                  out;
    llm_tower_t              *t = l->t;
    const llm_gguf_tensor_t  *bias, *scale;

    t->cell = t->width;
    t->merge = LLM_TOWER_AVERAGE;
    t->merge_eps = t->eps;
    t->merge_scale = sqrtf((float) t->width);
    t->scale = 1;
    t->norm_v = 1;
    out = t->info.n_embd;

    if (llm_tower_tables(l) != LLM_OK
        || llm_tower_rope(l, 100, LLM_ROPE_NEOX, LLM_TOWER_ALIKE) != LLM_OK
        || llm_tower_linear(l, &t->mergers[0].linear[0], t->cell, &out,
                            "mm.input_projection") != LLM_OK)
    {
        return LLM_ERROR;
    }

    bias = llm_tower_find(l, "v.std_bias");
    scale = llm_tower_find(l, "v.std_scale");

    if (bias == NULL || scale == NULL) {
        return bias == scale ? LLM_OK
                             : llm_tower_missing(l, bias ? "v.std_scale"
                                                         : "v.std_bias");
    }

    t->shift = llm_tower_floats(l, bias, t->width);
    t->factor = llm_tower_floats(l, scale, t->width);

    return t->shift && t->factor ? LLM_OK : LLM_ERROR;
}


/* the table of columns, then that of rows */

static void
llm_tower_gemma4_position(const llm_tower_t *t, const llm_tower_shape_t *s,
    uint32_t y, uint32_t x, float *row)
{
    uint32_t      c;
    const float  *of_x, *of_y;

    (void) s;

    of_x = t->table + (size_t) x * t->width;
    of_y = t->table + ((size_t) t->table_side + y) * t->width;

    for (c = 0; c < t->width; c++) {
        row[c] = of_x[c] + of_y[c];
    }
}


/* A cell is one patch, whose values are normalised, embedded, normalised,
   placed and normalised.  These norms are LayerNorm with PyTorch's epsilon. */

static int
llm_tower_gemma4uv_read(llm_tower_load_t *l)
{
    float                    *w, *bias;
    size_t                    n;
    uint32_t                  out;
    llm_tower_t              *t = l->t;
    const llm_gguf_tensor_t  *first[2];

    n = 3 * (size_t) t->info.patch * t->info.patch;
    out = t->info.n_embd;
    t->cell = t->width;
    t->merge_eps = t->eps;
    t->eps = 1e-5f;

    first[0] = llm_tower_find(l, "v.patch_norm.1.weight");
    first[1] = llm_tower_find(l, "v.patch_norm.1.bias");

    if (first[0] == NULL || first[1] == NULL) {
        return llm_tower_missing(l, "v.patch_norm.1");
    }

    w = llm_tower_floats(l, first[0], n);
    bias = w ? llm_tower_floats(l, first[1], n) : NULL;
    t->pixel_norm = llm_tower_keep(l, 2 * n, sizeof(float));

    if (w == NULL || bias == NULL || t->pixel_norm == NULL) {
        return LLM_ERROR;
    }

    memcpy(t->pixel_norm, w, n * sizeof(float));
    memcpy(t->pixel_norm + n, bias, n * sizeof(float));

    if (llm_tower_norm(l, &t->pre, t->width, 1, "v.patch_norm.2") != LLM_OK
        || llm_tower_norm(l, &t->placed, t->width, 1, "v.patch_norm.3")
           != LLM_OK
        || llm_tower_tables(l) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_tower_linear(l, &t->mergers[0].linear[0], t->cell, &out,
                            "mm.input_projection");
}


static void
llm_tower_gemma_project(const llm_tower_t *t)
{
    llm_act_t  *const *a = t->act_of;

    t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, a[LLM_TA_CELL]);
    llm_tower_cell_rms(t, t->mergers[0].norm.w);
    llm_tower_apply(t, &t->mergers[0].linear[0], a[LLM_TA_CELL_H],
                    a[LLM_TA_PART], 0);
}


const llm_tower_kind_t  llm_tower_gemma3 = {
    .projector = "gemma3",
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU,
    .merge = 4,
    .fixed = 1,
    .post_norm = 1,
    .read = llm_tower_gemma3_read,
    .position = llm_tower_raster,
    .project = llm_tower_gemma_project
};

const llm_tower_kind_t  llm_tower_gemma4 = {
    .projector = "gemma4v",
    .norm = LLM_NORM_RMS,
    .act = LLM_GLU_GELU,
    .merge = 3,
    .signed_pixels = 1,
    .x_first = 1,
    .halves = 1,
    .read = llm_tower_gemma4_read,
    .position = llm_tower_gemma4_position,
    .project = llm_tower_gemma_project
};

const llm_tower_kind_t  llm_tower_gemma4uv = {
    .projector = "gemma4uv",
    .norm = LLM_NORM_LAYER,
    .merge = 3,
    .bare = 1,
    .joined = 1,
    .read = llm_tower_gemma4uv_read,
    .position = llm_tower_gemma4_position,
    .project = llm_tower_gemma_project
};
