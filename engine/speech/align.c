/*
 * Times of tokens; see align.h.
 *
 * Each head's rows are made distributions over the frames of the sound; of
 * each frame the tokens are brought to mean 0 and deviation 1; each row is
 * smoothed by the median of 7 frames.  The mean of the heads is a matrix
 * through which a path goes from the first token and frame to the last ones,
 * never back, along the largest sum.
 */

#include "engine/speech/align.h"

#include <math.h>

#define LLM_ALIGN_MEDIAN  7


static void
llm_speech_normalise(float *w, size_t n, size_t n_ctx, size_t frames)
{
    float   *row;
    double   sum, mean, dev, d;
    size_t   i, k;

    for (i = 0; i < n; i++) {
        row = w + i * n_ctx;
        sum = 0;

        for (k = 0; k < frames; k++) {
            sum += row[k];
        }

        for (k = 0; k < frames; k++) {
            row[k] = sum > 0 ? (float) (row[k] / sum) : 1.0f / (float) frames;
        }
    }

    for (k = 0; k < frames; k++) {
        mean = 0;
        dev = 0;

        for (i = 0; i < n; i++) {
            mean += w[i * n_ctx + k];
        }

        mean /= (double) n;

        for (i = 0; i < n; i++) {
            d = w[i * n_ctx + k] - mean;
            dev += d * d;
        }

        dev = sqrt(dev / (double) n);

        for (i = 0; i < n; i++) {
            d = w[i * n_ctx + k] - mean;
            w[i * n_ctx + k] = dev > 0 ? (float) (d / dev) : 0;
        }
    }
}


/* adds the medians around each frame of a row to out; before the first frame
   and after the last one stand their neighbours' mirror images */

static void
llm_speech_median(const float *row, size_t frames, float *out)
{
    float    v, sorted[LLM_ALIGN_MEDIAN];
    size_t   at;
    int64_t  k, i, j, n, half;

    n = (int64_t) frames;
    half = LLM_ALIGN_MEDIAN / 2;

    for (k = 0; k < n; k++) {

        if (n <= half) {
            out[k] += row[k];
            continue;
        }

        for (i = 0; i < LLM_ALIGN_MEDIAN; i++) {
            j = llabs(k + i - half);
            at = (size_t) (j < n ? j : 2 * (n - 1) - j);
            v = row[at];

            for (j = i; j > 0 && sorted[j - 1] > v; j--) {
                sorted[j] = sorted[j - 1];
            }

            sorted[j] = v;
        }

        out[k] += sorted[half];
    }
}


/*
 * The path: cost is [2][rows + 1], of a frame and of the one before it; step
 * [frames][rows] says where the best path to a place came from: 0: both, 1: the
 * row before, 2: the frame before.
 */

static void
llm_speech_path(const float *m, size_t rows, size_t frames, double *cost,
    unsigned char *step, uint32_t *times)
{
    double         *old, *now, *swap, both, row, frame;
    size_t          i, k;
    unsigned char   s;

    old = cost;
    now = cost + rows + 1;
    old[0] = 0;

    for (i = 1; i <= rows; i++) {
        old[i] = INFINITY;
    }

    for (k = 0; k < frames; k++) {
        now[0] = INFINITY;

        for (i = 0; i < rows; i++) {
            both = old[i];
            row = now[i];
            frame = old[i + 1];

            if (both < row && both < frame) {
                s = 0;
            } else if (row < both && row < frame) {
                s = 1;
                both = row;
            } else {
                s = 2;
                both = frame;
            }

            now[i + 1] = both - m[i * frames + k];
            step[k * rows + i] = s;
        }

        swap = old;
        old = now;
        now = swap;
    }

    i = rows - 1;
    k = frames - 1;

    for ( ;; ) {
        /* the last one that is written is the first of the row */
        times[i] = (uint32_t) k;

        if (i == 0 && k == 0) {
            break;
        }

        s = (k == 0) ? 1 : (i == 0) ? 2 : step[k * rows + i];
        i -= s != 2;
        k -= s != 1;
    }
}


int
llm_speech_align(float *weights, size_t n_heads, size_t n, size_t n_ctx,
    size_t frames, size_t first, size_t rows, uint32_t *times, llm_err_t *err)
{
    float          *m;
    double         *cost;
    size_t          h, i;
    unsigned char  *step;

    m = calloc(rows * frames, sizeof(float));
    cost = malloc(2 * (rows + 1) * sizeof(double));
    step = malloc(rows * frames);

    if (m == NULL || cost == NULL || step == NULL) {
        free(m);
        free(cost);
        free(step);
        return llm_fail(err, "no memory for the times of words");
    }

    for (h = 0; h < n_heads; h++) {
        llm_speech_normalise(weights + h * n * n_ctx, n, n_ctx, frames);

        for (i = 0; i < rows; i++) {
            llm_speech_median(weights + (h * n + first + i) * n_ctx, frames,
                              m + i * frames);
        }
    }

    for (i = 0; i < rows * frames; i++) {
        m[i] /= (float) llm_max(n_heads, 1);
    }

    llm_speech_path(m, rows, frames, cost, step, times);

    free(m);
    free(cost);
    free(step);

    return LLM_OK;
}
