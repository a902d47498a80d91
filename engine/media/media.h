/*
 * From the bytes of an image's or a sound's file to pixels or samples.
 *
 * Files are decoded by the distribution's libraries, in processes of their own
 * (the program llm-media, decoder/), which can do nothing but read the file
 * from a socket and write what is in it: a hole of a library is not one of
 * nginx.  A decoder that crashes, hangs or eats memory costs its request an
 * error; each job has a new process.
 *
 * A pool starts llm-media when it is first needed, and again if it has died;
 * for recordings it starts llm-media-ffmpeg.  Its functions may be called from
 * any thread; a call takes as long as its job, and waits while max_jobs others
 * run.  The pool owns the programs; llm_media_pool_free() ends them, and so
 * does the end of this process.
 */

#ifndef LLM_MEDIA_H
#define LLM_MEDIA_H

#include "engine/base/base.h"

#include <stdatomic.h>

typedef enum {
    LLM_MEDIA_IMAGE = 1,
    LLM_MEDIA_SOUND,
    LLM_MEDIA_RECORDING                 /* sound by FFmpeg (recording.h) */
} llm_media_kind_t;

/* what a file may ask for; beyond it there is an error with status 400 */
typedef struct {
    uint64_t  bytes;                    /* of the file */
    uint64_t  pixels;                   /* of an image, before resizing */
    uint64_t  samples;                  /* of a sound: seconds times the rate of
                                           the file */
    uint64_t  memory;                   /* bytes that decoding may take; 0: as
                                           much as bytes and pixels need */
    uint32_t  side;                     /* pixels of the longer side */
    uint32_t  seconds;                  /* of a sound */
    uint32_t  timeout;                  /* milliseconds of decoding */
    uint32_t  light;                    /* pixels, or samples of the file: one
                                           that has more, or takes longer than
                                           the timeout, is LLM_LATER as soon as
                                           that is known, and no error; 0: no
                                           such bound */
} llm_media_limits_t;

/* 20 MiB, 50 million pixels, sides of 65535, an hour of sound, 10 seconds */
void llm_media_limits_default(llm_media_limits_t *limits);

/* comes before the data; those of the other kind are 0 */
typedef struct {
    uint32_t  width;                    /* after the rotation that EXIF asks
                                           for */
    uint32_t  height;
    uint32_t  rate;                     /* samples per second */
    uint32_t  channels;                 /* of the sound in the file */
    uint64_t  frames;                   /* samples that the header promises; 0:
                                           unknown */
} llm_media_info_t;

/* the file: bytes, or an open regular file that is read from its beginning */
typedef struct {
    const void              *data;      /* NULL: fd */
    size_t                   len;
    int                      fd;
    const _Atomic uint32_t  *cancelled; /* not 0: the job ends with an error, as
                                           nobody wants its result any more;
                                           others write it, a job reads it,
                                           relaxed; NULL: never */
} llm_media_source_t;

static inline int
llm_media_is_cancelled(const llm_media_source_t *s)
{
    return s->cancelled
           && atomic_load_explicit(s->cancelled, memory_order_relaxed) != 0;
}


/*
 * Where the result goes, in order: info once, then data in pieces, never more
 * than the limits.  Pieces of a sound are whole float32 samples and aligned.
 * LLM_ERROR and *err end the job.
 */
typedef struct {
    void   *ctx;
    int   (*info)(void *ctx, const llm_media_info_t *info, llm_err_t *err);
    int   (*data)(void *ctx, const void *data, size_t len, llm_err_t *err);
} llm_media_sink_t;

typedef struct llm_media_pool_s  llm_media_pool_t;

/*
 * dir: the folder of llm-media; NULL: it is looked for beside this program or
 * module and where packages put it.  max_jobs: 0: 4.  NULL: no memory.
 * Nothing is started yet.
 */
llm_media_pool_t *llm_media_pool_create(const char *dir, uint32_t max_jobs);
/* no other call may run */
void llm_media_pool_free(llm_media_pool_t *pool);

/*
 * Decodes a file.  LLM_ERROR and *err: status 400 and a code if the file is at
 * fault (a crash of the decoder counts as such), 500 or 503 if this machine is
 * (or who has killed the decoder).  LLM_LATER: see limits->light.  After either
 * the sink may have got a part.
 */
int llm_media_decode(llm_media_pool_t *pool, llm_media_kind_t kind,
    const llm_media_source_t *source, const llm_media_limits_t *limits,
    const llm_media_sink_t *sink, llm_err_t *err);

/* pixels: [height][width][3], red, green, blue */
typedef struct {
    uint32_t  width;
    uint32_t  height;
    uint8_t  *rgb;                      /* malloc'ed */
} llm_image_t;

/* asked once the size is known, before any pixel is decoded; LLM_ERROR and *err
   end the job */
typedef struct {
    void   *ctx;
    int   (*size)(void *ctx, uint32_t width, uint32_t height, llm_err_t *err);
} llm_image_check_t;

/* decodes an image file; out is the caller's, to be freed with
   llm_image_free(), after LLM_OK alone; other results as above; check may be
   NULL */
int llm_media_image(llm_media_pool_t *pool, const llm_media_source_t *source,
    const llm_media_limits_t *limits, const llm_image_check_t *check,
    llm_image_t *out, llm_err_t *err);
/* a new image whose bytes are not set; LLM_ERROR: no memory, or a side is 0 */
int llm_image_create(llm_image_t *image, uint32_t width, uint32_t height);
void llm_image_free(llm_image_t *image);

#endif /* LLM_MEDIA_H */
