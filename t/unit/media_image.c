/*
 * Images made ready for encoders: resizing against Pillow, sizes, tiles and
 * tokens of each family against transformers, rules read from files, and the
 * pixels of the shared models.
 */

#include "engine/media/rule.h"
#include "t/unit/gguf_build.h"
#include "t/unit/media_file.h"
#include "t/unit/media_expected.h"
#include "t/unit/tap.h"

#include <cjson/cJSON.h>
#include <math.h>

static llm_media_pool_t  *pool;


/* the byte that media_expected.py has, too */

static uint8_t
number(uint64_t seed, uint64_t i)
{
    uint64_t  z;

    z = seed * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u;
    z ^= z >> 29;
    z *= 0x94d049bb133111ebu;

    return (uint8_t) (z >> 56);
}


static int
noise(llm_image_t *image, uint64_t seed, uint32_t width, uint32_t height)
{
    size_t  i;

    if (llm_image_create(image, width, height) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < (size_t) width * height * 3; i++) {
        image->rgb[i] = number(seed, i);
    }

    return LLM_OK;
}


static uint64_t
fnv(const uint8_t *p, size_t n)
{
    uint64_t  h;

    for (h = 0xcbf29ce484222325u; n--; p++) {
        h = (h ^ *p) * 0x100000001b3u;
    }

    return h;
}


static void
resizing(void)
{
    int                     good;
    size_t                  i;
    llm_err_t               err;
    llm_image_t             from, to;
    const media_resize_t   *r;

    for (i = 0; i < llm_nelems(media_resizes); i++) {
        r = &media_resizes[i];
        good = noise(&from, i, r->width, r->height) == LLM_OK
               && llm_image_resize(&from, r->to_width, r->to_height, r->filter,
                                   &to, &err) == LLM_OK;
        ok(good && fnv(to.rgb, (size_t) r->to_width * r->to_height * 3)
                   == r->sum,
           "%u x %u to %u x %u, filter %d", r->width, r->height, r->to_width,
           r->to_height, (int) r->filter);
        llm_image_free(&from);
        llm_image_free(&to);
    }

    /* as large as the bounds allow on one side */
    good = noise(&from, 1, 65535, 1) == LLM_OK
           && llm_image_resize(&from, 28, 28, LLM_RESAMPLE_LANCZOS, &to, &err)
              == LLM_OK;
    ok(good, "65535 x 1 to 28 x 28");
    llm_image_free(&from);
    llm_image_free(&to);
}


/* ---- rules ---- */

typedef struct {
    const char  *projector;
    uint32_t     side;
    uint32_t     patch;
    const char  *key;                   /* one more; NULL: none */
    uint32_t     value;
} file_t;


static void
colors(llm_buf_t *b, const char *key, float v)
{
    int  i;

    gguf_kv_array(b, key, LLM_GGUF_F32, 3);

    for (i = 0; i < 3; i++) {
        (void) llm_buf_add(b, &v, sizeof(v));
    }
}


/* reads the rule of a file with these keys; LLM_ERROR: refused */

static int
rule_of(const file_t *f, float deviation, llm_image_rule_t *rule,
    llm_err_t *err)
{
    int          rc;
    llm_buf_t    b;
    llm_gguf_t  *g;

    gguf_begin(&b, 3, 0, 7 + (f->key != NULL));
    gguf_kv_str(&b, "general.architecture", "clip");
    gguf_kv_bool(&b, "clip.has_vision_encoder", 1);
    gguf_kv_str(&b, "clip.projector_type", f->projector);
    gguf_kv_u32(&b, "clip.vision.image_size", f->side);
    gguf_kv_u32(&b, "clip.vision.patch_size", f->patch);
    colors(&b, "clip.vision.image_mean", 0.5f);
    colors(&b, "clip.vision.image_std", deviation);

    if (f->key) {
        gguf_kv_u32(&b, f->key, f->value);
    }

    memset(err, 0, sizeof(*err));
    memset(rule, 0, sizeof(*rule));
    g = llm_gguf_open_memory(b.data, b.len, "mmproj", err);
    rc = g ? llm_image_rule_read(rule, g, err) : LLM_ERROR;
    llm_gguf_close(g);
    llm_buf_free(&b);

    return rc;
}


