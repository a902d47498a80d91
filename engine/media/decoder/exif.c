/*
 * The orientation in EXIF's TIFF structure: a header, then a list of entries of
 * 12 bytes, of which the one with tag 0x0112 is wanted; see decode.h.
 */

#include "engine/media/decoder/decode.h"

#define LLM_EXIF_ORIENTATION  0x0112
#define LLM_EXIF_SHORT        3


typedef struct {
    const uint8_t  *data;
    size_t          len;
    int             big;                /* the most significant byte is first */
} llm_exif_t;


/* a number of 2 or 4 bytes; 0 beyond the end */

static uint32_t
llm_exif_get(const llm_exif_t *e, size_t at, unsigned bytes)
{
    unsigned  i;
    uint32_t  v;

    if (at > e->len || e->len - at < bytes) {
        return 0;
    }

    for (v = 0, i = 0; i < bytes; i++) {
        v |= (uint32_t) e->data[at + i] << 8 * (e->big ? bytes - 1 - i : i);
    }

    return v;
}


uint32_t
llm_exif_orientation(const uint8_t *data, size_t len)
{
    size_t      at;
    uint32_t    i, n, v;
    llm_exif_t  e;

    if (len >= 6 && memcmp(data, "Exif\0\0", 6) == 0) {
        data += 6;
        len -= 6;
    }

    if (len < 8 || (memcmp(data, "II", 2) != 0 && memcmp(data, "MM", 2) != 0)) {
        return 1;
    }

    e = (llm_exif_t) { data, len, data[0] == 'M' };
    at = llm_exif_get(&e, 4, 4);
    n = llm_exif_get(&e, at, 2);

    for (i = 0; i < n; i++) {
        if (llm_exif_get(&e, at + 2 + 12 * i, 2) != LLM_EXIF_ORIENTATION) {
            continue;
        }

        if (llm_exif_get(&e, at + 4 + 12 * i, 2) != LLM_EXIF_SHORT) {
            return 1;
        }

        v = llm_exif_get(&e, at + 10 + 12 * i, 2);

        return v >= 1 && v <= 8 ? v : 1;
    }

    return 1;
}
