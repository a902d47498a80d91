/*
 * Files of images with anything in them, to the decoders of llm-media without
 * its processes: pixels of the size that was said before, or one message.  What
 * a decoder takes is bounded by the limits.
 *
 * The first byte of the input chooses a file of media_expected.h, which every
 * four more change: offset (two bytes), how, value; or the rest is the file.
 */

#include "engine/media/decoder/decode.h"
#include "t/unit/media_file.h"
#include "t/unit/media_expected.h"

#define FUZZ_FILES   llm_nelems(media_files)

#define FUZZ_PIXELS  (1 << 20)

typedef struct {
    int        known;
    int        failed;
    uint64_t   left;
} fuzz_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static int
fuzz_put(void *ctx, uint32_t type, const void *data, size_t len)
{
    fuzz_t            *f = ctx;
    uint32_t           reason;
    llm_media_info_t   info;

    /* nothing comes after a message */
    if (f->failed || len > LLM_MEDIA_FRAME) {
        abort();
    }

    switch (type) {

    case LLM_MEDIA_INFO:
        memcpy(&info, data, sizeof(info));

        if (f->known || len != sizeof(info) || info.width == 0
            || info.height == 0
            || (uint64_t) info.width * info.height > FUZZ_PIXELS)
        {
            abort();
        }

        f->known = 1;
        f->left = (uint64_t) info.width * info.height * 3;
        break;

    case LLM_MEDIA_DATA:
        if (!f->known || len > f->left) {
            abort();
        }

        f->left -= len;
        break;

    case LLM_MEDIA_FAILED:
        memcpy(&reason, data, sizeof(reason));

        if (len <= sizeof(reason) || reason < LLM_MEDIA_BROKEN
            || reason > LLM_MEDIA_OURS)
        {
            abort();
        }

        f->failed = 1;
        break;

    default:
        abort();
    }

    return LLM_OK;
}


/* a file in memory of exactly its size, so that no read beyond goes unseen */

static uint8_t *
fuzz_file(const uint8_t *data, size_t size, size_t *len)
{
    size_t               i, at;
    uint8_t             *copy;
    const media_file_t  *from;

    if (data[0] % (FUZZ_FILES + 1) == FUZZ_FILES) {
        *len = size - 1;
        copy = malloc(size);

        if (copy) {
            memcpy(copy, data + 1, *len);
        }

        return copy;
    }

    from = &media_files[data[0] % (FUZZ_FILES + 1)];
    *len = from->len;
    copy = malloc(*len);

    if (copy == NULL) {
        return NULL;
    }

    memcpy(copy, from->data, *len);

    for (i = 1; i + 4 <= size; i += 4) {
        at = ((size_t) data[i] | (size_t) data[i + 1] << 8) % *len;

        switch (data[i + 2] % 4) {

        case 0:
            copy[at] = data[i + 3];
            break;

        case 1:
            copy[at] ^= data[i + 3];
            break;

        case 2:
            copy[at] = (uint8_t) (copy[at] + data[i + 3]);
            break;

        default:
            *len = at + 1;
        }
    }

    return realloc(copy, *len);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int                  rc;
    size_t               len;
    fuzz_t               f = { 0, 0, 0 };
    uint8_t             *copy;
    llm_decode_t         d;
    llm_media_limits_t   limits;

    if (size < 2) {
        return 0;
    }

    memset(&limits, 0, sizeof(limits));
    limits.bytes = 1 << 20;
    limits.pixels = FUZZ_PIXELS;
    limits.side = 16384;

    copy = fuzz_file(data, size, &len);

    if (copy == NULL) {
        abort();
    }

    memset(&d, 0, sizeof(d));
    d.data = copy;
    d.len = len;
    d.limits = &limits;
    d.put = fuzz_put;
    d.ctx = &f;

    rc = llm_decode_find(LLM_MEDIA_IMAGE)(&d);

    if (rc == LLM_OK ? f.failed || !f.known || f.left : !f.failed) {
        abort();
    }

    free(copy);

    return 0;
}
