/*
 * The part of a step that keeps rows for a head that drafts: keep.c.
 */

#ifndef LLM_MODEL_KEEP_H
#define LLM_MODEL_KEEP_H

#include "engine/model/blocks.h"

/* before a layer: keeps its input, if that is wanted */
void llm_keep_input(llm_model_t *m, uint32_t layer);
/* do more rows than those with results go through the end of the last layer? */
int llm_keep_all(const llm_model_t *m);
/* all rows of p go through the blocks of the last layer after `block`, and
   their states are kept.  The rows with results were taken from p->x before */
void llm_keep_rest(const llm_pass_t *p, uint32_t block);
/* keeps the states of the rows with results, if these are all */
void llm_keep_results(llm_model_t *m);

#endif /* LLM_MODEL_KEEP_H */
