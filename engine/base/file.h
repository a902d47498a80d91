/*
 * Reading files that a configuration or a command line names.  Only regular
 * files are read: a FIFO would wait for a writer, and a device or a socket is
 * always a mistake.
 */

#ifndef LLM_FILE_H
#define LLM_FILE_H

#include "engine/base/base.h"

/* a descriptor for reading; -1 and *err: not opened */
int llm_file_open(const char *path, llm_err_t *err);
/* adds the file's bytes to b; LLM_ERROR and *err: cannot be read, or larger
   than b's limit */
int llm_file_read(const char *path, llm_buf_t *b, llm_err_t *err);
/* the same for an open file; path is for err only */
int llm_file_read_fd(int fd, const char *path, llm_buf_t *b, llm_err_t *err);

#endif /* LLM_FILE_H */