/* what two processors do to pixels that no other does */

static void
preparing(void)
{
    int                      good;
    size_t                   i, size;
    uint8_t                 *out;
    llm_err_t                err;
    llm_image_t              from;
    llm_image_plan_t         p;
    llm_image_rule_t         rule;
    const media_prepared_t  *m;

    for (i = 0; i < llm_nelems(media_prepared); i++) {
        m = &media_prepared[i];
        file_t  file = { m->projector, m->side, m->patch, NULL, 0 };

        out = NULL;
        size = (size_t) m->to_width * m->to_height * 3;
        good = noise(&from, i, m->width, m->height) == LLM_OK
               && rule_of(&file, 0.5f, &rule, &err) == LLM_OK
               && llm_image_plan(&rule, m->width, m->height, &p, &err)
                  == LLM_OK
               && p.width == m->to_width && p.height == m->to_height
               && llm_image_plan_size(&p) == size
               && (out = malloc(size)) != NULL
               && llm_image_prepare(&rule, &p, &from, out, &err) == LLM_OK;
        ok(good && fnv(out, size) == m->sum, "%s of %u x %u: the pixels",
           m->projector, m->width, m->height);
        llm_image_free(&from);
        free(out);
    }
}


/* published models; the tokens of their processors (the shared sizes.json has
   more) */

static const file_t  qwen3 = { "qwen3vl_merger", 768, 16, NULL, 0 };
static const file_t  qwen25 = { "qwen2.5vl_merger", 560, 14, NULL, 0 };
static const file_t  glm = { "glm4v", 336, 14, NULL, 0 };
static const file_t  gemma3 = { "gemma3", 896, 14, NULL, 0 };
static const file_t  gemma4 = { "gemma4v", 224, 16, NULL, 0 };
static const file_t  mistral = { "pixtral", 1540, 14,
                                 "clip.vision.spatial_merge_size", 2 };
static const file_t  smol = { "idefics3", 512, 16,
                              "clip.vision.preproc_image_size", 2048 };
static const file_t  intern = { "internvl", 448, 14, NULL, 0 };
static const file_t  llava = { "mlp", 336, 14, NULL, 0 };
static const file_t  kimi = { "kimivl", 896, 14, NULL, 0 };
static const file_t  unified = { "gemma4uv", 224, 16, NULL, 0 };

static const struct {
    const file_t  *file;
    uint32_t       width;
    uint32_t       height;
    uint32_t       to_width;            /* of an entry */
    uint32_t       to_height;
    uint32_t       tile_rows;
    uint32_t       tile_cols;
    uint32_t       tokens;
} plans[] = {
    { &qwen3, 1, 1, 256, 256, 1, 1, 64 },
    { &qwen3, 100, 30, 480, 160, 1, 1, 75 },
    { &qwen3, 336, 336, 320, 320, 1, 1, 100 },
    { &qwen25, 70, 70, 84, 84, 1, 1, 9 },
    { &qwen25, 448, 448, 448, 448, 1, 1, 256 },
    { &glm, 1, 1, 84, 84, 1, 1, 9 },
    { &glm, 100, 30, 168, 56, 1, 1, 12 },
    { &gemma3, 200, 90, 896, 896, 1, 1, 256 },
    { &gemma4, 2, 3, 624, 960, 1, 1, 260 },
    { &gemma4, 100, 30, 1440, 432, 1, 1, 270 },
    { &mistral, 30, 100, 56, 112, 1, 1, 11 },
    { &mistral, 448, 448, 448, 448, 1, 1, 271 },
    { &smol, 100, 30, 512, 512, 2, 4, 576 },
    { &smol, 1, 1, 512, 512, 4, 4, 1088 },
    { &intern, 2, 3, 448, 448, 3, 2, 1792 },
    { &intern, 448, 448, 448, 448, 1, 1, 256 },
    { &llava, 1000, 30, 336, 336, 1, 1, 576 },
    { &kimi, 300, 30, 308, 56, 1, 1, 22 },
    { &kimi, 1, 1, 28, 28, 1, 1, 1 },
    { &kimi, 896, 896, 896, 896, 1, 1, 1024 },
    { &kimi, 1000, 2000, 644, 1288, 1, 1, 1058 },
    { &unified, 2, 3, 624, 960, 1, 1, 260 },
    { &unified, 100, 30, 1440, 432, 1, 1, 270 }
};


