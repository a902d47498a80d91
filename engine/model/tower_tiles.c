/*
 * The towers of Idefics 3 (SmolVLM), InternVL and LLaVA 1.5, for tiles of one
 * size: a table has a position for each patch, and squares of patches side by
 * side become a row; in LLaVA, which has one tile, each patch.  InternVL's and
 * LLaVA's have a class row before the patches, which the rows do not have.
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
        || llm_tower_class(l) != LLM_OK
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


/*
 * The first layers of CLIP up to the one whose rows are taken, which are all in
 * the file.  The width of the rows is that of the last matrix, since the file's
 * projection_dim is CLIP's own.
 */

static int
llm_tower_llava_read(llm_tower_load_t *l)
{
    int                    gelu;
    llm_tower_t           *t = l->t;
    const llm_gguf_kv_t   *kv;
    llm_tower_merger_t    *m = &t->mergers[0];

    kv = llm_gguf_find(t->gguf, "clip.vision.feature_layer");

    if (kv && (kv->type != LLM_GGUF_ARRAY || kv->count != 1
               || kv->item == LLM_GGUF_STR || kv->item == LLM_GGUF_ARRAY
               || llm_gguf_item_int(kv, 0) != t->info.n_layers))
    {
        return llm_fail(l->err, "%s: clip.vision.feature_layer: not the last "
                        "of %u layers alone, as in LLaVA 1.5",
                        llm_gguf_name(t->gguf), t->info.n_layers);
    }

    if (llm_gguf_find(t->gguf, "clip.vision.image_grid_pinpoints")) {
        return llm_fail(l->err, "%s: clip.vision.image_grid_pinpoints: the "
                        "tiles of LLaVA 1.6 are not supported",
                        llm_gguf_name(t->gguf));
    }

    gelu = 0;

    if (llm_gguf_get_bool(t->gguf, "clip.use_gelu", &gelu, l->err)
        == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    t->act = gelu ? LLM_GLU_GELU_ERF : LLM_GLU_QUICK;
    t->cell = t->width;

    if (llm_tower_square(l) != LLM_OK || llm_tower_class(l) != LLM_OK
        || llm_tower_norm(l, &t->placed, t->width, 1, "v.pre_ln") != LLM_OK
        || llm_tower_linear(l, &m->linear[0], t->cell, &t->mid, "mm.0")
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_tower_linear(l, &m->linear[1], t->mid, &t->info.n_embd,
                            "mm.2");
}


static void
llm_tower_llava_project(const llm_tower_t *t)
{
    t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, t->act_of[LLM_TA_CELL_H]);
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

const llm_tower_kind_t  llm_tower_llava = {
    .projector = "mlp",
    .norm = LLM_NORM_LAYER,
    .merge = 1,
    .n_class = 1,
    .fixed = 1,
    .any_width = 1,
    .read = llm_tower_llava_read,
    .position = llm_tower_raster,
    .project = llm_tower_llava_project
};
