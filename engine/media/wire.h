/*
 * What the engine and the program llm-media say to each other.
 *
 * llm-media is started once per pool, and so is llm-media-ffmpeg, to which all
 * of this applies as well.  Its standard input is a socket, on which it first
 * writes LLM_MEDIA_MAGIC: before that, a library that is missing may have ended
 * it.  Then a message llm_media_start_t asks it for a job; with it come two
 * descriptors: a socket of the job and the writing end of a pipe.  For each job
 * llm-media forks a process, which gives up all it could do but to read and
 * write the job's socket, and ends with the job.  Once it has ended, llm-media
 * writes one llm_media_end_t into the pipe.
 *
 * On the job's socket both sides write frames, a llm_media_frame_t and its
 * bytes:
 *
 *   engine     HEAD llm_media_head_t, DATA ... (the file), END
 *   decoder    INFO llm_media_info_t, DATA ..., END
 *           or FAILED: a number of llm_media_reason_t, then a text for people;
 *              it may also follow INFO and DATA
 * INFO of an image comes before its pixels are decoded, so that an engine that
 * does not want them can close the socket.
 *
 * The data of an image are its pixels, 3 bytes each (red, green, blue), row by
 * row from the top.  Those of a sound or a recording are samples, float32, of
 * one channel: the mean of all.  Numbers are in the machine's order.  The
 * engine believes nothing that a decoder writes: it checks sizes and order
 * (job.c).
 */

#ifndef LLM_MEDIA_WIRE_H
#define LLM_MEDIA_WIRE_H

#include "engine/media/media.h"

/* to be changed with anything in this file or in llm_media_limits_t */
#define LLM_MEDIA_MAGIC  0x6d6c6c03u

#define LLM_MEDIA_FRAME  (1u << 18)     /* most bytes of a frame */

enum {
    LLM_MEDIA_HEAD = 1,
    LLM_MEDIA_INFO,
    LLM_MEDIA_DATA,
    LLM_MEDIA_END,
    LLM_MEDIA_FAILED
};

typedef struct {
    uint32_t             type;
    uint32_t             len;
} llm_media_frame_t;

typedef struct {
    uint32_t             magic;
    uint32_t             timeout;       /* milliseconds */
    uint64_t             memory;        /* bytes */
} llm_media_start_t;

typedef struct {
    uint32_t             kind;          /* llm_media_kind_t */
    uint32_t             reserved;
    llm_media_limits_t   limits;
} llm_media_head_t;

/* what is wrong, for the status and the code of an error */
typedef enum {
    LLM_MEDIA_BROKEN = 1,               /* truncated, damaged */
    LLM_MEDIA_UNKNOWN,                  /* of a format that is not read */
    LLM_MEDIA_TOO_LARGE,
    LLM_MEDIA_NO_MEMORY,
    LLM_MEDIA_OURS,                     /* not for the file's sake */
    LLM_MEDIA_TOO_LONG                  /* sound of more seconds */
} llm_media_reason_t;

/* how a decoder's process ended */
typedef enum {
    LLM_MEDIA_EXITED = 1,               /* value: its status */
    LLM_MEDIA_SIGNAL,                   /* value: the signal */
    LLM_MEDIA_TIMEOUT,
    LLM_MEDIA_NO_FORK,                  /* value: errno */
    LLM_MEDIA_OTHER                     /* the program is of another version */
} llm_media_how_t;

typedef struct {
    uint32_t             how;           /* llm_media_how_t */
    uint32_t             value;
} llm_media_end_t;

#endif /* LLM_MEDIA_WIRE_H */
