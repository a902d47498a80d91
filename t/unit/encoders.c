/*
 * Final states of encoders on the CPU and in the emulator of the CUDA backend,
 * position by position: of tiny ones against numpy in float64
 * (encoder_expected.py), and against what Hugging Face transformers computes
 * in float64 (the shared fixtures); and the same bits alone and beside another
 * sequence.  LLM_GPU_DEVICE=cuda: a GPU in the emulator's place.
 */

#include "t/unit/tap.h"
#include "t/unit/fixture.h"
#include "t/unit/gguf_build.h"
#include "t/unit/model_run.h"

#include <assert.h>
#include <math.h>
#include <unistd.h>

#define MAX_PAGES  (MAX_IDS / LLM_KV_PAGE)
#define CTX        16                   /* of the tiny models */

typedef enum { ENC_U32, ENC_F32, ENC_STR } enc_kind_t;

typedef struct {
    const char  *key;
    enc_kind_t   kind;
    uint32_t     u32;
    float        f32;
    const char  *str;
} enc_field_t;

/* of no more dimensions than are not 0; its numbers are plus + scale * hash */
typedef struct {
    const char  *name;
    uint32_t     ne[3];
    float        scale;
    float        plus;
} enc_tensor_t;

typedef struct {
    const char          *name;
    const char          *arch;
    const enc_field_t   *fields;
    const enc_tensor_t  *tensors;
    const float         *states;
    const float         *vector;        /* of the mean of them, or NULL */
    double               score;         /* of a ranker, of their mean; or 0 */
} enc_model_t;

#include "t/unit/encoder_expected.h"


/* what the model makes of a sequence's mean, if it does */

static void
check_mean(const llm_model_t *m, const char *name, const float *states,
    const enc_model_t *tiny)
{
    float         v[ENC_EMBD];
    double        score;
    uint32_t      i, k;
    const float  *want = tiny->vector;

    for (k = 0; k < ENC_EMBD; k++) {
        for (i = 0, v[k] = 0; i < ENC_IDS; i++) {
            v[k] += states[i * ENC_EMBD + k] / ENC_IDS;
        }
    }

    if (tiny->score != 0) {
        is_int(llm_model_hparams(m)->rank_from, LLM_POOLING_MEAN,
               "%s: by the mean", name);
        score = llm_model_rank(m, v, 0);
        ok(fabs(score - tiny->score) < 0.005, "%s: %.7f, not %.7f", name,
           score, tiny->score);
    }

    is_int(llm_model_project(m, v), want != NULL, "%s: %s", name,
           want ? "its mean is projected" : "nothing comes behind the mean");

    if (want) {
        ok(run_distance(v, want, ENC_EMBD) < 0.03, "%s: %g of the deviation",
           name, run_distance(v, want, ENC_EMBD));
    }
}


/* the states of the last n_ids rows, behind `beside` rows of a sequence that
   begins with the fixture's second token */

static int
run(llm_model_t *m, const fixture_t *f, uint32_t beside, float *states)
{
    int           rc;
    int32_t       tokens[2 * MAX_IDS];
    uint32_t      i, rows, ends[3], len[2];
    uint32_t      pos[2 * MAX_IDS], out[MAX_IDS], pages[2 * MAX_PAGES];
    llm_err_t     err;
    llm_batch_t   b;

    rows = beside + f->n_ids;

    for (i = 0; i < rows; i++) {
        tokens[i] = i < beside ? f->ids[i + 1] : f->ids[i - beside];
        pos[i] = i < beside ? i : i - beside;
    }

    for (i = 0; i < f->n_ids; i++) {
        out[i] = beside + i;
    }

    for (i = 0; i < 2 * MAX_PAGES; i++) {
        pages[i] = (i * 3 + (i >= MAX_PAGES))
                   % llm_model_n_pages(m, LLM_KV_FULL);
    }

    memset(&b, 0, sizeof(b));
    ends[0] = 0;
    ends[1] = beside ? beside : rows;
    ends[2] = rows;
    len[0] = ends[1];
    len[1] = f->n_ids;
    b.n_tokens = rows;
    b.n_seqs = beside ? 2 : 1;
    b.n_out = f->n_ids;
    b.gives = LLM_GIVES_HIDDEN;
    b.max_pages = llm_min(MAX_PAGES, llm_model_ctx(m) / LLM_KV_PAGE);
    b.tokens = tokens;
    b.pos = pos;
    b.seq_rows = ends;
    b.kv_len = len;
    b.pages[LLM_KV_FULL] = pages;
    b.out_rows = out;

    /* rows of pages are as far apart as the step's widest */
    memmove(pages + b.max_pages, pages + MAX_PAGES,
            b.max_pages * sizeof(*pages));

    rc = llm_model_forward(m, &b, &err);

    for (i = 0; rc == LLM_OK && i < f->n_ids; i++) {
        memcpy(states + (size_t) i * llm_model_hparams(m)->n_embd,
               llm_model_hidden(m, i),
               llm_model_hparams(m)->n_embd * sizeof(float));
    }

    return rc;
}


