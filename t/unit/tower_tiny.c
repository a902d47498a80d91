/*
 * Towers of every family with tiny layers and weights of a hash, against numpy
 * in float64 (tower_expected.py), on the CPU and in the emulator of the CUDA
 * backend: their rows, the same bits in any pieces and beside other entries;
 * and files, sizes and jobs that are refused.  LLM_GPU_DEVICE=cuda: a GPU in
 * the emulator's place.
 */

#include "engine/media/rule.h"
#include "engine/model/tower.h"
#include "t/unit/model_run.h"
#include "t/unit/tap.h"
#include "t/unit/tower_build.h"

#include <unistd.h>

static const struct {
    const char  *device;
    const char  *isa;
    double       bound;
} devices[] = {
    { "reference", NULL, 1e-5 },
    { "cpu", "avx2", 0.002 },
    { "cpu", "avx512", 0.002 },
    { "cpu", "amx", 0.002 },
    { "emu", NULL, 0.005 }
};

static char  path[] = "/tmp/llm-tower-XXXXXX";


static int
write_tower(const tower_tiny_t *tiny, const tower_change_t *c)
{
    int         rc;
    FILE       *out;
    llm_buf_t   b;

    tower_make(tiny, c, &b);
    out = fopen(path, "wb");
    rc = out && fwrite(b.data, 1, b.len, out) == b.len;

    if (out) {
        fclose(out);
    }

    llm_buf_free(&b);

    return rc;
}


/* ---- rows ---- */

static llm_tower_t *
load_part(const char *device, const char *isa, uint32_t batch, int listens,
    llm_err_t *err)
{
    llm_model_opts_t  o;
    llm_tower_opts_t  to = { .model = &o, .batch = batch,
                             .max_patches = 400, .sound = listens };

    memset(&o, 0, sizeof(o));
    o.device = device;
    o.isa = isa;
    o.threads = 2;
    o.backend_dir = getenv("LLM_OBJS") ? getenv("LLM_OBJS") : "objs";

    return llm_tower_load(path, NULL, &to, err);
}


static llm_tower_t *
load(const char *device, const char *isa, uint32_t batch, llm_err_t *err)
{
    return load_part(device, isa, batch, 0, err);
}


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


