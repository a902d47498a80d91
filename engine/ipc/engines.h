/*
 * The engines of one nginx, across reloads and binary upgrades.  The table
 * tells which live engines are older than another one: they hold memory that
 * will become free.
 *
 * The table is in shared memory that outlives configurations, or in a file
 * that the masters of one pid file map (llm_engines_map()).  An engine adds
 * an entry before it loads anything and removes it at its end; entries of
 * dead processes are ignored and used again.
 */

#ifndef LLM_ENGINES_H
#define LLM_ENGINES_H

#include "engine/llm.h"

#define LLM_ENGINES_MAX  64

/* adds this process's engine and returns its index; UINT32_MAX: the table is
   full, other engines do not see this one */
uint32_t llm_engines_enter(llm_engines_t *t);
/* t may be NULL, place UINT32_MAX */
void llm_engines_leave(llm_engines_t *t, uint32_t place);
/* number of live engines that entered before this one; t may be NULL */
uint32_t llm_engines_older(llm_engines_t *t, uint32_t place);
/* number of live engines that entered after that of a process; 0 if the process
   has none */
uint32_t llm_engines_newer(llm_engines_t *t, int32_t pid);

#endif /* LLM_ENGINES_H */
