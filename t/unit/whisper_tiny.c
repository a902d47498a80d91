/*
 * Whisper without fixtures: a tiny model that the test writes, as .bin file and
 * as folders, against plain loops in double; and files that are wrong, each of
 * which is refused with its reason.
 */

#include "engine/file/source.h"
#include "engine/model/model_internal.h"
#include "engine/model/whisper.h"
#include "engine/text/vocab/vocab.h"
#include "t/unit/looked.h"
#include "t/unit/tap.h"
#include "t/unit/whisper_build.h"

#include <unistd.h>

#define IDS  9

static char                dir[256];
static const int32_t       ids[IDS] = { 50257, 12, 300, 50362, 51863, 0, 7,
                                        50255, 1 };


static const char *
path_of(const char *name)
{
    static char  path[4][512];
    static int   i;

    i = (i + 1) % 4;
    snprintf(path[i], sizeof(path[i]), "%s/%s", dir, name);

    return path[i];
}


static double
error_of(const float *got, const double *want, size_t n)
{
    size_t  i;
    double  d, sum, all;

    for (i = 0, sum = 0, all = 0; i < n; i++) {
        d = (double) got[i] - want[i];
        sum += d * d;
        all += want[i] * want[i];
    }

    return sqrt(sum / all);
}


static llm_whisper_t *
open_model(const char *path, const char *device, const char *isa,
    uint32_t batch, llm_err_t *err)
{
    llm_whisper_opts_t  o;

    memset(&o, 0, sizeof(o));
    o.model.backend_dir = getenv("LLM_OBJS") ? getenv("LLM_OBJS") : "objs";
    o.model.device = device;
    o.model.isa = isa;
    o.model.threads = 2;
    o.model.batch = batch;
    o.model.max_seqs = 2;
    o.n_states = 2;

    return llm_whisper_load(path, &o, err);
}


/* states [W_CTX][W_EMBD], logits [IDS][W_VOCAB] of steps of n tokens, weights
   of all heads */

static int
run_model(llm_whisper_t *w, const float *mel, uint32_t n, float *states,
    float *logits, float *weights)
{
    int                  rc;
    uint32_t             i, k;
    llm_err_t            err;
    llm_whisper_rows_t   r = { .seq = 1, .state = 1 };

    llm_whisper_begin(w, 1, mel, weights != NULL);
    err.msg[0] = '\0';

    do {
        rc = llm_whisper_encode(w, &err);
    } while (rc == LLM_MORE);

    memcpy(states, llm_whisper_states(w), W_CTX * W_EMBD * sizeof(float));

    for (i = 0; rc == LLM_OK && i < IDS; i += r.n) {
        r.pos = i;
        r.tokens = ids + i;
        r.n = llm_min(n, IDS - i);
        r.n_out = r.n;
        rc = llm_whisper_step(w, &r, 1, &err);

        for (k = 0; rc == LLM_OK && k < r.n; k++) {
            memcpy(logits + (size_t) (i + k) * W_VOCAB,
                   llm_whisper_logits(w, k), W_VOCAB * sizeof(float));
        }
    }

    if (rc == LLM_OK && weights) {
        r.pos = 0;
        r.tokens = ids;
        r.n = IDS;
        rc = looked(w, &r, weights, &err);
    }

    if (rc != LLM_OK) {
        printf("# %s\n", err.msg);
    }

    return rc == LLM_OK;
}


typedef struct {
    float      mel[W_MELS * W_FRAMES];
    double     states[W_CTX][W_EMBD];
    double    *logits;                  /* [IDS][W_VOCAB] */
    double     weights[IDS * W_HEADS * W_CTX];
    float     *got;                     /* [IDS][W_VOCAB] */
    float     *again;
} answer_t;


/* the alignment heads are those of the last layer: [W_HEADS][IDS][W_CTX] */

static double
weights_differ(const answer_t *a, const float *got)
{
    int     t, h, i;
    double  most;

    for (t = 0, most = 0; t < IDS; t++) {
        for (h = 0; h < W_HEADS; h++) {
            for (i = 0; i < W_CTX; i++) {
                most = fmax(most, fabs(
                           a->weights[(t * W_HEADS + h) * W_CTX + i]
                           - (double) got[(h * IDS + t) * W_CTX + i]));
            }
        }
    }

    return most;
}