static void
planning(void)
{
    size_t             i;
    llm_err_t          err;
    llm_image_plan_t   p;
    llm_image_rule_t   rule;

    for (i = 0; i < llm_nelems(plans); i++) {
        if (rule_of(plans[i].file, 0.5f, &rule, &err) != LLM_OK
            || llm_image_plan(&rule, plans[i].width, plans[i].height, &p, &err)
               != LLM_OK)
        {
            ok(0, "%s: %s", plans[i].file->projector, err.msg);
            continue;
        }

        ok(p.width == plans[i].to_width && p.height == plans[i].to_height
           && p.tile_rows == plans[i].tile_rows
           && p.tile_cols == plans[i].tile_cols
           && p.n_tokens == plans[i].tokens,
           "%s of %u x %u: %u x %u, tiles %u x %u, %u tokens",
           rule.projector, plans[i].width, plans[i].height, p.width, p.height,
           p.tile_rows, p.tile_cols, p.n_tokens);
    }

    is_int(rule_of(&qwen3, 0.5f, &rule, &err), LLM_OK, "a rule");
    is_int(llm_image_plan(&rule, 201, 1, &p, &err), LLM_ERROR, "201:1");
    is_int(err.status, 400, "is too narrow");
    is_str(err.code, "image_too_small", "its code");
    is_int(llm_image_plan(&rule, 200, 1, &p, &err), LLM_OK, "200:1 is not");
}


/* of any image and any bound: whole cells, no more tokens than are allowed but
   for what cannot be less, and no more memory than that takes */

static void
limiting(void)
{
    int                bad;
    size_t             i;
    uint32_t           k, w, h, most, least;
    llm_err_t          err;
    llm_image_plan_t   p;
    llm_image_rule_t   rule;

    static const file_t *const  files[] = {
        &qwen3, &qwen25, &glm, &gemma3, &gemma4, &mistral, &smol, &intern,
        &llava, &kimi, &unified
    };
    /* the tokens that an image has at least */
    static const uint32_t  leasts[] = {
        4, 4, 4, 256, 1, 1, 64, 256, 576, 1, 1
    };

    for (i = 0; i < llm_nelems(files); i++) {
        for (bad = 0, k = 0; k < 3000; k++) {
            w = 1 + number(k, 1) * number(k, 2) % (k % 3 ? 3000 : 65535);
            h = 1 + number(k, 3) * number(k, 4) % (k % 5 ? 3000 : 65535);
            most = 1 + number(k, 5) * (k % 7 ? 1 : 30);

            if (rule_of(files[i], 0.5f, &rule, &err) != LLM_OK) {
                bad++;
                continue;
            }

            llm_image_rule_limit(&rule, most);

            if (llm_image_plan(&rule, w, h, &p, &err) != LLM_OK) {
                bad += err.status != 400 || llm_max(w, h) <= 200;
                continue;
            }

            /* a side has a cell; a row of them may be long */
            least = leasts[i] + (llm_max(w, h) / llm_min(w, h) > 3
                                 ? llm_max(w, h) / llm_min(w, h) : 0);
            bad += p.width == 0 || p.height == 0
                   || p.width % (rule.patch * rule.merge)
                   || p.height % (rule.patch * rule.merge)
                   || p.n_tokens > llm_max(most, least) + p.rows
                   || p.n_tokens < 1;
        }

        is_int(bad, 0, "%s: images of any size, with bounds",
               files[i]->projector);
    }
}


