/*
 * The engines of one nginx, over its reloads: who of them lives and is older
 * than another, and so holds memory that will come free.
 *
 * The table is in shared memory that stays when a configuration goes.  An
 * engine enters itself before it loads anything and leaves at its end; what a
 * process that died has left is nobody's.
 */

#ifndef LLM_ENGINES_H
#define LLM_ENGINES_H

#include "engine/llm.h"

#define LLM_ENGINES_MAX  64

/* any process; UINT32_MAX: no place, the engine is nobody's elder */
uint32_t llm_engines_enter(llm_engines_t *t);
void llm_engines_leave(llm_engines_t *t, uint32_t place);
/* how many engines live that entered before this one; t may be NULL */
uint32_t llm_engines_older(llm_engines_t *t, uint32_t place);

#endif /* LLM_ENGINES_H */
