/*
 * Towers of every family that sees, with tiny layers and weights of a hash,
 * against numpy in float64 (tower_expected.py), on the CPU and in the emulator
 * of the CUDA backend: their rows, the same bits in any pieces and beside other
 * entries; and files, sizes and jobs that are refused.  Those that listen:
 * tower_ears.c.  LLM_GPU_DEVICE=cuda: a GPU in the emulator's place.
 */

#include "engine/base/products.h"
#include "engine/media/rule.h"
#include "t/unit/tower_rig.h"


/* ---- rows ---- */


/* the family's entries from `first` on, n of them; the caller frees pixels */

static uint32_t
make_entries(const tower_tiny_t *tiny, llm_tower_entry_t *e)
{
    size_t    k, size;
    uint8_t  *rgb;
    uint32_t  i;

    for (i = 0; tiny->entries[i].w; i++) {
        size = (size_t) tiny->entries[i].w * tiny->entries[i].h * 3;
        rgb = malloc(size);

        for (k = 0; k < size; k++) {
            rgb[k] = (uint8_t) (tower_hash(tiny->entries[i].seed, k) >> 56);
        }

        e[i].w = tiny->entries[i].w;
        e[i].h = tiny->entries[i].h;
        e[i].rgb = rgb;
        e[i].samples = NULL;
        e[i].own = 0;
    }

    return i;
}


/* the entries one by one */

static int
encode_each(llm_tower_t *t, const llm_tower_entry_t *e, uint32_t n,
    float *out)
{
    uint32_t           i;
    llm_err_t          err;
    llm_tower_shape_t  s;

    for (i = 0; i < n; i++) {
        if (llm_tower_shape(t, e[i].w, e[i].h, &s, &err) != LLM_OK
            || !encode(t, &e[i], 1, out))
        {
            return 0;
        }

        out += (size_t) s.n_rows * llm_tower_info(t)->n_cols;
    }

    return 1;
}


static void
test(const tower_tiny_t *tiny, const char *device, const char *isa,
    double bound)
{
    float              *got, *again;
    size_t              size;
    uint32_t            i, n;
    llm_err_t           err;
    const char         *what = isa ? isa : device;
    llm_tower_t        *t, *small;
    llm_tower_entry_t   e[LLM_TOWER_ENTRIES];

    t = load(device, isa, 0, &err);

    if (t == NULL && run_lacks(&err)) {
        skip(err.msg);
        return;
    }

    if (!ok(t != NULL, "%s, %s: loads", tiny->name, what)) {
        printf("# %s\n", err.msg);
        return;
    }

    small = load(device, isa, 5, &err);
    n = make_entries(tiny, e);
    size = tiny->n_rows * sizeof(float);
    got = calloc(1, size);
    again = calloc(1, size);

    ok(encode(t, e, n, got), "%s, %s: %u entries", tiny->name, what, n);

    check_rows(tiny, got, bound, what);

    ok(encode_each(t, e, n, again) && memcmp(got, again, size) == 0,
       "%s, %s: the same bits one by one", tiny->name, what);

    if (ok(small != NULL, "%s, %s: loads for small steps", tiny->name, what))
    {
        memset(again, 0, size);
        ok(encode(small, e, n, again) && memcmp(got, again, size) == 0,
           "%s, %s: the same bits in small steps", tiny->name, what);
    }

    for (i = 0; i < n; i++) {
        free((void *) e[i].rgb);
    }

    llm_tower_free(small);
    llm_tower_free(t);
    free(got);
    free(again);
}


/* products=bf16 is an encoder's, too */

