/*
 * Defaults of the sampling parameters; see sampling.h.
 */

#include "engine/base/sampling.h"

#include <string.h>


void
llm_sampling_default(llm_sampling_t *s)
{
    memset(s, 0, sizeof(llm_sampling_t));

#define LLM_PARAM(name, type, otherwise, least, most)  s->name = otherwise;
#include "engine/base/sampling.def"

    s->n_logprobs = -1;
}
