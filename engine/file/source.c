/*
 * Chooses the reader of a model's file or folder; see source.h.  What no reader
 * knows is left to GGUF's, whose messages say what it is.
 */

#include "engine/base/file.h"
#include "engine/file/internal.h"

#include <unistd.h>

#define LLM_SOURCE_HEAD  8


static int
llm_source_is_bin(const char *path)
{
    int      fd;
    char     head[LLM_SOURCE_HEAD];
    ssize_t  n;

    fd = llm_file_open(path, NULL);

    if (fd == -1) {
        return 0;
    }

    n = pread(fd, head, sizeof(head), 0);
    (void) close(fd);

    return n == (ssize_t) sizeof(head)
           && llm_whisper_bin_is(head, sizeof(head));
}


static llm_gguf_t *
llm_source_read(const char *path, int header, llm_err_t *err)
{
    if (llm_folder_is(path)) {
        return llm_folder_open(path, header, err);
    }

    if (llm_source_is_bin(path)) {
        return llm_whisper_bin_open(path, header, err);
    }

    return header ? llm_gguf_open_header(path, err)
                  : llm_gguf_open(path, err);
}


llm_gguf_t *
llm_source_open(const char *path, llm_err_t *err)
{
    return llm_source_read(path, 0, err);
}


llm_gguf_t *
llm_source_open_header(const char *path, llm_err_t *err)
{
    return llm_source_read(path, 1, err);
}
