/*
 * The tower of Pixtral and Mistral 3: RoPE of rows and columns, and a row
 * [IMG_BREAK] after each row of cells but the last.  In Mistral 3.1 and later,
 * four patches become a cell.
 */

#include "engine/model/model_internal.h"
#include "engine/model/tower_internal.h"


/* the embedding of the token [IMG_BREAK] in the model, for files without it */

static int
llm_tower_pixtral_token(llm_tower_load_t *l)
{
    uint64_t                  i;
    const char               *p;
    llm_tower_t              *t = l->t;
    const llm_gguf_kv_t      *kv;
    const llm_gguf_tensor_t  *embd;

    static const char  name[] = "v.token_embd.img_break";

    if (l->m == NULL) {
        return llm_tower_missing(l, name);
    }

    kv = llm_gguf_find(l->m->gguf, "tokenizer.ggml.tokens");
    embd = l->m->desc.global[LLM_GT_TOKEN_EMBD];

    if (kv == NULL || kv->type != LLM_GGUF_ARRAY
        || kv->item != LLM_GGUF_STR || embd->ne[0] != t->info.n_embd)
    {
        return llm_tower_missing(l, name);
    }

    for (i = 0, p = kv->data; i < llm_min(kv->count, embd->ne[1]); i++) {
        if (!llm_str_is(llm_gguf_next_str(&p), "[IMG_BREAK]")) {
            continue;
        }

        t->break_row = llm_tower_keep(l, t->info.n_embd, sizeof(float));

        if (t->break_row == NULL) {
            return LLM_ERROR;
        }

        llm_dequantize(embd->type, (const char *) embd->data
                                   + i * llm_type_row_size(embd->type,
                                                           embd->ne[0]),
                       t->break_row, t->info.n_embd);
        return LLM_OK;
    }

    return llm_tower_missing(l, name);
}


static int
llm_tower_pixtral_break(llm_tower_load_t *l)
{
    llm_tower_t              *t = l->t;
    const llm_gguf_tensor_t  *row;

    row = llm_tower_find(l, "v.token_embd.img_break");

    if (row == NULL) {
        return llm_tower_pixtral_token(l);
    }

    t->break_row = llm_tower_floats(l, row, t->info.n_embd);

    return t->break_row ? LLM_OK : LLM_ERROR;
}


static int
llm_tower_pixtral_read(llm_tower_load_t *l)
{
    uint32_t             n, out;
    llm_tower_t         *t = l->t;
    llm_tower_merger_t  *m = &t->mergers[0];

    n = t->width;
    out = t->info.n_embd;
    t->merge = LLM_TOWER_UNFOLD;
    t->cell = t->info.merge * t->info.merge * t->width;
    t->mid = llm_max(n, out);

    if (llm_tower_norm(l, &t->pre, n, 1, "v.pre_ln") != LLM_OK
        || llm_tower_norm(l, &t->post, n, t->info.merge > 1, "mm.input_norm")
           != LLM_OK
        || llm_tower_rope(l, 10000, LLM_ROPE_NORM, LLM_TOWER_EVERY_SECOND)
           != LLM_OK
        || (t->info.merge > 1
            && llm_tower_linear(l, &m->linear[0], t->cell, &n,
                                "mm.patch_merger") != LLM_OK)
        || llm_tower_linear(l, &m->linear[1], n, &out, "mm.1") != LLM_OK
        || llm_tower_linear(l, &m->linear[2], out, &out, "mm.2") != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_tower_pixtral_break(l);
}


static void
llm_tower_pixtral_project(const llm_tower_t *t)
{
    llm_act_t                 *x, *y;
    llm_act_t                 *const *a = t->act_of;
    const llm_tower_merger_t  *m = &t->mergers[0];

    x = a[LLM_TA_CELL_H];
    t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, x);

    if (m->linear[0].w) {
        y = llm_tower_buffer(t, LLM_TA_MID, t->width);
        llm_tower_apply(t, &m->linear[0], x, y, 0);
        x = llm_tower_buffer(t, LLM_TA_MID_H, t->width);
        llm_tower_copy(t, y, x);
    }

    y = llm_tower_buffer(t, LLM_TA_MID_2, t->info.n_embd);
    llm_tower_apply(t, &m->linear[1], x, y, 0);
    x = llm_tower_buffer(t, LLM_TA_MID_H, t->info.n_embd);
    llm_tower_activate(t, LLM_GLU_GELU_ERF, y, x);
    llm_tower_apply(t, &m->linear[2], x, a[LLM_TA_PART], 0);
}


const llm_tower_kind_t  llm_tower_pixtral = {
    .projector = "pixtral",
    .norm = LLM_NORM_RMS,
    .act = LLM_GLU_SILU,
    .merge = 1,
    .read = llm_tower_pixtral_read,
    .project = llm_tower_pixtral_project
};
