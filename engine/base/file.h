/*
 * Files that a configuration or a command line names.  Only regular files are
 * opened: opening a FIFO would wait for a writer, and a device or a socket is
 * always a mistake.
 */

#ifndef LLM_FILE_H
#define LLM_FILE_H

#include "engine/base/base.h"

/* a descriptor for reading, or -1 */
int llm_file_open(const char *path, llm_err_t *err);
/* adds the file's bytes to b, whose limit is also the limit of the file's
   size */
int llm_file_read(const char *path, llm_buf_t *b, llm_err_t *err);
/* the same of an open one; the path is for err */
int llm_file_read_fd(int fd, const char *path, llm_buf_t *b, llm_err_t *err);

#endif /* LLM_FILE_H */