static int
encode(llm_tower_t *t, const llm_tower_entry_t *e, uint32_t n, float *out)
{
    int               rc;
    llm_err_t         err;
    llm_tower_job_t  *job;

    job = llm_tower_begin(t, e, n, out, &err);

    if (job == NULL) {
        printf("# %s\n", err.msg);
        return 0;
    }

    do {
        rc = llm_tower_step(job, &err);
    } while (rc == LLM_MORE);

    if (rc != LLM_OK) {
        printf("# %s\n", err.msg);
    }

    llm_tower_end(job);

    return rc == LLM_OK;
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
check_rows(const tower_tiny_t *tiny, const float *got, double bound,
    const char *what)
{
    float   max;
    double  sum;
    size_t  i;

    for (i = 0, sum = 0, max = 0; i < tiny->n_rows; i++) {
        sum += pow(got[i] - tiny->rows[i], 2);
        max = fmaxf(max, fabsf(tiny->rows[i]));
    }

    sum = sqrt(sum / (double) tiny->n_rows);
    ok(sum <= bound * max, "%s, %s: the rows, %g of %g", tiny->name, what,
       sum, max);
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


/* ---- sound ---- */

static const tower_tiny_t *
find_tiny(const char *name)
{
    size_t  i;

    for (i = 0; strcmp(tower_tiny[i].name, name) != 0; i++) {
        /* void */
    }

    return &tower_tiny[i];
}


static const tower_tiny_t *
find_ear(const char *name)
{
    size_t  i;

    for (i = 0; strcmp(tower_ears[i].name, name) != 0; i++) {
        /* void */
    }

    return &tower_ears[i];
}


static int
hear(llm_tower_t *t, const float *samples, float *out)
{
    llm_tower_entry_t  e = { 40, 3, NULL, samples, 0 };

    return encode(t, &e, 1, out);
}


static void
test_sound(const char *device, const char *isa, double bound)
{
    float         samples[120], got[36], again[36];
    double        sum;
    size_t        i;
    llm_err_t     err;
    const char   *what = isa ? isa : device;
    llm_tower_t  *t, *small;

    t = load(device, isa, 0, &err);

    if (t == NULL && run_lacks(&err)) {
        skip(err.msg);
        return;
    }

    small = load(device, isa, 2, &err);

    if (!ok(t && small, "%s: a tower with sound loads", what)) {
        printf("# %s\n", err.msg);
        return;
    }

    is_int(llm_tower_info(t)->frame, 40, "%s: samples of a frame", what);

    for (i = 0; i < llm_nelems(samples); i++) {
        samples[i] = i < 100 ? (float) (tower_hash(22, i) >> 40) / 8388608.0f
                               - 1 : 0;
    }

    ok(hear(t, samples, got), "%s: a sound", what);

    for (i = 0, sum = 0; i < llm_nelems(got); i++) {
        sum += pow(got[i] - tower_heard[i], 2);
    }

    sum = sqrt(sum / llm_nelems(got));
    ok(sum <= bound * 2, "%s: its rows, %g", what, sum);
    ok(hear(small, samples, again) && memcmp(got, again, sizeof(got)) == 0,
       "%s: the same bits in small steps", what);

    llm_tower_free(small);
    llm_tower_free(t);
}


/* ---- spectrograms ---- */

/* the entries of an encoder one after the other; the rows of all to out */

static int
listen(llm_tower_t *t, const tower_tiny_t *tiny, float *out)
{
    float                *mel;
    size_t                k, n;
    llm_tower_entry_t     e;
    const tower_entry_t  *from;

    for (from = tiny->entries; from->w; from++) {
        n = (size_t) from->w * llm_tower_info(t)->n_mels;
        mel = malloc(n * sizeof(float));

        for (k = 0; k < n; k++) {
            mel[k] = (float) (tower_hash(from->seed, k) >> 40) / 8388608.0f
                     - 1;
        }

        e = (llm_tower_entry_t) { llm_tower_info(t)->n_mels, from->w, NULL, mel,
                                  from->h };

        if (!encode(t, &e, 1, out)) {
            free(mel);
            return 0;
        }

        free(mel);
        out += (size_t) llm_tower_heard(t, from->h)
               * llm_tower_info(t)->n_cols;
    }

    return 1;
}


static int
has_tensor(const tower_tiny_t *tiny, const char *name)
{
    const tower_tensor_t  *t;

    for (t = tiny->tensors; t->name; t++) {
        if (strcmp(t->name, name) == 0) {
            return 1;
        }
    }

    return 0;
}


static void
test_listen(const tower_tiny_t *tiny, const char *device, const char *isa,
    double bound)
{
    float        *got, *again;
    size_t        size;
    llm_err_t     err;
    const char   *what = isa ? isa : device;
    llm_tower_t  *t, *small;

    t = load_part(device, isa, 0, 1, &err);

    if (t == NULL && run_lacks(&err)) {
        skip(err.msg);
        return;
    }

    small = load_part(device, isa, 5, 1, &err);

    if (!ok(t && small, "%s, %s: loads", tiny->name, what)) {
        printf("# %s\n", err.msg);
        return;
    }

    size = tiny->n_rows * sizeof(float);
    got = calloc(1, size);
    again = calloc(1, size);

    ok(listen(t, tiny, got), "%s, %s: its sounds", tiny->name, what);

    check_rows(tiny, got, bound, what);
    ok(listen(small, tiny, again) && memcmp(got, again, size) == 0,
       "%s, %s: the same bits in small steps", tiny->name, what);

    llm_tower_free(small);
    llm_tower_free(t);
    free(got);
    free(again);
}


/* a clamp that changes nothing, of each matrix before and behind the layers */

static void
test_clamps(const char *device)
{
    int               same;
    char              name[64];
    float            *got, *want;
    size_t            i, k, n, size;
    llm_err_t         err;
    llm_tower_t      *t;
    tower_tiny_t      tiny;
    tower_tensor_t    tensors[128];

    static const char  *const prefixes[] = {
        "a.conv1d.1", "a.conv1d.2", "a.conv2d.1", "a.conv2d.2", "a.conv2d.3",
        "a.conv_out", "mm.a.fc", "mm.a.mlp.1", "mm.a.mlp.2"
    };

    for (i = 0, same = 1; i < llm_nelems(tower_ears); i++) {
        tiny = tower_ears[i];
        size = tiny.n_rows * sizeof(float);
        want = calloc(1, size);
        got = calloc(1, size);

        for (n = 0; tiny.tensors[n].name; n++) {
            tensors[n] = tiny.tensors[n];
        }

        tensors[n + 1].name = NULL;

        for (k = 0; k <= llm_nelems(prefixes); k++) {
            tensors[n].name = NULL;

            if (k) {
                snprintf(name, sizeof(name), "%s.weight", prefixes[k - 1]);

                if (!has_tensor(&tower_ears[i], name)) {
                    continue;
                }

                snprintf(name, sizeof(name), "%s.input_min", prefixes[k - 1]);
                tensors[n] = (tower_tensor_t) { .name = name, .ne = { 1 },
                                                .plus = -1e30f };
            }

            tiny.tensors = tensors;
            t = write_tower(&tiny, NULL) ? load_part(device, NULL, 0, 1, &err)
                                         : NULL;
            same &= t && listen(t, &tiny, k ? got : want)
                    && (k == 0 || memcmp(got, want, size) == 0);
            llm_tower_free(t);
        }

        free(got);
        free(want);
    }

    ok(same, "%s: clamps of all widths", device);
}


/* spectrograms that an encoder does not take */

static void
test_unheard(void)
{
    size_t              i;
    float               out[64], mel[5 * 26];
    llm_err_t           err;
    llm_tower_t        *t;
    llm_tower_job_t    *job;
    llm_tower_shape_t   s;
    llm_tower_entry_t   two[2];

    static const llm_tower_entry_t  entries[] = {
        { 4, 24, NULL, NULL, 24 }, { 5, 26, NULL, NULL, 24 },
        { 5, 24, NULL, NULL, 25 }, { 5, 24, NULL, NULL, 0 },
        { 5, 24, NULL, NULL, 6 }
    };

    if (!ok(write_tower(&tower_ears[0], NULL), "a file")) {
        return;
    }

    t = load_part("reference", NULL, 0, 1, &err);

    if (!ok(t != NULL, "it loads")) {
        return;
    }

    is_int(llm_tower_info(t)->max_frames, 24, "its frames");
    is_int(llm_tower_heard(t, 24), 3, "rows of these");
    memset(mel, 0, sizeof(mel));
    memset(two, 0, sizeof(two));

    for (i = 0; i < llm_nelems(entries); i++) {
        two[0] = entries[i];
        two[0].samples = mel;
        job = llm_tower_begin(t, two, 1, out, &err);
        ok(job == NULL && strstr(err.msg, "the tower takes one of 5 bands and "
                                          "7 to 24 frames"), "%s", err.msg);
        llm_tower_end(job);
    }

    two[0] = two[1] = (llm_tower_entry_t) { 5, 24, NULL, mel, 24 };
    job = llm_tower_begin(t, two, 2, out, &err);
    ok(job == NULL && strstr(err.msg, "2 sounds"), "%s", err.msg);
    ok(llm_tower_shape(t, 8, 8, &s, &err) != LLM_OK
       && strstr(err.msg, "the tower takes sound"), "%s", err.msg);
    two[0].samples = NULL;
    job = llm_tower_begin(t, two, 1, out, &err);
    ok(job == NULL, "no spectrogram: %s", err.msg);
    llm_tower_free(t);
}


static void
unheard_file(const tower_tiny_t *tiny, const tower_change_t *c)
{
    llm_err_t     err;
    llm_tower_t  *t;

    if (!ok(write_tower(tiny, c), "a file")) {
        return;
    }

    err.msg[0] = '\0';
    t = load_part("reference", NULL, 0, 1, &err);

    if (!ok(t == NULL && strstr(err.msg, c->error), "%s: refused: %s",
            tiny->name, c->error))
    {
        printf("# %s\n", err.msg);
    }

    llm_tower_free(t);
}


/* what is wrong in the file of an encoder of spectrograms */

static void
test_unheard_files(void)
{
    size_t  i;

    static const tower_change_t  changes[] = {
        { .key = "clip.projector_type", .str = "ultravox",
          .error = "the projector \"ultravox\" is not supported" },
        { .key = "clip.has_audio_encoder", .drop = 1,
          .error = "the file has no encoder of sound" },
        { .key = "clip.audio.num_mel_bins", .drop = 1,
          .error = "clip.audio.num_mel_bins: it is missing" },
        { .key = "clip.audio.num_mel_bins", .u32 = 257,
          .error = "clip.audio.num_mel_bins: 257 is not within" },
        { .key = "clip.audio.num_mel_bins", .u32 = 6,
          .error = "a.conv1d.1.weight: it has [3, 5, 16, 1] elements" },
        { .key = "clip.audio.block_count", .u32 = 3,
          .error = "a.blk.2.ln1: the tensor is missing" },
        { .key = "clip.audio.attention.head_count", .u32 = 3,
          .error = "clip.audio.attention.head_count: 3 does not fit 16" },
        { .key = "clip.audio.projection_dim", .u32 = 13,
          .error = "mm.a.mlp.2.weight: it has" },
        { .key = "clip.audio.projector.stack_factor", .u32 = 13,
          .error = "a.position_embd.weight: not a table of 13 to" },
        { .key = "clip.audio.projector.stack_factor", .u32 = 3,
          .error = "mm.a.mlp.1.weight: it has" },
        { .tensor = "a.position_embd.weight", .name = "a.position",
          .error = "a.position_embd.weight: not a table of 4 to" },
        { .tensor = "a.conv1d.2.bias", .name = "a.conv1d.2.bios",
          .error = "a.conv1d.2.bios: a tensor that towers with the projector "
                   "voxtral do not have" }
    };

    static const tower_change_t  sliced[] = {
        { .key = "clip.audio.num_mel_bins", .u32 = 20,
          .error = "a.conv_out.weight: it has [12, 16, 1, 1] elements, where "
                   "18 by 16 fit" },
        { .key = "clip.audio.embedding_length", .u32 = 32,
          .error = "a.position_embd.weight: it has" },
        { .key = "clip.audio.projection_dim", .u32 = 13,
          .error = "mm.a.mlp.2.weight: it has" },
        { .tensor = "a.conv2d.2.weight", .name = "a.conv2d.4.weight",
          .error = "a.conv2d.2: the tensor is missing" },
        { .tensor = "a.conv_out.weight", .name = "a.conv_in.weight",
          .error = "a.conv_out: the tensor is missing" },
        { .tensor = "a.post_ln.weight", .name = "a.post_ln",
          .error = "a.post_ln: the tensor is missing" },
        { .tensor = "mm.a.mlp.1.weight", .name = "mm.a.mlp.0.weight",
          .error = "mm.a.mlp.1: the tensor is missing" },
        { .tensor = "a.position_embd.weight", .name = "a.position",
          .error = "a.position_embd.weight: not a table of 13 to" },
        { .tensor = "a.conv2d.3.bias", .name = "a.conv1d.1.bias",
          .error = "a.conv1d.1.bias: a tensor that towers with the projector "
                   "qwen3a do not have" }
    };

    for (i = 0; i < llm_nelems(changes); i++) {
        unheard_file(&tower_ears[0], &changes[i]);
    }

    for (i = 0; i < llm_nelems(sliced); i++) {
        unheard_file(find_ear("qwen3asr"), &sliced[i]);
    }
}


/* channels that do not fit each other, and too many of them */

static void
test_channels(void)
{
    size_t          i, k, n;
    tower_tiny_t    tiny = *find_ear("qwen3asr");
    tower_tensor_t  tensors[64];

    static const struct {
        const char  *name;
        uint32_t     ne[4];
        const char  *error;
    } cases[] = {
        { "a.conv2d.1.weight", { 3, 3, 2, 6 },
          "a.conv2d.1.weight: it has [3, 3, 2, 6] elements, where 9 by" },
        { "a.conv2d.1.weight", { 3, 3, 1, 7 }, "a.conv2d.1.bias: it has" },
        { "a.conv2d.2.weight", { 3, 3, 6, 5 },
          "a.conv2d.2.weight: it has [3, 3, 6, 5] elements, where 54 by 6" },
        { "a.conv2d.3.weight", { 5, 5, 6, 6 },
          "a.conv2d.3.weight: it has [5, 5, 6, 6] elements, where 54 by 6" },
        { "a.conv2d.1.weight", { 3, 3, 1, 70000 },
          "a.conv2d.1.bias: it has" },
        { "a.position_embd.weight", { 16, 12 },
          "a.position_embd.weight: not a table of 13 to" }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        for (n = 0; find_ear("qwen3asr")->tensors[n].name; n++) {
            tensors[n] = find_ear("qwen3asr")->tensors[n];

            for (k = 0; k < 4
                        && strcmp(tensors[n].name, cases[i].name) == 0; k++)
            {
                tensors[n].ne[k] = cases[i].ne[k];
            }
        }

        tensors[n].name = NULL;
        tiny.tensors = tensors;
        unheard_file(&tiny, &(tower_change_t) { .error = cases[i].error });
    }
}


/* Qwen3-Omni's sounds end where they end, Qwen3-ASR's have half a second */

static void
test_processors(void)
{
    int                i;
    size_t             n;
    llm_err_t          err;
    llm_gguf_t        *g;
    tower_tiny_t       tiny = *find_ear("qwen3asr");
    tower_field_t      fields[32];
    llm_sound_rule_t   rule;

    for (i = 0; i < 2; i++) {
        for (n = 0; tiny.fields[n].key; n++) {
            fields[n] = tiny.fields[n];

            if (strcmp(fields[n].key, "clip.has_vision_encoder") == 0) {
                fields[n].u32 = (uint32_t) i;
            }
        }

        fields[n].key = NULL;
        tiny.fields = fields;
        g = write_tower(&tiny, NULL) ? llm_gguf_open_header(path, &err) : NULL;
        ok(g && llm_sound_rule_read(&rule, g) && rule.chunk == 800
           && rule.least == (i ? 160 : 8000) && rule.bare == i, "%s",
           i ? "Qwen3-Omni" : "Qwen3-ASR");
        llm_gguf_close(g);
        tiny.fields = find_ear("qwen3asr")->fields;
    }
}


/* a model whose images have deepstack layers: a sound's rows have nothing for
   these */

static void
test_deepstack(void)
{
    int                  same;
    char                 file[1024];
    float               *got;
    size_t               i, n;
    uint32_t             k, width;
    llm_err_t            err;
    llm_model_t         *m;
    llm_tower_t         *t;
    tower_tiny_t         tiny = *find_ear("qwen3asr");
    tower_field_t        fields[32];
    tower_tensor_t       tensors[64];
    llm_model_opts_t     o;
    llm_tower_opts_t     to = { .model = &o, .sound = 1 };
    llm_tower_entry_t    e = { 12, 16, NULL, NULL, 16 };
    const char          *dir = getenv("LLM_FIXTURES");

    static const float  mel[12 * 16];

    if (dir == NULL) {
        skip("LLM_FIXTURES is not set: no model with deepstack layers");
        return;
    }

    memset(&o, 0, sizeof(o));
    o.device = "reference";
    o.ctx = 64;
    snprintf(file, sizeof(file), "%s/vision/qwen3vl/text.gguf", dir);
    m = llm_model_load(file, &o, &err);

    if (!ok(m != NULL, "a model with deepstack layers loads")) {
        return;
    }

    width = llm_model_hparams(m)->n_embd;

    for (n = 0; tiny.fields[n].key; n++) {
        fields[n] = tiny.fields[n];

        if (strcmp(fields[n].key, "clip.audio.projection_dim") == 0) {
            fields[n].u32 = width;
        }
    }

    fields[n].key = NULL;

    for (n = 0; tiny.tensors[n].name; n++) {
        tensors[n] = tiny.tensors[n];

        if (strncmp(tensors[n].name, "mm.a.mlp.2", 10) == 0) {
            tensors[n].ne[tensors[n].ne[1] != 0] = width;
        }
    }

    tensors[n].name = NULL;
    tiny.fields = fields;
    tiny.tensors = tensors;
    t = write_tower(&tiny, NULL) ? llm_tower_load(path, m, &to, &err) : NULL;

    if (ok(t != NULL, "an encoder of its width")) {
        n = llm_tower_info(t)->n_cols;
        k = llm_model_hparams(m)->n_deepstack;
        ok(k > 0 && n == width * (1 + k), "columns for %u layers, too", k);
        got = malloc(2 * n * sizeof(float));
        memset(got, 1, 2 * n * sizeof(float));
        e.samples = mel;
        same = encode(t, &e, 1, got);

        for (i = 0; i < 2 * n; i++) {
            same &= (got[i] == 0) == (i % n >= width);
        }

        ok(same, "which are zeros");
        free(got);
    }

    llm_tower_free(t);
    llm_model_free(m);
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


static void
test_deaf(void)
{
    float               out[36], samples[120];
    size_t              i;
    llm_err_t           err;
    llm_tower_t        *t;
    llm_tower_job_t    *job;
    llm_tower_entry_t   e[2] = { { 41, 2, NULL, samples, 0 },
                                 { 40, 1, NULL, samples, 0 } };

    static const char *const  names[] = { "gemma4uv", "qwen3vl" };

    memset(samples, 0, sizeof(samples));

    for (i = 0; i < llm_nelems(names); i++) {
        if (!ok(write_tower(find_tiny(names[i]), NULL), "a file")) {
            return;
        }

        t = load("reference", NULL, 0, &err);
        job = t ? llm_tower_begin(t, e, 1, out, &err) : NULL;
        ok(t && job == NULL && strstr(err.msg, "a sound in frames of 41 "
                                      "samples"), "%s: %s", names[i], err.msg);
        llm_tower_end(job);

        job = t ? llm_tower_begin(t, &e[1], 1, out, &err) : NULL;
        is_int(job != NULL, i == 0, "%s: frames of 40 samples", names[i]);
        llm_tower_end(job);
        llm_tower_free(t);
    }
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
    int          fd;
    size_t       i, k;
    const char  *gpu = getenv("LLM_GPU_DEVICE");

    fd = mkstemp(path);

    if (!ok(fd >= 0, "a temporary file")) {
        return done_testing();
    }

    close(fd);

    for (i = 0; i < llm_nelems(tower_tiny); i++) {
        if (!ok(write_tower(&tower_tiny[i], NULL), "%s: a file",
                tower_tiny[i].name))
        {
            continue;
        }

        for (k = 0; k < llm_nelems(devices); k++) {
            test(&tower_tiny[i], gpu && strcmp(devices[k].device, "emu") == 0
                                 ? gpu : devices[k].device, devices[k].isa,
                 devices[k].bound);
        }
    }

    if (ok(write_tower(find_tiny("gemma4uv"), NULL), "a file")) {
        for (k = 0; k < llm_nelems(devices); k++) {
            test_sound(gpu && strcmp(devices[k].device, "emu") == 0
                       ? gpu : devices[k].device, devices[k].isa,
                       devices[k].bound);
        }
    }

    for (i = 0; i < llm_nelems(tower_ears); i++) {
        if (!ok(write_tower(&tower_ears[i], NULL), "%s: a file",
                tower_ears[i].name))
        {
            continue;
        }

        for (k = 0; k < llm_nelems(devices); k++) {
            test_listen(&tower_ears[i],
                        gpu && strcmp(devices[k].device, "emu") == 0
                        ? gpu : devices[k].device, devices[k].isa,
                        devices[k].bound);
        }
    }

    test_clamps("reference");
    test_clamps("cpu");
    test_unheard();
    test_unheard_files();
    test_channels();
    test_processors();
    test_deepstack();
    test_parts();
    test_deaf();
    test_refused();
    test_unnamed();
    test_omni();
    test_entries();
    test_model();
    unlink(path);

    return done_testing();
}
