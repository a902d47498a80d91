/*
 * Images: finds the format by the first bytes, decodes it, lays what is
 * transparent on white, turns the image as EXIF asks for, and writes rows of
 * red, green, blue; see decode.h.
 */

#include "engine/media/decoder/decode.h"

#include <stdio.h>


typedef struct {
    const char     *name;
    size_t          len;
    const char     *magic;              /* `len` bytes */
    size_t          at;                 /* of a second one, or 0 */
    const char     *also;               /* 4 bytes */
    int           (*decode)(llm_decode_t *d, llm_picture_t *p);
    const char     *package;            /* that the build lacks; NULL: none */
} llm_format_t;

#if __has_include(<png.h>)
#define LLM_PNG   llm_decode_png, NULL
#else
#define LLM_PNG   NULL, "libpng"
#endif

#if __has_include(<jpeglib.h>)
#define LLM_JPEG  llm_decode_jpeg, NULL
#else
#define LLM_JPEG  NULL, "libjpeg"
#endif

#if __has_include(<webp/decode.h>) && __has_include(<webp/demux.h>)
#define LLM_WEBP  llm_decode_webp, NULL
#else
#define LLM_WEBP  NULL, "libwebp"
#endif

#if __has_include(<gif_lib.h>)
#define LLM_GIF   llm_decode_gif, NULL
#else
#define LLM_GIF   NULL, "giflib"
#endif

static const llm_format_t  llm_formats[] = {
    { "PNG", 8, "\x89PNG\r\n\x1a\n", 0, NULL, LLM_PNG },
    { "JPEG", 3, "\xff\xd8\xff", 0, NULL, LLM_JPEG },
    { "WebP", 4, "RIFF", 8, "WEBP", LLM_WEBP },
    { "GIF", 4, "GIF8", 0, NULL, LLM_GIF },
    { "BMP", 2, "BM", 0, NULL, llm_decode_bmp, NULL }
};

/* formats that are known by name, so that the message can say which it is */
static const llm_format_t  llm_strangers[] = {
    { "TIFF", 4, "II*\0", 0, NULL, NULL, NULL },
    { "TIFF", 4, "MM\0*", 0, NULL, NULL, NULL },
    { "AVIF", 0, "", 4, "ftyp", NULL, NULL },
    { "PDF", 4, "%PDF", 0, NULL, NULL, NULL },
    { "SVG", 4, "<svg", 0, NULL, NULL, NULL },
    { "JPEG XL", 2, "\xff\x0a", 0, NULL, NULL, NULL }
};


static int
llm_format_is(const llm_format_t *f, const uint8_t *data, size_t len)
{
    return len >= f->len && memcmp(data, f->magic, f->len) == 0
           && (f->also == NULL
               || (len >= f->at + 4 && memcmp(data + f->at, f->also, 4) == 0));
}


void
llm_image_formats(void)
{
    size_t  i;

    for (i = 0; i < llm_nelems(llm_formats); i++) {
        printf("%s %s\n", llm_formats[i].name,
               llm_formats[i].package ? "no" : "yes");
    }
}


static int
llm_image_unknown(llm_decode_t *d)
{
    size_t      i;
    const char  *name;

    name = NULL;

    for (i = 0; i < llm_nelems(llm_strangers); i++) {
        if (llm_format_is(&llm_strangers[i], d->data, d->len)) {
            name = llm_strangers[i].name;
            break;
        }
    }

    if (name && d->len >= 12 && strcmp(name, "AVIF") == 0
        && memcmp(d->data + 8, "avif", 4) != 0)
    {
        name = "HEIC, or a film";
    }

    return llm_decode_fail(d, LLM_MEDIA_UNKNOWN, "the file is %s%s; PNG, "
                           "JPEG, WebP, GIF and BMP are read",
                           name ? "no image that can be read, but "
                                : "no image that is known here",
                           name ? name : "");
}


/* the size once the image is turned */

static int
llm_picture_info(llm_decode_t *d, const llm_picture_t *p)
{
    llm_media_info_t  info;

    memset(&info, 0, sizeof(info));
    info.width = p->orientation >= 5 ? p->height : p->width;
    info.height = p->orientation >= 5 ? p->width : p->height;

    return llm_decode_info(d, &info);
}


