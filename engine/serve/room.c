/*
 * Which model gives its memory up for another one whose load lacks it.
 */

#include "engine/serve/requests.h"


static int
llm_instance_yields(const llm_instance_t *m)
{
    return (m->conf.lazy || m->conf.idle_s) && m->state == LLM_MODEL_READY
           && !m->ends && m->beside == NULL;
}


int
llm_engine_spare(llm_engine_t *e, const llm_instance_t *but,
    llm_instance_t **spare)
{
    int              rc;
    uint32_t         i;
    llm_instance_t  *m;

    rc = LLM_ABSENT;
    *spare = NULL;

    for (i = 0; i < e->n_models; i++) {
        m = e->models[i];

        if (m == but || !llm_instance_yields(m)) {
            continue;
        }

        rc = LLM_FULL;

        if (m->n_reqs == 0
            && (*spare == NULL || m->used_us < (*spare)->used_us))
        {
            *spare = m;
        }
    }

    return *spare ? LLM_OK : rc;
}
