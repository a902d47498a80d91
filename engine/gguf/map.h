/*
 * Files mapped for reading, whose pages may turn out not to be readable.
 *
 * Reading a page after the end of a truncated file, or from a failing disk,
 * raises SIGBUS.  A handler, installed with the first mapping, puts a page of
 * zeros there and marks the mapping, and the reader continues; it must call
 * llm_map_intact() before it relies on what it read.  Any other SIGBUS is
 * handled as before.  A thread that reads a mapping must not block the
 * signal.
 *
 * The caller owns a mapping until llm_map_close().
 */

#ifndef LLM_MAP_H
#define LLM_MAP_H

#include "engine/base/base.h"

typedef struct llm_map_s  llm_map_t;

/* name is for messages; the caller may close fd */
llm_map_t *llm_map_open(int fd, size_t len, const char *name,
    llm_err_t *err);
void llm_map_close(llm_map_t *m);

const char *llm_map_data(const llm_map_t *m);
/* whether all pages have been readable so far; from any thread */
int llm_map_intact(const llm_map_t *m);

/*
 * For bytes that will not be read for long: their pages are no longer part of
 * the process's memory, and come back when they are read.  Bytes outside all
 * mappings are left alone.
 */
void llm_map_release(const void *p, size_t size);

#endif /* LLM_MAP_H */