int
llm_picture_start(llm_decode_t *d, llm_picture_t *p, uint64_t width,
    uint64_t height, size_t step)
{
    const llm_media_limits_t  *l = d->limits;

    if (width == 0 || height == 0) {
        return llm_decode_fail(d, LLM_MEDIA_BROKEN,
                               "the image has no pixels");
    }

    if (width > l->side || height > l->side
        || width * height > l->pixels)
    {
        return llm_decode_fail(d, LLM_MEDIA_TOO_LARGE, "the image has %llu x "
                               "%llu pixels; at most %llu, and %u on a side, "
                               "are allowed", (unsigned long long) width,
                               (unsigned long long) height,
                               (unsigned long long) l->pixels,
                               (unsigned) l->side);
    }

    p->width = (uint32_t) width;
    p->height = (uint32_t) height;
    p->step = step;

    p->pixels = calloc(width * height, step);

    if (p->pixels == NULL) {
        return llm_decode_fail(d, LLM_MEDIA_NO_MEMORY, "no memory for an "
                               "image of %u x %u pixels", (unsigned) width,
                               (unsigned) height);
    }

    return llm_picture_info(d, p);
}


/* the pixel in column x of row y once the image is turned */

static const uint8_t *
llm_picture_at(const llm_picture_t *p, uint32_t x, uint32_t y)
{
    uint32_t  from_x, from_y, right, low;

    right = p->width - 1;
    low = p->height - 1;

    switch (p->orientation) {

    case 2:
        from_x = right - x;
        from_y = y;
        break;

    case 3:
        from_x = right - x;
        from_y = low - y;
        break;

    case 4:
        from_x = x;
        from_y = low - y;
        break;

    case 5:
        from_x = y;
        from_y = x;
        break;

    case 6:
        from_x = y;
        from_y = low - x;
        break;

    case 7:
        from_x = right - y;
        from_y = low - x;
        break;

    case 8:
        from_x = right - y;
        from_y = x;
        break;

    default:
        from_x = x;
        from_y = y;
        break;
    }

    return p->pixels + ((size_t) from_y * p->width + from_x) * p->step;
}


/* v over white with this alpha, rounded to the nearest */

static uint8_t
llm_over_white(unsigned v, unsigned alpha)
{
    return (uint8_t) ((v * alpha + 255 * (255 - alpha) + 127) / 255);
}


static int
llm_picture_write(llm_decode_t *d, const llm_picture_t *p)
{
    uint8_t        *row, *to;
    uint32_t        x, y, width, height;
    const uint8_t  *from;

    width = p->orientation >= 5 ? p->height : p->width;
    height = p->orientation >= 5 ? p->width : p->height;

    if (p->orientation <= 1 && p->step == 3) {
        return llm_decode_bytes(d, p->pixels,
                                (size_t) p->width * p->height * 3);
    }

    row = malloc((size_t) width * 3);

    if (row == NULL) {
        return llm_decode_fail(d, LLM_MEDIA_NO_MEMORY, "no memory for a row");
    }

    for (y = 0; y < height; y++) {
        for (x = 0, to = row; x < width; x++, to += 3) {
            from = llm_picture_at(p, x, y);

            if (p->alpha && from[3] != 255) {
                to[0] = llm_over_white(from[0], from[3]);
                to[1] = llm_over_white(from[1], from[3]);
                to[2] = llm_over_white(from[2], from[3]);

            } else {
                memcpy(to, from, 3);
            }
        }

        if (llm_decode_bytes(d, row, (size_t) width * 3) != LLM_OK) {
            free(row);
            return LLM_ERROR;
        }
    }

    free(row);

    return LLM_OK;
}


int
llm_decode_image(llm_decode_t *d)
{
    int                  rc;
    size_t               i;
    llm_picture_t        p;
    const llm_format_t  *f;

    for (i = 0, f = NULL; i < llm_nelems(llm_formats); i++) {
        if (llm_format_is(&llm_formats[i], d->data, d->len)) {
            f = &llm_formats[i];
            break;
        }
    }

    if (f == NULL) {
        return llm_image_unknown(d);
    }

    if (f->decode == NULL) {
        return llm_decode_fail(d, LLM_MEDIA_UNKNOWN, "this build reads no %s: "
                               "it was made without %s", f->name, f->package);
    }

    memset(&p, 0, sizeof(p));

    rc = f->decode(d, &p);

    if (rc == LLM_OK) {
        rc = llm_picture_write(d, &p);
    }

    free(p.pixels);

    return rc;
}
