/*
 * A cursor in an open file, for headers: reads with pread(), since a page of a
 * mapping may be unreadable.
 */

#include "engine/base/file.h"
#include "engine/file/internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>


int
llm_bytes_open(const char *path, int header, llm_gguf_source_t *src, int *fd,
    llm_err_t *err)
{
    struct stat  st;

    memset(src, 0, sizeof(*src));

    *fd = llm_file_open(path, err);
    if (*fd == -1) {
        return LLM_ERROR;
    }

    src->name = strdup(path);

    if (src->name == NULL || fstat(*fd, &st) == -1) {
        (void) llm_fail(err, "%s: %s", path, strerror(errno));
        goto failed;
    }

    if (st.st_size == 0) {
        (void) llm_fail(err, "%s: the file is empty", path);
        goto failed;
    }

    src->len = (size_t) st.st_size;
    src->changed = (uint64_t) st.st_mtim.tv_sec * 1000000000
                   + (uint64_t) st.st_mtim.tv_nsec;

    if (header) {
        return LLM_OK;
    }

    src->map = llm_map_open(*fd, src->len, path, err);

    if (src->map) {
        return LLM_OK;
    }

failed:

    llm_gguf_source_free(src);
    (void) close(*fd);

    return LLM_ERROR;
}


/* fills the buffer from b->pos on */

static int
llm_bytes_fill(llm_bytes_t *b, const char *field)
{
    ssize_t  n;

    do {
        n = pread(b->fd, b->buf, sizeof(b->buf), (off_t) b->pos);
    } while (n == -1 && errno == EINTR);

    if (n == -1) {
        return llm_fail(b->err, "%s: read: %s", b->name, strerror(errno));
    }

    if (n == 0) {
        return llm_fail(b->err, "%s: %s: the file was truncated", b->name,
                        field);
    }

    b->at = b->pos;
    b->n = (size_t) n;

    return LLM_OK;
}


int
llm_bytes_read(llm_bytes_t *b, void *out, size_t n, const char *field)
{
    char    *p = out;
    size_t   part;

    if (n > b->len - b->pos) {
        return llm_fail(b->err, "%s: %s: %zu bytes at %zu of a file of %zu: "
                        LLM_FILE_DAMAGED, b->name, field, n, b->pos, b->len);
    }

    if (p == NULL) {
        b->pos += n;
        return LLM_OK;
    }

    while (n) {
        if ((b->pos < b->at || b->pos >= b->at + b->n)
            && llm_bytes_fill(b, field) != LLM_OK)
        {
            return LLM_ERROR;
        }

        part = llm_min(n, b->at + b->n - b->pos);
        memcpy(p, b->buf + (b->pos - b->at), part);
        p += part;
        b->pos += part;
        n -= part;
    }

    return LLM_OK;
}


int
llm_bytes_i32(llm_bytes_t *b, int32_t *v, const char *field)
{
    return llm_bytes_read(b, v, sizeof(*v), field);
}


const char *
llm_folder_path(char *out, const char *path, const char *name)
{
    int  n;

    n = snprintf(out, LLM_FOLDER_PATH, "%s/%s", path, name);

    return n > 0 && n < LLM_FOLDER_PATH ? out : NULL;
}
