/*
 * What all decoders write: the result's frames, and one message of an error;
 * see decode.h.
 */

#include "engine/media/decoder/decode.h"

#include <stdio.h>


int
llm_decode_info(llm_decode_t *d, const llm_media_info_t *info)
{
    return d->put(d->ctx, LLM_MEDIA_INFO, info, sizeof(*info));
}


int
llm_decode_bytes(llm_decode_t *d, const void *data, size_t len)
{
    size_t          n;
    const uint8_t  *p;

    for (p = data; len; p += n, len -= n) {
        n = llm_min(len, LLM_MEDIA_FRAME);

        if (d->put(d->ctx, LLM_MEDIA_DATA, p, n) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


uint64_t
llm_decode_number(const uint8_t *p, size_t n)
{
    uint64_t  v;

    for (v = 0; n; n--) {
        v = v << 8 | *p++;
    }

    return v;
}


int
llm_decode_fail(llm_decode_t *d, llm_media_reason_t reason, const char *fmt,
    ...)
{
    int       n;
    va_list   args;
    uint32_t  number;
    char      buf[sizeof(number) + 400];

    if (d->failed) {
        return LLM_ERROR;
    }

    d->failed = 1;
    number = reason;
    memcpy(buf, &number, sizeof(number));

    va_start(args, fmt);
    n = vsnprintf(buf + sizeof(number), sizeof(buf) - sizeof(number), fmt,
                  args);
    va_end(args);

    n = llm_min(llm_max(n, 0), (int) (sizeof(buf) - sizeof(number)) - 1);
    (void) d->put(d->ctx, LLM_MEDIA_FAILED, buf, sizeof(number) + (size_t) n);

    return LLM_ERROR;
}
