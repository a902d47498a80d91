/*
 * Talks with a decoder's process, which may be in the hands of whoever made the
 * file: each frame is checked, and there is a time for all of them; see job.h.
 */

#include "engine/media/job.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define LLM_MEDIA_GRACE   5000000       /* microseconds that llm-media has to
                                           end a job whose time is over */
#define LLM_MEDIA_TEXT    400           /* most bytes of a message */

/* results of reading and writing beside LLM_OK */
#define LLM_MEDIA_LATE      (LLM_OTHER - 0)
#define LLM_MEDIA_GONE      (LLM_OTHER - 1)
#define LLM_MEDIA_UNWANTED  (LLM_OTHER - 2)

#define LLM_MEDIA_LOOK    100           /* milliseconds until it is looked
                                           whether a job is still wanted */


static const char *
llm_media_word(llm_media_kind_t kind)
{
    return kind == LLM_MEDIA_IMAGE ? "image" : "audio";
}


/* an error of the file; those of images have OpenAI's codes */

static int llm_media_refuse(llm_media_kind_t kind, llm_media_reason_t reason,
    llm_err_t *err, const char *fmt, ...) llm_printf_like(4, 5);

static int
llm_media_refuse(llm_media_kind_t kind, llm_media_reason_t reason,
    llm_err_t *err, const char *fmt, ...)
{
    char     msg[LLM_MEDIA_TEXT + 100];
    va_list  args;

    va_start(args, fmt);
    vsnprintf(msg, sizeof(msg), fmt, args);
    va_end(args);

    if (kind != LLM_MEDIA_IMAGE) {
        return llm_fail_with(err, 400, reason == LLM_MEDIA_TOO_LONG
                                       ? "audio_too_long"
                                       : "audio_parse_error", NULL,
                             "the audio cannot be decoded: %s", msg);
    }

    switch (reason) {

    case LLM_MEDIA_UNKNOWN:
        return llm_fail_with(err, 400, "invalid_image_format", NULL,
                             "the image cannot be decoded: %s", msg);

    case LLM_MEDIA_TOO_LARGE:
    case LLM_MEDIA_NO_MEMORY:
        return llm_fail_with(err, 400, "image_too_large", NULL,
                             "the image cannot be decoded: %s", msg);

    default:
        return llm_fail_with(err, 400, "image_parse_error", NULL,
                             "the image cannot be decoded: %s", msg);
    }
}


int
llm_media_no_ffmpeg(llm_err_t *err)
{
    return llm_media_refuse(LLM_MEDIA_RECORDING, LLM_MEDIA_UNKNOWN, err,
                            "WebM, MP4, M4A and AAC files are read by a server "
                            "that has llm-media-ffmpeg and FFmpeg's libraries "
                            "(libavformat, libavcodec); WAV, FLAC, MP3 and Ogg "
                            "need neither");
}


int
llm_media_too_large(llm_media_kind_t kind, const llm_media_limits_t *limits,
    llm_err_t *err)
{
    return llm_media_refuse(kind, LLM_MEDIA_TOO_LARGE, err,
                            "the file has more than %llu bytes",
                            (unsigned long long) limits->bytes);
}


/* waits for events on fd until the deadline; LLM_OK, LLM_MEDIA_LATE or
   LLM_MEDIA_UNWANTED */

static int
llm_media_wait(const llm_media_talk_t *t, int fd, short events)
{
    int            n;
    uint64_t       now;
    struct pollfd  p = { fd, events, 0 };

    for ( ;; ) {
        now = llm_now_us();

        if (llm_media_is_cancelled(t->source)) {
            return LLM_MEDIA_UNWANTED;
        }

        if (now >= t->deadline) {
            return LLM_MEDIA_LATE;
        }

        n = poll(&p, 1, (int) llm_min((t->deadline - now) / 1000 + 1,
                                      (uint64_t) LLM_MEDIA_LOOK));

        if (n > 0) {
            return LLM_OK;
        }

        if (n < 0 && errno != EINTR) {
            return LLM_MEDIA_LATE;
        }
    }
}


