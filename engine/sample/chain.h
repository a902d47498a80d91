/*
 * The chain of stages that a row of logits goes through to a token; the
 * stages are rows of engine/base/sampling.def.
 */

#ifndef LLM_SAMPLE_CHAIN_H
#define LLM_SAMPLE_CHAIN_H

#include "engine/sample/stages.h"

/* the stages that the parameters ask for: bits of llm_stage_t */
uint32_t llm_chain_on(const llm_sampling_t *p);

/* does one of these look at the tokens that were there before? */
int llm_chain_penalises(uint32_t on);

/* is the largest logit taken, whatever cuts there are? */
int llm_chain_takes_best(const llm_sampling_t *p);

/* can a device's draw do all of them?  best: the largest logit is taken */
int llm_chain_on_device(uint32_t on, int best);

/* the stages that change logits; c->row is scratch->row */
void llm_chain_edit(llm_chain_t *c);

/* the cuts, and the id at u, 0 <= u < 1, of the mass that they leave; -1: the
   row, or its scale, is not finite */
int32_t llm_chain_draw(llm_chain_t *c, double u);

#endif /* LLM_SAMPLE_CHAIN_H */
