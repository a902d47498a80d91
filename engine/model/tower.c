/*
 * Loads towers: opens the device, loads the layers and the projector, and makes
 * the buffers of a step; see tower.h and tower_internal.h.
 */

#include "engine/base/products.h"
#include "engine/model/model_internal.h"
#include "engine/model/tower_internal.h"


/* an error if the tower is not the model's */

static int
llm_tower_fits(llm_tower_load_t *l)
{
    llm_tower_t          *t = l->t;
    const llm_hparams_t  *hp;

    t->info.n_cols = t->info.n_embd * t->n_parts;

    if (l->m == NULL) {
        return LLM_OK;
    }

    hp = &l->m->desc.hp;

    if (hp->n_embd != t->info.n_embd) {
        return llm_fail(l->err, "%s: clip.%s.projection_dim: the tower is for "
                        "models with a width of %u, and that of %s is %u",
                        llm_gguf_name(t->gguf),
                        t->kind->sound ? "audio" : "vision", t->info.n_embd,
                        hp->name, hp->n_embd);
    }

    if (t->kind->sound) {
        t->info.n_cols = t->info.n_embd * (1 + hp->n_deepstack);
        return LLM_OK;
    }

    if (hp->n_deepstack + 1 != t->n_parts) {
        return llm_fail(l->err, "%s: the tower has %u deepstack layers, and %s "
                        "takes %u", llm_gguf_name(t->gguf), t->n_parts - 1,
                        hp->name, hp->n_deepstack);
    }

    return LLM_OK;
}


/* ---- the device ---- */

/* the type of most matrices */

static uint32_t
llm_tower_weight_type(const llm_gguf_t *g, int sound)
{
    const llm_gguf_tensor_t  *t;

    t = llm_gguf_find_tensor(g, sound ? "a.blk.0.ffn_down.weight"
                                      : "v.blk.0.ffn_down.weight");
    t = t ? t : llm_gguf_find_tensor(g, "v.patch_embd.weight");

    return t ? t->type : LLM_TYPE_F32;
}