static void
test_products(const tower_tiny_t *tiny)
{
    float              *exact, *rounded;
    uint32_t            i, n;
    llm_err_t           err;
    llm_tower_t        *t;
    llm_tower_entry_t   e[LLM_TOWER_ENTRIES];

    products = LLM_PRODUCTS_BF16;
    t = load("cpu", "avx2", 0, &err);
    ok(t == NULL && (strstr(err.msg, "products=bf16: AVX2 has no products in "
                                     "bfloat16") || run_lacks(&err)),
       "products in bfloat16 with AVX2: %s", err.msg);

    products = LLM_PRODUCTS_BF16_ALL;
    t = load("cpu", "avx2", 0, &err);
    ok(t == NULL && (strstr(err.msg, "products=bf16-all: AVX2 has no products "
                                     "in bfloat16") || run_lacks(&err)),
       "of quantised weights, too: %s", err.msg);

    products = LLM_PRODUCTS_BF16;
    t = load("cpu", "avx512", 0, &err);

    if (t == NULL) {
        products = NULL;
        skip(err.msg);
        return;
    }

    n = make_entries(tiny, e);
    exact = calloc(tiny->n_rows, sizeof(float));
    rounded = calloc(tiny->n_rows, sizeof(float));

    ok(encode(t, e, n, rounded), "%s: in bfloat16", tiny->name);
    check_rows(tiny, rounded, 0.02, "products in bfloat16");
    llm_tower_free(t);

    products = NULL;
    t = load("cpu", "avx512", 0, &err);
    ok(t && encode(t, e, n, exact)
       && memcmp(exact, rounded, tiny->n_rows * sizeof(float)) != 0,
       "%s: which are not those in float32", tiny->name);
    llm_tower_free(t);

    for (i = 0; i < n; i++) {
        free((void *) e[i].rgb);
    }

    free(exact);
    free(rounded);
}


/* Qwen2.5-Omni's files have one name for both encoders */

static void
test_omni(void)
{
    llm_err_t     err;
    llm_tower_t  *t;

    static const tower_change_t  change = {
        .key = "clip.projector_type", .str = "qwen2.5o"
    };

    if (!ok(write_tower(&tower_tiny[1], &change), "a file")) {
        return;
    }

    t = load("reference", NULL, 0, &err);

    if (ok(t != NULL, "the images of Qwen2.5-Omni")) {
        is_str(llm_tower_info(t)->projector, "qwen2.5vl_merger",
               "are those of Qwen2.5-VL");
    }

    llm_tower_free(t);
}


/* which encoders files have */

static void
test_parts(void)
{
    size_t             i;
    llm_err_t          err;
    llm_gguf_t        *g;
    llm_image_rule_t   rule;

    static const tower_tiny_t *const  files[] = {
        &tower_tiny[0], &tower_tiny[llm_nelems(tower_tiny) - 1],
        &tower_ears[0], &tower_ears[2]
    };

    for (i = 0; i < llm_nelems(files); i++) {
        if (ok(write_tower(files[i], NULL), "a file")) {
            ok(llm_tower_check(path, &err) == LLM_OK, "%s: it is checked",
               files[i]->name);
        }
    }

    /* the ears are the last file written, and have no eyes */

    g = llm_gguf_open_header(path, &err);
    ok(g && llm_image_rule_read(&rule, g, &err) == LLM_OK
       && rule.projector == NULL && rule.sound.projector != NULL,
       "%s: it listens and does not see", files[3]->name);
    llm_gguf_close(g);
}


/* ---- what is refused ---- */

static void
refuses(const tower_tiny_t *tiny, const tower_change_t *c)
{
    llm_err_t     err;
    llm_tower_t  *t;

    if (!ok(write_tower(tiny, c), "a file")) {
        return;
    }

    err.msg[0] = '\0';
    t = load("reference", NULL, 0, &err);

    if (!ok(t == NULL && strstr(err.msg, c->error), "%s: refused: %s",
            tiny->name, c->error))
    {
        printf("# %s\n", err.msg);
    }

    llm_tower_free(t);
}