static int
llm_media_send(llm_media_talk_t *t, const void *data, size_t len)
{
    int          rc;
    ssize_t      n;
    const char  *p;

    for (p = data; len; p += n, len -= (size_t) n) {
        n = send(t->socket, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            continue;
        }

        n = 0;

        if (errno == EAGAIN) {
            rc = llm_media_wait(t, t->socket, POLLOUT);

            if (rc != LLM_OK) {
                return rc;
            }

        } else if (errno != EINTR) {
            return LLM_MEDIA_GONE;
        }
    }

    return LLM_OK;
}


static int
llm_media_recv(llm_media_talk_t *t, void *buf, size_t len)
{
    int      rc;
    char    *p;
    ssize_t  n;

    for (p = buf; len; p += n, len -= (size_t) n) {
        n = recv(t->socket, p, len, MSG_DONTWAIT);

        if (n > 0) {
            continue;
        }

        if (n < 0 && errno == EAGAIN) {
            rc = llm_media_wait(t, t->socket, POLLIN);

            if (rc != LLM_OK) {
                return rc;
            }

        } else if (n == 0 || errno != EINTR) {
            return LLM_MEDIA_GONE;
        }

        n = 0;
    }

    return LLM_OK;
}


static int
llm_media_frame(llm_media_talk_t *t, uint32_t type, const void *data,
    size_t len)
{
    int                rc;
    llm_media_frame_t  f = { type, (uint32_t) len };

    rc = llm_media_send(t, &f, sizeof(f));

    return rc == LLM_OK ? llm_media_send(t, data, len) : rc;
}


/* the file's frames from memory */

static int
llm_media_send_memory(llm_media_talk_t *t)
{
    int          rc;
    size_t       at, n;
    const char  *data;

    data = t->source->data;

    for (at = 0, rc = LLM_OK; rc == LLM_OK && at < t->source->len; at += n) {
        n = llm_min(t->source->len - at, (size_t) LLM_MEDIA_FRAME);
        rc = llm_media_frame(t, LLM_MEDIA_DATA, data + at, n);
    }

    return rc;
}


/* and those of an open one */

static int
llm_media_send_file(llm_media_talk_t *t, llm_err_t *err)
{
    int       rc;
    char     *buf;
    ssize_t   n;
    uint64_t  at;

    buf = malloc(LLM_MEDIA_FRAME);

    if (buf == NULL) {
        return llm_fail_with(err, 503, NULL, NULL,
                             "no memory for a part of a file");
    }

    for (at = 0, rc = LLM_OK; rc == LLM_OK; at += (uint64_t) n) {
        n = pread(t->source->fd, buf, LLM_MEDIA_FRAME, (off_t) at);

        if (n < 0 && errno == EINTR) {
            n = 0;
            continue;
        }

        if (n < 0) {
            rc = llm_fail(err, "a file of %s cannot be read: %s",
                          llm_media_word(t->kind), strerror(errno));
            break;
        }

        if (n == 0) {
            break;
        }

        if (at + (uint64_t) n > t->limits->bytes) {
            rc = llm_media_too_large(t->kind, t->limits, err);
            break;
        }

        rc = llm_media_frame(t, LLM_MEDIA_DATA, buf, (size_t) n);
    }

    free(buf);

    return rc;
}


/* LLM_OK; LLM_ERROR and *err; LLM_LATER; LLM_MEDIA_LATE; LLM_MEDIA_UNWANTED;
   LLM_MEDIA_GONE: the decoder reads no more, and may have said why */

static int
llm_media_send_all(llm_media_talk_t *t, llm_err_t *err)
{
    int               rc;
    llm_media_head_t  head;

    memset(&head, 0, sizeof(head));
    head.kind = t->kind;
    head.limits = *t->limits;

    rc = llm_media_frame(t, LLM_MEDIA_HEAD, &head, sizeof(head));

    if (rc == LLM_OK) {
        rc = t->source->data ? llm_media_send_memory(t)
                             : llm_media_send_file(t, err);
    }

    if (rc == LLM_OK) {
        rc = llm_media_frame(t, LLM_MEDIA_END, NULL, 0);
    }

    return rc;
}


/* what a decoder writes that it must not */

