/*
 * One job, on the engine's side: writes the file's frames to the decoder and
 * reads those of the result; see wire.h and pool.c.
 */

#ifndef LLM_MEDIA_TALK_H
#define LLM_MEDIA_TALK_H

#include "engine/media/wire.h"

typedef struct {
    llm_media_kind_t            kind;
    const llm_media_source_t   *source;
    const llm_media_limits_t   *limits;
    const llm_media_sink_t     *sink;
    int                         socket; /* the job's */
    int                         status; /* pipe with the llm_media_end_t */

    uint64_t                    deadline;   /* microseconds; set by talk() */
    uint64_t                    left;       /* bytes of data that may come */
    uint64_t                    came;       /* that have come */
    int                         known;      /* INFO has come */
} llm_media_talk_t;

/* LLM_OK; LLM_ERROR and *err.  *stuck is set if llm-media itself did not say in
   time what became of the decoder. */
int llm_media_talk(llm_media_talk_t *t, int *stuck, llm_err_t *err);

/* the error of a recording where llm-media-ffmpeg does not run */
int llm_media_no_ffmpeg(llm_err_t *err);
/* the error of a file with too many bytes */
int llm_media_too_large(llm_media_kind_t kind,
    const llm_media_limits_t *limits, llm_err_t *err);

#endif /* LLM_MEDIA_TALK_H */
