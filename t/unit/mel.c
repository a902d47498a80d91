/*
 * Log-mel spectrograms, compared with sums over the definition and with the
 * fixtures', which are OpenAI's; those of a Universal Speech Model with what
 * transformers' Gemma4AudioFeatureExtractor makes of the same samples, in
 * float64.
 */

#include "engine/media/mel.h"
#include "engine/media/wav.h"

#include "t/unit/tap.h"

#include <math.h>

#define FRAMES  3000

static float  sound[16000];


/* the power of a bin by the definition, times the filters, of one frame */

static void
naive(const float *filters, uint32_t n_mels, const float *x, size_t len,
    size_t frame, double *out)
{
    int       k, n, at;
    double    re, im, a, power[LLM_MEL_BINS];
    uint32_t  i;

    for (k = 0; k < LLM_MEL_BINS; k++) {
        re = im = 0;

        for (n = 0; n < 400; n++) {
            at = abs((int) frame * 160 - 200 + n);
            a = (size_t) at < len ? x[at] : 0;
            a *= 0.5 - 0.5 * cos(2 * M_PI * n / 400);
            re += a * cos(2 * M_PI * k * n / 400);
            im -= a * sin(2 * M_PI * k * n / 400);
        }

        power[k] = re * re + im * im;
    }

    for (i = 0; i < n_mels; i++) {
        a = 0;

        for (k = 0; k < LLM_MEL_BINS; k++) {
            a += filters[i * LLM_MEL_BINS + k] * power[k];
        }

        out[i] = log10(a > 1e-10 ? a : 1e-10);
    }
}


static void
make_sound(void)
{
    size_t    i;
    uint32_t  seed;

    seed = 1;

    for (i = 0; i < 16000; i++) {
        seed = seed * 1664525 + 1013904223;
        sound[i] = (float) (0.3 * sin(0.05 * (double) i)
                            + 0.2 * sin(1e-5 * (double) (i * i))
                            + 1e-3 * ((int32_t) seed / 2147483648.0));
    }
}


static void
test_definition(void)
{
    float       filters[7 * LLM_MEL_BINS], got[103 * 7], part[7];
    double      want[7], worst;
    size_t      f;
    uint32_t    i, same;
    llm_err_t   err;
    llm_mel_t  *m;

    for (i = 0; i < 7 * LLM_MEL_BINS; i++) {
        filters[i] = i % 11 < 7 ? (float) (i % 13) / 1000 : 0;
    }

    /* a band without a bin, and one with the last bin alone */
    memset(filters + 3 * LLM_MEL_BINS, 0, LLM_MEL_BINS * sizeof(float));
    memset(filters + 5 * LLM_MEL_BINS, 0, LLM_MEL_BINS * sizeof(float));
    filters[6 * LLM_MEL_BINS - 1] = 1;

    m = llm_mel_create(7, filters, &err);
    is_int(llm_mel_bands(m), 7, "filters of any number");
    llm_mel_log(m, sound, 16000, 0, 103, got);

    worst = 0;
    same = 0;

    for (f = 0; f < 103; f++) {
        naive(filters, 7, sound, 16000, f, want);
        llm_mel_log(m, sound, 16000, f, 1, part);

        for (i = 0; i < 7; i++) {
            worst = fmax(worst, fabs(got[f * 7 + i] - want[i]));
        }

        same += memcmp(part, got + f * 7, sizeof(part)) == 0;
    }

    ok(worst < 2e-6, "frames are those of the definition: %g", worst);
    is_int(same, 103, "a frame is the same alone");
    ok(got[3] == -10, "a band without a weight");
    ok(got[102 * 7] == -10 && got[101 * 7] > -10,
       "frames after the end are silent");

    llm_mel_log(m, sound, 0, 0, 1, got);
    ok(got[0] == -10, "no samples");
    llm_mel_log(m, sound, 1, 0, 1, got);
    naive(filters, 7, sound, 1, 0, want);
    ok(fabs(got[0] - want[0]) < 2e-6, "one sample");
    llm_mel_log(m, sound, 16000, (size_t) 1 << 40, 1, got);
    ok(got[0] == -10, "far away");

    llm_mel_free(m);
}


static void
test_refused(void)
{
    float      filters[LLM_MEL_BINS] = { 0 };
    llm_err_t  err;

    ok(llm_mel_create(0, NULL, &err) == NULL, "no bands");
    ok(llm_mel_create(LLM_MEL_MAX + 1, NULL, &err) == NULL, "too many bands");
    ok(strstr(err.msg, "257 bands") != NULL, "which the message says");

    filters[200] = INFINITY;
    ok(llm_mel_create(1, filters, &err) == NULL, "a weight without an end");
    ok(strstr(err.msg, "number 200") != NULL, "which is named");
}


static void
test_window(void)
{
    float       in[6] = { -10, -1, 0.5f, -9, 2, -3 }, out[8];
    llm_err_t   err;
    llm_mel_t  *m;

    m = llm_mel_create(2, NULL, &err);
    ok(llm_mel_max(in, 6) == 2, "the largest");

    llm_mel_window(m, in, 3, 2, 0, 3, out);
    ok(out[0] == -0.5f && out[1] == 1.125f && out[2] == 1.5f && out[3] == 0.75f
       && out[4] == -0.5f && out[5] == 0.25f, "scaled, by band");

    llm_mel_window(m, in, 3, 2, 1, 4, out);
    ok(out[0] == 1.125f && out[1] == 1.5f && out[2] == -0.5f && out[3] == -0.5f
       && out[4] == -0.5f && out[5] == 0.25f && out[6] == -0.5f,
       "after the end there is silence");

    llm_mel_free(m);
}


/* the logarithm of band `band` of 128 */

