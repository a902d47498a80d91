/*
 * Resizing: the weights of an axis, and a pass for each axis; see resize.h.
 */

#include "engine/media/resize.h"

#include <math.h>

#define LLM_RESIZE_BITS  22             /* binary places of a weight */

/* where the pixels of an axis come from */
typedef struct {
    uint32_t   taps;                    /* weights of a pixel, at most */
    uint32_t  *first;                   /* [n] */
    uint32_t  *count;                   /* [n] */
    int32_t   *weights;                 /* [n][taps] */
} llm_axis_t;

typedef double (*llm_filter_pt)(double x);


static double
llm_filter_bilinear(double x)
{
    x = fabs(x);

    return x < 1 ? 1 - x : 0;
}


/* Keys' cubic with a = -1/2, in the order of operations of Pillow's */

static double
llm_filter_bicubic(double x)
{
    const double  a = -0.5;

    x = fabs(x);

    if (x < 1) {
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    }

    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}


static double
llm_sinc(double x)
{
    if (x == 0) {
        return 1;
    }

    x *= M_PI;

    return sin(x) / x;
}


static double
llm_filter_lanczos(double x)
{
    return x >= -3 && x < 3 ? llm_sinc(x) * llm_sinc(x / 3) : 0;
}


static const struct {
    llm_filter_pt   at;
    double          reach;
} llm_filters[] = {
    [LLM_RESAMPLE_BILINEAR] = { llm_filter_bilinear, 1 },
    [LLM_RESAMPLE_BICUBIC] = { llm_filter_bicubic, 2 },
    [LLM_RESAMPLE_LANCZOS] = { llm_filter_lanczos, 3 }
};


static void
llm_axis_free(llm_axis_t *a)
{
    free(a->first);
    free(a->count);
    free(a->weights);
}


/* the weights of one pixel: w has room for them as they are, out for those that
   are rounded; returns how many */

static uint32_t
llm_axis_pixel(llm_filter_pt at, double center, double scale, uint32_t first,
    uint32_t count, double *w, int32_t *out)
{
    double    sum;
    uint32_t  i;

    for (i = 0, sum = 0; i < count; i++) {
        w[i] = at(((double) (i + first) - center + 0.5) * (1 / scale));
        sum += w[i];
    }

    for (i = 0; i < count; i++) {
        if (sum != 0) {
            w[i] /= sum;
        }

        /* half away from zero */
        out[i] = (int32_t) (w[i] * (1 << LLM_RESIZE_BITS)
                            + (w[i] < 0 ? -0.5 : 0.5));
    }

    return count;
}


static int
llm_axis_create(llm_axis_t *a, uint32_t from, uint32_t to,
    llm_resample_t filter)
{
    double    ratio, scale, reach, center, *w;
    int64_t   low, high;
    uint32_t  i;

    ratio = (double) from / to;
    scale = llm_max(ratio, 1.0);
    reach = llm_filters[filter].reach * scale;

    a->taps = (uint32_t) ceil(reach) * 2 + 1;
    a->first = malloc(to * sizeof(*a->first));
    a->count = malloc(to * sizeof(*a->count));
    a->weights = calloc((size_t) to * a->taps, sizeof(*a->weights));
    w = malloc(a->taps * sizeof(*w));

    if (a->first == NULL || a->count == NULL || a->weights == NULL
        || w == NULL)
    {
        free(w);
        return LLM_ERROR;
    }

    for (i = 0; i < to; i++) {
        center = (i + 0.5) * ratio;
        low = llm_max((int64_t) (center - reach + 0.5), 0);
        high = llm_min((int64_t) (center + reach + 0.5), (int64_t) from);

        a->first[i] = (uint32_t) low;
        a->count[i] = llm_axis_pixel(llm_filters[filter].at, center, scale,
                                     (uint32_t) low, (uint32_t) (high - low),
                                     w, a->weights + (size_t) i * a->taps);
    }

    free(w);

    return LLM_OK;
}


static inline uint8_t
llm_resize_round(int32_t sum)
{
    sum >>= LLM_RESIZE_BITS;

    return (uint8_t) llm_min(llm_max(sum, 0), 255);
}


