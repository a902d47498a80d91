/*
 * Resizing as Pillow does it, to the bit: one axis after the other, by weights
 * of 22 binary places, rounded to 8 bits after each.  Where an axis shrinks,
 * the filter is as much wider.  Models were trained on pixels that were made so.
 *
 * Of the two axes the width comes first, unless the height loses more than
 * twice as many pixels: so it is in Pillow 13.  Older versions always begin with
 * the width, which differs in some values by a step, at hard edges by more.
 *
 * An image in the middle of a square is resized without the square in memory,
 * which an image of one line would make too large.
 */

#ifndef LLM_RESIZE_H
#define LLM_RESIZE_H

#include "engine/media/media.h"

typedef enum {
    LLM_RESAMPLE_BILINEAR = 0,
    LLM_RESAMPLE_BICUBIC,                 /* with a = -0.5 */
    LLM_RESAMPLE_LANCZOS                  /* of three lobes */
} llm_resample_t;

/* *out is a new image of width x height, the caller's; LLM_ERROR and *err: no
   memory */
int llm_image_resize(const llm_image_t *from, uint32_t width, uint32_t height,
    llm_resample_t filter, llm_image_t *out, llm_err_t *err);
/* the same of a square of this colour, as long as the longer side, that has the
   image in its middle, or half a pixel before it */
int llm_image_resize_square(const llm_image_t *from, uint32_t side,
    const uint8_t color[3], llm_resample_t filter, llm_image_t *out,
    llm_err_t *err);

#endif /* LLM_RESIZE_H */