static void
computes(const char *path, answer_t *a, const char *device, const char *isa,
    double limit)
{
    float           states[W_CTX * W_EMBD], one[W_CTX * W_EMBD];
    float           weights[W_HEADS * IDS * W_CTX];
    double          e, l, d;
    llm_err_t       err;
    const char     *name;
    llm_whisper_t  *w;

    name = isa ? isa : device;
    w = open_model(path, device, isa, 0, &err);

    if (w == NULL && (isa || strcmp(device, "emu") == 0)) {
        printf("# %s\n", err.msg);
        skip(name);
        return;
    }

    if (!ok(w && run_model(w, a->mel, IDS, states, a->got, weights),
            "%s computes it", name))
    {
        printf("# %s\n", w ? "" : err.msg);
        llm_whisper_free(w);
        return;
    }

    e = error_of(states, &a->states[0][0], W_CTX * W_EMBD);
    l = error_of(a->got, a->logits, (size_t) IDS * W_VOCAB);
    d = weights_differ(a, weights);
    ok(e < limit, "%s: rows of the encoder (%.1e)", name, e);
    ok(l < limit, "%s: logits (%.1e)", name, l);
    ok(d < limit, "%s: what heads look at (%.1e)", name, d);

    ok(run_model(w, a->mel, 2, one, a->again, NULL)
       && memcmp(states, one, sizeof(one)) == 0
       && memcmp(a->got, a->again, (size_t) IDS * W_VOCAB * sizeof(float))
          == 0, "%s: the same bytes in more steps", name);
    llm_whisper_free(w);

    w = open_model(path, device, isa, 11, &err);
    ok(w && run_model(w, a->mel, 4, one, a->again, NULL)
       && memcmp(states, one, sizeof(one)) == 0
       && memcmp(a->got, a->again, (size_t) IDS * W_VOCAB * sizeof(float))
          == 0, "%s: the same bytes in more pieces", name);
    llm_whisper_free(w);
}


static void
right_answers(const w_model_t *m, answer_t *a)
{
    int        i;
    w_model_t  noise = { .seed = 77 };

    for (i = 0; i < W_MELS * W_FRAMES; i++) {
        a->mel[i] = 2 * w_random(&noise);
    }

    a->logits = malloc((size_t) IDS * W_VOCAB * sizeof(double));
    a->got = malloc((size_t) IDS * W_VOCAB * sizeof(float));
    a->again = malloc((size_t) IDS * W_VOCAB * sizeof(float));
    w_encode(m, a->mel, a->states);
    w_decode(m, a->states, ids, IDS, a->logits, a->weights);
}


/* ---- files ---- */

static int
opens(const char *path, int header, llm_err_t *err)
{
    llm_gguf_t          *g;
    llm_whisper_info_t   i;

    err->msg[0] = '\0';
    g = header ? llm_source_open_header(path, err)
               : llm_source_open(path, err);

    if (g == NULL) {
        return 0;
    }

    if (llm_whisper_check(g, &i, err) != LLM_OK) {
        llm_gguf_close(g);
        return 0;
    }

    llm_gguf_close(g);

    return 1;
}


/* the file is refused, mapped and by its header, and the message has `why` */

static void
refused(const char *path, const char *why, const char *what)
{
    llm_err_t  err[2];

    if (!ok(!opens(path, 0, &err[0]) && !opens(path, 1, &err[1])
            && strstr(err[0].msg, why) && strstr(err[1].msg, why),
            "refused: %s", what))
    {
        printf("# %s\n# %s\n", err[0].msg, err[1].msg);
    }
}


/* the .bin file with a 32-bit number changed */

static void
refused_i32(const llm_buf_t *b, size_t at, int32_t v, const char *why,
    const char *what)
{
    char  *copy;

    copy = malloc(b->len);
    memcpy(copy, b->data, b->len);
    memcpy(copy + at, &v, sizeof(v));

    if (w_write(path_of("wrong.bin"), copy, b->len)) {
        refused(path_of("wrong.bin"), why, what);
    }

    free(copy);
}


