/*
 * A team: several devices of one backend that are one device for the model.
 *
 * Each has some rows of every matrix, hence some columns of every product, in
 * attention some heads of Q, K and V with their pages of the cache, and in a
 * recurrent layer some heads with their states.  What an operation needs whole,
 * as the input of a product, is collected from all.
 *
 * Invariant: every element of a result is computed on one device, by the very
 * operation that would compute it on a single one.  So the bits are those of a
 * single device.
 */

#ifndef LLM_TEAM_H
#define LLM_TEAM_H

#include "kernels/kernels.h"

/*
 * Makes a team of 2 to LLM_MAX_DEVICES models' devices, on which nothing was
 * created yet.  They are the caller's, who closes them after (*team)->ops->
 * close(*team); until then only the team calls their operations.  An error if
 * they cannot be a team.
 */
int llm_team_create(llm_exec_t *const *execs, uint32_t n, llm_exec_t **team,
    llm_err_t *err);

#endif /* LLM_TEAM_H */
