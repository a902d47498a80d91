/*
 * Whisper's files and model against the shared fixtures, which OpenAI's code
 * computed in float64 from the same weights: rows of the encoder, logits of the
 * decoder; and the same bytes for any pieces, steps and company.  Without the
 * fixtures the test of a model that it writes itself is whisper_tiny.c.
 */

#include "engine/file/source.h"
#include "engine/model/whisper.h"
#include "t/unit/looked.h"
#include "t/unit/tap.h"

#include <math.h>
#include <unistd.h>

#define MAX_IDS    64
#define FRAMES     3000
#define STATES     3
#define SEQS       6

typedef struct {
    const char  *name;
    const char  *file;                  /* below the fixtures' folder */
    double       limit;                 /* of rms over standard deviation: with
                                           float32; with bfloat16 or int8 */
    double       rounded;
    int          quantised;
    int          emulated;              /* on the emulator, too: that is slow */
} model_t;

static const model_t  models[] = {
    { "w-multi-f32", "w-multi-f32.bin", 1e-3, 1e-3, 0, 1 },
    { "w-multi-f16", "w-multi-f16.bin", 1e-3, 1e-3, 0, 0 },
    { "w-en-q5_0", "w-en-q5_0.bin", 1e-3, 0.03, 1, 0 },
    { "w-v3-q8_0", "w-v3-q8_0.bin", 1e-3, 0.03, 1, 1 },
    { "w-hf-v3", "w-hf-v3", 1e-3, 1e-3, 0, 0 }
};

static const struct {
    const char  *device;
    const char  *isa;
} settings[] = {
    { "reference", NULL }, { "cpu", "avx2" }, { "cpu", "avx512" },
    { "emu", NULL }
};

#define EMU  3

/* the emulator rounds activations to 16 bits */
#define EMU_LIMIT  0.006

typedef struct {
    const model_t  *m;
    const char     *dir;
    float          *mel;                /* [n_mels][FRAMES] */
    uint32_t        n_mels;
    int32_t         ids[MAX_IDS];
    uint32_t        n_ids;
    uint32_t        at[2];              /* positions of the logits */
    float          *enc;
    size_t          n_enc;
    float          *logits;             /* [2][n_vocab] */
    size_t          n_logits;
} golden_t;


static void *
slurp(const char *dir, const char *name, const char *end, size_t *n)
{
    char   path[4096], *p;
    long   len;
    FILE  *f;

    snprintf(path, sizeof(path), "%s/%s%s", dir, name, end);
    f = fopen(path, "rb");
    *n = 0;

    if (f == NULL) {
        return NULL;
    }

    (void) fseek(f, 0, SEEK_END);
    len = ftell(f);
    rewind(f);
    p = malloc((size_t) len + 1);

    if (p && fread(p, 1, (size_t) len, f) == (size_t) len) {
        p[len] = '\0';
        *n = (size_t) len;
    }

    fclose(f);

    return p;
}


/* the frames that are kept; later ones have the last one's value */

static int
load_mel(golden_t *g)
{
    float     *kept;
    size_t     n;
    uint32_t   i, t, frames;

    kept = slurp(g->dir, g->n_mels == 80 ? "speech.mel80" : "speech.mel128",
                 "", &n);
    g->mel = malloc((size_t) g->n_mels * FRAMES * sizeof(float));
    frames = (uint32_t) (n / sizeof(float) / g->n_mels);

    for (i = 0; kept && frames && i < g->n_mels; i++) {
        for (t = 0; t < FRAMES; t++) {
            g->mel[(size_t) i * FRAMES + t]
                = kept[(size_t) i * frames + (t < frames ? t : frames - 1)];
        }
    }

    free(kept);

    return frames != 0;
}


static int
load_golden(golden_t *g, const model_t *m, const char *dir)
{
    char    *json, *p;
    size_t   n;
    void    *ids;

    memset(g, 0, sizeof(*g));
    g->m = m;
    g->dir = dir;

    json = slurp(dir, m->name, ".json", &n);
    p = json ? strstr(json, "\"logits_positions\"") : NULL;

    if (p == NULL
        || sscanf(strchr(p, '['), "[ %u , %u", &g->at[0], &g->at[1]) != 2)
    {
        free(json);
        return 0;
    }

    p = strstr(json, "\"n_mels\"");
    g->n_mels = p ? (uint32_t) atoi(strchr(p, ':') + 1) : 80;
    free(json);

    ids = slurp(dir, m->name, ".ids", &n);
    g->n_ids = (uint32_t) (n / sizeof(int32_t));

    if (ids == NULL || g->n_ids == 0 || g->n_ids > MAX_IDS) {
        return 0;
    }

    memcpy(g->ids, ids, g->n_ids * sizeof(int32_t));
    free(ids);

    g->enc = slurp(dir, m->name, ".enc", &g->n_enc);
    g->logits = slurp(dir, m->name, ".logits", &g->n_logits);
    g->n_enc /= sizeof(float);
    g->n_logits /= sizeof(float);

    return g->enc && g->logits && load_mel(g);
}


