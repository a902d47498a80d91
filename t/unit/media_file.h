/*
 * Image files and resized images with what Pillow makes of them
 * (media_expected.py), and black PNG and BMP files with any header.
 */

#ifndef LLM_T_MEDIA_FILE_H
#define LLM_T_MEDIA_FILE_H

#include "engine/media/resize.h"

typedef struct {
    const char     *name;
    const uint8_t  *data;
    size_t          len;
    uint32_t        width;
    uint32_t        height;
    const uint8_t  *rgb;
    int             max_step;           /* that a byte may differ by */
} media_file_t;

typedef struct {
    uint32_t        width;
    uint32_t        height;
    uint32_t        to_width;
    uint32_t        to_height;
    llm_resample_t  filter;
    uint64_t        sum;                /* FNV-1a of the result */
} media_resize_t;

/* what a family's processor makes of an image */
typedef struct {
    const char  *projector;
    uint32_t     side;
    uint32_t     patch;
    uint32_t     width;
    uint32_t     height;
    uint32_t     to_width;
    uint32_t     to_height;
    uint64_t     sum;
} media_prepared_t;


static inline uint32_t
png_crc(const uint8_t *p, size_t n)
{
    int       i;
    uint32_t  c;

    for (c = ~0u; n--; p++) {
        for (c ^= *p, i = 0; i < 8; i++) {
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        }
    }

    return ~c;
}


static inline void
png_number(llm_buf_t *b, uint32_t v)
{
    int  i;

    for (i = 24; i >= 0; i -= 8) {
        (void) llm_buf_addc(b, (char) (v >> i));
    }
}


static inline void
png_chunk(llm_buf_t *b, const char *kind, const void *data, size_t len)
{
    size_t  at;

    png_number(b, (uint32_t) len);
    at = b->len;
    (void) llm_buf_add(b, kind, 4);
    (void) llm_buf_add(b, data, len);
    png_number(b, png_crc((const uint8_t *) b->data + at, len + 4));
}


/* a black 8-bit grey image of this size in stored blocks, of which only the
   first `rows` rows are there */

static inline void
png_black(llm_buf_t *b, uint32_t width, uint32_t height, uint32_t rows)
{
    size_t     at, n, take;
    uint8_t    head[5];
    llm_buf_t  h, z;

    llm_buf_init(b, 0);
    llm_buf_init(&h, 0);
    llm_buf_init(&z, 0);

    (void) llm_buf_add(b, "\x89PNG\r\n\x1a\n", 8);
    png_number(&h, width);
    png_number(&h, height);
    (void) llm_buf_add(&h, "\x08\0\0\0\0", 5);
    png_chunk(b, "IHDR", h.data, h.len);

    (void) llm_buf_add(&z, "\x78\x01", 2);
    n = (size_t) rows * (width + 1);

    for (at = 0; at < n; at += take) {
        take = llm_min(n - at, (size_t) 65535);
        head[0] = at + take == n && rows == height;
        head[1] = (uint8_t) take;
        head[2] = (uint8_t) (take >> 8);
        head[3] = (uint8_t) ~head[1];
        head[4] = (uint8_t) ~head[2];
        (void) llm_buf_add(&z, head, 5);
        memset(llm_buf_reserve(&z, take), 0, take);
        z.len += take;
    }

    /* Adler's sum of n zeros */
    png_number(&z, (uint32_t) (n % 65521) << 16 | 1);
    png_chunk(b, "IDAT", z.data, z.len);
    png_chunk(b, "IEND", "", 0);

    llm_buf_free(&h);
    llm_buf_free(&z);
}


static inline void
bmp_number(llm_buf_t *b, uint32_t v)
{
    (void) llm_buf_add(b, &v, sizeof(v));
}


/* the same as a BMP of 8 bits, whose list of colours is black; only the first
   `rows` rows are there */

static inline void
bmp_black(llm_buf_t *b, uint32_t width, uint32_t height, uint32_t rows)
{
    int     i;
    size_t  n;

    llm_buf_init(b, 0);
    n = (size_t) (width + 3) / 4 * 4 * rows;

    (void) llm_buf_add(b, "BM", 2);
    bmp_number(b, (uint32_t) (1078 + n));
    bmp_number(b, 0);
    bmp_number(b, 1078);
    bmp_number(b, 40);
    bmp_number(b, width);
    bmp_number(b, height);
    bmp_number(b, 8 << 16 | 1);

    for (i = 0; i < 6; i++) {
        bmp_number(b, 0);
    }

    memset(llm_buf_reserve(b, 1024 + n), 0, 1024 + n);
    b->len += 1024 + n;
}

#endif /* LLM_T_MEDIA_FILE_H */