static void
wrong_bins(const w_model_t *m, const llm_buf_t *b)
{
    size_t      i, head, bad, step;
    llm_buf_t   h;
    llm_err_t   err;

    llm_buf_init(&h, 0);
    w_bin_head(&h);
    head = h.len;

    (void) w_write(path_of("wrong.bin"), h.data, h.len);
    refused(path_of("wrong.bin"), "no tensors", "a vocabulary alone");

    refused_i32(b, 8, -1, "n_audio_ctx", "-1 rows");
    refused_i32(b, 12, 0, "n_audio_state", "a width of 0");
    refused_i32(b, 16, 3, "n_audio_head", "3 heads of a width of 8");
    refused_i32(b, 20, 1 << 30, "n_audio_layer", "2^30 layers");
    refused_i32(b, 20, 3, "a.blk.2.", "a layer that is not there");
    refused_i32(b, 20, 1, "tensors of an encoder", "a layer too many");
    refused_i32(b, 28, 16, "n_text_state", "two widths");
    refused_i32(b, 40, 7, "filters", "7 mel bands");
    refused_i32(b, 48, 1 << 20, "filters", "filters of 2^20 bins");
    refused_i32(b, 52, -4, "filters", "-4 bins");
    refused_i32(b, 56 + 48, 50255, "vocabulary", "a token too few");
    refused_i32(b, 56 + 48, -1, "vocabulary", "-1 tokens");
    refused_i32(b, 60 + 48, 1 << 30, "token 0 has", "a token of 2^30 bytes");
    refused_i32(b, head, 4, "4 dimensions", "4 dimensions");
    refused_i32(b, head, 0, "0 dimensions", "no dimension");
    refused_i32(b, head + 4, 1 << 30, "a name of", "a name of 2^30 bytes");
    refused_i32(b, head + 8, 77, "type 77", "an unknown type");
    refused_i32(b, head + 8, 8, "no whole number", "rows of no whole block");
    refused_i32(b, head + 12, -8, "dimension 0 is -8", "-8 columns");
    refused_i32(b, head + 12, INT32_MAX, "of a file of", "2^31 columns");
    refused_i32(b, head + 20, 0x7a7a7a7a, "no such tensor",
                "an unknown name");

    /* one tensor twice */

    h.len = 0;
    (void) llm_buf_add(&h, b->data, b->len);
    w_bin_tensor(&h, &m->t[2]);
    (void) w_write(path_of("wrong.bin"), h.data, h.len);
    refused(path_of("wrong.bin"), "twice", "a tensor twice");

    /* cut after any number of bytes */

    for (i = 12, bad = 0; i < b->len; i += step) {
        step = i < 200 || (i >= head && i < head + 200) ? 1 : b->len / 37;
        (void) w_write(path_of("wrong.bin"), b->data, i);
        bad += opens(path_of("wrong.bin"), 0, &err)
               || opens(path_of("wrong.bin"), 1, &err) || err.msg[0] == '\0';
    }

    ok(bad == 0, "refused: cut after any number of bytes");
    llm_buf_free(&h);
}


static void
put(const char *name, const char *text)
{
    (void) w_write(path_of(name), text, strlen(text));
}


/* a folder of one file, or of two and an index */

static void
write_folder(const w_model_t *m, int shards)
{
    size_t      i, half;
    llm_buf_t   b;

    half = m->n / 2;
    (void) mkdir(path_of("hub"), 0700);
    llm_buf_init(&b, 0);
    w_config(&b);
    (void) w_write(path_of("hub/config.json"), b.data, b.len);
    b.len = 0;
    w_vocab_json(&b);
    (void) w_write(path_of("hub/vocab.json"), b.data, b.len);
    put("hub/merges.txt", "#version: 0.2\na a\nb a\n");
    b.len = 0;

    if (!shards) {
        w_safetensors(&b, m, 0, m->n);
        (void) w_write(path_of("hub/model.safetensors"), b.data, b.len);
        llm_buf_free(&b);
        return;
    }

    (void) unlink(path_of("hub/model.safetensors"));
    w_safetensors(&b, m, 0, half);
    (void) w_write(path_of("hub/one.safetensors"), b.data, b.len);
    b.len = 0;
    w_safetensors(&b, m, half, m->n);
    (void) w_write(path_of("hub/two.safetensors"), b.data, b.len);
    b.len = 0;
    (void) llm_buf_adds(&b, "{\"metadata\":{},\"weight_map\":{");

    for (i = 0; i < m->n; i++) {
        (void) llm_buf_addf(&b, "%s\"%s\":\"%s.safetensors\"", i ? "," : "",
                            m->t[i].hub, i < half ? "one" : "two");
    }

    (void) llm_buf_adds(&b, "}}");
    (void) w_write(path_of("hub/model.safetensors.index.json"), b.data,
                   b.len);
    llm_buf_free(&b);
}