static void
refusals(void)
{
    size_t             i;
    llm_err_t          err;
    llm_image_rule_t   rule;

    static const struct {
        file_t       file;
        float        deviation;
        const char  *why;
    } bad[] = {
        { { "resampler", 448, 14, NULL, 0 }, 1,
          "mmproj: the projector \"resampler\" is not known" },
        { { "gemma3", 0, 14, NULL, 0 }, 1,
          "clip.vision.image_size: 0 is out of range" },
        { { "gemma3", 897, 14, NULL, 0 }, 1, "no whole number of cells" },
        { { "qwen3vl_merger", 768, 0, NULL, 0 }, 1,
          "clip.vision.patch_size: 0 is out of range" },
        { { "qwen3vl_merger", 768, 16, "clip.vision.spatial_merge_size",
            4000000000u }, 1,
          "clip.vision.spatial_merge_size: 4000000000 is out of range" },
        { { "internvl", 448, 14, "clip.vision.preproc_max_tiles", 100000 }, 1,
          "clip.vision.preproc_max_tiles: 100000 is out of range" },
        { { "internvl", 448, 14, "clip.vision.preproc_min_tiles", 13 }, 1,
          "contradict each other" },
        { { "idefics3", 8, 1, "clip.vision.preproc_image_size", 65536 }, 1,
          "contradict each other" },
        { { "gemma3", 896, 14, NULL, 0 }, 0,
          "clip.vision.image_std: number 1 is out of range" },
        { { "gemma3", 896, 14, NULL, 0 }, NAN,
          "clip.vision.image_std: number 1 is out of range" }
    };

    for (i = 0; i < llm_nelems(bad); i++) {
        is_int(rule_of(&bad[i].file, bad[i].deviation, &rule, &err),
               LLM_ERROR, "%s: refused", bad[i].why);
        ok(strstr(err.msg, bad[i].why) != NULL, "%s", err.msg);
    }
}


/* ---- what stands around an image ---- */

static int
layout_text(void *ctx, const char *text, size_t len)
{
    return llm_buf_add(ctx, text, len);
}


static int
layout_entry(void *ctx, uint32_t entry)
{
    return llm_buf_addf(ctx, "(%u)", (unsigned) entry);
}


static const struct {
    const file_t  *file;
    uint32_t       width;
    uint32_t       height;
    const char    *text;
} layouts[] = {
    { &qwen3, 300, 300, "<|vision_start|>(0)<|vision_end|>" },
    { &glm, 300, 300, "<|begin_of_image|>(0)<|end_of_image|>" },
    { &gemma3, 300, 300, "<start_of_image>(0)<end_of_image>" },
    { &gemma4, 300, 300, "<|image>(0)<image|>" },
    { &mistral, 300, 300, "(0)[IMG_END]" },
    { &intern, 300, 300, "<img>(0)</img>" },
    { &intern, 400, 200, "<img>(0)(1)(2)</img>" },
    { &llava, 400, 200, "(0)" },
    { &kimi, 400, 200,
      "<|media_start|>image<|media_content|>(0)<|media_end|>" },
    { &unified, 400, 200, "<|image>(0)<image|>" },
    { &smol, 2048, 512,
      "<fake_token_around_image><row_1_col_1>(0)"
      "<fake_token_around_image><row_1_col_2>(1)"
      "<fake_token_around_image><row_1_col_3>(2)"
      "<fake_token_around_image><row_1_col_4>(3)"
      "\n\n<fake_token_around_image><global-img>(4)"
      "<fake_token_around_image>" },
    { &smol, 1, 2,
      "<fake_token_around_image><row_1_col_1>(0)"
      "<fake_token_around_image><row_1_col_2>(1)\n"
      "<fake_token_around_image><row_2_col_1>(2)"
      "<fake_token_around_image><row_2_col_2>(3)\n"
      "<fake_token_around_image><row_3_col_1>(4)"
      "<fake_token_around_image><row_3_col_2>(5)\n"
      "<fake_token_around_image><row_4_col_1>(6)"
      "<fake_token_around_image><row_4_col_2>(7)"
      "\n\n<fake_token_around_image><global-img>(8)"
      "<fake_token_around_image>" }
};

