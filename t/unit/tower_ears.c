/*
 * Towers that encode sound, with tiny layers and weights of a hash, against
 * numpy in float64 (tower_expected.py), on the CPU and in the emulator of the
 * CUDA backend: their rows, the same bits in any pieces; clamps; and files,
 * sounds and jobs that are refused.  LLM_GPU_DEVICE=cuda: a GPU in the
 * emulator's place.
 */

#include "engine/media/rule.h"
#include "t/unit/tower_rig.h"


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
        "a.conv_out", "mm.a.fc", "mm.a.mlp.1", "mm.a.mlp.2", "a.conv1d.0",
        "a.input_projection", "a.pre_encode.out", "mm.a.input_projection"
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
        const char  *bias;              /* gets as many channels, too */
    } cases[] = {
        { "a.conv2d.1.weight", { 3, 3, 2, 6 },
          "a.conv2d.1.weight: it has [3, 3, 2, 6] elements, where 9 by",
          NULL },
        { "a.conv2d.1.weight", { 3, 3, 1, 7 }, "a.conv2d.1.bias: it has",
          NULL },
        { "a.conv2d.2.weight", { 3, 3, 6, 5 },
          "a.conv2d.2.weight: it has [3, 3, 6, 5] elements, where 54 by 6",
          NULL },
        { "a.conv2d.3.weight", { 5, 5, 6, 6 },
          "a.conv2d.3.weight: it has [5, 5, 6, 6] elements, where 54 by 6",
          NULL },
        { "a.conv2d.1.weight", { 3, 3, 1, 70000 },
          "a.conv2d.1.bias: it has", NULL },
        { "a.conv2d.1.weight", { 3, 3, 1, 70000 },
          "a.conv2d.1.weight: 70000 channels are too many",
          "a.conv2d.1.bias" },
        { "a.position_embd.weight", { 16, 12 },
          "a.position_embd.weight: not a table of 13 to", NULL }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        for (n = 0; find_ear("qwen3asr")->tensors[n].name; n++) {
            tensors[n] = find_ear("qwen3asr")->tensors[n];

            for (k = 0; k < 4
                        && strcmp(tensors[n].name, cases[i].name) == 0; k++)
            {
                tensors[n].ne[k] = cases[i].ne[k];
            }

            if (cases[i].bias && strcmp(tensors[n].name, cases[i].bias) == 0) {
                tensors[n].ne[2] = cases[i].ne[3];
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


int
main(void)
{
    size_t  i, k;

    if (!make_path()) {
        return done_testing();
    }

    if (ok(write_tower(find_tiny("gemma4uv"), NULL), "a file")) {
        for (k = 0; k < llm_nelems(devices); k++) {
            test_sound(device_of(k), devices[k].isa, devices[k].bound);
        }
    }

    for (i = 0; i < llm_nelems(tower_ears); i++) {
        if (!ok(write_tower(&tower_ears[i], NULL), "%s: a file",
                tower_ears[i].name))
        {
            continue;
        }

        for (k = 0; k < llm_nelems(devices); k++) {
            test_listen(&tower_ears[i], device_of(k), devices[k].isa,
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
    test_deaf();
    unlink(path);

    return done_testing();
}
