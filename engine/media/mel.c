/*
 * Log-mel spectrograms; see mel.h.
 *
 * A transform has complex numbers of 400 points, real and imaginary parts apart
 * (16 * 25: two passes of radix 4, two of radix 5, each from one array to the
 * other, so that the last one leaves the bins in order), or of 512 (four passes
 * of radix 4, one of radix 2).  Two frames are one transform, one of them its
 * real part, and LANES transforms are computed at once, side by side.
 */

#include "engine/media/mel.h"

#include <math.h>

#define LANES   2                       /* as all machines have registers for */
#define FRAMES  (2 * LANES)             /* of one call of the transform */
#define POINTS  LLM_MEL_WINDOW
#define USM     512                     /* points of a transform there */
#define BINS    (USM / 2 + 1)

#define LLM_MEL_SILENCE  -10.0f         /* log10 of the least power */
#define LLM_MEL_FLOOR    0.001          /* added to a magnitude */

typedef double  llm_mel_lanes_t __attribute__((vector_size(LANES * 8)));

typedef struct {
    llm_mel_lanes_t  re[USM];
    llm_mel_lanes_t  im[USM];
} llm_mel_points_t;

typedef struct {
    uint32_t         first;             /* bins that are not zero */
    uint32_t         n;
    const float     *weight;            /* [n] */
} llm_mel_band_t;

struct llm_mel_s {
    uint32_t         n_mels;
    int              usm;
    uint32_t         points;            /* of a transform */
    uint32_t         bins;              /* of these that count */
    double           window[POINTS];
    double           cos[USM];          /* of 2 pi k / points */
    double           sin[USM];
    llm_mel_band_t   band[LLM_MEL_MAX];
    float            filters[];         /* [n_mels][bins] */
};


/* Slaney's scale of pitches: linear up to 1,000 Hz, logarithmic from there */

static double
llm_mel_hertz(double mel)
{
    return mel < 15 ? mel * 200 / 3 : 1000 * exp((mel - 15) * log(6.4) / 27);
}


/* HTK's, logarithmic all over */

static double
llm_mel_hertz_htk(double mel)
{
    return 700 * (pow(10, mel / 2595) - 1);
}


/* triangles, of Slaney's of the same area */

static void
llm_mel_triangles(llm_mel_t *m)
{
    double    top, low, mid, high, f, up, down;
    double  (*hertz)(double mel);
    uint32_t  i, k, n;

    n = m->n_mels + 1;
    hertz = m->usm ? llm_mel_hertz_htk : llm_mel_hertz;
    top = m->usm ? 2595 * log10(1 + 8000.0 / 700)
                 : 15 + log(8.0) * 27 / log(6.4);       /* 8,000 Hz */

    for (i = 0; i < m->n_mels; i++) {
        low = hertz(top * i / n);
        mid = hertz(top * (i + 1) / n);
        high = hertz(top * (i + 2) / n);

        for (k = 0; k < m->bins; k++) {
            f = k * (double) LLM_MEL_RATE / m->points;
            up = (f - low) / (mid - low);
            down = (high - f) / (high - mid);
            f = llm_max(0, llm_min(up, down));
            f = m->usm ? f : f * 2 / (high - low);
            m->filters[i * m->bins + k] = (float) f;
        }
    }
}


static void
llm_mel_bands_find(llm_mel_t *m)
{
    uint32_t      i, k;
    const float  *f;

    for (i = 0; i < m->n_mels; i++) {
        f = m->filters + i * m->bins;
        m->band[i].first = m->bins;

        for (k = 0; k < m->bins; k++) {
            if (f[k] != 0) {
                m->band[i].first = llm_min(m->band[i].first, k);
                m->band[i].n = k + 1 - m->band[i].first;
            }
        }

        m->band[i].weight = f + (m->band[i].n ? m->band[i].first : 0);
    }
}