static void
free_golden(golden_t *g)
{
    free(g->mel);
    free(g->enc);
    free(g->logits);
}


/* rms of the difference over the standard deviation of `want` */

static double
error_of(const float *got, const float *want, size_t n)
{
    size_t  i;
    double  d, sum, mean, var;

    for (i = 0, mean = 0; i < n; i++) {
        mean += (double) want[i] / (double) n;
    }

    for (i = 0, sum = 0, var = 0; i < n; i++) {
        d = (double) got[i] - (double) want[i];
        sum += d * d;
        d = (double) want[i] - mean;
        var += d * d;
    }

    return sqrt(sum / var);
}


static int
encode(llm_whisper_t *w, uint32_t state, const float *mel, int words)
{
    int        rc;
    llm_err_t  err;

    llm_whisper_begin(w, state, mel, words);
    err.msg[0] = '\0';

    do {
        rc = llm_whisper_encode(w, &err);
    } while (rc == LLM_MORE);

    if (rc != LLM_OK) {
        printf("# %s\n", err.msg);
    }

    return rc == LLM_OK;
}


static llm_whisper_t *
load(const golden_t *g, size_t setting, uint32_t batch, llm_err_t *err)
{
    char                 path[4096];
    llm_whisper_opts_t   o;

    memset(&o, 0, sizeof(o));
    o.model.backend_dir = getenv("LLM_OBJS") ? getenv("LLM_OBJS") : "objs";
    snprintf(path, sizeof(path), "%s/%s", g->dir, g->m->file);
    o.model.device = settings[setting].device;
    o.model.isa = settings[setting].isa;
    o.model.threads = 2;
    o.model.batch = batch;
    o.model.max_seqs = SEQS;
    o.n_states = STATES;

    return llm_whisper_load(path, &o, err);
}


/* all ids in steps of n tokens on a sequence and a state; the rows at
   g->at become out[2][n_vocab] */

static int
decode(llm_whisper_t *w, const golden_t *g, uint32_t n, uint32_t seq,
    uint32_t state, float *out)
{
    uint32_t            i, k, v;
    llm_err_t           err;
    llm_whisper_rows_t  r;

    v = llm_whisper_info(w)->n_vocab;

    for (i = 0; i < g->n_ids; i += r.n) {
        r.seq = seq;
        r.state = state;
        r.pos = i;
        r.tokens = g->ids + i;
        r.n = llm_min(n, g->n_ids - i);
        r.n_out = r.n;

        if (llm_whisper_step(w, &r, 1, &err) != LLM_OK) {
            printf("# %s\n", err.msg);
            return 0;
        }

        for (k = 0; k < 2; k++) {
            if (g->at[k] >= i && g->at[k] < i + r.n) {
                memcpy(out + (size_t) k * v,
                       llm_whisper_logits(w, g->at[k] - i),
                       v * sizeof(float));
            }
        }
    }

    return 1;
}


/* the same ids by several sequences at once, on two states, among them a fork;
   one token a step */

static int
together(llm_whisper_t *w, const golden_t *g, const float *want)
{
    int                 same;
    uint32_t            i, k, s, n, v;
    llm_err_t           err;
    llm_whisper_rows_t  r[SEQS];

    same = 1;
    v = llm_whisper_info(w)->n_vocab;

    for (i = 0; i < g->n_ids; i++) {
        n = i > g->n_ids / 2 ? SEQS : SEQS - 1;

        if (i == g->n_ids / 2 + 1) {
            llm_whisper_fork(w, 1, SEQS - 1, i);
        }

        for (s = 0; s < n; s++) {
            r[s].seq = s;
            r[s].state = s % 2 ? 2 : 0;
            r[s].pos = i;
            r[s].tokens = &g->ids[i];
            r[s].n = 1;
            r[s].n_out = 1;
        }

        if (llm_whisper_step(w, r, n, &err) != LLM_OK) {
            printf("# %s\n", err.msg);
            return 0;
        }

        for (k = 0; k < 2; k++) {
            for (s = 0; s < n && g->at[k] == i; s++) {
                same &= memcmp(want + (size_t) k * v,
                               llm_whisper_logits(w, s), v * sizeof(float))
                        == 0;
            }
        }
    }

    return same;
}


static void
weights_are_sound(llm_whisper_t *w, const golden_t *g)
{
    float                     *a, *b;
    double                     sum, worst;
    uint32_t                   i, k, n;
    llm_err_t                  err;
    llm_whisper_rows_t         r;
    const llm_whisper_info_t  *info;

    info = llm_whisper_info(w);
    n = info->n_align * g->n_ids;
    a = calloc((size_t) n * info->n_audio_ctx, sizeof(float));
    b = calloc((size_t) n * info->n_audio_ctx, sizeof(float));

    r.seq = 0;
    r.state = 0;
    r.pos = 0;
    r.tokens = g->ids;
    r.n = g->n_ids;
    r.n_out = 0;

    ok(looked(w, &r, a, &err) == LLM_OK && looked(w, &r, b, &err) == LLM_OK
       && memcmp(a, b, (size_t) n * info->n_audio_ctx * sizeof(float)) == 0,
       "%s: what %u heads look at", g->m->name, info->n_align);

    for (i = 0, worst = 0; i < n; i++) {
        for (k = 0, sum = 0; k < info->n_audio_ctx; k++) {
            sum += (double) a[(size_t) i * info->n_audio_ctx + k];
        }

        worst = fmax(worst, fabs(sum - 1));
    }

    ok(worst < 1e-5, "the weights of a row sum to 1 (%.1e)", worst);

    free(a);
    free(b);
}


