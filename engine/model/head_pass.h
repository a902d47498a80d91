/*
 * The parts of a step that a head has instead of a model's: head_pass.c.
 */

#ifndef LLM_MODEL_HEAD_PASS_H
#define LLM_MODEL_HEAD_PASS_H

#include "engine/model/blocks.h"

/* makes the rows of the residual stream, and of PAIR, from those given */
void llm_head_begin(llm_model_t *m);
/* is the step complete, as it only makes rows of EAGLE3's taps?  Then these are
   its states */
int llm_head_is_made(llm_model_t *m);
/* the states of EAGLE3 and of the assistant, which the next row is made from */
void llm_head_state(llm_model_t *m);

#endif /* LLM_MODEL_HEAD_PASS_H */
