/*
 * BMP without compression, of 1, 4, 8, 24 or 32 bits; the fourth byte of the
 * last is not taken for alpha.
 */

#include "engine/media/decoder/decode.h"

#define LLM_BMP_HEADER    14            /* of the file, before the image's */
#define LLM_BMP_CORE      12            /* length of the oldest image header */
#define LLM_BMP_INFO      40            /* and of the usual one */
#define LLM_BMP_RGB       0             /* kinds of compression */
#define LLM_BMP_FIELDS    3

typedef struct {
    uint32_t        offset;             /* of the pixels */
    uint32_t        bits;
    int             down;               /* the first row is the upper one */
    size_t          entry;              /* bytes of a colour */
    size_t          n_colors;
    const uint8_t  *colors;
} llm_bmp_t;


static uint32_t
llm_bmp_get(const uint8_t *p, unsigned bytes)
{
    return p[0] | p[1] << 8
           | (bytes == 4 ? (uint32_t) p[2] << 16 | (uint32_t) p[3] << 24 : 0);
}


static int
llm_bmp_fail(llm_decode_t *d, const char *what)
{
    return llm_decode_fail(d, LLM_MEDIA_BROKEN, "the BMP file %s", what);
}


/* fields of the compression "bit fields" must be those of the usual order */

static int
llm_bmp_usual(const uint8_t *p, uint32_t bits)
{
    return bits == 32 && llm_bmp_get(p, 4) == 0xff0000
           && llm_bmp_get(p + 4, 4) == 0xff00 && llm_bmp_get(p + 8, 4) == 0xff;
}


static int
llm_bmp_head(llm_decode_t *d, llm_bmp_t *b, uint64_t *width, uint64_t *height)
{
    size_t          size, colors;
    int32_t         rows;
    uint32_t        how, used;
    const uint8_t  *p;

    if (d->len < LLM_BMP_HEADER + LLM_BMP_CORE) {
        return llm_bmp_fail(d, "ends early");
    }

    b->offset = llm_bmp_get(d->data + 10, 4);
    p = d->data + LLM_BMP_HEADER;
    size = llm_bmp_get(p, 4);
    how = LLM_BMP_RGB;
    used = 0;

    if (size == LLM_BMP_CORE) {
        *width = llm_bmp_get(p + 4, 2);
        rows = (int32_t) llm_bmp_get(p + 6, 2);
        b->bits = llm_bmp_get(p + 10, 2);
        b->entry = 3;

    } else {
        if (size < LLM_BMP_INFO || size > d->len - LLM_BMP_HEADER
            || d->len < LLM_BMP_HEADER + LLM_BMP_INFO)
        {
            return llm_bmp_fail(d, "has no head that is known");
        }

        *width = llm_bmp_get(p + 4, 4);
        rows = (int32_t) llm_bmp_get(p + 8, 4);
        b->bits = llm_bmp_get(p + 14, 2);
        how = llm_bmp_get(p + 16, 4);
        used = llm_bmp_get(p + 32, 4);
        b->entry = 4;
    }

    b->down = rows < 0;
    *height = (uint64_t) (rows < 0 ? -(int64_t) rows : rows);

    if (how == LLM_BMP_FIELDS
        ? d->len < LLM_BMP_HEADER + LLM_BMP_INFO + 12
          || !llm_bmp_usual(p + LLM_BMP_INFO, b->bits)
        : how != LLM_BMP_RGB)
    {
        return llm_bmp_fail(d, "is compressed, which is not read");
    }

    if (b->bits != 1 && b->bits != 4 && b->bits != 8 && b->bits != 24
        && b->bits != 32)
    {
        return llm_bmp_fail(d, "has a number of bits that is not read");
    }

    if (b->bits <= 8) {
        colors = LLM_BMP_HEADER + size;
        b->n_colors = used && used < 1u << b->bits ? used : 1u << b->bits;
        b->colors = d->data + colors;

        if (colors > d->len || b->n_colors > (d->len - colors) / b->entry) {
            return llm_bmp_fail(d, "ends early");
        }
    }

    return LLM_OK;
}


static int
llm_bmp_row(llm_decode_t *d, const llm_bmp_t *b, const uint8_t *from,
    uint8_t *to, uint32_t width)
{
    unsigned        c, per;
    uint32_t        x;
    const uint8_t  *bgr;

    for (x = 0; x < width; x++, to += 3) {
        if (b->bits > 8) {
            bgr = from + (size_t) x * b->bits / 8;

        } else {
            per = 8 / b->bits;
            c = from[x / per] >> (8 - b->bits * (x % per + 1));
            c &= (1u << b->bits) - 1;

            if (c >= b->n_colors) {
                return llm_bmp_fail(d, "has a colour that is not in its list");
            }

            bgr = b->colors + c * b->entry;
        }

        to[0] = bgr[2];
        to[1] = bgr[1];
        to[2] = bgr[0];
    }

    return LLM_OK;
}


int
llm_decode_bmp(llm_decode_t *d, llm_picture_t *p)
{
    size_t      stride, at;
    uint32_t    y;
    uint64_t    width, height;
    llm_bmp_t   b;

    memset(&b, 0, sizeof(b));
    width = 0;
    height = 0;

    if (llm_bmp_head(d, &b, &width, &height) != LLM_OK
        || llm_picture_start(d, p, width, height, 3) != LLM_OK)
    {
        return LLM_ERROR;
    }

    stride = ((size_t) p->width * b.bits + 31) / 32 * 4;

    if (b.offset > d->len || (d->len - b.offset) / stride < p->height) {
        return llm_bmp_fail(d, "ends early");
    }

    for (y = 0; y < p->height; y++) {
        at = b.down ? y : p->height - 1 - y;

        if (llm_bmp_row(d, &b, d->data + b.offset + at * stride,
                        p->pixels + (size_t) y * p->width * 3, p->width)
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