static const enc_model_t  *tiny;        /* or NULL: a fixture */


/* f->want may be NULL: it is still to be loaded; half of the positions are
   within bound, all within worst */

static void
check(fixture_t *f, const char *device, const char *isa, double bound,
    double worst)
{
    float             *got, *again;
    size_t             size;
    double            *far;
    uint32_t           i, n_embd;
    llm_err_t          err;
    llm_model_t       *m;
    llm_model_opts_t   o;

    memset(&o, 0, sizeof(o));
    o.device = device;
    o.isa = isa;
    o.backend_dir = getenv("LLM_OBJS") ? getenv("LLM_OBJS") : "objs";
    o.threads = 2;
    o.ctx = f->dir ? 256 : CTX;
    o.batch = 16;
    o.max_seqs = 4;

    m = llm_model_load(f->path, &o, &err);

    if (m == NULL && run_lacks(&err)) {
        skip(err.msg);
        return;
    }

    if (!ok(m != NULL, "%s %s: loads", f->name, isa ? isa : device)) {
        printf("# %s\n", err.msg);
        return;
    }

    ok(llm_model_hparams(m)->encoder && llm_model_batch(m) >= o.ctx,
       "%s: a step takes a whole sequence", f->name);

    n_embd = llm_model_hparams(m)->n_embd;

    if (f->want || ok(load_fixture(f, "embd", n_embd), "%s: ids and states",
                      f->name))
    {
        size = (size_t) f->n_ids * n_embd * sizeof(float);
        got = calloc(1, size);
        again = calloc(1, size);
        far = calloc(f->n_ids, sizeof(double));

        ok(run(m, f, 0, got) == LLM_OK, "%s: runs", f->name);

        for (i = 0; i < f->n_ids; i++) {
            far[i] = run_distance(got + (size_t) i * n_embd,
                                  f->want + (size_t) i * n_embd, n_embd);
        }

        if (tiny) {
            check_mean(m, f->name, got, tiny);
        }

        run_sort(far, f->n_ids);
        ok(far[f->n_ids / 2] <= bound && far[f->n_ids - 1] <= worst,
           "%s %s: %.6f of the deviation (at most %g), no position further "
           "than %.6f (%g)", f->name, isa ? isa : device, far[f->n_ids / 2],
           bound, far[f->n_ids - 1], worst);
        free(far);
        ok(run(m, f, f->n_ids / 2, again) == LLM_OK
           && memcmp(got, again, size) == 0,
           "%s: the same bits beside another sequence", f->name);
        free(got);
        free(again);
    }

    llm_model_free(m);
}


/*
 * Of few numbers the worst is farther.  CUDA has the tiny models' weights in
 * 16 bits; rounded so, in numpy, a position of Jina's second is off by 0.0215.
 */

static void
check_all(fixture_t *f)
{
    double       bound = f->dir ? 0.0025 : 0.006;
    const char  *gpu = getenv("LLM_GPU_DEVICE");

    check(f, "reference", NULL, 0.00002, 0.00002);
    check(f, "cpu", "avx2", bound, bound);
    check(f, "cpu", "avx512", bound, bound);
    check(f, "cpu", "amx", bound, bound);
    check(f, gpu ? gpu : "emu", NULL, f->dir ? bound : 2 * bound,
          f->dir ? bound : 5 * bound);
}


/* ---- tiny models ---- */

