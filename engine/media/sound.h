/*
 * From the bytes of a sound's file to samples of one channel at one rate.  WAV
 * files are read here (wav.h), recordings by llm-media-ffmpeg, all others by
 * llm-media (media.h).
 */

#ifndef LLM_MEDIA_SOUND_H
#define LLM_MEDIA_SOUND_H

#include "engine/media/media.h"

typedef struct {
    float    *samples;                  /* [n], malloc'ed */
    size_t    n;
    uint32_t  rate;                     /* that was asked for */
    double    seconds;                  /* of the file, at its own rate */
} llm_sound_t;

/*
 * source: in memory.  pool: NULL: WAV files alone.  Memory that is taken
 * follows the samples that came, not what the file promises, and ends with
 * limits->seconds.  LLM_ERROR and *err, LLM_LATER: as llm_media_decode();
 * nothing is to be freed then.
 */
int llm_media_sound(llm_media_pool_t *pool, const llm_media_source_t *source,
    const llm_media_limits_t *limits, uint32_t rate, llm_sound_t *out,
    llm_err_t *err);
void llm_sound_free(llm_sound_t *sound);

#endif /* LLM_MEDIA_SOUND_H */
