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


void
llm_sampling_adopt(llm_sampling_t *s, const llm_sampling_t *of)
{
    uint32_t  take;

    take = of->said & ~s->said;

#define LLM_PARAM(param, type, otherwise, least, most)                       \
    if (take & (1u << LLM_PARAM_ID_##param)) {                               \
        s->param = of->param;                                                \
    }
#include "engine/base/sampling.def"

    s->said |= take;
}
