/*
 * The tower of Kimi VL (MoonViT): positions by a table that is stretched to the
 * image, with cubic interpolation, and by RoPE, whose pairs belong to columns
 * and rows in turn; rows are normalised once more before four of them are
 * joined for two matrices.
 */

#include "engine/model/tower_internal.h"


static int
llm_tower_kimi_read(llm_tower_load_t *l)
{
    uint32_t             out;
    llm_tower_t         *t = l->t;
    llm_tower_merger_t  *m = &t->mergers[0];

    out = t->info.n_embd;
    t->cell = t->info.merge * t->info.merge * t->width;
    t->merge_eps = 1e-5f;

    if (llm_tower_square(l) != LLM_OK
        || llm_tower_rope(l, 10000, LLM_ROPE_NORM, LLM_TOWER_IN_TURN)
           != LLM_OK
        || llm_tower_norm(l, &t->merged, t->width, 1, "mm.input_norm")
           != LLM_OK
        || llm_tower_linear(l, &m->linear[0], t->cell, &t->mid, "mm.1")
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_tower_linear(l, &m->linear[1], t->mid, &out, "mm.2");
}


static void
llm_tower_kimi_project(const llm_tower_t *t)
{
    t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, t->act_of[LLM_TA_CELL_H]);
    llm_tower_two(t, &t->mergers[0], 0);
}


const llm_tower_kind_t  llm_tower_kimivl = {
    .projector = "kimivl",
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU,
    .merge = 2,
    .post_norm = 1,
    .x_first = 1,
    .read = llm_tower_kimi_read,
    .position = llm_tower_stretch,
    .project = llm_tower_kimi_project
};