static void
around(void)
{
    size_t               i;
    llm_buf_t            b;
    llm_err_t            err;
    llm_image_plan_t     p;
    llm_image_rule_t     rule;
    llm_image_layout_t   to = { &b, layout_text, layout_entry };

    for (i = 0; i < llm_nelems(layouts); i++) {
        llm_buf_init(&b, 0);

        if (rule_of(layouts[i].file, 0.5f, &rule, &err) != LLM_OK
            || llm_image_plan(&rule, layouts[i].width, layouts[i].height, &p,
                              &err) != LLM_OK
            || llm_image_layout(&rule, &p, &to) != LLM_OK)
        {
            ok(0, "%s", err.msg);
        }

        is_str(b.data, layouts[i].text, "%s: around an image",
               layouts[i].file->projector);
        llm_buf_free(&b);
    }

    /* an image that is one tile has no rows and columns */
    rule.longest = rule.side;
    llm_buf_init(&b, 0);
    is_int(llm_image_plan(&rule, 100, 90, &p, &err), LLM_OK, "one tile");
    is_int(llm_image_layout(&rule, &p, &to), LLM_OK, "and what is around");
    is_str(b.data, "<fake_token_around_image><global-img>(0)"
           "<fake_token_around_image>", "no rows and columns");
    llm_buf_free(&b);
}


/* ---- the shared fixtures ---- */

static cJSON *
json(const char *path)
{
    FILE       *f;
    cJSON      *v;
    size_t      n;
    llm_buf_t   b;

    f = fopen(path, "rb");

    if (f == NULL) {
        return NULL;
    }

    llm_buf_init(&b, 0);

    while (llm_buf_reserve(&b, 65536)
           && (n = fread(b.data + b.len, 1, 65536, f)) > 0)
    {
        b.len += n;
    }

    (void) llm_buf_addc(&b, '\0');
    fclose(f);
    v = cJSON_Parse(b.data);
    llm_buf_free(&b);

    return v;
}


static uint32_t
at(const cJSON *item, const char *key, int i)
{
    return (uint32_t) cJSON_GetArrayItem(cJSON_GetObjectItem(item, key), i)
           ->valueint;
}


static int
size_agrees(const llm_image_rule_t *rule, const cJSON *c)
{
    int               narrow;
    uint32_t          w, h;
    llm_err_t         err;
    llm_image_plan_t  p;

    w = at(c, "image", 0);
    h = at(c, "image", 1);
    narrow = cJSON_GetObjectItem(c, "tokens") == NULL
             || !cJSON_IsNumber(cJSON_GetObjectItem(c, "tokens"));

    if (llm_image_plan(rule, w, h, &p, &err) != LLM_OK) {
        return narrow;
    }

    if (!narrow
        && p.n_tokens == (uint32_t) cJSON_GetObjectItem(c, "tokens")->valueint
        && (cJSON_GetObjectItem(c, "size")
            ? p.width == at(c, "size", 0) && p.height == at(c, "size", 1)
            : p.tile_rows == at(c, "tiles", 0)
              && p.tile_cols == at(c, "tiles", 1)))
    {
        return 1;
    }

    printf("# %u x %u: %u x %u, %u x %u tiles, %u tokens\n", w, h, p.width,
           p.height, p.tile_rows, p.tile_cols, p.n_tokens);

    return 0;
}


