/*
 * Files that a configuration or a command line names.  Only regular ones are
 * opened: to open a FIFO would wait for somebody who writes to it, and a
 * device or a socket is never what was meant.
 */

#ifndef LLM_FILE_H
#define LLM_FILE_H

#include "engine/base/base.h"

/* a descriptor for reading, or -1 */
int llm_file_open(const char *path, llm_err_t *err);
/* adds the file's bytes to b, whose limit is the file's, too */
int llm_file_read(const char *path, llm_buf_t *b, llm_err_t *err);

#endif /* LLM_FILE_H */