static int
llm_tower_device(llm_tower_load_t *l, const llm_tower_opts_t *opts)
{
    uint32_t                 needs;
    const char              *device;
    llm_tower_t             *t = l->t;
    llm_exec_opts_t          o;
    llm_backend_list_t       list;
    const llm_model_opts_t  *mo = opts->model;

    device = l->m ? l->m->n_members ? l->m->members[0].name
                                    : l->m->parts[0].name
             : mo ? mo->device : NULL;

    memset(&o, 0, sizeof(o));
    o.threads = mo ? mo->threads : 0;
    o.isa = mo ? mo->isa : NULL;
    o.log = mo ? mo->log : NULL;
    o.log_data = mo ? mo->log_data : NULL;
    o.max_tokens = t->batch;
    o.max_seqs = LLM_TOWER_ENTRIES;
    o.max_pages = t->max_pages;
    o.max_out = 1;
    o.weight_type = llm_tower_weight_type(t->gguf, t->kind->sound);
    o.products = mo && !llm_products_is(mo->products, LLM_PRODUCTS_FP8)
                 ? mo->products : NULL;
    o.n_kinds = 1;

    if (llm_backend_list(device, &list, l->err) != LLM_OK
        || llm_backend_open(list.name[0], mo ? mo->backend_dir : NULL,
                            t->devices, &o, &t->exec, l->err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    t->ops = t->exec->ops;

    needs = LLM_CAN_MEDIA | LLM_CAN_ENCODE | t->kind->needs;

    if ((t->ops->can & needs) != needs) {
        return llm_fail(l->err, "%s: the device %s cannot run it",
                        llm_gguf_name(t->gguf), t->ops->name);
    }

    return LLM_OK;
}


/* keys and values */

static int
llm_tower_cache(llm_tower_load_t *l)
{
    llm_tower_t   *t = l->t;
    llm_kv_opts_t  kv;

    memset(&kv, 0, sizeof(kv));
    kv.n_layers = 2;
    kv.n_pages = t->n_pages;
    kv.n_kv_heads = t->n_heads;
    kv.head_dim_k = t->key_dim;
    kv.head_dim_v = t->head_dim;
    kv.n_heads = t->n_heads;
    t->kv = t->ops->kv_create(t->exec, &kv, l->err);

    return t->kv ? LLM_OK : LLM_ERROR;
}


static int
llm_tower_buffers(llm_tower_load_t *l)
{
    uint32_t        i, channels;
    llm_tower_t    *t = l->t;
    const uint32_t  of_layers = t->info.n_layers ? t->width : 0;

    for (i = 0, channels = of_layers; i < t->n_convs; i++) {
        channels = llm_max(channels, t->channels[i]);
    }

    const struct {
        uint32_t        cols;
        llm_act_kind_t  kind;
    } want[LLM_TA_N] = {
        [LLM_TA_X] = { t->width, LLM_ACT_RESIDUAL },
        [LLM_TA_H] = { of_layers, LLM_ACT_VALUE },
        [LLM_TA_CLAMPED] = { t->clamped, LLM_ACT_VALUE },
        [LLM_TA_Q] = { of_layers, LLM_ACT_PRODUCT },
        [LLM_TA_K] = { of_layers, LLM_ACT_PRODUCT },
        [LLM_TA_WIDE] = { t->conformers ? t->n_heads * t->key_dim : 0,
                          LLM_ACT_PRODUCT },
        [LLM_TA_V] = { of_layers, LLM_ACT_PRODUCT },
        [LLM_TA_ATTN] = { of_layers, LLM_ACT_VALUE },
        [LLM_TA_OUT] = { channels, LLM_ACT_PRODUCT },
        [LLM_TA_GATE] = { t->n_ff, LLM_ACT_PRODUCT },
        [LLM_TA_UP] = { t->n_ff, LLM_ACT_PRODUCT },
        [LLM_TA_GLU] = { t->n_ff, LLM_ACT_VALUE },
        [LLM_TA_PATCH] = { t->n_values, LLM_ACT_VALUE },
        [LLM_TA_CELL] = { t->cell, LLM_ACT_RESIDUAL },
        [LLM_TA_CELL_H] = { t->cell, LLM_ACT_VALUE },
        [LLM_TA_MID] = { t->mid, LLM_ACT_PRODUCT },
        [LLM_TA_MID_H] = { t->mid, LLM_ACT_VALUE },
        [LLM_TA_MID_2] = { t->mid, LLM_ACT_PRODUCT },
        [LLM_TA_FRAME] = { t->kind->sound ? t->conv_cols : t->info.frame,
                           LLM_ACT_VALUE }
    };

    for (i = 0; i < LLM_TA_PART + t->n_parts; i++) {
        t->act_of[i] = i < LLM_TA_PART && want[i].cols == 0 ? NULL
            : t->ops->act_create(t->exec, t->batch,
                                 i < LLM_TA_PART ? want[i].cols
                                                 : t->info.n_embd,
                                 i < LLM_TA_PART ? want[i].kind
                                                 : LLM_ACT_RESIDUAL, l->err);

        if (t->act_of[i] == NULL && (i >= LLM_TA_PART || want[i].cols)) {
            return LLM_ERROR;
        }
    }

    return t->info.n_layers ? llm_tower_cache(l) : LLM_OK;
}


/* ---- life ---- */

static int
llm_tower_sizes(llm_tower_load_t *l, const llm_tower_opts_t *opts)
{
    llm_tower_t  *t = l->t;
    uint32_t      n;

    n = t->kind->sound ? llm_tower_rows_of(t, t->info.max_frames)
        : opts->max_patches ? opts->max_patches : LLM_TOWER_PATCHES;
    t->info.max_patches = n + t->kind->n_class;
    n = t->kind->sliced ? llm_tower_slice_wide(t) : 0;
    n = llm_max(n, t->info.max_patches);
    t->batch = opts->batch ? opts->batch
               : l->m && llm_model_on_gpu(l->m) ? LLM_TOWER_WIDE
                                                : LLM_TOWER_BATCH;
    t->batch = llm_min(t->batch, n);
    n = llm_max(t->batch, t->info.max_patches);
    t->max_pages = (n + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
    t->n_pages = t->max_pages + LLM_TOWER_ENTRIES;
    t->info.together = t->batch - llm_min(t->batch, t->kind->n_class
                                                    * LLM_TOWER_ENTRIES);

    return LLM_OK;
}


static int
llm_tower_open(llm_tower_load_t *l, const char *path,
    const llm_tower_opts_t *opts)
{
    size_t        i;
    llm_tower_t  *t = l->t;

    t->alone = l->m == NULL;
    t->devices = t->alone ? llm_devices_create() : l->m->devices;
    t->gguf = llm_gguf_open(path, l->err);

    if (t->devices == NULL || t->gguf == NULL) {
        return t->gguf ? llm_fail(l->err, "%s: no memory for the tower", path)
                       : LLM_ERROR;
    }

    for (i = 0; i < llm_gguf_n_tensors(t->gguf); i++) {
        t->info.n_bytes += llm_gguf_tensor(t->gguf, i)->size;
    }

    t->used = calloc(llm_gguf_n_tensors(t->gguf) + 1, 1);

    if (t->used == NULL) {
        return llm_fail(l->err, "%s: no memory for the tower", path);
    }

    if (llm_tower_kind(l) != LLM_OK || llm_tower_fields(l) != LLM_OK) {
        return LLM_ERROR;
    }

    t->layers = calloc(llm_max(t->info.n_layers, 1u),
                       sizeof(llm_tower_layer_t));

    if (t->layers == NULL) {
        return llm_fail(l->err, "%s: no memory for the tower", path);
    }

    if (llm_tower_sizes(l, opts) != LLM_OK
        || llm_tower_device(l, opts) != LLM_OK
        || t->kind->read(l) != LLM_OK
        || llm_tower_layers(l) != LLM_OK
        || (!t->kind->sound && llm_tower_sound(l) != LLM_OK)
        || llm_tower_rest(l) != LLM_OK
        || llm_tower_fits(l) != LLM_OK
        || llm_tower_buffers(l) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_gguf_intact(t->gguf, l->err);
}


/* one of the encoders of an open file */

static int
llm_tower_check_part(llm_gguf_t *g, int sound, llm_err_t *err)
{
    llm_tower_t       t;
    llm_tower_load_t  l = { &t, NULL, err, sound };

    memset(&t, 0, sizeof(t));
    t.gguf = g;

    return llm_tower_kind(&l) == LLM_OK ? llm_tower_fields(&l) : LLM_ERROR;
}


int
llm_tower_check(const char *path, llm_err_t *err)
{
    int          rc;
    llm_gguf_t  *g;

    g = llm_gguf_open_header(path, err);

    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = llm_tower_sees(g) ? llm_tower_check_part(g, 0, err) : LLM_OK;

    if (rc == LLM_OK && llm_tower_listens(g)) {
        rc = llm_tower_check_part(g, 1, err);
    }

    llm_gguf_close(g);

    return rc;
}


llm_tower_t *
llm_tower_load(const char *path, llm_model_t *m, const llm_tower_opts_t *opts,
    llm_err_t *err)
{
    llm_tower_load_t  l = { NULL, m, err, opts->sound };

    l.t = calloc(1, sizeof(llm_tower_t));

    if (l.t == NULL) {
        (void) llm_fail(err, "%s: no memory for the tower", path);
        return NULL;
    }

    if (llm_tower_open(&l, path, opts) != LLM_OK) {
        llm_tower_free(l.t);
        return NULL;
    }

    return l.t;
}


static void
llm_tower_free_layer(llm_tower_t *t, llm_tower_layer_t *l)
{
    uint32_t  i;

    llm_tower_linear_t  *const linears[] = {
        &l->q, &l->k, &l->v, &l->out, &l->gate, &l->up, &l->down
    };

    llm_tower_norm_t  heads[] = { { l->q_norm, NULL }, { l->k_norm, NULL } };

    for (i = 0; i < llm_nelems(linears); i++) {
        llm_tower_free_linear(t, linears[i]);
    }

    llm_tower_free_norm(t, &l->ln1);
    llm_tower_free_norm(t, &l->ln2);
    llm_tower_free_norm(t, &l->attn_post);
    llm_tower_free_norm(t, &l->ffn_post);
    llm_tower_free_norm(t, &heads[0]);
    llm_tower_free_norm(t, &heads[1]);
}


/* what is on the device */

static void
llm_tower_free_device(llm_tower_t *t)
{
    uint32_t  i, k;

    if (t->ops->enter) {
        t->ops->enter(t->exec);
    }

    for (i = 0; i < t->info.n_layers; i++) {
        llm_tower_free_layer(t, &t->layers[i]);
    }

    llm_tower_conformer_free(t);

    for (i = 0; i < LLM_TOWER_PARTS; i++) {
        llm_tower_free_norm(t, &t->mergers[i].norm);

        for (k = 0; k < LLM_TOWER_LINEARS; k++) {
            llm_tower_free_linear(t, &t->mergers[i].linear[k]);
        }
    }

    for (i = 0; i < LLM_TOWER_CONVS; i++) {
        llm_tower_free_linear(t, &t->conv[i]);
        llm_tower_free_norm(t, &t->conv_norm[i]);
    }

    llm_tower_free_linear(t, &t->embed);
    llm_tower_free_linear(t, &t->sound);
    llm_tower_free_norm(t, &t->pre);
    llm_tower_free_norm(t, &t->placed);
    llm_tower_free_norm(t, &t->post);
    llm_tower_free_norm(t, &t->merged);

    if (t->rope.inv_freq) {
        t->ops->vec_free(t->exec, (llm_vec_t *) t->rope.inv_freq);
    }

    for (i = 0; i < LLM_TA_N; i++) {
        if (t->act_of[i]) {
            t->ops->act_free(t->exec, t->act_of[i]);
        }
    }

    if (t->kv) {
        t->ops->kv_free(t->exec, t->kv);
    }

    llm_devices_close(t->devices, t->exec);
}


void
llm_tower_free(llm_tower_t *t)
{
    size_t  i;

    if (t == NULL) {
        return;
    }

    if (t->exec) {
        llm_tower_free_device(t);
    }

    if (t->alone && t->devices) {
        llm_devices_free(t->devices);
    }

    for (i = 0; i < t->n_copies; i++) {
        free(t->copies[i]);
    }

    free(t->copies);
    free(t->used);
    free(t->layers);

    if (t->gguf) {
        llm_gguf_close(t->gguf);
    }

    free(t);
}


const llm_tower_info_t *
llm_tower_info(const llm_tower_t *t)
{
    return &t->info;
}
