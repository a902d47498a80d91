/*
 * The table of families, and the keys of an mmproj file that they take; see
 * rule.h.
 */

#include "engine/media/rule.h"

#include <math.h>

#define LLM_RULE_MOST  65536            /* pixels, at most, of sides in keys */


/*
 * Numbers that are not in a file are those of the published processors, with
 * two exceptions: the least area of Qwen2.5-VL is 8 cells, llama.cpp's bound,
 * and that of Qwen3-VL is the square of a third of the encoder's table, at
 * least 8 cells: 256 x 256 for the published encoders, of tables of 768 x 768.
 */

static const llm_image_rule_t  llm_rules[] = {

    { .projector = "qwen3vl_merger",
      .sizing = LLM_SIZING_AREA, .filter = LLM_RESAMPLE_BICUBIC,
      .merge = 2, .frames = 1, .max_pixels = 16777216,
      .words = { .places = { "<|image_pad|>" },
                 .begin = "<|vision_start|>", .end = "<|vision_end|>" } },

    { .projector = "qwen2.5vl_merger", .other = "qwen2.5o",
      .sizing = LLM_SIZING_AREA, .filter = LLM_RESAMPLE_BICUBIC,
      .merge = 2, .frames = 1, .max_pixels = 12845056,
      .words = { .places = { "<|image_pad|>" },
                 .begin = "<|vision_start|>", .end = "<|vision_end|>" } },

    { .projector = "glm4v",
      .sizing = LLM_SIZING_AREA, .filter = LLM_RESAMPLE_BICUBIC,
      .merge = 2, .frames = 2, .min_pixels = 12544, .max_pixels = 9633792,
      .words = { .places = { "<|image|>" }, .begin = "<|begin_of_image|>",
                 .end = "<|end_of_image|>" } },

    { .projector = "gemma3",
      .sizing = LLM_SIZING_SQUARE, .filter = LLM_RESAMPLE_BILINEAR,
      .merge = 4,
      .words = { .places = { "<start_of_image>" },
                 .outside = "\n\n", .begin = "<start_of_image>",
                 .end = "<end_of_image>" } },

    { .projector = "gemma4v",
      .sizing = LLM_SIZING_FILL, .filter = LLM_RESAMPLE_BICUBIC,
      .merge = 3, .max_tokens = 280,
      .words = { .places = { "<|image|>" },
                 .begin = "<|image>", .end = "<image|>" } },

    { .projector = "pixtral",
      .sizing = LLM_SIZING_EDGE, .filter = LLM_RESAMPLE_BICUBIC,
      .merge = 1, .breaks = 1,
      .words = { .places = { "[IMG]" }, .end = "[IMG_END]" } },

    { .projector = "idefics3",
      .sizing = LLM_SIZING_SPLIT, .filter = LLM_RESAMPLE_LANCZOS,
      .merge = 4,
      .words = { .places = { "<image>" },
                 .tile = "<fake_token_around_image><row_%R_col_%C>",
                 .row = "\n",
                 .whole = "\n\n<fake_token_around_image><global-img>",
                 .alone = "<fake_token_around_image><global-img>",
                 .end = "<fake_token_around_image>" } },

    { .projector = "internvl",
      .sizing = LLM_SIZING_GRID, .filter = LLM_RESAMPLE_BICUBIC,
      .merge = 2, .min_tiles = 1, .max_tiles = 12,
      .words = { .places = { "<IMG_CONTEXT>", "<image>" },
                 .begin = "<img>", .end = "</img>" } },

    { .projector = "gemma4uv",
      .sizing = LLM_SIZING_FILL, .filter = LLM_RESAMPLE_BICUBIC,
      .merge = 3, .joined = 1, .max_tokens = 280,
      .words = { .places = { "<|image|>" },
                 .begin = "<|image>", .end = "<image|>" } },

    { .projector = "kimivl",
      .sizing = LLM_SIZING_EXTEND, .filter = LLM_RESAMPLE_BICUBIC,
      .merge = 2, .max_tokens = 1024, .max_side = 511,
      .words = { .places = { "<|media_pad|>" },
                 .begin = "<|media_start|>image<|media_content|>",
                 .end = "<|media_end|>" } },

    { .projector = "mlp",
      .sizing = LLM_SIZING_MIDDLE, .filter = LLM_RESAMPLE_BICUBIC,
      .merge = 1,
      .words = { .places = { "<image>" } } }
};

/* numbers of the file, where it has them */
static const struct {
    const char  *key;
    size_t       offset;                /* in llm_image_rule_t */
    uint32_t     min;
    uint32_t     max;
    int          needed;
} llm_rule_keys[] = {
    { "clip.vision.patch_size", offsetof(llm_image_rule_t, patch), 1, 1024,
      1 },
    { "clip.vision.image_size", offsetof(llm_image_rule_t, side), 1,
      LLM_RULE_MOST, 1 },
    { "clip.vision.spatial_merge_size", offsetof(llm_image_rule_t, merge), 1,
      64, 0 },
    { "clip.vision.projector.scale_factor", offsetof(llm_image_rule_t, merge),
      1, 64, 0 },
    { "clip.vision.preproc_image_size", offsetof(llm_image_rule_t, longest), 1,
      LLM_RULE_MOST, 0 },
    { "clip.vision.preproc_min_tiles", offsetof(llm_image_rule_t, min_tiles),
      1, 64, 0 },
    { "clip.vision.preproc_max_tiles", offsetof(llm_image_rule_t, max_tiles),
      1, 64, 0 }
};


