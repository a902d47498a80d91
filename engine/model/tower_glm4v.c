/*
 * The tower of GLM 4.1V and 4.5V: positions by a table that is stretched to the
 * image, with cubic interpolation, and by RoPE of rows and columns; a
 * convolution makes a row of four patches, before a gated network.
 */

#include "engine/model/tower_internal.h"


static int
llm_tower_glm4v_read(llm_tower_load_t *l)
{
    uint32_t             n, ff;
    llm_tower_t         *t = l->t;
    llm_tower_merger_t  *m = &t->mergers[0];

    n = t->info.n_embd;
    ff = 0;
    t->merge = LLM_TOWER_UNFOLD;
    t->merge_eps = 1e-5f;
    t->cell = t->info.merge * t->info.merge * t->width;

    if (llm_tower_square(l) != LLM_OK
        || llm_tower_rope(l, 10000, LLM_ROPE_NEOX, LLM_TOWER_ALIKE)
           != LLM_OK
        || llm_tower_norm(l, &t->pre, t->width, 1, "v.norm_embd") != LLM_OK
        || llm_tower_linear(l, &m->linear[0], t->cell, &n, "mm.patch_merger")
           != LLM_OK
        || llm_tower_linear(l, &m->linear[1], n, &n, "mm.model.fc") != LLM_OK
        || llm_tower_norm(l, &m->norm, n, 1, "mm.post_norm") != LLM_OK
        || llm_tower_linear(l, &m->linear[2], n, &ff, "mm.gate") != LLM_OK
        || llm_tower_linear(l, &m->linear[3], n, &ff, "mm.up") != LLM_OK)
    {
        return LLM_ERROR;
    }

    t->mid_ff = ff;
    t->mid = llm_max(n, ff);

    return llm_tower_linear(l, &m->linear[4], ff, &n, "mm.down");
}


static void
llm_tower_glm4v_project(const llm_tower_t *t)
{
    uint32_t                   n = t->info.n_embd;
    llm_act_t                 *x, *y, *z;
    llm_act_t                 *const *a = t->act_of;
    const llm_tower_merger_t  *m = &t->mergers[0];

    llm_norm_t  norm = {
        .kind = LLM_NORM_LAYER, .eps = t->merge_eps, .w = m->norm.w,
        .bias = m->norm.bias
    };

    t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, a[LLM_TA_CELL_H]);
    x = llm_tower_buffer(t, LLM_TA_MID_H, n);
    y = llm_tower_buffer(t, LLM_TA_MID, n);
    llm_tower_apply(t, &m->linear[0], a[LLM_TA_CELL_H], y, 0);
    llm_tower_copy(t, y, x);
    llm_tower_apply(t, &m->linear[1], x, y, 0);
    t->ops->norm(t->exec, LLM_ROWS_ALL, y, &norm, y);
    llm_tower_activate(t, LLM_GLU_GELU_ERF, y, x);

    y = llm_tower_buffer(t, LLM_TA_MID, t->mid_ff);
    z = llm_tower_buffer(t, LLM_TA_MID_2, t->mid_ff);
    llm_tower_apply(t, &m->linear[2], x, y, 0);
    llm_tower_apply(t, &m->linear[3], x, z, 0);
    x = llm_tower_buffer(t, LLM_TA_MID_H, t->mid_ff);
    t->ops->glu(t->exec, LLM_ROWS_ALL, LLM_GLU_SILU, y, z, x);
    llm_tower_apply(t, &m->linear[4], x, a[LLM_TA_PART], 0);
}


const llm_tower_kind_t  llm_tower_glm4v = {
    .projector = "glm4v",
    .norm = LLM_NORM_RMS,
    .act = LLM_GLU_SILU,
    .merge = 2,
    .post_norm = 1,
    .read = llm_tower_glm4v_read,
    .position = llm_tower_stretch,
    .project = llm_tower_glm4v_project
};