static int
llm_media_nonsense(llm_media_talk_t *t, llm_err_t *err)
{
    return llm_media_refuse(t->kind, LLM_MEDIA_BROKEN, err, "its decoder wrote "
                            "what it must not: the file may be an attack");
}


/* is it more than is decoded now?  n: pixels or samples */

static int
llm_media_light(const llm_media_talk_t *t, uint64_t n)
{
    return t->limits->light && n > t->limits->light ? LLM_LATER : LLM_OK;
}


static int
llm_media_take_info(llm_media_talk_t *t, size_t len, llm_err_t *err)
{
    int                        rc;
    llm_media_info_t           info;
    const llm_media_limits_t  *l;

    l = t->limits;

    if (len != sizeof(info) || t->known) {
        return llm_media_nonsense(t, err);
    }

    rc = llm_media_recv(t, &info, sizeof(info));

    if (rc != LLM_OK) {
        return rc;
    }

    if (t->kind == LLM_MEDIA_IMAGE) {
        if (info.width == 0 || info.height == 0 || info.width > l->side
            || info.height > l->side
            || (uint64_t) info.width * info.height > l->pixels)
        {
            return llm_media_nonsense(t, err);
        }

        t->left = (uint64_t) info.width * info.height * 3;

    } else {
        if (info.rate == 0 || info.channels == 0) {
            return llm_media_nonsense(t, err);
        }

        t->left = llm_min((uint64_t) info.rate * l->seconds, l->samples)
                  * sizeof(float);
    }

    t->known = 1;
    rc = t->sink->info(t->sink->ctx, &info, err);

    if (rc != LLM_OK) {
        return rc;
    }

    return llm_media_light(t, t->kind == LLM_MEDIA_IMAGE ? t->left / 3
                                                         : info.frames);
}


static int
llm_media_take_data(llm_media_talk_t *t, size_t len, char *buf, llm_err_t *err)
{
    int  rc;

    if (!t->known || len > t->left
        || (t->kind != LLM_MEDIA_IMAGE && len % sizeof(float)))
    {
        return llm_media_nonsense(t, err);
    }

    rc = llm_media_recv(t, buf, len);

    if (rc != LLM_OK) {
        return rc;
    }

    t->left -= len;
    t->came += len;

    if (t->kind != LLM_MEDIA_IMAGE
        && llm_media_light(t, t->came / sizeof(float)) != LLM_OK)
    {
        return LLM_LATER;
    }

    return t->sink->data(t->sink->ctx, buf, len, err);
}


static int
llm_media_take_failed(llm_media_talk_t *t, size_t len, char *buf,
    llm_err_t *err)
{
    int       rc;
    char      text[LLM_MEDIA_TEXT + 1];
    uint32_t  reason;

    if (len < sizeof(reason) || len > sizeof(reason) + LLM_MEDIA_TEXT) {
        return llm_media_nonsense(t, err);
    }

    rc = llm_media_recv(t, buf, len);

    if (rc != LLM_OK) {
        return rc;
    }

    memcpy(&reason, buf, sizeof(reason));
    len -= sizeof(reason);
    memcpy(text, buf + sizeof(reason), len);
    text[len] = '\0';

    return reason == LLM_MEDIA_OURS
           ? llm_fail(err, "%s", text)
           : llm_media_refuse(t->kind, reason, err, "%s", text);
}


/* as llm_media_send_all(), of the result */

static int
llm_media_take_all(llm_media_talk_t *t, char *buf, llm_err_t *err)
{
    int                rc;
    llm_media_frame_t  f;

    for ( ;; ) {
        if (llm_media_is_cancelled(t->source)) {
            return LLM_MEDIA_UNWANTED;
        }

        rc = llm_media_recv(t, &f, sizeof(f));

        if (rc != LLM_OK) {
            return rc;
        }

        if (f.len > LLM_MEDIA_FRAME) {
            return llm_media_nonsense(t, err);
        }

        switch (f.type) {

        case LLM_MEDIA_INFO:
            rc = llm_media_take_info(t, f.len, err);
            break;

        case LLM_MEDIA_DATA:
            rc = llm_media_take_data(t, f.len, buf, err);
            break;

        case LLM_MEDIA_FAILED:
            return llm_media_take_failed(t, f.len, buf, err);

        case LLM_MEDIA_END:
            /* all pixels of an image; a sound is as long as it is */
            return f.len == 0 && t->known
                   && (t->kind != LLM_MEDIA_IMAGE || t->left == 0)
                   ? LLM_OK : llm_media_nonsense(t, err);

        default:
            return llm_media_nonsense(t, err);
        }

        if (rc != LLM_OK) {
            return rc;
        }
    }
}