static void
folder_computes(answer_t *a, const char *what)
{
    float           states[W_CTX * W_EMBD];
    llm_err_t       err;
    llm_whisper_t  *w;

    w = open_model(path_of("hub"), "cpu", NULL, 0, &err);

    if (!ok(w && run_model(w, a->mel, IDS, states, a->again, NULL)
            && memcmp(a->got, a->again,
                      (size_t) IDS * W_VOCAB * sizeof(float)) == 0,
            "%s: the same bytes as from the file", what))
    {
        printf("# %s\n", w ? "" : err.msg);
    }

    llm_whisper_free(w);
}


/* a header, the numbers of whose tensors are wrong */

static void
refused_header(const char *header, const char *why, const char *what)
{
    uint64_t    len;
    llm_buf_t   b;

    len = strlen(header);
    llm_buf_init(&b, 0);
    (void) llm_buf_add(&b, &len, sizeof(len));
    (void) llm_buf_adds(&b, header);
    (void) llm_buf_add(&b, "0123456789abcdef", 16);
    (void) w_write(path_of("hub/model.safetensors"), b.data, b.len);
    llm_buf_free(&b);

    refused(path_of("hub"), why, what);
}


#define ENTRY(dtype, shape, offsets)                                         \
    "{\"model.encoder.conv1.bias\":{\"dtype\":\"" dtype "\",\"shape\":["     \
    shape "],\"data_offsets\":[" offsets "]}}"

static void
wrong_folders(const w_model_t *m)
{
    uint64_t  len = UINT64_MAX;

    (void) unlink(path_of("hub/model.safetensors.index.json"));

    refused_header(ENTRY("F32", "4", "0,16"), "token_embd", "one tensor");
    refused_header(ENTRY("F32", "4", "0,12"), "offsets", "too few bytes");
    refused_header(ENTRY("F32", "4", "8,24"), "offsets", "beyond the end");
    refused_header(ENTRY("F32", "4", "16,0"), "offsets", "backwards");
    refused_header(ENTRY("F32", "4", "0,18446744073709551615"), "too large",
                   "2^64 bytes");
    refused_header(ENTRY("F32", "4294967295,4294967295,4294967295", "0,16"),
                   "overflow", "2^96 elements");
    refused_header(ENTRY("F32", "0", "0,0"), "dimension of 0", "no element");
    refused_header(ENTRY("F32", "1,1,1,1,1", "0,16"), "4 dimensions",
                   "5 dimensions");
    refused_header(ENTRY("F32", "-4", "0,16"), "whole number", "-4 elements");
    refused_header(ENTRY("I64", "2", "0,16"), "dtype I64", "whole numbers");
    refused_header("{\"model.encoder.conv1.bias\":{}}", "without dtype",
                   "an empty entry");
    refused_header("{\"x\\u0000y\":{}}", "no such tensor", "a strange name");
    refused_header("[]", "object", "an array");
    refused_header("{\"a\":{\"dtype\":\"F32\"", "no such tensor",
                   "a cut header");
    refused_header("{\"__metadata__\":"
                   "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
                   "[[[[[[[[[[[[[[[[[[", "nested too deeply", "70 levels");

    (void) w_write(path_of("hub/model.safetensors"), &len, sizeof(len));
    refused(path_of("hub"), "header of", "a header of 2^64 bytes");

    put("hub/model.safetensors.index.json",
        "{\"weight_map\":{\"a\":\"../other.safetensors\"}}");
    refused(path_of("hub"), "name of a file", "a file outside the folder");
    put("hub/model.safetensors.index.json", "{\"weight_map\":{}}");
    refused(path_of("hub"), "lists no file", "an empty index");
    put("hub/model.safetensors.index.json",
        "{\"weight_map\":{\"a\":\"gone.safetensors\"}}");
    refused(path_of("hub"), "gone.safetensors", "a file that is not there");
    (void) unlink(path_of("hub/model.safetensors.index.json"));

    write_folder(m, 0);
    put("hub/vocab.json", "{\"a\":0,\"b\":0}");
    refused(path_of("hub"), "same id", "an id twice");
    put("hub/vocab.json", "{\"a\":0}");
    refused(path_of("hub"), "has 1 of", "a vocabulary of one token");
    (void) unlink(path_of("hub/vocab.json"));
    refused(path_of("hub"), "no tokenizer.json", "no vocabulary");

    put("hub/config.json", "{\"model_type\":\"whisper\",\"d_model\":8,"
                           "\"activation_function\":\"relu\"}");
    refused(path_of("hub"), "gelu", "another activation");
    put("hub/config.json", "{\"model_type\":\"whisper\",\"d_model\":99999999}");
    refused(path_of("hub"), "is not from", "a width of 10^8");
    put("hub/config.json", "{\"model_type\":\"whisper\"");
    refused(path_of("hub"), "ends inside", "a cut configuration");
}


