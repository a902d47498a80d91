/*
 * A tower's family, by the projector that its file names, and the fields that
 * all families have; see tower_internal.h.
 */

#include "engine/media/rule.h"
#include "engine/model/tower_internal.h"

#include <math.h>
#include <stdio.h>

#define LLM_TOWER(ID)  extern const llm_tower_kind_t  llm_tower_##ID;
#include "engine/model/towers.def"

static const llm_tower_kind_t  *const llm_tower_kinds[] = {
#define LLM_TOWER(ID)  &llm_tower_##ID,
#include "engine/model/towers.def"
};


/* the first files of LLaVA do not name their projector */

static int
llm_tower_is_llava(const llm_gguf_t *g, llm_str_t *s)
{
    int  llava;

    s->data = "mlp";
    s->len = 3;

    return llm_gguf_get_bool(g, "clip.has_llava_projector", &llava, NULL)
           == LLM_OK && llava;
}


/* the family of this name and kind; NULL: it is not known */

static const llm_tower_kind_t *
llm_tower_named(llm_str_t s, int sound)
{
    size_t                   i;
    const llm_tower_kind_t  *k;

    for (i = 0; i < llm_nelems(llm_tower_kinds); i++) {
        k = llm_tower_kinds[i];

        if (k->sound == sound
            && (llm_str_is(s, k->projector)
                || (k->other && llm_str_is(s, k->other))))
        {
            return k;
        }
    }

    return NULL;
}


int
llm_tower_listens(const llm_gguf_t *g)
{
    llm_str_t  s;

    return llm_sound_projector(g, &s) && llm_tower_named(s, 1);
}


/* a file may have no images; its encoder of sound is known then */

int
llm_tower_sees(const llm_gguf_t *g)
{
    int  has;

    return !llm_tower_listens(g)
           || (llm_gguf_get_bool(g, "clip.has_vision_encoder", &has, NULL)
               == LLM_OK && has);
}


/* finds the family by the projector's name */

int
llm_tower_kind(llm_tower_load_t *l)
{
    char         name[64];
    llm_str_t    s;
    llm_gguf_t  *g = l->t->gguf;

    if (llm_gguf_get_str(g, "general.architecture", &s, NULL) != LLM_OK
        || !llm_str_is(s, "clip"))
    {
        return llm_fail(l->err, "%s: general.architecture: not \"clip\": this "
                        "is not the tower of a model (mmproj)",
                        llm_gguf_name(g));
    }

    if (l->sound) {
        if (!llm_sound_projector(g, &s)) {
            return llm_fail(l->err, "%s: clip.has_audio_encoder: the file has "
                            "no encoder of sound", llm_gguf_name(g));
        }

    } else if (llm_gguf_get_str(g, "clip.projector_type", &s, NULL) != LLM_OK
        && llm_gguf_get_str(g, "clip.vision.projector_type", &s, NULL)
           != LLM_OK
        && !llm_tower_is_llava(g, &s))
    {
        return llm_fail(l->err, "%s: clip.projector_type: it is missing: the "
                        "file has no tower for images", llm_gguf_name(g));
    }

    (void) llm_clean(name, sizeof(name), s.data, llm_min(s.len, 40));

    l->t->kind = llm_tower_named(s, l->sound);
    l->t->part = l->sound ? 'a' : 'v';

    if (l->t->kind) {
        snprintf(l->t->info.projector, sizeof(l->t->info.projector), "%s",
                 l->t->kind->projector);
        return llm_gguf_types_known(g, l->err);
    }

    return llm_fail(l->err, "%s: clip.projector_type: the projector \"%s\" is "
                    "not supported", llm_gguf_name(g), name);
}


/* the value of each byte in each colour */