static llm_mel_t *
llm_mel_tables(uint32_t n_mels, int usm, llm_err_t *err)
{
    size_t      n;
    double      a;
    uint32_t    i;
    llm_mel_t  *m;

    if (n_mels == 0 || n_mels > LLM_MEL_MAX) {
        (void) llm_fail(err, "a spectrogram of %u bands; there may be 1 to %u",
                        n_mels, LLM_MEL_MAX);
        return NULL;
    }

    n = (size_t) n_mels * (usm ? BINS : LLM_MEL_BINS);
    m = calloc(1, sizeof(llm_mel_t) + n * sizeof(float));

    if (m == NULL) {
        (void) llm_fail(err, "no memory for the tables of a spectrogram");
        return NULL;
    }

    m->n_mels = n_mels;
    m->usm = usm;
    m->points = usm ? USM : POINTS;
    m->bins = m->points / 2 + 1;

    for (i = 0; i < m->points; i++) {
        a = 2 * M_PI * i / m->points;
        m->cos[i] = cos(a);
        m->sin[i] = sin(a);
    }

    n = usm ? LLM_MEL_USM_WINDOW : LLM_MEL_WINDOW;

    for (i = 0; i < n; i++) {
        a = 0.5 - 0.5 * cos(2 * M_PI * i / (double) n);
        m->window[i] = usm ? (float) a : a;     /* as transformers has it */
    }

    return m;
}


llm_mel_t *
llm_mel_create(uint32_t n_mels, const float *filters, llm_err_t *err)
{
    size_t      n;
    uint32_t    i;
    llm_mel_t  *m;

    m = llm_mel_tables(n_mels, 0, err);
    n = (size_t) n_mels * LLM_MEL_BINS;

    if (m == NULL) {
        return NULL;
    }

    if (filters) {
        for (i = 0; i < n; i++) {
            if (!isfinite(filters[i])) {
                (void) llm_fail(err, "the mel filters have a weight, number "
                                "%u, that is no finite number", i);
                free(m);
                return NULL;
            }
        }

        memcpy(m->filters, filters, n * sizeof(float));

    } else {
        llm_mel_triangles(m);
    }

    llm_mel_bands_find(m);

    return m;
}


llm_mel_t *
llm_mel_create_usm(uint32_t n_mels, llm_err_t *err)
{
    llm_mel_t  *m;

    m = llm_mel_tables(n_mels, 1, err);

    if (m) {
        llm_mel_triangles(m);
        llm_mel_bands_find(m);
    }

    return m;
}


void
llm_mel_free(llm_mel_t *m)
{
    free(m);
}


uint32_t
llm_mel_bands(const llm_mel_t *m)
{
    return m->n_mels;
}


/*
 * A pass of radix 4: n points of the transforms that are left, s of them; from
 * in to out.  Of each group of four, y[j] = w^(pj) sum x[k] (-i)^(jk).
 */

static inline void
llm_mel_pass4(const llm_mel_t *m, const llm_mel_points_t *in,
    llm_mel_points_t *out, uint32_t n, uint32_t s)
{
    double            c[4], d[4];
    uint32_t          p, q, j, k, o, step;
    llm_mel_lanes_t   ar, ai, br, bi, cr, ci, dr, di, re[4], im[4];

    step = m->points / n;

    for (p = 0; p < n / 4; p++) {

        for (j = 1; j < 4; j++) {
            c[j] = m->cos[p * j * step];
            d[j] = -m->sin[p * j * step];
        }

        for (q = 0; q < s; q++) {
            k = q + s * p;
            o = s * n / 4;

            ar = in->re[k] + in->re[k + 2 * o];
            ai = in->im[k] + in->im[k + 2 * o];
            br = in->re[k] - in->re[k + 2 * o];
            bi = in->im[k] - in->im[k + 2 * o];
            cr = in->re[k + o] + in->re[k + 3 * o];
            ci = in->im[k + o] + in->im[k + 3 * o];
            dr = in->im[k + o] - in->im[k + 3 * o];
            di = in->re[k + 3 * o] - in->re[k + o];

            re[0] = ar + cr;
            im[0] = ai + ci;
            re[1] = br + dr;
            im[1] = bi + di;
            re[2] = ar - cr;
            im[2] = ai - ci;
            re[3] = br - dr;
            im[3] = bi - di;

            k = q + s * 4 * p;

            out->re[k] = re[0];
            out->im[k] = im[0];

            for (j = 1; j < 4; j++) {
                out->re[k + s * j] = re[j] * c[j] - im[j] * d[j];
                out->im[k + s * j] = re[j] * d[j] + im[j] * c[j];
            }
        }
    }
}


/* the same of radix 5 */

