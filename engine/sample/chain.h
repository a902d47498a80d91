/*
 * The chain of stages from a row of logits to a token; the stages are the rows
 * of engine/base/sampling.def.  Nothing is owned here.
 */

#ifndef LLM_SAMPLE_CHAIN_H
#define LLM_SAMPLE_CHAIN_H

#include "engine/sample/stages.h"

/* the stages that the parameters turn on, a bit for each llm_stage_t */
uint32_t llm_chain_on(const llm_sampling_t *p);

/* whether a stage in `on` is a penalty, which depends on the tokens so far */
int llm_chain_penalises(uint32_t on);

/* whether a stage in `on` depends on the order of the tokens so far */
int llm_chain_remembers(uint32_t on);

/* whether the largest logit is always taken */
int llm_chain_takes_best(const llm_sampling_t *p);

/* whether a device can draw with the stages in `on`; best: the largest logit
   is taken, so cuts do not matter */
int llm_chain_on_device(uint32_t on, int best);

/* runs the stages that change logits; c->row is scratch->row */
void llm_chain_edit(llm_chain_t *c);

/* runs the cuts, and returns the id at the share u, 0 <= u < 1, of the
   remaining mass; -1: the row or the scale is not finite */
int32_t llm_chain_draw(llm_chain_t *c, double u);

#endif /* LLM_SAMPLE_CHAIN_H */