static int
llm_media_unwanted(llm_err_t *err)
{
    return llm_fail(err, "the request was cancelled");
}


/* what became of a decoder that has ended without a result */

static int
llm_media_ended(llm_media_talk_t *t, int *stuck, llm_err_t *err)
{
    int              rc;
    ssize_t          n;
    llm_media_end_t  end;

    rc = llm_media_wait(t, t->status, POLLIN);

    if (rc == LLM_MEDIA_UNWANTED) {
        return llm_media_unwanted(err);
    }

    n = rc == LLM_OK ? read(t->status, &end, sizeof(end)) : -1;

    if (n != (ssize_t) sizeof(end)) {
        *stuck = 1;

        return llm_fail_with(err, 503, NULL, NULL, "the program that decodes "
                             "images and sound %s: it is started again",
                             n == 0 ? "has died" : "does not answer");
    }

    switch (end.how) {

    case LLM_MEDIA_TIMEOUT:
        if (t->limits->light) {
            return LLM_LATER;
        }

        return llm_media_refuse(t->kind, LLM_MEDIA_TOO_LARGE, err, "that "
                                "takes longer than %u ms",
                                (unsigned) t->limits->timeout);

    case LLM_MEDIA_SIGNAL:
        if (end.value == SIGXCPU) {
            return llm_media_refuse(t->kind, LLM_MEDIA_TOO_LARGE, err, "that "
                                    "takes more time of the CPU than %u ms",
                                    (unsigned) t->limits->timeout);
        }

        /* no bound of a decoder ends it so: memory beyond it is not given, and
           of time it hears by SIGXCPU first (sandbox.c) */

        if (end.value == SIGKILL) {
            return llm_fail_with(err, 503, NULL, NULL, "the decoder of %s was "
                                 "killed from outside (signal 9), perhaps as "
                                 "this machine has too little memory",
                                 t->kind == LLM_MEDIA_IMAGE ? "an image"
                                                            : "a sound");
        }

        return llm_media_refuse(t->kind, LLM_MEDIA_BROKEN, err, "its decoder "
                                "crashed (signal %u): the file may be "
                                "damaged, or an attack",
                                (unsigned) end.value);

    case LLM_MEDIA_NO_FORK:
        return llm_fail_with(err, 503, NULL, NULL, "no process for a decoder: "
                             "%s", strerror((int) end.value));

    case LLM_MEDIA_OTHER:
        *stuck = 1;

        return llm_fail(err, "llm-media is of another version than this "
                        "program or module: restart nginx after an upgrade");

    default:
        return llm_media_refuse(t->kind, LLM_MEDIA_BROKEN, err, "its decoder "
                                "ended without a result (status %u)",
                                (unsigned) end.value);
    }
}


int
llm_media_talk(llm_media_talk_t *t, int *stuck, llm_err_t *err)
{
    int    rc;
    char  *buf;

    /* llm-media ends a job in time; this is for the case that it does not */
    t->deadline = llm_now_us() + (uint64_t) t->limits->timeout * 1000
                  + LLM_MEDIA_GRACE;

    buf = malloc(LLM_MEDIA_FRAME);

    if (buf == NULL) {
        return llm_fail_with(err, 503, NULL, NULL,
                             "no memory for a decoder's result");
    }

    rc = llm_media_send_all(t, err);

    if (rc == LLM_OK || rc == LLM_MEDIA_GONE) {
        rc = llm_media_take_all(t, buf, err);
    }

    free(buf);

    if (rc == LLM_MEDIA_UNWANTED) {
        return llm_media_unwanted(err);
    }

    return rc == LLM_MEDIA_LATE || rc == LLM_MEDIA_GONE
           ? llm_media_ended(t, stuck, err) : rc;
}