static void
run(const golden_t *g, size_t setting)
{
    double                     e, l, limit;
    float                     *out, *again, *enc;
    llm_err_t                  err;
    llm_whisper_t             *w;
    const char                *what;
    const llm_whisper_info_t  *info;

    what = settings[setting].isa ? settings[setting].isa
                                 : settings[setting].device;
    w = load(g, setting, 0, &err);

    if (w == NULL && (settings[setting].isa || setting == EMU)) {
        printf("# %s\n", err.msg);
        skip(what);
        return;
    }

    if (!ok(w != NULL, "%s, %s is loaded", g->m->name, what)) {
        printf("# %s\n", err.msg);
        return;
    }

    info = llm_whisper_info(w);
    limit = setting && g->m->quantised ? g->m->rounded : g->m->limit;
    limit = setting == EMU ? EMU_LIMIT : limit;
    out = calloc(2 * (size_t) info->n_vocab, sizeof(float));
    again = calloc(2 * (size_t) info->n_vocab, sizeof(float));
    enc = calloc(g->n_enc, sizeof(float));

    if (ok(encode(w, 0, g->mel, 1)
           && g->n_enc == (size_t) info->n_audio_ctx * info->n_audio_state,
           "%s: a window is encoded", g->m->name))
    {
        memcpy(enc, llm_whisper_states(w), g->n_enc * sizeof(float));
        e = error_of(enc, g->enc, g->n_enc);
        ok(e < limit, "%s, %s: the encoder's rows, %.1e", g->m->name, what,
           e);
    }

    if (ok(decode(w, g, MAX_IDS, 0, 0, out)
           && g->n_logits == 2 * (size_t) info->n_vocab,
           "%s: a prefix", g->m->name))
    {
        l = error_of(out, g->logits, g->n_logits);
        ok(l < limit, "%s, %s: logits, %.1e", g->m->name, what, l);
    }

    /* the rest would take minutes there; whisper_tiny.c has it */

    if (setting == EMU) {
        goto done;
    }

    ok(decode(w, g, 3, 1, 0, again)
       && memcmp(out, again, g->n_logits * sizeof(float)) == 0,
       "the same bytes three tokens a step");
    ok(encode(w, 2, g->mel, 0) && together(w, g, out),
       "the same bytes for several at once, on another state, forked");
    weights_are_sound(w, g);
    llm_whisper_free(w);

    w = load(g, setting, 100, &err);
    ok(w && encode(w, 1, g->mel, 0)
       && memcmp(enc, llm_whisper_states(w), g->n_enc * sizeof(float)) == 0
       && decode(w, g, 1, 3, 1, again)
       && memcmp(out, again, g->n_logits * sizeof(float)) == 0,
       "the same bytes with smaller pieces");

done:

    llm_whisper_free(w);
    free(out);
    free(again);
    free(enc);
}


static void
header_has_sizes(const golden_t *g)
{
    char                 path[4096];
    llm_err_t            err;
    llm_gguf_t          *f;
    llm_whisper_info_t   i;

    snprintf(path, sizeof(path), "%s/%s", g->dir, g->m->file);
    f = llm_source_open_header(path, &err);

    ok(f && llm_whisper_check(f, &i, &err) == LLM_OK
       && i.n_mels == g->n_mels && i.n_frames == FRAMES
       && i.n_vocab * 2 == g->n_logits && i.n_text_ctx == 448
       && i.timestamp + 1501 == (int32_t) i.n_vocab
       && llm_gguf_tensor(f, 0)->data == NULL,
       "%s: its header", g->m->name);

    llm_gguf_close(f);
}


int
main(void)
{
    char         dir[4096];
    size_t       i, s;
    golden_t     g;
    const char  *root;

    root = tap_fixtures();

    if (root == NULL) {
        printf("1..0 # SKIP no shared fixtures (LLM_FIXTURES)\n");
        return 0;
    }

    snprintf(dir, sizeof(dir), "%s/audio", root);

    for (i = 0; i < llm_nelems(models); i++) {
        if (!ok(load_golden(&g, &models[i], dir), "%s: its golden",
                models[i].name))
        {
            continue;
        }

        header_has_sizes(&g);

        for (s = 0; s < llm_nelems(settings); s++) {
            if (s != EMU || g.m->emulated) {
                run(&g, s);
            }
        }

        free_golden(&g);
    }

    return done_testing();
}