static float
number(uint64_t seed, uint64_t i)
{
    uint64_t  z;

    z = ((seed << 32) + i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z = z ^ z >> 31;

    return (float) (z >> 40) / 8388608.0f - 1;
}


static size_t
tensor_len(const enc_tensor_t *t)
{
    return (size_t) t->ne[0] * (t->ne[1] ? t->ne[1] : 1)
           * (t->ne[2] ? t->ne[2] : 1);
}


static void
tiny_build(llm_buf_t *b, const enc_model_t *m)
{
    float                v;
    size_t               i, k, n, at, begin;
    uint64_t             ne[3];
    const enc_field_t   *f;
    const enc_tensor_t  *t;

    for (f = m->fields; f->key; f++) { /* void */ }
    for (n = 0; m->tensors[n].name; n++) { /* void */ }

    gguf_begin(b, 3, n, (uint64_t) (f - m->fields) + 1);
    gguf_kv_str(b, "general.architecture", m->arch);

    for (f = m->fields; f->key; f++) {
        if (f->kind == ENC_U32) {
            gguf_kv_u32(b, f->key, f->u32);

        } else if (f->kind == ENC_STR) {
            gguf_kv_str(b, f->key, f->str);

        } else {
            gguf_kv(b, f->key, LLM_GGUF_F32, &f->f32, sizeof(float));
        }
    }

    for (i = 0, at = 0; i < n; i++) {
        t = &m->tensors[i];
        ne[0] = t->ne[0];
        ne[1] = t->ne[1];
        ne[2] = t->ne[2];
        gguf_tensor(b, t->name, t->ne[2] ? 3 : t->ne[1] ? 2 : 1, ne,
                    LLM_TYPE_F32, at);
        at += (tensor_len(t) * sizeof(float) + 31) / 32 * 32;
    }

    gguf_pad(b, 32);
    begin = b->len;

    for (i = 0; i < n; i++) {
        t = &m->tensors[i];

        for (k = 0; k < tensor_len(t); k++) {
            v = t->scale * number(i + 1, k);
            v = t->plus + v;
            (void) llm_buf_add(b, &v, sizeof(v));
        }

        while ((b->len - begin) % 32) {
            (void) llm_buf_addc(b, 0);
        }
    }
}


static void
test_tiny(fixture_t *f, const enc_model_t *m)
{
    char        path[64];
    FILE       *out;
    llm_buf_t   b;

    snprintf(path, sizeof(path), "/tmp/llm-encoder-%d.gguf", (int) getpid());
    tiny_build(&b, m);
    out = fopen(path, "wb");

    if (!ok(out && fwrite(b.data, 1, b.len, out) == b.len && fclose(out) == 0,
            "%s: written", m->name))
    {
        return;
    }

    llm_buf_free(&b);

    memset(f, 0, sizeof(*f));
    f->name = m->name;
    f->path = path;
    f->n_ids = ENC_IDS;
    memcpy(f->ids, enc_ids, sizeof(enc_ids));
    f->want = malloc(ENC_IDS * ENC_EMBD * sizeof(float));
    memcpy(f->want, m->states, ENC_IDS * ENC_EMBD * sizeof(float));
    tiny = m;

    check_all(f);

    free(f->want);
    unlink(path);
}


/* a field more makes a tiny encoder one that is refused, for this reason */

static void
refused(const char *name, enc_field_t more, const char *why)
{
    size_t          i, n;
    llm_buf_t       b;
    llm_err_t       err;
    llm_gguf_t     *g;
    enc_model_t     m;
    enc_field_t     fields[16];
    llm_hparams_t   hp;

    for (i = 0; strcmp(enc_models[i].name, name) != 0; i++) { /* void */ }

    m = enc_models[i];

    for (n = 0; m.fields[n].key; n++) {
        fields[n] = m.fields[n];
    }

    assert(n + 2 <= llm_nelems(fields));
    fields[n] = more;
    fields[n + 1] = m.fields[n];
    m.fields = fields;

    tiny_build(&b, &m);
    g = llm_gguf_open_memory(b.data, b.len, name, &err);
    ok(g && llm_model_check(g, &hp, &err) == LLM_ERROR
       && strstr(err.msg, more.key) && strstr(err.msg, why), "%s: %s", name,
       why);
    llm_gguf_close(g);
    llm_buf_free(&b);
}


static void
test_refused(void)
{
    refused("Jina's second",
            (enc_field_t) { "jina-bert-v2.attention.max_alibi_bias", ENC_F32,
                            0, 65.0f, NULL }, "65 is not within 0 and 64");
    refused("Jina's second",
            (enc_field_t) { "jina-bert-v2.attention.max_alibi_bias", ENC_F32,
                            0, 0.0f, NULL }, "0 is not within 0 and 64");
    refused("EuroBERT",
            (enc_field_t) { "eurobert.hidden_activation", ENC_STR, 0, 0,
                            "relu" }, "\"relu\" is not supported");
    refused("EuroBERT",
            (enc_field_t) { "eurobert.pooling_type", ENC_U32, 5, 0, NULL },
            "5 is not supported");
}


int
main(void)
{
    char         path[2048];
    size_t       i;
    fixture_t   *f;
    const char  *dir;

    static const char  *const names[] = {
        "bert-f16", "modernbert-f16", "gemmaembedding-f16"
    };

    (void) setenv("LLM_EMU_SEED", "5", 0);
    f = calloc(1, sizeof(fixture_t));

    for (i = 0; i < llm_nelems(enc_models); i++) {
        test_tiny(f, &enc_models[i]);
    }

    tiny = NULL;
    test_refused();
    dir = tap_fixtures();

    if (dir == NULL) {
        skip("no ../shared/fixtures");
        free(f);
        return done_testing();
    }

    for (i = 0; i < llm_nelems(names); i++) {
        memset(f, 0, sizeof(*f));
        f->dir = dir;
        f->name = names[i];
        f->path = path;
        snprintf(path, sizeof(path), "%s/models/%s.gguf", dir, f->name);

        check_all(f);
        free(f->want);
    }

    free(f);

    return done_testing();
}
