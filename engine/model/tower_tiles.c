/*
 * The towers of Idefics 3 (SmolVLM) and InternVL, for tiles of one size: a
 * table has a position for each patch, and squares of patches side by side
 * become a row.  InternVL's has a class row before the patches, which the rows
 * do not have.
 */

#include "engine/model/tower_internal.h"


static int
llm_tower_idefics3_read(llm_tower_load_t *l)
{
    uint32_t      out;
    llm_tower_t  *t = l->t;

    t->cell = t->info.merge * t->info.merge * t->width;
    out = t->info.n_embd;

    if (llm_tower_square(l) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_tower_linear(l, &t->mergers[0].linear[0], t->cell, &out,
                            "mm.model.fc");
}


static void
llm_tower_idefics3_project(const llm_tower_t *t)
{
    t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, t->act_of[LLM_TA_CELL_H]);
    llm_tower_apply(t, &t->mergers[0].linear[0], t->act_of[LLM_TA_CELL_H],
                    t->act_of[LLM_TA_PART], 0);
}


/* the class row with its position, which is the table's first; the product of a
   patch's values, which are 0 here, adds its bias */

static int
llm_tower_internvl_class(llm_tower_load_t *l)
{
    float                    *b;
    uint32_t                  c;
    llm_tower_t              *t = l->t;
    const llm_gguf_tensor_t  *row, *bias;

    row = llm_tower_find(l, "v.class_embd");
    bias = llm_tower_find(l, "v.patch_embd.bias");

    if (row == NULL) {
        return llm_tower_missing(l, "v.class_embd");
    }

    t->class_row = llm_tower_floats(l, row, t->width);
    b = bias ? llm_tower_floats(l, bias, t->width) : NULL;

    if (t->class_row == NULL || (bias && b == NULL)) {
        return LLM_ERROR;
    }

    for (c = 0; c < t->width; c++) {
        t->class_row[c] += t->table[c] - (b ? b[c] : 0);
    }

    return LLM_OK;
}


static int
llm_tower_internvl_read(llm_tower_load_t *l)
{
    uint32_t             out;
    llm_tower_t         *t = l->t;
    llm_tower_merger_t  *m = &t->mergers[0];

    t->cell = t->info.merge * t->info.merge * t->width;
    t->merge_eps = 1e-5f;
    out = t->info.n_embd;

    if (llm_tower_square(l) != LLM_OK
        || llm_tower_internvl_class(l) != LLM_OK
        || llm_tower_norm(l, &m->norm, t->cell, 1, "mm.model.mlp.0") != LLM_OK
        || llm_tower_linear(l, &m->linear[0], t->cell, &t->mid,
                            "mm.model.mlp.1") != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_tower_linear(l, &m->linear[1], t->mid, &out, "mm.model.mlp.3");
}


static void
llm_tower_internvl_project(const llm_tower_t *t)
{
    t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, t->act_of[LLM_TA_CELL]);
    llm_tower_normalize(t, &t->mergers[0].norm, t->merge_eps,
                        t->act_of[LLM_TA_CELL], t->act_of[LLM_TA_CELL_H], 0);
    llm_tower_two(t, &t->mergers[0], 0);
}


const llm_tower_kind_t  llm_tower_idefics3 = {
    .projector = "idefics3",
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU,
    .merge = 1,
    .fixed = 1,
    .post_norm = 1,
    .read = llm_tower_idefics3_read,
    .position = llm_tower_raster,
    .project = llm_tower_idefics3_project
};

const llm_tower_kind_t  llm_tower_internvl = {
    .projector = "internvl",
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU_ERF,
    .merge = 1,
    .n_class = 1,
    .fixed = 1,
    .read = llm_tower_internvl_read,
    .position = llm_tower_raster,
    .project = llm_tower_internvl_project
};