static const struct {
    uint32_t  frame;
    uint32_t  band;
    float     want;
} usm[] = {
    { 0, 0, -6.907755f },
    { 0, 1, 1.82919f },
    { 0, 17, -0.5384573f },
    { 0, 64, -2.962778f },
    { 0, 127, -3.457004f },
    { 1, 0, -6.907755f },
    { 1, 1, 1.790905f },
    { 1, 17, -3.205455f },
    { 1, 64, -4.20402f },
    { 1, 127, -3.553715f },
    { 50, 0, -6.907755f },
    { 50, 1, -1.084956f },
    { 50, 17, -1.780452f },
    { 50, 64, -4.574864f },
    { 50, 127, -4.108969f },
    { 98, 0, -6.907755f },
    { 98, 1, -0.9663589f },
    { 98, 17, -3.450716f },
    { 98, 64, -3.987624f },
    { 98, 127, -3.421911f }
};


static void
test_usm(void)
{
    float       *rows, *by_band, part[128], worst;
    size_t       i, n, same;
    llm_err_t    err;
    llm_mel_t   *m;

    is_int((long long) llm_mel_usm_frames(0), 0, "no samples have no frame");
    is_int((long long) llm_mel_usm_frames(160), 0, "nor have 160");
    is_int((long long) llm_mel_usm_frames(161), 1, "161 have one");
    is_int((long long) llm_mel_usm_frames(16000), 99, "a second has 99");

    m = llm_mel_create_usm(128, &err);
    n = llm_mel_usm_frames(16000);
    rows = malloc(n * 128 * sizeof(float));
    by_band = malloc(4 * 128 * sizeof(float));
    llm_mel_log(m, sound, 16000, 0, n, rows);

    for (i = 0, worst = 0; i < llm_nelems(usm); i++) {
        worst = fmaxf(worst, fabsf(rows[usm[i].frame * 128 + usm[i].band]
                                   - usm[i].want));
    }

    ok(worst < 2e-6f, "the numbers of transformers: %g", worst);

    for (i = 0, same = 0; i < n; i++) {
        llm_mel_log(m, sound, 16000, i, 1, part);
        same += memcmp(part, rows + i * 128, sizeof(part)) == 0;
    }

    is_int((long long) same, (long long) n, "a frame is the same alone");
    llm_mel_window(m, rows, n, llm_mel_max(rows, n * 128), n - 3, 4, by_band);

    for (i = 0, same = 0; i < 4 * 128; i++) {
        same += by_band[i] == (i % 4 == 3 ? 0
                               : rows[(n - 3 + i % 4) * 128 + i / 4]);
    }

    is_int((long long) same, 4 * 128, "as they are, by band, then zeros");
    llm_mel_log(m, sound, 1000, 20, 1, part);
    ok(fabsf(part[5] - logf(0.001f)) < 1e-6f, "after the end there is silence");
    llm_mel_free(m);
    free(rows);
    free(by_band);

    ok(llm_mel_create_usm(LLM_MEL_MAX + 1, &err) == NULL
       && strstr(err.msg, "257 bands"), "too many bands: %s", err.msg);
}


static char *
slurp(const char *dir, const char *name, size_t *len)
{
    char    path[2048], *p;
    FILE   *f;

    snprintf(path, sizeof(path), "%s/audio/%s", dir, name);
    f = fopen(path, "rb");

    if (f == NULL) {
        return NULL;
    }

    p = malloc(1 << 20);
    *len = fread(p, 1, 1 << 20, f);
    fclose(f);

    return p;
}


/* of the golden, later frames have the value of the last one */

static void
test_fixture(const char *dir, uint32_t n_mels)
{
    char        name[32];
    char       *wav, *want;
    float      *x, *rows, *mel, v, worst;
    size_t      len, size, kept, n, i, k;
    llm_err_t   err;
    llm_mel_t  *m;
    llm_wav_t   w;

    snprintf(name, sizeof(name), "speech.mel%u", n_mels);
    wav = slurp(dir, "speech.wav", &len);
    want = slurp(dir, name, &size);

    if (!ok(wav && want && llm_wav_open(&w, wav, len, &err) == LLM_OK,
            "%s is there", name))
    {
        return;
    }

    x = malloc(w.frames * sizeof(float));
    mel = malloc((size_t) FRAMES * n_mels * sizeof(float));
    llm_wav_mono(&w, 0, w.frames, x);
    kept = llm_mel_frames(w.frames) + 12;
    is_int(size, kept * n_mels * sizeof(float), "%s: its frames", name);

    m = llm_mel_create(n_mels, NULL, &err);
    n = llm_mel_silent(w.frames);
    rows = malloc(n * n_mels * sizeof(float));
    llm_mel_log(m, x, w.frames, 0, n, rows);
    llm_mel_window(m, rows, n, llm_mel_max(rows, n * n_mels), 0, FRAMES, mel);
    worst = 0;

    for (i = 0; i < FRAMES; i++) {
        for (k = 0; k < n_mels; k++) {
            memcpy(&v, want + 4 * (k * kept + llm_min(i, kept - 1)), 4);
            worst = fmaxf(worst, fabsf(v - mel[k * FRAMES + i]));
        }
    }

    ok(worst <= 1e-5f, "%s: differs by %g at most", name, worst);

    llm_mel_free(m);
    free(x);
    free(rows);
    free(mel);
    free(wav);
    free(want);
}


int
main(void)
{
    const char  *dir;

    make_sound();
    test_definition();
    test_refused();
    test_window();
    test_usm();

    dir = tap_fixtures();

    if (dir == NULL) {
        skip("there are no shared fixtures");
        return done_testing();
    }

    test_fixture(dir, 80);
    test_fixture(dir, 128);

    return done_testing();
}
