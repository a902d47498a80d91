/*
 * The decoders of llm-media, and what llm-media-ffmpeg (../ffmpeg/) shares with
 * it: from a file in memory to frames (wire.h).
 *
 * A kind is a row of kinds.c and a function here; a format of images is a row
 * in image.c and a file.  Decoders run in a process that has no files, no
 * network and little memory, and ends with the job (sandbox.c); they may leak,
 * but must not believe the file: what it asks for is compared with the limits
 * before memory is taken.
 *
 * A library that is not installed where this is built has no decoder: its
 * format is refused with a message that says so.
 */

#ifndef LLM_DECODE_H
#define LLM_DECODE_H

#include "engine/media/wire.h"

typedef struct {
    const uint8_t             *data;    /* the file */
    size_t                     len;
    const llm_media_limits_t  *limits;

    /* writes a frame of at most LLM_MEDIA_FRAME bytes; LLM_ERROR: the engine
       no longer listens */
    int                      (*put)(void *ctx, uint32_t type, const void *data,
                                   size_t len);
    void                      *ctx;
    int                        failed;  /* a FAILED frame was written */
} llm_decode_t;

typedef int (*llm_decode_pt)(llm_decode_t *d);

/* the decoder of a kind; NULL: there is none */
llm_decode_pt llm_decode_find(uint32_t kind);
/* prints a line for each format: its name, and "yes" or "no": does this build
   read it? */
void llm_decode_formats(void);

/* what decoders call; LLM_OK or LLM_ERROR, with which a decoder returns */
int llm_decode_info(llm_decode_t *d, const llm_media_info_t *info);
int llm_decode_bytes(llm_decode_t *d, const void *data, size_t len);
/* the first call writes the message; always LLM_ERROR */
int llm_decode_fail(llm_decode_t *d, llm_media_reason_t reason,
    const char *fmt, ...) llm_printf_like(3, 4);

/* a number of n bytes, the highest first */
uint64_t llm_decode_number(const uint8_t *p, size_t n);

/* decoders of a kind, and the lines of its formats */
int llm_decode_image(llm_decode_t *d);
void llm_image_formats(void);
int llm_decode_sound(llm_decode_t *d);
void llm_sound_formats(void);


/* ---- sound: whole.c ---- */

/*
 * What is read instead of a part of a file, because libsndfile would take that
 * for another length, or refuse it.
 */
typedef struct {
    size_t    at;                       /* where the part begins */
    size_t    skip;                     /* its bytes */
    size_t    len;                      /* bytes of data; 0: the file is read
                                           as it is */
    uint8_t   data[576];
} llm_sound_label_t;

/* LLM_ERROR: a message was written, the file of this format (a name of sound.c)
   is cut off.  LLM_OK: it is whole, or does not tell. */
int llm_sound_whole(llm_decode_t *d, const char *name);
void llm_sound_label(const llm_decode_t *d, const char *name,
    llm_sound_label_t *label);

/* ---- sound: mpeg.c ---- */

int llm_mpeg_whole(llm_decode_t *d);    /* of MP3 */
/* the label is a frame without sound that says how many follow */
void llm_mpeg_label(const llm_decode_t *d, llm_sound_label_t *label);


/* ---- images ---- */

/*
 * The pixels of an image, 4 bytes each (red, green, blue, alpha), that a format
 * fills row by row.
 */
typedef struct {
    uint32_t   width;
    uint32_t   height;
    uint32_t   orientation;             /* of EXIF: 1 ... 8; 0: not known */
    int        alpha;                   /* alpha is not 255 everywhere */
    size_t     step;                    /* bytes of a pixel: 3 or 4 */
    uint8_t   *pixels;                  /* [height][width][step] */
} llm_picture_t;

/*
 * Sets size and takes memory for the pixels (step 3 or 4) once the header was
 * read and the orientation is known, before anything is decoded, and writes
 * INFO: an engine that needs no image of this size ends the job.  LLM_ERROR: a
 * message was written, the size is beyond the limits.
 */
int llm_picture_start(llm_decode_t *d, llm_picture_t *p, uint64_t width,
    uint64_t height, size_t step);
/* the orientation in a block of EXIF (TIFF's bytes, with or without "Exif\0\0"
   before them); 1 if there is none */
uint32_t llm_exif_orientation(const uint8_t *data, size_t len);

/* formats: LLM_OK and *p; LLM_ERROR: a message was written */
int llm_decode_png(llm_decode_t *d, llm_picture_t *p);
int llm_decode_jpeg(llm_decode_t *d, llm_picture_t *p);
int llm_decode_webp(llm_decode_t *d, llm_picture_t *p);
int llm_decode_gif(llm_decode_t *d, llm_picture_t *p);
int llm_decode_bmp(llm_decode_t *d, llm_picture_t *p);


/* ---- sandbox.c ---- */

/*
 * Gives up everything but fd 0, memory beyond the present and `memory` bytes,
 * and `seconds` of CPU time.  LLM_ERROR: not possible here, *why says why; then
 * nothing may be decoded.
 */
int llm_sandbox_enter(uint64_t memory, uint32_t seconds, const char **why);

#endif /* LLM_DECODE_H */