/* a number of a side; *v is unchanged if it is not in the file */

static int
llm_rule_number(const llm_gguf_t *g, const char *key, uint32_t min,
    uint32_t max, int needed, uint32_t *v, llm_err_t *err)
{
    int       rc;
    uint32_t  n;

    rc = llm_gguf_get_u32(g, key, &n, err);

    if (rc == LLM_ABSENT) {
        return needed ? llm_fail(err, "%s: %s is missing", llm_gguf_name(g),
                                 key)
                      : LLM_OK;
    }

    if (rc != LLM_OK) {
        return LLM_ERROR;
    }

    if (n < min || n > max) {
        return llm_fail(err, "%s: %s: %u is out of range (%u ... %u)",
                        llm_gguf_name(g), key, (unsigned) n, (unsigned) min,
                        (unsigned) max);
    }

    *v = n;

    return LLM_OK;
}


static int
llm_rule_colors(const llm_gguf_t *g, const char *key, int divisor,
    float v[3], llm_err_t *err)
{
    int                   i;
    const llm_gguf_kv_t  *kv;

    kv = llm_gguf_find(g, key);

    if (kv == NULL || kv->type != LLM_GGUF_ARRAY || kv->count != 3
        || kv->item == LLM_GGUF_STR || kv->item == LLM_GGUF_ARRAY)
    {
        return llm_fail(err, "%s: %s must be three numbers", llm_gguf_name(g),
                        key);
    }

    for (i = 0; i < 3; i++) {
        v[i] = (float) llm_gguf_item_double(kv, (uint64_t) i);

        if (!isfinite(v[i]) || (divisor && v[i] <= 0)) {
            return llm_fail(err, "%s: %s: number %d is out of range",
                            llm_gguf_name(g), key, i + 1);
        }
    }

    return LLM_OK;
}


int
llm_image_colors(const llm_gguf_t *g, float mean[3], float std[3],
    llm_err_t *err)
{
    return llm_rule_colors(g, "clip.vision.image_mean", 0, mean, err) == LLM_OK
           ? llm_rule_colors(g, "clip.vision.image_std", 1, std, err)
           : LLM_ERROR;
}


/* the projector of the images: files with several encoders name it apart, and
   the first ones, of LLaVA, not at all */

static int
llm_rule_find(llm_image_rule_t *rule, const llm_gguf_t *g, llm_err_t *err)
{
    int        rc, llava;
    char       shown[64];
    size_t     i;
    llm_str_t  name;

    rc = llm_gguf_get_str(g, "clip.projector_type", &name, err);

    if (rc == LLM_ABSENT) {
        rc = llm_gguf_get_str(g, "clip.vision.projector_type", &name, err);
    }

    if (rc == LLM_ABSENT
        && llm_gguf_get_bool(g, "clip.has_llava_projector", &llava, NULL)
           == LLM_OK && llava)
    {
        name.data = "mlp";
        name.len = 3;
        rc = LLM_OK;
    }

    if (rc == LLM_ABSENT) {
        return llm_fail(err, "%s: it has no clip.projector_type, so it is not "
                        "the encoder of a model (mmproj)", llm_gguf_name(g));
    }

    if (rc != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < llm_nelems(llm_rules); i++) {
        if (llm_str_is(name, llm_rules[i].projector)
            || (llm_rules[i].other && llm_str_is(name, llm_rules[i].other)))
        {
            *rule = llm_rules[i];
            return LLM_OK;
        }
    }

    (void) llm_clean(shown, sizeof(shown), name.data, name.len);

    return llm_fail(err, "%s: the projector \"%s\" is not known",
                    llm_gguf_name(g), shown);
}


/*
 * Gemma 4: the position table has an end.  The processor has budgets of 70,
 * 140, 280 tokens and more; the default is 280, but the greatest one with which
 * an image of 4:1 still fits the table, if that is less.
 */

static void
llm_rule_fill(llm_image_rule_t *rule, const llm_gguf_t *g)
{
    const llm_gguf_tensor_t  *t;

    t = llm_gguf_find_tensor(g, "v.position_embd.weight");

    if (t == NULL || t->n_dims < 2 || t->ne[1] == 0
        || t->ne[1] > UINT32_MAX)
    {
        return;
    }

    rule->max_side = (uint32_t) t->ne[1];

    while (rule->max_tokens > 70
           && 4.0 * rule->max_tokens * rule->merge * rule->merge
              > (double) rule->max_side * rule->max_side)
    {
        rule->max_tokens /= 2;
    }
}


/* what follows from the numbers, or does not fit together */

