/*
 * The rows of a prompt with images and sound: the tokens of its texts, and for
 * each image the texts that its family's processor puts around it and between
 * its tiles, and a row for each that the encoder will give; the same for each
 * sound.
 *
 * A layout belongs to its caller, who begins with zeros but for the first four
 * fields, and frees it, or takes its results.
 */

#ifndef LLM_PREPARE_LAYOUT_H
#define LLM_PREPARE_LAYOUT_H

#include "engine/media/rule.h"
#include "engine/sched/request.h"
#include "engine/text/vocab/vocab.h"

typedef struct {
    const llm_vocab_t       *vocab;
    uint32_t                 most;      /* rows; 0: no bound */
    size_t                   max_bytes; /* of what is counted by
                                           llm_layout_bytes(); 0: no bound */
    int                      counts;    /* 1: the rows are only counted, media
                                           get no pixels */

    llm_ids_t                ids;       /* 0 at rows of media */
    llm_media_t             *media;     /* [n_media] owned, as are their
                                           pixels */
    uint32_t                 n_media;
    uint32_t                 cap;
    size_t                   bytes;     /* counted: of all pixels and samples */

    /* of the image that is laid out */
    const llm_image_plan_t  *plan;
    const uint8_t           *pixels;
    llm_err_t               *err;
} llm_layout_t;

/* append; as of llm_vocab_tokenize().  LLM_ERROR and *err: no memory, or, with
   "context_length_exceeded", more than `most` rows */
int llm_layout_ids(llm_layout_t *l, const int32_t *ids, size_t n,
    llm_err_t *err);
int llm_layout_text(llm_layout_t *l, llm_str_t text, const llm_span_t *trusted,
    size_t n_trusted, int flags, llm_err_t *err);
/* the same for an image, of which plan is made here; or, with
   "request_too_large", more than max_bytes */
int llm_layout_image(llm_layout_t *l, const llm_image_rule_t *rule,
    const llm_image_t *image, llm_image_plan_t *plan, llm_err_t *err);
/* the same for the n samples of a sound, which are frames, the last one filled
   with 0, or spectrograms */
int llm_layout_sound(llm_layout_t *l, const llm_sound_rule_t *rule,
    const float *samples, size_t n, llm_err_t *err);
/* plans an image of this size, without laying it out; LLM_ERROR and *err: the
   rule takes none of it, or it has more rows than there is room for */
int llm_layout_plan(const llm_layout_t *l, const llm_image_rule_t *rule,
    uint32_t width, uint32_t height, llm_image_plan_t *plan, llm_err_t *err);
/* counts so many bytes for the images and sounds; LLM_ERROR and *err,
   "request_too_large": beyond max_bytes */
int llm_layout_bytes(llm_layout_t *l, size_t size, llm_err_t *err);
/* the error of more than `most` rows */
int llm_layout_too_long(const llm_layout_t *l, llm_err_t *err);
void llm_layout_free(llm_layout_t *l);

#endif /* LLM_PREPARE_LAYOUT_H */