static void
llm_mel_pass5(const llm_mel_t *m, const llm_mel_points_t *in,
    llm_mel_points_t *out, uint32_t n, uint32_t s)
{
    double            c[5], d[5], c1, c2, s1, s2;
    uint32_t          p, q, j, k, o, step;
    llm_mel_lanes_t   ar, ai, br, bi, er, ei, fr, fi, ur, ui, vr, vi,
                      re[5], im[5];

    step = m->points / n;
    c1 = m->cos[POINTS / 5];
    s1 = m->sin[POINTS / 5];
    c2 = m->cos[2 * POINTS / 5];
    s2 = m->sin[2 * POINTS / 5];

    for (p = 0; p < n / 5; p++) {

        for (j = 1; j < 5; j++) {
            c[j] = m->cos[p * j * step];
            d[j] = -m->sin[p * j * step];
        }

        for (q = 0; q < s; q++) {
            k = q + s * p;
            o = s * n / 5;

            /* sums and differences of the outer and of the inner pair */
            ar = in->re[k + o] + in->re[k + 4 * o];
            ai = in->im[k + o] + in->im[k + 4 * o];
            br = in->re[k + o] - in->re[k + 4 * o];
            bi = in->im[k + o] - in->im[k + 4 * o];
            er = in->re[k + 2 * o] + in->re[k + 3 * o];
            ei = in->im[k + 2 * o] + in->im[k + 3 * o];
            fr = in->re[k + 2 * o] - in->re[k + 3 * o];
            fi = in->im[k + 2 * o] - in->im[k + 3 * o];

            re[0] = in->re[k] + ar + er;
            im[0] = in->im[k] + ai + ei;

            ur = in->re[k] + c1 * ar + c2 * er;
            ui = in->im[k] + c1 * ai + c2 * ei;
            vr = s1 * bi + s2 * fi;
            vi = s1 * br + s2 * fr;
            re[1] = ur + vr;
            im[1] = ui - vi;
            re[4] = ur - vr;
            im[4] = ui + vi;

            ur = in->re[k] + c2 * ar + c1 * er;
            ui = in->im[k] + c2 * ai + c1 * ei;
            vr = s2 * bi - s1 * fi;
            vi = s2 * br - s1 * fr;
            re[2] = ur + vr;
            im[2] = ui - vi;
            re[3] = ur - vr;
            im[3] = ui + vi;

            k = q + s * 5 * p;

            out->re[k] = re[0];
            out->im[k] = im[0];

            for (j = 1; j < 5; j++) {
                out->re[k + s * j] = re[j] * c[j] - im[j] * d[j];
                out->im[k + s * j] = re[j] * d[j] + im[j] * c[j];
            }
        }
    }
}


/* the last pass of radix 2, of s transforms */

static void
llm_mel_pass2(const llm_mel_points_t *in, llm_mel_points_t *out, uint32_t s)
{
    uint32_t  q;

    for (q = 0; q < s; q++) {
        out->re[q] = in->re[q] + in->re[q + s];
        out->im[q] = in->im[q] + in->im[q + s];
        out->re[q + s] = in->re[q] - in->re[q + s];
        out->im[q + s] = in->im[q] - in->im[q + s];
    }
}


/* FRAMES frames from `frame` on, times the window, into the lanes: even ones
   are real parts */

static void
llm_mel_load(const llm_mel_t *m, const float *samples, size_t len,
    size_t frame, llm_mel_points_t *x)
{
    double    v;
    size_t    at;
    uint32_t  i, k;
    int64_t   start;

    for (i = 0; i < FRAMES; i++) {
        start = (int64_t) ((frame + i) * LLM_MEL_HOP) - POINTS / 2;

        for (k = 0; k < POINTS; k++) {
            at = (size_t) (start + k < 0 ? -(start + k) : start + k);
            v = at < len ? samples[at] * m->window[k] : 0;

            if (i & 1) {
                x->im[k][i / 2] = v;
            } else {
                x->re[k][i / 2] = v;
            }
        }
    }
}


/* the same of a Universal Speech Model */

static void
llm_mel_load_usm(const llm_mel_t *m, const float *samples, size_t len,
    size_t frame, llm_mel_points_t *x)
{
    double    v;
    size_t    at;
    uint32_t  i, k;

    for (i = 0; i < FRAMES; i++) {
        for (k = 0; k < USM; k++) {
            at = (frame + i) * LLM_MEL_HOP + k;     /* number + half of it */
            v = k < LLM_MEL_USM_WINDOW && at >= LLM_MEL_USM_WINDOW / 2
                && at - LLM_MEL_USM_WINDOW / 2 < len
                ? samples[at - LLM_MEL_USM_WINDOW / 2] * m->window[k] : 0;

            if (i & 1) {
                x->im[k][i / 2] = v;
            } else {
                x->re[k][i / 2] = v;
            }
        }
    }
}