static int
llm_rule_finish(llm_image_rule_t *rule, const llm_gguf_t *g, llm_err_t *err)
{
    uint64_t  cell, third;

    cell = (uint64_t) rule->patch * rule->merge;

    if (rule->joined) {
        rule->patch = (uint32_t) cell;
        rule->merge = 1;
    }

    switch (rule->sizing) {

    case LLM_SIZING_AREA:
        if (rule->min_pixels == 0) {
            third = rule->side / 3;
            rule->min_pixels = 8 * cell * cell;

            if (strcmp(rule->projector, "qwen3vl_merger") == 0) {
                rule->min_pixels = llm_max(rule->min_pixels, third * third);
            }
        }

        break;

    case LLM_SIZING_FILL:
        llm_rule_fill(rule, g);
        break;

    case LLM_SIZING_EDGE:
        rule->longest = rule->side;
        break;

    case LLM_SIZING_SPLIT:
        if (rule->longest == 0) {
            rule->longest = 4 * rule->side;
        }

        break;

    default:
        break;
    }

    if (cell > LLM_RULE_MOST
        || ((rule->sizing == LLM_SIZING_SQUARE
             || rule->sizing == LLM_SIZING_MIDDLE
             || rule->sizing == LLM_SIZING_SPLIT
             || rule->sizing == LLM_SIZING_GRID)
            && rule->side % cell))
    {
        return llm_fail(err, "%s: images of %u pixels a side have no whole "
                        "number of cells of %llu", llm_gguf_name(g),
                        (unsigned) rule->side, (unsigned long long) cell);
    }

    if (rule->min_tiles > rule->max_tiles
        || (rule->max_pixels && rule->min_pixels > rule->max_pixels)
        || llm_max(rule->longest, rule->side) / rule->side > 64)
    {
        return llm_fail(err, "%s: the bounds of tiles or pixels contradict "
                        "each other", llm_gguf_name(g));
    }

    return LLM_OK;
}


int
llm_image_rule_read(llm_image_rule_t *rule, const llm_gguf_t *g,
    llm_err_t *err)
{
    int               has;
    size_t            i;
    llm_sound_rule_t  sound;

    has = 0;

    if (llm_gguf_get_bool(g, "clip.has_vision_encoder", &has, err)
        == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    if (!has && llm_sound_rule_read(&sound, g)) {
        memset(rule, 0, sizeof(llm_image_rule_t));
        rule->sound = sound;
        return LLM_OK;
    }

    if (llm_rule_find(rule, g, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (!has) {
        return llm_fail(err, "%s: it has no encoder of images",
                        llm_gguf_name(g));
    }

    for (i = 0; i < llm_nelems(llm_rule_keys); i++) {
        if (llm_rule_number(g, llm_rule_keys[i].key, llm_rule_keys[i].min,
                            llm_rule_keys[i].max, llm_rule_keys[i].needed,
                            (uint32_t *) ((char *) rule
                                          + llm_rule_keys[i].offset), err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    if (llm_image_colors(g, rule->mean, rule->std, err) != LLM_OK) {
        return LLM_ERROR;
    }

    (void) llm_sound_rule_read(&rule->sound, g);

    return llm_rule_finish(rule, g, err);
}


void
llm_image_rule_limit(llm_image_rule_t *rule, uint32_t tokens)
{
    uint32_t  cell, tiles, root;
    uint64_t  pixels;

    if (tokens == 0) {
        return;
    }

    cell = rule->patch * rule->merge;
    tiles = (rule->side / cell) * (rule->side / cell);
    tiles = tiles ? tokens / tiles : 0;

    /* one is the whole image */
    tiles = tiles > 2 ? tiles - 1 : 1;

    switch (rule->sizing) {

    case LLM_SIZING_AREA:
        pixels = (uint64_t) tokens * cell * cell * rule->frames;
        rule->max_pixels = llm_min(rule->max_pixels, pixels);
        /* an area that is raised to the least one is rounded up, too */
        rule->min_pixels = llm_min(rule->min_pixels, rule->max_pixels / 4);
        break;

    case LLM_SIZING_FILL:
        rule->max_tokens = llm_min(rule->max_tokens, tokens);
        break;

    case LLM_SIZING_EDGE:
        /* root rows of root cells, and a break after each */
        root = (uint32_t) sqrt(tokens + 1);
        root = root > 1 ? root - 1 : 1;
        rule->longest = llm_min(rule->longest, root * cell);
        break;

    case LLM_SIZING_SPLIT:
        root = (uint32_t) sqrt(tiles);
        rule->longest = llm_min(rule->longest, root * rule->side);
        break;

    case LLM_SIZING_GRID:
        rule->max_tiles = llm_min(rule->max_tiles, tiles);
        rule->min_tiles = llm_min(rule->min_tiles, rule->max_tiles);
        break;

    case LLM_SIZING_EXTEND:
        rule->max_tokens = llm_min(rule->max_tokens, tokens);
        rule->most = tokens;
        break;

    default:
        break;
    }
}


void
llm_image_lut(const float mean[3], const float std[3], float lut[3][256])
{
    int    c, v;
    float  x;

    for (c = 0; c < 3; c++) {
        for (v = 0; v < 256; v++) {
            x = (float) (v * (1 / 255.0));
            lut[c][v] = (x - mean[c]) / std[c];
        }
    }
}