static void
sizes(const char *fixtures)
{
    int                n, good;
    char               path[1100];
    size_t             i;
    cJSON             *all, *c, *list;
    llm_err_t          err;
    llm_image_rule_t   rule;

    static const struct {
        const char    *name;            /* begins so */
        const file_t  *file;
        uint64_t       min_pixels;      /* 0: the rule's own */
        uint64_t       max_pixels;
    } of[] = {
        { "qwen3vl: patch 16", &qwen3, 65536, 16777216 },
        { "qwen3vl as llama.cpp", &qwen3, 8 * 1024, 4096 * 1024 },
        { "qwen2.5vl: patch 14", &qwen25, 3136, 12845056 },
        { "qwen2.5vl as llama.cpp", &qwen25, 8 * 784, 4096 * 784 },
        { "glm4.1v", &glm, 0, 0 },
        { "gemma4", &gemma4, 0, 0 },
        { "mistral3", &mistral, 0, 0 },
        { "smolvlm", &smol, 0, 0 },
        { "internvl", &intern, 0, 0 }
    };

    snprintf(path, sizeof(path), "%s/vision/sizes/sizes.json", fixtures);
    all = json(path);

    if (all == NULL) {
        skip("the shared fixtures have no vision/sizes");
        return;
    }

    is_int(cJSON_GetArraySize(all), llm_nelems(of), "rules of sizes");

    cJSON_ArrayForEach(list, all) {
        for (i = 0; i < llm_nelems(of); i++) {
            if (strncmp(list->string, of[i].name, strlen(of[i].name)) == 0) {
                break;
            }
        }

        if (i == llm_nelems(of)
            || rule_of(of[i].file, 0.5f, &rule, &err) != LLM_OK)
        {
            ok(0, "%s", list->string);
            continue;
        }

        if (of[i].min_pixels) {
            rule.min_pixels = of[i].min_pixels;
            rule.max_pixels = of[i].max_pixels;
        }

        n = good = 0;

        cJSON_ArrayForEach(c, list) {
            n++;
            good += size_agrees(&rule, c);
        }

        ok(n > 80 && good == n, "%s: %d of %d sizes", list->string, good, n);
    }

    cJSON_Delete(all);
}


/* the value of each byte, which transformers computes in float32 */

static void
lut(const char *dir, const llm_image_rule_t *rule, const char *family)
{
    char    path[1200];
    FILE   *f;
    float   want[3][256], got[3][256], most;
    int     c, v;

    snprintf(path, sizeof(path), "%s/px.lut", dir);
    f = fopen(path, "rb");

    if (f == NULL || fread(want, sizeof(want), 1, f) != 1) {
        ok(0, "%s", path);

    } else {
        llm_image_lut(rule->mean, rule->std, got);

        for (most = 0, c = 0; c < 3; c++) {
            for (v = 0; v < 256; v++) {
                most = fmaxf(most, fabsf(want[c][v] - got[c][v]));
            }
        }

        ok(most == 0, "%s: values of bytes, %g apart", family, most);
    }

    if (f) {
        fclose(f);
    }
}


/* the pixels of imgN of a family; those of a JPEG may differ by what decoders
   differ by */

