/*
 * Any bytes as a file of sound, to a decoder without its process: whole
 * samples, finite ones, no more than a second of them, or one message.
 */

#ifndef LLM_FUZZ_SOUND_H
#define LLM_FUZZ_SOUND_H

#include "engine/media/decoder/decode.h"

#include <math.h>

typedef struct {
    int        known;
    int        failed;
    uint64_t   left;                    /* samples */
} fuzz_t;


static int
fuzz_put(void *ctx, uint32_t type, const void *data, size_t len)
{
    float              x;
    size_t             i;
    fuzz_t            *f = ctx;
    llm_media_info_t   info;

    if (f->failed || len > LLM_MEDIA_FRAME) {
        abort();
    }

    switch (type) {

    case LLM_MEDIA_INFO:
        memcpy(&info, data, sizeof(info));

        if (f->known || info.rate == 0 || info.channels == 0) {
            abort();
        }

        f->known = 1;
        f->left = info.rate;
        break;

    case LLM_MEDIA_DATA:
        if (!f->known || len % sizeof(x) || len / sizeof(x) > f->left) {
            abort();
        }

        for (i = 0; i < len; i += sizeof(x)) {
            memcpy(&x, (const char *) data + i, sizeof(x));

            if (!isfinite(x)) {
                abort();
            }
        }

        f->left -= len / sizeof(x);
        break;

    case LLM_MEDIA_FAILED:
        if (len <= sizeof(uint32_t)) {
            abort();
        }

        f->failed = 1;
        break;

    default:
        abort();
    }

    return LLM_OK;
}


static int
fuzz_sound(const uint8_t *data, size_t size, llm_decode_pt decode)
{
    int                  rc;
    fuzz_t               f;
    uint8_t             *copy;
    llm_decode_t         d;
    llm_media_limits_t   limits;

    copy = malloc(size + 1);

    if (copy == NULL || size == 0) {
        free(copy);
        return 0;
    }

    memcpy(copy, data, size);
    memset(&f, 0, sizeof(f));
    memset(&d, 0, sizeof(d));
    memset(&limits, 0, sizeof(limits));
    limits.seconds = 1;
    limits.samples = UINT64_MAX / 4;

    d.data = copy;
    d.len = size;
    d.limits = &limits;
    d.put = fuzz_put;
    d.ctx = &f;

    rc = decode(&d);

    if ((rc == LLM_OK) == f.failed || (rc == LLM_OK && !f.known)) {
        abort();
    }

    free(copy);

    return 0;
}

#endif /* LLM_FUZZ_SOUND_H */
