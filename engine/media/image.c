/*
 * Images in memory, and the job of decoding one; see media.h.
 */

#include "engine/media/media.h"

typedef struct {
    llm_image_t              *image;
    const llm_image_check_t  *check;    /* or NULL */
    size_t                    len;      /* bytes that have come */
} llm_image_sink_t;


int
llm_image_create(llm_image_t *image, uint32_t width, uint32_t height)
{
    size_t  size;

    image->width = width;
    image->height = height;
    image->rgb = NULL;

    if (width == 0 || height == 0
        || llm_mul_overflow((size_t) width * 3, height, &size))
    {
        return LLM_ERROR;
    }

    image->rgb = malloc(size);

    return image->rgb ? LLM_OK : LLM_ERROR;
}


void
llm_image_free(llm_image_t *image)
{
    free(image->rgb);
    image->rgb = NULL;
}


static int
llm_image_info(void *ctx, const llm_media_info_t *info, llm_err_t *err)
{
    llm_image_sink_t  *s = ctx;

    if (s->check && s->check->size(s->check->ctx, info->width, info->height,
                                   err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (llm_image_create(s->image, info->width, info->height) != LLM_OK) {
        return llm_fail_with(err, 503, NULL, NULL, "no memory for an image of "
                             "%u x %u pixels", (unsigned) info->width,
                             (unsigned) info->height);
    }

    return LLM_OK;
}


/* job.c lets no more bytes come than the image has */

static int
llm_image_data(void *ctx, const void *data, size_t len, llm_err_t *err)
{
    llm_image_sink_t  *s = ctx;

    (void) err;

    memcpy(s->image->rgb + s->len, data, len);
    s->len += len;

    return LLM_OK;
}


int
llm_media_image(llm_media_pool_t *pool, const llm_media_source_t *source,
    const llm_media_limits_t *limits, const llm_image_check_t *check,
    llm_image_t *out, llm_err_t *err)
{
    int               rc;
    llm_image_sink_t  s = { out, check, 0 };
    llm_media_sink_t  sink = { &s, llm_image_info, llm_image_data };

    memset(out, 0, sizeof(*out));

    rc = llm_media_decode(pool, LLM_MEDIA_IMAGE, source, limits, &sink, err);

    if (rc != LLM_OK) {
        llm_image_free(out);
    }

    return rc;
}