static void
test_refused(void)
{
    size_t  i;

    static const tower_change_t  changes[] = {
        { .key = "clip.projector_type", .str = "ldpv2",
          .error = "clip.projector_type: the projector \"ldpv2\" is not "
                   "supported" },
        { .key = "clip.projector_type", .drop = 1,
          .error = "clip.projector_type: it is missing" },
        { .key = "general.architecture", .str = "llama",
          .error = "general.architecture: not \"clip\"" },
        { .key = "clip.vision.block_count", .drop = 1,
          .error = "clip.vision.block_count: it is missing" },
        { .key = "clip.vision.block_count", .u32 = 4,
          .error = "clip.vision.is_deepstack_layers: not 4 flags" },
        { .key = "clip.vision.block_count", .u32 = 4000000000u,
          .error = "clip.vision.block_count: 4000000000 is not within" },
        { .key = "clip.vision.attention.head_count", .u32 = 3,
          .error = "clip.vision.attention.head_count: 3 does not fit 16" },
        { .key = "clip.vision.attention.head_count", .u32 = 8,
          .error = "heads of 2 elements cannot be rotated" },
        { .key = "clip.vision.embedding_length", .u32 = 32,
          .error = "v.position_embd.weight: it has [16, 25, 1, 1] "
                   "elements" },
        { .key = "clip.vision.projection_dim", .u32 = 13,
          .error = "mm.2.weight: it has [64, 12, 1, 1] elements, where 64 by "
                   "13 fit" },
        { .key = "clip.vision.patch_size", .u32 = 8,
          .error = "v.patch_embd.weight: not for patches of 8 pixels" },
        { .key = "clip.vision.image_mean", .u32 = 1,
          .error = "clip.vision.image_mean must be three numbers" },
        { .key = "clip.vision.attention.layer_norm_epsilon", .drop = 1,
          .error = "layer_norm_epsilon: -1 is not within 0 and 1" },
        { .key = "clip.vision.spatial_merge_size", .u32 = 17,
          .error = "clip.vision.spatial_merge_size: 17 is not within" },
        { .tensor = "v.post_ln.weight", .name = "v.post_lm.weight",
          .error = "v.post_ln: the tensor is missing" },
        { .tensor = "v.post_ln.bias", .name = "v.post_ln.bios",
          .error = "v.post_ln.bios: a tensor that towers with the projector "
                   "qwen3vl_merger do not have" },
        { .tensor = "v.blk.1.attn_out.weight", .name = "v.blk.1.attn_oud",
          .error = "v.blk.1.attn_out: the tensor is missing" },
        { .tensor = "v.deepstack.2.fc1.weight", .name = "v.deepstack.1.fc1",
          .error = "v.deepstack.2.fc1: the tensor is missing" }
    };

    static const struct {
        const char      *name;
        tower_change_t   change;
    } others[] = {
        { "llava", { .key = "clip.vision.image_grid_pinpoints", .add = 1,
                     .error = "the tiles of LLaVA 1.6 are not supported" } },
        { "llava", { .key = "clip.vision.feature_layer", .add = 1,
                     .error = "clip.vision.feature_layer: not the last of 2 "
                              "layers alone" } },
        { "llava", { .tensor = "v.class_embd", .name = "v.class",
                     .error = "v.class_embd: the tensor is missing" } },
        { "llava", { .tensor = "mm.2.weight", .name = "mm.3.weight",
                     .error = "mm.2: the tensor is missing" } },
        { "llava", { .tensor = "mm.2.bias", .name = "v.post_ln.bias",
                     .error = "v.post_ln.bias: a tensor that towers with the "
                              "projector mlp do not have" } },
        { "llava", { .key = "clip.projector_type", .str = "ldp",
                     .error = "the projector \"ldp\" is not supported" } },
        { "kimivl", { .tensor = "mm.input_norm.weight", .name = "mm.norm",
                      .error = "mm.input_norm: the tensor is missing" } },
        { "kimivl", { .key = "clip.projector_type", .str = "kimik25",
                      .error = "the projector \"kimik25\" is not "
                               "supported" } },
        { "gemma4uv", { .key = "clip.vision.block_count", .u32 = 2,
                        .error = "clip.vision.block_count: 2 is not within 0 "
                                 "and 0" } },
        { "gemma4uv", { .key = "clip.vision.patch_size", .u32 = 3,
                        .error = "v.patch_norm.1.weight: it has" } },
        { "gemma4uv", { .tensor = "mm.a.input_projection.weight",
                        .name = "mm.a.projection",
                        .error = "mm.a.input_projection: the tensor is "
                                 "missing" } },
        { "gemma4uv", { .tensor = "v.patch_norm.1.bias", .name = "v.patch",
                        .error = "v.patch_norm.1: the tensor is missing" } },
        { "gemma4uv", { .tensor = "v.patch_norm.3.weight", .name = "v.patch",
                        .error = "v.patch_norm.3: the tensor is missing" } }
    };

    for (i = 0; i < llm_nelems(changes); i++) {
        refuses(&tower_tiny[0], &changes[i]);
    }

    for (i = 0; i < llm_nelems(others); i++) {
        refuses(find_tiny(others[i].name), &others[i].change);
    }
}


