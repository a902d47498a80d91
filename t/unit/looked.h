/*
 * What all alignment heads of a Whisper model look at while tokens are
 * computed, for tests: [n_align][n][n_audio_ctx].
 */

#ifndef LLM_UNIT_LOOKED_H
#define LLM_UNIT_LOOKED_H

#include "engine/model/whisper.h"


static inline int
looked(llm_whisper_t *w, const llm_whisper_rows_t *r, float *weights,
    llm_err_t *err)
{
    int                        rc;
    float                     *queries;
    uint32_t                   at, i;
    const llm_whisper_info_t  *info = llm_whisper_info(w);

    at = 0;
    queries = malloc(llm_whisper_queries(w, r->n) * sizeof(float));

    do {
        rc = llm_whisper_look(w, r, &at, queries, err);
    } while (rc == LLM_MORE);

    for (i = 0; rc == LLM_OK && i < info->n_align; i++) {
        llm_whisper_weigh(w, r, i, queries,
                          weights + (size_t) i * r->n * info->n_audio_ctx);
    }

    free(queries);

    return rc;
}

#endif /* LLM_UNIT_LOOKED_H */