/*
 * The power of bin k of both frames of each lane: of the transform Z of
 * a + ib, A[k] = (Z[k] + conj Z[-k]) / 2 and B[k] = (Z[k] - conj Z[-k]) / 2i.
 */

static void
llm_mel_power(const llm_mel_t *m, const llm_mel_points_t *z,
    double power[FRAMES][BINS])
{
    uint32_t          i, k, r;
    llm_mel_lanes_t   ar, ai, br, bi, a, b;

    for (k = 0; k < m->bins; k++) {
        r = (m->points - k) % m->points;

        ar = z->re[k] + z->re[r];
        ai = z->im[k] - z->im[r];
        br = z->im[k] + z->im[r];
        bi = z->re[r] - z->re[k];

        a = (ar * ar + ai * ai) * 0.25;
        b = (br * br + bi * bi) * 0.25;

        for (i = 0; i < LANES; i++) {
            power[2 * i][k] = a[i];
            power[2 * i + 1][k] = b[i];
        }
    }
}


static void
llm_mel_row(const llm_mel_t *m, const double *power, float *out)
{
    double                 sum;
    uint32_t               i, k;
    const llm_mel_band_t  *b;

    for (i = 0; i < m->n_mels; i++) {
        b = &m->band[i];
        sum = 0;

        for (k = 0; k < b->n; k++) {
            sum += b->weight[k] * (m->usm ? sqrt(power[b->first + k])
                                          : power[b->first + k]);
        }

        out[i] = (float) (m->usm ? log(sum + LLM_MEL_FLOOR)
                                 : log10(llm_max(sum, 1e-10)));
    }
}


/* FRAMES frames from `frame` on, each [bins] */

static void
llm_mel_frames_of(const llm_mel_t *m, const float *samples, size_t len,
    size_t frame, double power[FRAMES][BINS])
{
    llm_mel_points_t  x, y;

    if (m->usm) {
        llm_mel_load_usm(m, samples, len, frame, &x);

        llm_mel_pass4(m, &x, &y, 512, 1);
        llm_mel_pass4(m, &y, &x, 128, 4);
        llm_mel_pass4(m, &x, &y, 32, 16);
        llm_mel_pass4(m, &y, &x, 8, 64);
        llm_mel_pass2(&x, &y, 256);

        llm_mel_power(m, &y, power);
        return;
    }

    llm_mel_load(m, samples, len, frame, &x);

    llm_mel_pass4(m, &x, &y, 400, 1);
    llm_mel_pass4(m, &y, &x, 100, 4);
    llm_mel_pass5(m, &x, &y, 25, 16);
    llm_mel_pass5(m, &y, &x, 5, 80);

    llm_mel_power(m, &x, power);
}


void
llm_mel_log(const llm_mel_t *m, const float *samples, size_t len, size_t first,
    size_t n, float *out)
{
    size_t  i, k, sound;
    double  power[FRAMES][BINS];

    sound = m->usm ? SIZE_MAX : llm_mel_silent(len);

    for (i = 0; i < n && first + i < sound; i += FRAMES) {
        llm_mel_frames_of(m, samples, len, first + i, power);

        for (k = 0; k < FRAMES && i + k < n; k++) {
            llm_mel_row(m, power[k], out + (i + k) * m->n_mels);
        }
    }

    for (i *= m->n_mels; i < n * m->n_mels; i++) {
        out[i] = LLM_MEL_SILENCE;
    }
}


float
llm_mel_max(const float *rows, size_t n)
{
    float   max;
    size_t  i;

    max = rows[0];

    for (i = 1; i < n; i++) {
        max = rows[i] > max ? rows[i] : max;
    }

    return max;
}


void
llm_mel_window(const llm_mel_t *m, const float *rows, size_t n, float max,
    size_t first, size_t count, float *out)
{
    float     v;
    size_t    i;
    uint32_t  k;

    for (k = 0; k < m->n_mels; k++) {
        for (i = 0; i < count; i++) {
            v = (first + i < n) ? rows[(first + i) * m->n_mels + k]
                                : m->usm ? 0 : LLM_MEL_SILENCE;
            *out++ = m->usm ? v : (llm_max(v, max - 8) + 4) / 4;
        }
    }
}
