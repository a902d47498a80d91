/*
 * Defaults of the sampling parameters; see sampling.h.
 */

#include "engine/base/sampling.h"

#include <string.h>


void
llm_sampling_default(llm_sampling_t *s)
{
    memset(s, 0, sizeof(llm_sampling_t));

    s->temperature = 1;
    s->top_p = 1;
    s->typical_p = 1;
    s->repetition_penalty = 1;
    s->n_logprobs = -1;
}
