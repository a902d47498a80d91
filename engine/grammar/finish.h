/*
 * Checks and completes a builder's nodes, so that the machine can run them;
 * see finish.c.
 */

#ifndef LLM_FINISH_H
#define LLM_FINISH_H

#include "engine/grammar/internal.h"

/* LLM_ERROR: nothing can match, left recursion, or too large */
int llm_finish(llm_gram_build_t *b, llm_gn_t root, llm_err_t *err);

#endif /* LLM_FINISH_H */
