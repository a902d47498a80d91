/*
 * Recordings: files that libsndfile does not read and FFmpeg does, which
 * browsers and phones send.  They are decoded by a program of their own,
 * llm-media-ffmpeg (ffmpeg/), so that no other file meets FFmpeg.  The engine
 * and that program tell them by the same first bytes.
 */

#ifndef LLM_MEDIA_RECORDING_H
#define LLM_MEDIA_RECORDING_H

#include "engine/base/base.h"

typedef enum {
    LLM_RECORDING_NONE = 0,             /* another file */
    LLM_RECORDING_WEBM,                 /* also Matroska */
    LLM_RECORDING_MP4,                  /* also M4A, QuickTime, 3GP */
    LLM_RECORDING_AAC                   /* ADTS: AAC without a container */
} llm_recording_t;


static inline llm_recording_t
llm_recording_find(const void *data, size_t len)
{
    const uint8_t  *p = data;

    if (len >= 8 && memcmp(p, "\x1a\x45\xdf\xa3", 4) == 0) {
        return LLM_RECORDING_WEBM;
    }

    if (len >= 8 && memcmp(p + 4, "ftyp", 4) == 0) {
        return LLM_RECORDING_MP4;
    }

    /* 12 bits that are set, a version, layer 0; an MP3 frame's is 1 to 3 */

    if (len >= 7 && p[0] == 0xff && (p[1] & 0xf6) == 0xf0) {
        return LLM_RECORDING_AAC;
    }

    return LLM_RECORDING_NONE;
}

#endif /* LLM_MEDIA_RECORDING_H */
