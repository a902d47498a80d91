/*
 * Other sample rates: what comes out of pure tones, of any cut of the input,
 * and of the bounds.
 */

#include "engine/media/resample.h"

#include "t/unit/tap.h"

#include <math.h>

#define LEN  48000

static float  in[LEN], out[800000], again[800000];


static size_t
convert(uint32_t from, uint32_t to, size_t n, size_t piece, float *res)
{
    size_t           i, done, most;
    llm_err_t        err;
    llm_resample_t  *r;

    r = llm_resample_create(from, to, &err);
    done = 0;

    for (i = 0; i < n; i += piece) {
        most = llm_resample_room(r, llm_min(piece, n - i));
        most += done;
        done += llm_resample_push(r, in + i, llm_min(piece, n - i),
                                  res + done);

        if (done > most) {
            abort();
        }
    }

    most = done + llm_resample_room(r, 0);
    done += llm_resample_end(r, res + done);

    if (done > most || done != llm_resample_total(r, n)) {
        printf("# %zu of %zu\n", done, (size_t) llm_resample_total(r, n));
        done = 0;
    }

    llm_resample_free(r);

    return done;
}


static void
tone(double hz, uint32_t rate)
{
    size_t  i;

    for (i = 0; i < LEN; i++) {
        in[i] = (float) (0.5 * sin(2 * M_PI * hz * (double) i / rate));
    }
}


/* the largest difference from the same tone at the other rate, in the middle */

static double
off(double hz, uint32_t rate, const float *x, size_t n)
{
    size_t  i;
    double  worst;

    worst = 0;

    for (i = n / 4; i < n * 3 / 4; i++) {
        worst = fmax(worst, fabs(x[i] - 0.5 * sin(2 * M_PI * hz * (double) i
                                                  / rate)));
    }

    return worst;
}


int
main(void)
{
    size_t           i, k, n;
    double           worst;
    llm_err_t        err;
    llm_resample_t  *r;

    static const uint32_t  rates[] = {
        1000, 8000, 11025, 12000, 22050, 24000, 32000, 44100, 44056, 48000,
        96000, 383999, 384000
    };

    for (i = 0; i < llm_nelems(rates); i++) {
        tone(rates[i] / 40.0, rates[i]);
        n = rates[i] < 16000 ? 4000 : LEN;
        k = convert(rates[i], 16000, n, n, out);
        worst = off(rates[i] / 40.0, 16000, out, k);

        if (rates[i] > 300000) {
            /* 9,600 Hz, above what 16,000 Hz can have */
            worst = 0;

            for (n = k / 4; n < k * 3 / 4; n++) {
                worst = fmax(worst, fabs(out[n]));
            }
        }

        ok(k && worst < 3e-5, "%u Hz: %zu samples, off by %g", rates[i], k,
           worst);
    }

    /* aliases: what is above half of the lower rate is gone */
    tone(9000, 48000);
    n = convert(48000, 16000, LEN, LEN, out);
    worst = 0;

    for (i = n / 4; i < n * 3 / 4; i++) {
        worst = fmax(worst, fabs(out[i]));
    }

    ok(worst < 3e-5, "a tone of 9,000 Hz leaves %g", worst);

    tone(6500, 48000);
    n = convert(48000, 16000, LEN, LEN, out);
    ok(off(6500, 16000, out, n) < 1e-3, "one of 6,500 Hz is there");

    /* pieces */
    tone(700, 44100);
    n = convert(44100, 16000, 20000, 20000, out);

    for (k = 1; k < 10000; k = k * 7 + 3) {
        i = convert(44100, 16000, 20000, k, again);
        ok(i == n && memcmp(out, again, n * sizeof(float)) == 0,
           "in pieces of %zu it is the same", k);
    }

    is_int(convert(44100, 16000, 0, 1, out), 0, "of nothing comes nothing");
    is_int(convert(44100, 16000, 1, 1, out), 1, "of one sample one");
    is_int(convert(8000, 16000, 3, 1, out), 6, "of three samples six");

    n = convert(16000, 16000, 1000, 13, out);
    ok(n == 1000 && memcmp(in, out, n * sizeof(float)) == 0,
       "the same rate changes nothing");

    r = llm_resample_create(999, 16000, &err);
    ok(r == NULL && strstr(err.msg, "999 Hz"), "too low a rate: %s", err.msg);
    r = llm_resample_create(384001, 16000, &err);
    ok(r == NULL && strstr(err.msg, "384001 Hz"), "too high a rate");

    return done_testing();
}
