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
#define LLM_ALIGN_HALF    (LLM_ALIGN_MEDIAN / 2)

/* frames whose medians are taken at once, by the compiler's vectors */
#define LLM_ALIGN_LANES   8


/* a row becomes a distribution */

static void
llm_speech_distribution(float *row, size_t frames)
{
    double  sum;
    size_t  k;

    for (k = 0, sum = 0; k < frames; k++) {
        sum += row[k];
    }

    for (k = 0; k < frames; k++) {
        row[k] = sum > 0 ? (float) (row[k] / sum) : 1.0f / (float) frames;
    }
}


/* row by row, so that memory is read in its order */

static void
llm_speech_normalise(const llm_speech_align_t *a, float *w)
{
    float   *row;
    double  *mean, *dev, d;
    size_t   i, k;

    mean = a->mean;
    dev = a->mean + a->frames;
    memset(mean, 0, 2 * a->frames * sizeof(double));

    for (i = 0; i < a->n; i++) {
        row = w + i * a->n_ctx;
        llm_speech_distribution(row, a->frames);

        for (k = 0; k < a->frames; k++) {
            mean[k] += row[k];
        }
    }

    for (k = 0; k < a->frames; k++) {
        mean[k] /= (double) a->n;
    }

    for (i = 0; i < a->n; i++) {
        row = w + i * a->n_ctx;

        for (k = 0; k < a->frames; k++) {
            d = row[k] - mean[k];
            dev[k] += d * d;
        }
    }

    for (k = 0; k < a->frames; k++) {
        dev[k] = sqrt(dev[k] / (double) a->n);
    }

    for (i = a->first; i < a->first + a->rows; i++) {
        row = w + i * a->n_ctx;

        for (k = 0; k < a->frames; k++) {
            row[k] = dev[k] > 0 ? (float) ((row[k] - mean[k]) / dev[k]) : 0;
        }
    }
}


/* adds the medians of `at` [7][lanes], of each lane, to out: the smallest four
   are brought to the front, one after the other */

static void
llm_speech_medians(float at[LLM_ALIGN_MEDIAN][LLM_ALIGN_LANES], float *out,
    size_t n)
{
    float   a[LLM_ALIGN_LANES], b[LLM_ALIGN_LANES];
    size_t  i, j, k;

    for (i = 0; i <= LLM_ALIGN_HALF; i++) {
        for (j = i + 1; j < LLM_ALIGN_MEDIAN; j++) {
            memcpy(a, at[i], sizeof(a));
            memcpy(b, at[j], sizeof(b));

            for (k = 0; k < LLM_ALIGN_LANES; k++) {
                at[i][k] = b[k] < a[k] ? b[k] : a[k];
            }

            for (k = 0; k < LLM_ALIGN_LANES; k++) {
                at[j][k] = b[k] < a[k] ? a[k] : b[k];
            }
        }
    }

    for (k = 0; k < n; k++) {
        out[k] += at[LLM_ALIGN_HALF][k];
    }
}


/* adds the medians around each frame of a row to out; before the first frame
   and after the last one stand their neighbours' mirror images */

static void
llm_speech_median(const float *row, size_t frames, float *out)
{
    float    at[LLM_ALIGN_MEDIAN][LLM_ALIGN_LANES];
    int64_t  k, i, j, n, from;

    n = (int64_t) frames;

    for (k = 0; n <= LLM_ALIGN_HALF && k < n; k++) {
        out[k] += row[k];
    }

    for (k = 0; n > LLM_ALIGN_HALF && k < n; k += LLM_ALIGN_LANES) {
        for (i = 0; i < LLM_ALIGN_MEDIAN; i++) {
            from = k + i - LLM_ALIGN_HALF;

            if (from >= 0 && from + LLM_ALIGN_LANES <= n) {
                memcpy(at[i], row + from, sizeof(at[i]));
                continue;
            }

            for (j = 0; j < LLM_ALIGN_LANES; j++) {
                from = llabs(llm_min(k + j, n - 1) + i - LLM_ALIGN_HALF);
                at[i][j] = row[from < n ? from : 2 * (n - 1) - from];
            }
        }

        llm_speech_medians(at, out + k,
                           (size_t) llm_min(n - k, LLM_ALIGN_LANES));
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
llm_speech_align_begin(llm_speech_align_t *a, llm_err_t *err)
{
    a->n_heads = 0;
    a->sum = calloc(a->rows * a->frames, sizeof(float));
    a->mean = malloc(2 * a->frames * sizeof(double));

    if (a->sum == NULL || a->mean == NULL) {
        llm_speech_align_free(a);
        return llm_fail(err, "no memory for the times of words");
    }

    return LLM_OK;
}


void
llm_speech_align_add(llm_speech_align_t *a, float *weights)
{
    size_t  i;

    llm_speech_normalise(a, weights);

    for (i = 0; i < a->rows; i++) {
        llm_speech_median(weights + (a->first + i) * a->n_ctx, a->frames,
                          a->sum + i * a->frames);
    }

    a->n_heads++;
}


int
llm_speech_align_end(llm_speech_align_t *a, uint32_t *times, llm_err_t *err)
{
    double         *cost;
    size_t          i;
    unsigned char  *step;

    cost = malloc(2 * (a->rows + 1) * sizeof(double));
    step = malloc(a->rows * a->frames);

    if (cost == NULL || step == NULL) {
        free(cost);
        free(step);
        return llm_fail(err, "no memory for the times of words");
    }

    for (i = 0; i < a->rows * a->frames; i++) {
        a->sum[i] /= (float) llm_max(a->n_heads, 1u);
    }

    llm_speech_path(a->sum, a->rows, a->frames, cost, step, times);

    free(cost);
    free(step);

    return LLM_OK;
}


void
llm_speech_align_free(llm_speech_align_t *a)
{
    free(a->sum);
    free(a->mean);
    memset(a, 0, sizeof(*a));
}
