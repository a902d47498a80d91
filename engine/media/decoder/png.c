/*
 * PNG by libpng: all depths and kinds of colour become 8-bit red, green, blue
 * and, if something is transparent, alpha; of 16 bits the upper 8 are taken.
 * Gamma and colour profiles are not applied, as models' own processors do not.
 * Of an animated PNG the first picture is read.
 */

#include "engine/media/decoder/decode.h"

#if __has_include(<png.h>)

#include <png.h>
#include <setjmp.h>
#include <stdio.h>

typedef struct {
    llm_decode_t   *d;
    size_t          at;
    png_structp     png;
    png_infop       info;
    png_bytep      *rows;
} llm_png_t;


/* longjmp() goes to llm_png_read(), whose locals are not used then */

static void
llm_png_error(png_structp png, png_const_charp msg)
{
    llm_png_t  *s;

    s = png_get_error_ptr(png);

    (void) llm_decode_fail(s->d, LLM_MEDIA_BROKEN,
                           "the PNG file is damaged: %s", msg);
    longjmp(png_jmpbuf(png), 1);
}


static void
llm_png_warning(png_structp png, png_const_charp msg)
{
    (void) png;
    (void) msg;
}


static void
llm_png_bytes(png_structp png, png_bytep to, png_size_t n)
{
    llm_png_t  *s;

    s = png_get_io_ptr(png);

    if (n > s->d->len - s->at) {
        png_error(png, "it ends early");
    }

    memcpy(to, s->d->data + s->at, n);
    s->at += n;
}


/* the orientation in the chunk eXIf, which may also stand after the pixels */

static uint32_t
llm_png_orientation(const uint8_t *data, size_t len)
{
    size_t    at, n;

    for (at = 8; len - at >= 12; at += 12 + n) {
        n = (size_t) data[at] << 24 | data[at + 1] << 16 | data[at + 2] << 8
            | data[at + 3];

        if (n > len - at - 12) {
            break;
        }

        if (memcmp(data + at + 4, "eXIf", 4) == 0) {
            return llm_exif_orientation(data + at + 8, n);
        }
    }

    return 1;
}


static int
llm_png_read(llm_png_t *s, llm_picture_t *p)
{
    uint32_t  y;

    if (setjmp(png_jmpbuf(s->png))) {
        return LLM_ERROR;
    }

    png_set_read_fn(s->png, s, llm_png_bytes);
    /* the limits are llm_picture_start()'s, whose message says more; libpng
       takes no memory for rows before that */
    png_set_user_limits(s->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_chunk_malloc_max(s->png, 1 << 20);
    png_set_chunk_cache_max(s->png, 64);
    png_read_info(s->png, s->info);

    p->orientation = llm_png_orientation(s->d->data, s->d->len);
    p->alpha = (png_get_color_type(s->png, s->info) & PNG_COLOR_MASK_ALPHA)
               || png_get_valid(s->png, s->info, PNG_INFO_tRNS);

    png_set_expand(s->png);
    png_set_strip_16(s->png);
    png_set_gray_to_rgb(s->png);
    (void) png_set_interlace_handling(s->png);

    if (llm_picture_start(s->d, p, png_get_image_width(s->png, s->info),
                          png_get_image_height(s->png, s->info),
                          p->alpha ? 4 : 3)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    png_read_update_info(s->png, s->info);

    if (png_get_rowbytes(s->png, s->info) != (size_t) p->width * p->step) {
        return llm_decode_fail(s->d, LLM_MEDIA_BROKEN,
                               "the PNG file has rows of another length");
    }

    s->rows = malloc(p->height * sizeof(png_bytep));

    if (s->rows == NULL) {
        return llm_decode_fail(s->d, LLM_MEDIA_NO_MEMORY,
                               "no memory for the image's rows");
    }

    for (y = 0; y < p->height; y++) {
        s->rows[y] = p->pixels + (size_t) y * p->width * p->step;
    }

    png_read_image(s->png, s->rows);

    return LLM_OK;
}


int
llm_decode_png(llm_decode_t *d, llm_picture_t *p)
{
    int        rc;
    llm_png_t  s;

    memset(&s, 0, sizeof(s));
    s.d = d;

    s.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &s, llm_png_error,
                                   llm_png_warning);
    s.info = s.png ? png_create_info_struct(s.png) : NULL;

    if (s.info) {
        rc = llm_png_read(&s, p);

    } else {
        rc = llm_decode_fail(d, LLM_MEDIA_NO_MEMORY, "libpng has no memory");
    }

    png_destroy_read_struct(&s.png, &s.info, NULL);
    free(s.rows);

    return rc;
}

#endif
