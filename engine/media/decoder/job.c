/*
 * Reads the frames of a job, calls the decoder of its kind and writes the
 * frames of its result; see job.h and wire.h.
 */

#include "engine/media/decoder/job.h"
#include "engine/media/decoder/decode.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LLM_JOB_FIRST  65536            /* bytes for a file at first */


uint64_t
llm_decode_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}


static int
llm_job_read(int fd, void *buf, size_t len)
{
    char     *p;
    ssize_t   n;

    for (p = buf; len; p += n, len -= (size_t) n) {
        n = read(fd, p, len);

        if (n < 0 && errno == EINTR) {
            n = 0;

        } else if (n <= 0) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_job_write(int fd, const void *buf, size_t len)
{
    ssize_t      n;
    const char  *p;

    for (p = buf; len; p += n, len -= (size_t) n) {
        n = write(fd, p, len);

        if (n < 0 && errno == EINTR) {
            n = 0;

        } else if (n <= 0) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_job_put(void *ctx, uint32_t type, const void *data, size_t len)
{
    int                fd;
    llm_media_frame_t  f;

    fd = *(int *) ctx;
    f.type = type;
    f.len = (uint32_t) len;

    return llm_job_write(fd, &f, sizeof(f)) == LLM_OK
           ? llm_job_write(fd, data, len) : LLM_ERROR;
}


/* reads the frames DATA of the file into *data up to END */

static int
llm_job_file(int fd, llm_decode_t *d, uint8_t **data)
{
    size_t              cap, want;
    uint8_t            *p;
    llm_media_frame_t   f;

    for (cap = 0; /* void */ ; d->len += f.len) {
        if (llm_job_read(fd, &f, sizeof(f)) != LLM_OK
            || (f.type != LLM_MEDIA_DATA && f.type != LLM_MEDIA_END)
            || f.len > LLM_MEDIA_FRAME)
        {
            return LLM_ERROR;
        }

        if (f.type == LLM_MEDIA_END) {
            return LLM_OK;
        }

        want = d->len + f.len;

        if (want > d->limits->bytes) {
            return llm_decode_fail(d, LLM_MEDIA_TOO_LARGE,
                                   "the file has more than %llu bytes",
                                   (unsigned long long) d->limits->bytes);
        }

        if (want > cap) {
            cap = llm_max(want, cap ? cap * 2 : LLM_JOB_FIRST);

            p = realloc(*data, cap);
            if (p == NULL) {
                return llm_decode_fail(d, LLM_MEDIA_NO_MEMORY,
                                       "no memory for the file");
            }

            *data = p;
        }

        if (llm_job_read(fd, *data + d->len, f.len) != LLM_OK) {
            return LLM_ERROR;
        }
    }
}


static int
llm_job_decode(int fd, const llm_media_head_t *head, const char *confined)
{
    int             rc;
    uint8_t        *data;
    llm_decode_t    d;
    llm_decode_pt   decode;

    memset(&d, 0, sizeof(d));
    d.limits = &head->limits;
    d.put = llm_job_put;
    d.ctx = &fd;

    if (confined) {
        return llm_decode_fail(&d, LLM_MEDIA_OURS, "media are not decoded "
                               "here, as a decoder cannot be confined: %s",
                               confined);
    }

    decode = llm_decode_find(head->kind);

    if (decode == NULL) {
        return llm_decode_fail(&d, LLM_MEDIA_UNKNOWN, "this build decodes no "
                               "media of kind %u", (unsigned) head->kind);
    }

    data = NULL;
    rc = llm_job_file(fd, &d, &data);

    if (rc == LLM_OK) {
        d.data = data;
        rc = d.len ? decode(&d) : llm_decode_fail(&d, LLM_MEDIA_BROKEN,
                                                  "the file is empty");
    }

    if (rc == LLM_OK) {
        rc = llm_job_put(&fd, LLM_MEDIA_END, NULL, 0);
    }

    free(data);

    return rc;
}


int
llm_job_run(int fd, uint64_t memory, uint32_t seconds)
{
    const char         *why;
    llm_media_head_t    head;
    llm_media_frame_t   f;

    why = NULL;

    if (llm_sandbox_enter(memory, seconds, &why) == LLM_OK) {
        why = NULL;
    }

    if (llm_job_read(fd, &f, sizeof(f)) != LLM_OK
        || f.type != LLM_MEDIA_HEAD || f.len != sizeof(head)
        || llm_job_read(fd, &head, sizeof(head)) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_job_decode(fd, &head, why);
}