/* the first files of LLaVA name no projector */

static void
test_unnamed(void)
{
    llm_err_t     err;
    llm_tower_t  *t;

    static const tower_change_t  change = {
        .key = "clip.projector_type", .drop = 1
    };

    if (!ok(write_tower(find_tiny("llava"), &change), "a file")) {
        return;
    }

    t = load("reference", NULL, 0, &err);

    if (ok(t != NULL, "llava without a projector's name: loads")) {
        is_str(llm_tower_info(t)->projector, "mlp", "its projector");
        is_int(llm_tower_info(t)->n_embd, 12, "the width of its rows");
    }

    llm_tower_free(t);
}


static void
test_entries(void)
{
    size_t              i;
    float               out[1];
    llm_err_t           err;
    llm_tower_t        *t;
    llm_tower_job_t    *job;
    llm_tower_entry_t   e[LLM_TOWER_ENTRIES + 1];
    llm_tower_shape_t   s;

    static const struct {
        uint32_t     w;
        uint32_t     h;
        const char  *error;
    } sizes[] = {
        { 0, 8, "an entry of 0x8 pixels" },
        { 8, 12, "an entry of 8x12 pixels: the sides are not multiples of "
                 "8" },
        { 4294967288u, 4294967288u, "has more than 400 patches" },
        { 168, 160, "has more than 400 patches" }
    };

    if (!ok(write_tower(&tower_tiny[0], NULL), "a file")) {
        return;
    }

    t = load("reference", NULL, 0, &err);

    if (!ok(t != NULL, "it loads")) {
        return;
    }

    for (i = 0; i < llm_nelems(sizes); i++) {
        ok(llm_tower_shape(t, sizes[i].w, sizes[i].h, &s, &err) != LLM_OK
           && strstr(err.msg, sizes[i].error), "%s", err.msg);
    }

    memset(e, 0, sizeof(e));
    job = llm_tower_begin(t, e, 0, out, &err);
    ok(job == NULL, "no entries: %s", err.msg);
    job = llm_tower_begin(t, e, LLM_TOWER_ENTRIES + 1, out, &err);
    ok(job == NULL, "too many entries: %s", err.msg);
    job = llm_tower_begin(t, e, 1, out, &err);
    ok(job == NULL, "no pixels: %s", err.msg);

    for (i = 0; i < 2; i++) {
        e[i].w = 88;
        e[i].h = 40;
        e[i].rgb = (const uint8_t *) "";
    }

    job = llm_tower_begin(t, e, 2, out, &err);
    ok(job == NULL && strstr(err.msg, "2 entries have more than 400 patches "
                                      "together"), "%s", err.msg);
    llm_tower_free(t);
}


/* a tower and a model that do not fit each other */

static void
test_model(void)
{
    llm_err_t          err;
    llm_model_t       *m;
    llm_tower_t       *t;
    llm_model_opts_t   o;
    llm_tower_opts_t   to = { .model = &o };

    memset(&o, 0, sizeof(o));
    o.device = "reference";
    o.ctx = 64;
    m = llm_model_load("models/demo.gguf", &o, &err);

    if (!ok(m != NULL, "the demo model loads")) {
        return;
    }

    t = llm_tower_load(path, m, &to, &err);
    ok(t == NULL && strstr(err.msg, "clip.vision.projection_dim: the tower is "
                                    "for models with a width of 12"),
       "%s", err.msg);

    llm_tower_free(t);
    llm_model_free(m);
}


int
main(void)
{
    size_t  i, k;

    if (!make_path()) {
        return done_testing();
    }

    for (i = 0; i < llm_nelems(tower_tiny); i++) {
        if (!ok(write_tower(&tower_tiny[i], NULL), "%s: a file",
                tower_tiny[i].name))
        {
            continue;
        }

        for (k = 0; k < llm_nelems(devices); k++) {
            test(&tower_tiny[i], device_of(k), devices[k].isa,
                 devices[k].bound);
        }

        test_products(&tower_tiny[i]);
    }

    test_parts();
    test_refused();
    test_unnamed();
    test_omni();
    test_entries();
    test_model();
    unlink(path);

    return done_testing();
}