static void
pixels(const char *dir, const char *file, const llm_image_rule_t *rule,
    const llm_image_plan_t *p)
{
    int                  same;
    char                 path[1300];
    double               sum;
    size_t               i, size;
    uint8_t             *got, *want;
    FILE                *f;
    llm_err_t            err;
    llm_image_t          image;
    llm_media_limits_t   limits;
    llm_media_source_t   source = { .fd = -1 };

    llm_media_limits_default(&limits);
    limits.timeout = 600000;

    size = llm_image_plan_size(p);
    got = malloc(size);
    want = calloc(1, size + 1);

    snprintf(path, sizeof(path), "%s/%.4s.u8", dir, file);
    f = fopen(path, "rb");
    same = f && fread(want, 1, size + 1, f) == size;

    if (f) {
        fclose(f);
    }

    ok(same, "%s: %zu bytes", path, size);
    snprintf(path, sizeof(path), "%s/%s", dir, file);
    f = fopen(path, "rb");
    source.fd = f ? fileno(f) : -1;

    if (llm_media_image(pool, &source, &limits, NULL, &image, &err) != LLM_OK
        || llm_image_prepare(rule, p, &image, got, &err) != LLM_OK)
    {
        /* a build without the format */
        if (strstr(err.msg, "this build reads no")) {
            skip(err.msg);

        } else {
            ok(0, "%s: %s", path, err.msg);
        }

    } else {
        for (sum = 0, i = 0; i < size; i++) {
            sum += abs(got[i] - want[i]);
        }

        ok(strstr(file, ".jpg") ? sum / (double) size < 1 : sum == 0,
           "%s: pixels, %g apart", path, sum / (double) size);
    }

    llm_image_free(&image);
    free(got);
    free(want);

    if (f) {
        fclose(f);
    }
}


static void
family(const char *fixtures, const char *name)
{
    int                 e;
    char                dir[1100], path[1200];
    cJSON              *spec, *images, *i;
    llm_err_t           err;
    llm_gguf_t         *g;
    llm_image_plan_t    p;
    llm_image_rule_t    rule;

    snprintf(dir, sizeof(dir), "%s/vision/%s", fixtures, name);
    snprintf(path, sizeof(path), "%s/spec.json", dir);
    spec = json(path);
    snprintf(path, sizeof(path), "%s/mmproj.gguf", dir);
    g = spec ? llm_gguf_open(path, &err) : NULL;

    if (g == NULL) {
        skip(name);
        cJSON_Delete(spec);
        return;
    }

    is_int(llm_image_rule_read(&rule, g, &err), LLM_OK, "%s: its rule", name);
    llm_gguf_close(g);
    lut(dir, &rule, name);

    images = cJSON_GetObjectItem(spec, "images");

    cJSON_ArrayForEach(i, images) {
        const cJSON  *entries = cJSON_GetObjectItem(i, "entries");
        const cJSON  *rows = cJSON_GetObjectItem(i, "rows");

        e = cJSON_GetArraySize(entries);

        if (llm_image_plan(&rule, at(i, "size", 0), at(i, "size", 1), &p, &err)
            != LLM_OK)
        {
            ok(0, "%s: %s", name, err.msg);
            continue;
        }

        ok((int) p.n_entries == e
           && (int) p.width == cJSON_GetArrayItem(
                  cJSON_GetArrayItem(entries, 0), 0)->valueint
           && (int) p.height == cJSON_GetArrayItem(
                  cJSON_GetArrayItem(entries, 0), 1)->valueint
           && (int) p.n_rows == cJSON_GetArrayItem(rows, 0)->valueint,
           "%s: %u entries of %u x %u, %u rows", name, p.n_entries, p.width,
           p.height, p.n_rows);
        pixels(dir, cJSON_GetObjectItem(i, "file")->valuestring, &rule, &p);
    }

    cJSON_Delete(spec);
}


int
main(void)
{
    size_t       i;
    const char  *fixtures;

    static const char *const  families[] = {
        "qwen3vl", "qwen25vl", "qwen35", "gemma3", "gemma4", "gemma4e",
        "mistral3", "smolvlm", "internvl", "glm4v"
    };

    resizing();
    preparing();
    planning();
    limiting();
    refusals();
    around();

    fixtures = tap_fixtures();

    if (fixtures == NULL) {
        skip("there are no shared fixtures");
        return done_testing();
    }

    sizes(fixtures);
    pool = llm_media_pool_create(getenv("LLM_OBJS") ? getenv("LLM_OBJS")
                                                    : "objs", 1);

    for (i = 0; i < llm_nelems(families); i++) {
        family(fixtures, families[i]);
    }

    llm_media_pool_free(pool);

    return done_testing();
}
