/*
 * Counts in a configuration or on a command line: "8192", "8k" or "2m".  The
 * suffixes are those of nginx's sizes, 1024 and 1024 * 1024.
 */

#ifndef LLM_COUNT_H
#define LLM_COUNT_H

#include "engine/base/base.h"

/* LLM_ERROR: s is not a count, or is above `most` */
int llm_count(const char *s, size_t len, uint64_t most, uint64_t *n);

#endif /* LLM_COUNT_H */
