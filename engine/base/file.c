/*
 * Opening and reading of regular files; see file.h.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define LLM_FILE_PIECE  4096


static const char *
llm_file_mode(mode_t mode)
{
    return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket" : "a device";
}


int
llm_file_open(const char *path, llm_err_t *err)
{
    int          fd;
    struct stat  st;

    fd = open(path, O_RDONLY|O_CLOEXEC|O_NONBLOCK|O_NOCTTY);

    if (fd == -1) {

        /* for a socket; the text of ENXIO would not explain the error */

        if (errno == ENXIO) {
            return llm_fail(err, "%s: a socket or a device, not a regular "
                            "file", path);
        }

        return llm_fail(err, "%s: %s", path, strerror(errno));
    }

    if (fstat(fd, &st) == -1) {
        (void) llm_fail(err, "%s: %s", path, strerror(errno));
        (void) close(fd);
        return -1;
    }

    if (!S_ISREG(st.st_mode)) {
        (void) llm_fail(err, "%s: %s, not a regular file", path,
                        llm_file_mode(st.st_mode));
        (void) close(fd);
        return -1;
    }

    return fd;
}


int
llm_file_read_fd(int fd, const char *path, llm_buf_t *b, llm_err_t *err)
{
    char    *p;
    ssize_t  n;

    for ( ;; ) {
        p = llm_buf_reserve(b, LLM_FILE_PIECE);
        if (p == NULL) {
            return llm_fail(err, "%s: more than %zu MiB", path,
                            b->limit >> 20);
        }

        n = read(fd, p, LLM_FILE_PIECE);

        if (n == -1 && errno == EINTR) {
            continue;
        }

        if (n == -1) {
            return llm_fail(err, "%s: %s", path, strerror(errno));
        }

        if (n == 0) {
            return LLM_OK;
        }

        b->len += n;
        b->data[b->len] = '\0';
    }
}


int
llm_file_read(const char *path, llm_buf_t *b, llm_err_t *err)
{
    int  fd, rc;

    fd = llm_file_open(path, err);
    if (fd == -1) {
        return LLM_ERROR;
    }

    rc = llm_file_read_fd(fd, path, b, err);
    (void) close(fd);

    return rc;
}