static void
tokens_are_read(const char *path)
{
    llm_err_t     err;
    llm_ids_t     out = { NULL, 0, 0 };
    llm_gguf_t   *g;
    llm_vocab_t  *v;

    g = llm_source_open_header(path, &err);
    v = g ? llm_vocab_load(g, &err) : NULL;

    /* 'a', 'a' is a token of rank 256; "ab" of 282 */

    ok(v && llm_vocab_size(v) == W_VOCAB
       && llm_vocab_tokenize(v, "aab", 3, NULL, 0, 0, 16, &out,
                             &err) == LLM_OK
       && out.len == 2 && out.data[0] == 256 && out.data[1] == 'b',
       "ids are ranks: the lowest pair is merged first");

    free(out.data);
    llm_vocab_free(v);
    llm_gguf_close(g);
}


/* states of windows are the model's from its load on, though their pages come
   into use later */

static void
states_are_promised(const char *path)
{
    llm_err_t            err;
    llm_devices_t       *devices;
    llm_whisper_t       *w;
    llm_whisper_opts_t   o;
    const llm_model_t   *m;

    devices = llm_devices_create();
    memset(&o, 0, sizeof(o));
    o.model.device = "cpu";
    o.model.threads = 1;
    o.model.max_seqs = 3;
    o.model.devices = devices;
    o.n_states = 2000;
    w = llm_whisper_load(path, &o, &err);

    if (ok(w != NULL, "a model with many states")) {
        m = llm_whisper_model(w);
        ok(m->at->cross && llm_promised(devices, NULL)
                           == m->ops->kv_unused(m->exec, m->at->cross)
           && llm_promised(devices, NULL) > 0,
           "%zu bytes of them are promised", llm_promised(devices, NULL));
    }

    llm_whisper_free(w);
    llm_devices_free(devices);
}


int
main(void)
{
    llm_buf_t   b;
    answer_t   *a;
    w_model_t   m;

    snprintf(dir, sizeof(dir), "/tmp/whisper_tiny.XXXXXX");

    if (mkdtemp(dir) == NULL) {
        return 1;
    }

    a = calloc(1, sizeof(*a));
    w_make(&m, 5);
    right_answers(&m, a);

    llm_buf_init(&b, 0);
    w_bin(&b, &m);
    ok(w_write(path_of("w.bin"), b.data, b.len), "the model is written");

    tokens_are_read(path_of("w.bin"));
    states_are_promised(path_of("w.bin"));
    computes(path_of("w.bin"), a, "reference", NULL, 1e-5);
    computes(path_of("w.bin"), a, "emu", NULL, 0.006);
    computes(path_of("w.bin"), a, "cpu", "avx2", 1e-5);
    computes(path_of("w.bin"), a, "cpu", NULL, 1e-5);

    write_folder(&m, 0);
    folder_computes(a, "a folder");
    write_folder(&m, 1);
    folder_computes(a, "a folder of two files and an index");

    wrong_bins(&m, &b);
    wrong_folders(&m);

    llm_buf_free(&b);
    free(a->logits);
    free(a->got);
    free(a->again);
    free(a);
    w_free(&m);

    (void) unlink(path_of("w.bin"));
    (void) unlink(path_of("wrong.bin"));
    (void) unlink(path_of("hub/config.json"));
    (void) unlink(path_of("hub/merges.txt"));
    (void) unlink(path_of("hub/model.safetensors"));
    (void) unlink(path_of("hub/one.safetensors"));
    (void) unlink(path_of("hub/two.safetensors"));
    (void) rmdir(path_of("hub"));
    (void) rmdir(dir);

    return done_testing();
}