static void
llm_resize_columns(const llm_image_t *from, const llm_axis_t *a,
    llm_image_t *out)
{
    int32_t         r, g, b;
    uint32_t        x, y, i;
    uint8_t        *to;
    const int32_t  *w;
    const uint8_t  *p, *row;

    to = out->rgb;

    for (y = 0; y < out->height; y++) {
        row = from->rgb + (size_t) y * from->width * 3;

        for (x = 0; x < out->width; x++, to += 3) {
            p = row + (size_t) a->first[x] * 3;
            w = a->weights + (size_t) x * a->taps;
            r = g = b = 1 << (LLM_RESIZE_BITS - 1);

            for (i = 0; i < a->count[x]; i++, p += 3) {
                r += p[0] * w[i];
                g += p[1] * w[i];
                b += p[2] * w[i];
            }

            to[0] = llm_resize_round(r);
            to[1] = llm_resize_round(g);
            to[2] = llm_resize_round(b);
        }
    }
}


/* sums: [3 * width] */

static void
llm_resize_rows(const llm_image_t *from, const llm_axis_t *a, int32_t *sums,
    llm_image_t *out)
{
    size_t          k, n;
    int32_t         w;
    uint32_t        y, i;
    uint8_t        *to;
    const uint8_t  *p;

    n = (size_t) from->width * 3;

    for (y = 0; y < out->height; y++) {
        for (k = 0; k < n; k++) {
            sums[k] = 1 << (LLM_RESIZE_BITS - 1);
        }

        for (i = 0; i < a->count[y]; i++) {
            w = a->weights[(size_t) y * a->taps + i];
            p = from->rgb + (size_t) (a->first[y] + i) * n;

            for (k = 0; k < n; k++) {
                sums[k] += p[k] * w;
            }
        }

        to = out->rgb + (size_t) y * n;

        for (k = 0; k < n; k++) {
            to[k] = llm_resize_round(sums[k]);
        }
    }
}


/* one axis; LLM_ERROR: no memory */

static int
llm_resize_axis(const llm_image_t *from, uint32_t width, uint32_t height,
    llm_resample_t filter, llm_image_t *out)
{
    int          rc;
    int32_t     *sums;
    llm_axis_t   a;

    memset(&a, 0, sizeof(a));
    sums = NULL;

    rc = llm_image_create(out, width, height);

    if (rc == LLM_OK && width != from->width) {
        rc = llm_axis_create(&a, from->width, width, filter);

        if (rc == LLM_OK) {
            llm_resize_columns(from, &a, out);
        }

    } else if (rc == LLM_OK) {
        rc = llm_axis_create(&a, from->height, height, filter);
        sums = malloc((size_t) width * 3 * sizeof(*sums));

        if (rc == LLM_OK && sums) {
            llm_resize_rows(from, &a, sums, out);

        } else {
            rc = LLM_ERROR;
        }
    }

    free(sums);
    llm_axis_free(&a);

    if (rc != LLM_OK) {
        llm_image_free(out);
    }

    return rc;
}


/* Pillow's choice of the first axis: see resize.h */

static int
llm_resize_height_first(const llm_image_t *from, uint32_t width,
    uint32_t height)
{
    return height < from->height
           && (int64_t) from->height - height
              > 2 * ((int64_t) from->width - width);
}


/* both axes; LLM_ERROR: no memory */

static int
llm_resize_both(const llm_image_t *from, uint32_t width, uint32_t height,
    llm_resample_t filter, llm_image_t *out)
{
    int          rc;
    llm_image_t  half;

    if (llm_resize_height_first(from, width, height)) {
        rc = llm_resize_axis(from, from->width, height, filter, &half);

    } else {
        rc = llm_resize_axis(from, width, from->height, filter, &half);
    }

    if (rc == LLM_OK) {
        rc = llm_resize_axis(&half, width, height, filter, out);
        llm_image_free(&half);
    }

    return rc;
}


int
llm_image_resize(const llm_image_t *from, uint32_t width, uint32_t height,
    llm_resample_t filter, llm_image_t *out, llm_err_t *err)
{
    int  rc;

    if (width != from->width && height != from->height) {
        rc = llm_resize_both(from, width, height, filter, out);

    } else if (width != from->width || height != from->height) {
        rc = llm_resize_axis(from, width, height, filter, out);

    } else {
        rc = llm_image_create(out, width, height);

        if (rc == LLM_OK) {
            memcpy(out->rgb, from->rgb, (size_t) width * height * 3);
        }
    }

    if (rc != LLM_OK) {
        return llm_fail_with(err, 503, NULL, NULL, "no memory to resize an "
                             "image to %u x %u pixels", (unsigned) width,
                             (unsigned) height);
    }

    return LLM_OK;
}