static int
llm_tower_values(llm_tower_load_t *l)
{
    uint32_t           c, i;
    llm_tower_t       *t = l->t;
    llm_tower_info_t  *info = &t->info;

    if (llm_image_colors(t->gguf, info->mean, info->std, l->err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_image_lut(info->mean, info->std, t->lut);

    for (c = 0; t->kind->signed_pixels && c < 3; c++) {
        for (i = 0; i < 256; i++) {
            t->lut[c][i] = 2 * t->lut[c][i] - 1;
        }
    }

    return LLM_OK;
}


/* of the layers; a family has some or none */

static int
llm_tower_layer_fields(llm_tower_load_t *l)
{
    llm_tower_t  *t = l->t;

    if (t->kind->bare) {
        return llm_tower_u32(l, "block_count", 0, 0, &t->info.n_layers);
    }

    if (llm_tower_u32(l, "block_count", 1, LLM_TOWER_LAYERS,
                      &t->info.n_layers) != LLM_OK
        || llm_tower_u32(l, "attention.head_count", 1, t->width, &t->n_heads)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (t->width % t->n_heads || t->width / t->n_heads > LLM_MAX_HEAD_DIM) {
        return llm_fail(l->err, "%s: clip.%s.attention.head_count: %u does not "
                        "fit %u", llm_gguf_name(t->gguf),
                        t->kind->sound ? "audio" : "vision", t->n_heads,
                        t->width);
    }

    t->head_dim = t->width / t->n_heads;
    t->key_dim = t->head_dim;
    t->scale = 1 / sqrtf((float) t->head_dim);

    return LLM_OK;
}


static int
llm_tower_epsilon(llm_tower_load_t *l)
{
    char          key[64];
    llm_tower_t  *t = l->t;

    snprintf(key, sizeof(key), "clip.%s.attention.layer_norm_epsilon",
             t->kind->sound ? "audio" : "vision");
    t->eps = -1;

    if (llm_gguf_get_f32(t->gguf, key, &t->eps, l->err) == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (!(t->eps >= 0 && t->eps < 1)) {
        return llm_fail(l->err, "%s: %s: %g is not within 0 and 1",
                        llm_gguf_name(t->gguf), key, t->eps);
    }

    return LLM_OK;
}


/* an encoder of spectrograms; each of its rows has a position, or is found by
   its distance */

static int
llm_tower_sound_fields(llm_tower_load_t *l)
{
    uint32_t                  window, least;
    llm_tower_t              *t = l->t;
    const llm_gguf_tensor_t  *table;

    t->group = t->kind->group;
    window = t->kind->window;

    if (llm_tower_u32(l, "num_mel_bins", 1, LLM_TOWER_MELS, &t->info.n_mels)
           != LLM_OK
        || llm_tower_u32(l, "embedding_length", 1, LLM_MAX_WIDTH / 3,
                         &t->width) != LLM_OK
        || llm_tower_layer_fields(l) != LLM_OK
        || llm_tower_u32(l, "projection_dim", 1, LLM_MAX_WIDTH,
                         &t->info.n_embd) != LLM_OK
        || (t->kind->stacks
            && llm_tower_u32(l, "projector.stack_factor", 1,
                             LLM_MAX_WIDTH / t->width, &t->group) != LLM_OK)
        || llm_tower_epsilon(l) != LLM_OK)
    {
        return LLM_ERROR;
    }

    t->cell = t->width * (t->kind->stacks ? t->group : 1);

    if (t->kind->usm) {
        t->info.max_frames = LLM_SOUND_USM;
        return LLM_OK;
    }

    table = llm_gguf_find_tensor(t->gguf, "a.position_embd.weight");
    least = t->kind->sliced ? llm_sound_sliced(LLM_SOUND_SLICE)
                            : llm_max(t->group, window / 2);

    if (table == NULL || table->ne[1] < least
        || table->ne[1] > LLM_TOWER_PATCHES)
    {
        return llm_fail(l->err, "%s: a.position_embd.weight: not a table of %u "
                        "to %u positions", llm_gguf_name(t->gguf), least,
                        LLM_TOWER_PATCHES);
    }

    t->info.max_frames = t->kind->sliced
                         ? LLM_SOUND_SIGHT
                         : llm_sound_chunk((uint32_t) table->ne[1], window);
    t->window = window / 2;
    t->n_values = 3 * t->width;

    return LLM_OK;
}


int
llm_tower_fields(llm_tower_load_t *l)
{
    uint32_t      side, merge;
    llm_tower_t  *t = l->t;

    side = 0;
    merge = t->kind->merge;
    t->act = t->kind->act;
    t->merge_scale = 1;
    t->n_parts = 1;

    if (t->kind->sound) {
        return llm_tower_sound_fields(l);
    }

    if (llm_tower_u32(l, "image_size", 1, 65536, &side) != LLM_OK
        || llm_tower_u32(l, "patch_size", 1, 256, &t->info.patch) != LLM_OK
        || llm_tower_u32(l, "embedding_length", 1, 65536, &t->width) != LLM_OK
        || llm_tower_layer_fields(l) != LLM_OK
        || (!t->kind->any_width
            && llm_tower_u32(l, "projection_dim", 1, LLM_MAX_WIDTH,
                             &t->info.n_embd) != LLM_OK)
        || llm_tower_u32(l, "spatial_merge_size", 1, 16, &merge) != LLM_OK
        || llm_tower_u32(l, "projector.scale_factor", 1, 16, &merge)
           != LLM_OK
        || llm_tower_values(l) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (llm_tower_epsilon(l) != LLM_OK) {
        return LLM_ERROR;
    }

    t->info.patch *= t->kind->joined ? merge : 1;
    t->info.merge = t->kind->joined ? 1 : merge;
    t->info.side = t->kind->fixed ? side : 0;
    t->n_values = 3 * t->info.patch * t->info.patch;

    if (t->info.side && t->info.side % (t->info.patch * merge)) {
        return llm_fail(l->err, "%s: clip.vision.image_size: %u is no multiple "
                        "of %u pixels", llm_gguf_name(t->gguf), t->info.side,
                        t->info.patch * merge);
    }

    return LLM_OK;
}
