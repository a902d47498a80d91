/*
 * Other sample rates; see resample.h.
 *
 * Output n stands at the input's time n * step / grid, where step and grid are
 * the rates without their common divisor.  Its fraction is a phase, a row of
 * the table.  Where there are more than PHASES of them, the two next to it are
 * mixed, which is good to 110 dB.
 */

#include "engine/media/resample.h"
#include "engine/media/wav.h"

#include <math.h>

#define PHASES     1024
#define CROSSINGS  32                   /* zeros of the sinc on either side */
#define CUTOFF     0.94
#define BETA       9.0                  /* of the Kaiser window */
#define BLOCK      4096                 /* samples that are taken at once */
#define WIDE       8

typedef float  llm_resample_wide_t __attribute__((vector_size(WIDE * 4)));

struct llm_resample_s {
    uint64_t         step;              /* input per `grid` of output */
    uint64_t         grid;
    uint32_t         phases;            /* rows of the table, less one */
    uint32_t         half;              /* taps of a row / 2 */
    uint64_t         in;                /* samples that have come */
    uint64_t         out;               /* samples that have been written */
    uint64_t         base;              /* buf[0] is sample base - half */
    size_t           have;              /* samples in buf */
    float           *buf;               /* [2 * half + BLOCK] */
    float            table[];           /* [phases + 1][2 * half] */
};


/* the modified Bessel function of the first kind, of order 0 */

static double
llm_resample_bessel(double x)
{
    double    sum, term;
    uint32_t  k;

    sum = term = 1;

    for (k = 1; k < 64; k++) {
        term *= x / 2 / k;
        sum += term * term;
    }

    return sum;
}


static void
llm_resample_row(llm_resample_t *r, uint32_t phase, double cutoff)
{
    float     *row;
    double     x, u, sum, v;
    uint32_t   k, taps;

    taps = 2 * r->half;
    row = r->table + (size_t) phase * taps;
    sum = 0;

    for (k = 0; k < taps; k++) {
        x = (double) k - (r->half - 1) - (double) phase / r->phases;
        u = x * cutoff / CROSSINGS;
        v = 0;

        if (fabs(u) < 1) {
            v = llm_resample_bessel(BETA * sqrt(1 - u * u));
            x *= cutoff * M_PI;
            v *= (fabs(x) < 1e-9) ? 1 : sin(x) / x;
        }

        row[k] = (float) v;
        sum += v;
    }

    for (k = 0; k < taps; k++) {
        row[k] = (float) (row[k] / sum);
    }
}


static int
llm_resample_rate(uint32_t rate)
{
    return rate >= LLM_AUDIO_MIN_RATE && rate <= LLM_AUDIO_MAX_RATE;
}


llm_resample_t *
llm_resample_create(uint32_t from, uint32_t to, llm_err_t *err)
{
    double           cutoff;
    size_t           taps;
    uint32_t         a, b, c, half, phases;
    llm_resample_t  *r;

    if (!llm_resample_rate(from) || !llm_resample_rate(to)) {
        (void) llm_fail_with(err, 400, NULL, NULL, "sound of %u Hz; it may "
                             "have %u to %u Hz",
                             llm_resample_rate(from) ? to : from,
                             LLM_AUDIO_MIN_RATE, LLM_AUDIO_MAX_RATE);
        return NULL;
    }

    a = from;
    b = to;

    while (b) {
        c = a % b;
        a = b;
        b = c;
    }

    cutoff = CUTOFF * llm_min(1.0, (double) to / from);
    half = (uint32_t) llm_align((size_t) ceil(CROSSINGS / cutoff) + 1, WIDE);
    phases = llm_min(to / a, PHASES);
    taps = 2 * (size_t) half;

    r = calloc(1, sizeof(llm_resample_t)
                  + ((phases + 1) * taps + taps + BLOCK) * sizeof(float));

    if (r == NULL) {
        (void) llm_fail(err, "no memory to change the rate of sound");
        return NULL;
    }

    r->step = from / a;
    r->grid = to / a;
    r->phases = phases;
    r->half = half;
    r->buf = r->table + (phases + 1) * taps;

    /* silence before the first sample */
    r->have = half;

    for (c = 0; c <= phases; c++) {
        llm_resample_row(r, c, cutoff);
    }

    return r;
}


void
llm_resample_free(llm_resample_t *r)
{
    free(r);
}


uint64_t
llm_resample_total(const llm_resample_t *r, uint64_t n)
{
    return (n * r->grid + r->step - 1) / r->step;
}


size_t
llm_resample_room(const llm_resample_t *r, size_t n)
{
    return (size_t) llm_resample_total(r, n + 2 * r->half) + 1;
}


static float
llm_resample_dot(const float *a, const float *b, uint32_t n)
{
    float                s;
    uint32_t             i;
    llm_resample_wide_t  x, y, sum;

    memset(&sum, 0, sizeof(sum));

    for (i = 0; i < n; i += WIDE) {
        memcpy(&x, a + i, sizeof(x));
        memcpy(&y, b + i, sizeof(y));
        sum += x * y;
    }

    s = 0;

    for (i = 0; i < WIDE; i++) {
        s += sum[i];
    }

    return s;
}


/* all output whose input is in buf, `most` samples in all; then buf begins with
   what the next one needs */

static size_t
llm_resample_drain(llm_resample_t *r, uint64_t most, float *out)
{
    float      v, f;
    size_t     n, drop;
    uint32_t   taps, phase;
    uint64_t   at, rest;
    const float  *x, *row;

    taps = 2 * r->half;

    for (n = 0; r->out < most; r->out++) {
        at = r->out * r->step / r->grid;

        /* taps are the samples at - half + 1, ..., at + half */
        if (at + r->half >= r->base - r->half + r->have) {
            break;
        }

        rest = r->out * r->step % r->grid * r->phases;
        phase = (uint32_t) (rest / r->grid);
        f = (float) (rest % r->grid) / (float) r->grid;

        x = r->buf + (at + 1 - r->base);
        row = r->table + (size_t) phase * taps;
        v = llm_resample_dot(x, row, taps);

        if (f > 0) {
            v += f * (llm_resample_dot(x, row + taps, taps) - v);
        }

        out[n++] = v;
    }

    at = r->out * r->step / r->grid;
    drop = (size_t) llm_min(at + 1 - r->base, r->have);
    memmove(r->buf, r->buf + drop, (r->have - drop) * sizeof(float));
    r->have -= drop;
    r->base += drop;

    return n;
}


/* in NULL: silence */

static size_t
llm_resample_add(llm_resample_t *r, const float *in, size_t n, uint64_t most,
    float *out)
{
    size_t  done, part;

    done = 0;

    while (n) {
        part = llm_min(n, 2 * r->half + BLOCK - r->have);

        if (in) {
            memcpy(r->buf + r->have, in, part * sizeof(float));
            in += part;

        } else {
            memset(r->buf + r->have, 0, part * sizeof(float));
        }

        n -= part;
        r->have += part;
        done += llm_resample_drain(r, most, out + done);
    }

    return done;
}


size_t
llm_resample_push(llm_resample_t *r, const float *in, size_t n, float *out)
{
    r->in += n;

    if (r->step == r->grid) {
        memcpy(out, in, n * sizeof(float));
        return n;
    }

    return llm_resample_add(r, in, n, UINT64_MAX, out);
}


size_t
llm_resample_end(llm_resample_t *r, float *out)
{
    if (r->step == r->grid) {
        return 0;
    }

    return llm_resample_add(r, NULL, 2 * r->half,
                            llm_resample_total(r, r->in), out);
}
