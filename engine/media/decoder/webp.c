/*
 * WebP by libwebp: lossy and lossless, with alpha; of an animation the first
 * picture, on its canvas.
 */

#include "engine/media/decoder/decode.h"

#if __has_include(<webp/decode.h>) && __has_include(<webp/demux.h>)

#include <webp/decode.h>
#include <webp/demux.h>


static int
llm_webp_broken(llm_decode_t *d)
{
    return llm_decode_fail(d, LLM_MEDIA_BROKEN,
                           "the WebP file is damaged, or ends early");
}


static int
llm_webp_still(llm_decode_t *d, llm_picture_t *p)
{
    size_t    size, stride;
    uint8_t  *done;

    stride = (size_t) p->width * p->step;
    size = stride * p->height;

    done = p->alpha ? WebPDecodeRGBAInto(d->data, d->len, p->pixels, size,
                                         (int) stride)
                    : WebPDecodeRGBInto(d->data, d->len, p->pixels, size,
                                        (int) stride);

    return done ? LLM_OK : llm_webp_broken(d);
}


static int
llm_webp_moving(llm_decode_t *d, llm_picture_t *p)
{
    int                     when, rc;
    uint8_t                *canvas;
    WebPData                data = { d->data, d->len };
    WebPAnimInfo            info;
    WebPAnimDecoder        *anim;
    WebPAnimDecoderOptions  options;

    if (!WebPAnimDecoderOptionsInit(&options)) {
        return llm_webp_broken(d);
    }

    options.color_mode = MODE_RGBA;
    anim = WebPAnimDecoderNew(&data, &options);

    rc = anim && WebPAnimDecoderGetInfo(anim, &info)
         && info.canvas_width == p->width && info.canvas_height == p->height
         && WebPAnimDecoderGetNext(anim, &canvas, &when)
         ? LLM_OK : llm_webp_broken(d);

    if (rc == LLM_OK) {
        memcpy(p->pixels, canvas, (size_t) p->width * p->height * 4);
    }

    WebPAnimDecoderDelete(anim);

    return rc;
}


static uint32_t
llm_webp_orientation(llm_decode_t *d)
{
    uint32_t            orientation;
    WebPData            data = { d->data, d->len };
    WebPDemuxer        *demux;
    WebPChunkIterator   it;

    orientation = 1;
    demux = WebPDemux(&data);

    if (demux && WebPDemuxGetChunk(demux, "EXIF", 1, &it)) {
        orientation = llm_exif_orientation(it.chunk.bytes, it.chunk.size);
        WebPDemuxReleaseChunkIterator(&it);
    }

    WebPDemuxDelete(demux);

    return orientation;
}


int
llm_decode_webp(llm_decode_t *d, llm_picture_t *p)
{
    WebPBitstreamFeatures  f;

    if (WebPGetFeatures(d->data, d->len, &f) != VP8_STATUS_OK) {
        return llm_webp_broken(d);
    }

    p->alpha = f.has_alpha || f.has_animation;
    p->orientation = llm_webp_orientation(d);

    if (llm_picture_start(d, p, (uint64_t) f.width, (uint64_t) f.height,
                          p->alpha ? 4 : 3)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    return f.has_animation ? llm_webp_moving(d, p) : llm_webp_still(d, p);
}

#endif
