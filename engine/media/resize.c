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
    int32_t   *around;                  /* [n] weight of what is around the
                                           image; NULL: there is nothing */
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
    free(a->around);
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


/* the axis of to pixels for the middle n of those that it is for */

static int
llm_axis_clip(llm_axis_t *a, uint32_t to, uint32_t before, uint32_t n)
{
    int32_t   *w;
    uint32_t   i, k, at, kept;

    a->around = calloc(to, sizeof(*a->around));

    if (a->around == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < to; i++) {
        w = a->weights + (size_t) i * a->taps;
        at = a->first[i];

        for (k = 0, kept = 0; k < a->count[i]; k++) {
            if (at + k < before || at + k - before >= n) {
                a->around[i] += w[k];

            } else {
                w[kept++] = w[k];
            }
        }

        a->first[i] = llm_min(llm_max(at, before) - before, n - 1);
        a->count[i] = kept;
    }

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
    const uint8_t *color, llm_image_t *out)
{
    int32_t         r, g, b, around;
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
            around = a->around ? a->around[x] : 0;
            r = color[0] * around + (1 << (LLM_RESIZE_BITS - 1));
            g = color[1] * around + (1 << (LLM_RESIZE_BITS - 1));
            b = color[2] * around + (1 << (LLM_RESIZE_BITS - 1));

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
llm_resize_rows(const llm_image_t *from, const llm_axis_t *a,
    const uint8_t *color, int32_t *sums, llm_image_t *out)
{
    size_t          k, n;
    int32_t         w;
    uint32_t        y, i;
    uint8_t        *to;
    const uint8_t  *p;

    n = (size_t) from->width * 3;

    for (y = 0; y < out->height; y++) {
        for (k = 0; k < n; k++) {
            sums[k] = (a->around ? color[k % 3] * a->around[y] : 0)
                      + (1 << (LLM_RESIZE_BITS - 1));
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


/* what becomes of an axis */
typedef struct {
    int             rows;               /* the height's; 0: the width's */
    uint32_t        from;               /* pixels, with those around the image,
                                           of which so many are before it */
    uint32_t        before;
    uint32_t        to;
} llm_pass_t;


/* LLM_ERROR: no memory */

static int
llm_resize_axis(const llm_image_t *from, const llm_pass_t *p,
    const uint8_t *color, llm_resample_t filter, llm_image_t *out)
{
    int          rc;
    int32_t     *sums;
    uint32_t     n;
    llm_axis_t   a;

    memset(&a, 0, sizeof(a));
    sums = NULL;
    n = p->rows ? from->height : from->width;

    rc = llm_image_create(out, p->rows ? from->width : p->to,
                          p->rows ? p->to : from->height);

    if (rc == LLM_OK) {
        rc = llm_axis_create(&a, p->from, p->to, filter);
    }

    if (rc == LLM_OK && p->from > n) {
        rc = llm_axis_clip(&a, p->to, p->before, n);
    }

    if (rc == LLM_OK && p->rows) {
        sums = malloc((size_t) from->width * 3 * sizeof(*sums));
        rc = sums ? LLM_OK : LLM_ERROR;
    }

    if (rc == LLM_OK && p->rows) {
        llm_resize_rows(from, &a, color, sums, out);

    } else if (rc == LLM_OK) {
        llm_resize_columns(from, &a, color, out);
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


/* one axis after the other; LLM_ERROR: no memory */

static int
llm_resize_both(const llm_image_t *from, const llm_pass_t p[2],
    const uint8_t *color, llm_resample_t filter, llm_image_t *out)
{
    int          rc;
    llm_image_t  half;

    rc = llm_resize_axis(from, &p[0], color, filter, &half);

    if (rc == LLM_OK) {
        rc = llm_resize_axis(&half, &p[1], color, filter, out);
        llm_image_free(&half);
    }

    return rc;
}


static int
llm_resize_done(int rc, uint32_t width, uint32_t height, llm_err_t *err)
{
    if (rc == LLM_OK) {
        return LLM_OK;
    }

    return llm_fail_with(err, 503, NULL, NULL, "no memory to resize an image "
                         "to %u x %u pixels", (unsigned) width,
                         (unsigned) height);
}


int
llm_image_resize(const llm_image_t *from, uint32_t width, uint32_t height,
    llm_resample_t filter, llm_image_t *out, llm_err_t *err)
{
    int         rc, first;
    llm_pass_t  p[2];

    static const uint8_t  black[3];

    first = llm_resize_height_first(from, width, height);
    memset(p, 0, sizeof(p));
    p[first].from = from->width;
    p[first].to = width;
    p[!first].rows = 1;
    p[!first].from = from->height;
    p[!first].to = height;

    if (width != from->width && height != from->height) {
        rc = llm_resize_both(from, p, black, filter, out);

    } else if (width != from->width || height != from->height) {
        rc = llm_resize_axis(from, &p[width == from->width ? !first : first],
                             black, filter, out);

    } else {
        rc = llm_image_create(out, width, height);

        if (rc == LLM_OK) {
            memcpy(out->rgb, from->rgb, (size_t) width * height * 3);
        }
    }

    return llm_resize_done(rc, width, height, err);
}


/* what is around stays as it is when it is resized, to the bit, with sides of
   less than 4000 times the square's */

int
llm_image_resize_square(const llm_image_t *from, uint32_t side,
    const uint8_t color[3], llm_resample_t filter, llm_image_t *out,
    llm_err_t *err)
{
    uint32_t    n;
    llm_pass_t  p[2];

    n = llm_max(from->width, from->height);
    p[0].rows = 0;
    p[0].from = n;
    p[0].before = (n - from->width) / 2;
    p[0].to = side;
    p[1] = p[0];
    p[1].rows = 1;
    p[1].before = (n - from->height) / 2;

    return llm_resize_done(llm_resize_both(from, p, color, filter, out), side,
                           side, err);
}
