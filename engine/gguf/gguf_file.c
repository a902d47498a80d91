/*
 * Gets the bytes of a GGUF file and of the other parts of its model: the whole
 * file mapped, for an engine, or only the header read into memory; see gguf.h.
 */

#include "engine/gguf/gguf_internal.h"

#include <errno.h>
#include <unistd.h>

/* bytes of a header that are read first, and doubled until they suffice; the
   most that are read */
#define LLM_GGUF_HEAD      ((size_t) 1 << 20)
#define LLM_GGUF_HEAD_MAX  ((size_t) 256 << 20)


static llm_gguf_t *
llm_gguf_map(const char *path, llm_err_t *err)
{
    int               fd, rc;
    llm_gguf_t       *g;
    llm_gguf_stat_t   st;

    fd = llm_gguf_open_path(path, &st, err);
    if (fd == -1) {
        return NULL;
    }

    g = llm_gguf_create(path, err);

    /* an empty file cannot be mapped */

    if (g && st.len) {
        g->mapping = llm_map_open(fd, st.len, path, err);
    }

    (void) close(fd);

    if (g == NULL || (st.len && g->mapping == NULL)) {
        llm_gguf_close(g);
        return NULL;
    }

    g->data = st.len ? llm_map_data(g->mapping) : "";
    g->len = st.len;
    g->head = st.len;
    g->changed = st.changed;

    rc = llm_gguf_parse(g, err);

    /* if pages were unreadable, that is the reason */

    if (llm_gguf_intact(g, err) != LLM_OK || rc != LLM_OK) {
        llm_gguf_close(g);
        return NULL;
    }

    return g;
}


/* reads more of the file into g->owned, which has g->head bytes, until it has
   n */

static int
llm_gguf_more(llm_gguf_t *g, int fd, size_t n, llm_err_t *err)
{
    char     *p;
    ssize_t   got;

    if (n > LLM_GGUF_HEAD_MAX) {
        return llm_fail(err, "%s: its header is longer than %zu MiB", g->name,
                        LLM_GGUF_HEAD_MAX >> 20);
    }

    p = realloc(g->owned, n + 1);
    if (p == NULL) {
        return llm_fail(err, "%s: no memory for its header", g->name);
    }

    g->owned = p;
    g->data = p;

    while (g->head < n) {
        got = pread(fd, p + g->head, n - g->head, (off_t) g->head);

        if (got == -1 && errno == EINTR) {
            continue;
        }

        if (got == -1) {
            return llm_fail(err, "%s: read: %s", g->name, strerror(errno));
        }

        if (got == 0) {
            return llm_fail(err, "%s: read: the file was truncated", g->name);
        }

        g->head += (size_t) got;
    }

    return LLM_OK;
}


static llm_gguf_t *
llm_gguf_read_head(const char *path, llm_err_t *err)
{
    int               fd, rc;
    size_t            n;
    llm_err_t         why;
    llm_gguf_t       *g;
    llm_gguf_stat_t   st;

    fd = llm_gguf_open_path(path, &st, err);
    if (fd == -1) {
        return NULL;
    }

    g = llm_gguf_create(path, err);
    rc = g ? LLM_SHORT : LLM_ERROR;

    /* what a part of the header lacks is no error: err stays as it was */

    for (n = LLM_GGUF_HEAD; rc == LLM_SHORT; n *= 2) {
        llm_gguf_forget(g);
        g->len = st.len;

        rc = llm_gguf_more(g, fd, llm_min(n, st.len), err);

        if (rc == LLM_OK) {
            rc = llm_gguf_parse(g, &why);

            if (rc == LLM_ERROR) {
                *err = why;
            }
        }
    }

    (void) close(fd);

    if (rc != LLM_OK) {
        llm_gguf_close(g);
        return NULL;
    }

    return g;
}


static llm_gguf_t *
llm_gguf_open_all(const char *path, llm_gguf_open_pt open, llm_err_t *err)
{
    llm_gguf_t  *g;

    g = open(path, err);

    if (g && llm_gguf_join(g, open, err) != LLM_OK) {

        /* if pages were unreadable, that is the reason */

        (void) llm_gguf_intact(g, err);
        llm_gguf_close(g);
        return NULL;
    }

    return g;
}


llm_gguf_t *
llm_gguf_open(const char *path, llm_err_t *err)
{
    return llm_gguf_open_all(path, llm_gguf_map, err);
}


llm_gguf_t *
llm_gguf_open_header(const char *path, llm_err_t *err)
{
    return llm_gguf_open_all(path, llm_gguf_read_head, err);
}


/* this error may end the step of a running model and reach its clients, so the
   message has the file's name without its folder */

int
llm_gguf_intact(const llm_gguf_t *g, llm_err_t *err)
{
    size_t       i;
    const char  *slash;

    if (g->mapping && !llm_map_intact(g->mapping)) {
        slash = strrchr(g->name, '/');

        return llm_fail_with(err, 503, LLM_FILE_ERROR, NULL, "%s: a page "
                             "could not be read (the file was truncated or "
                             "its disk failed)", slash ? slash + 1 : g->name);
    }

    for (i = 0; i < g->n_parts; i++) {
        if (llm_gguf_intact(g->parts[i], err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
