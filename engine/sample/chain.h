/*
 * The chain of stages that a row of logits goes through to a token; the
 * stages are rows of engine/base/sampling.def.
 */

#ifndef LLM_SAMPLE_CHAIN_H
#define LLM_SAMPLE_CHAIN_H

#include "engine/sample/stages.h"

/* the stages that the parameters turn on: bits of llm_stage_t */
uint32_t llm_chain_on(const llm_sampling_t *p);

/* does one of these depend on the tokens so far? */
int llm_chain_penalises(uint32_t on);

/* and on their order? */
int llm_chain_remembers(uint32_t on);

/* is always the largest logit taken? */
int llm_chain_takes_best(const llm_sampling_t *p);

/* can a device draw with all of these stages?  best: the largest logit is
   taken */
int llm_chain_on_device(uint32_t on, int best);

/* the stages that change logits; c->row is scratch->row */
void llm_chain_edit(llm_chain_t *c);

/* cuts, and returns the id at the share u, 0 <= u < 1, of the remaining mass;
   -1: the row, or its scale, is not finite */
int32_t llm_chain_draw(llm_chain_t *c, double u);

#endif /* LLM_SAMPLE_CHAIN_H */
