/*
 * What emit.c and emit_event.c share.
 */

#ifndef LLM_EMIT_INTERNAL_H
#define LLM_EMIT_INTERNAL_H

#include "engine/emit/emit.h"

/* most text of one event */
#define LLM_EMIT_TEXT    8192

/* a token whose probability is not sent yet; n_top candidates follow */
typedef struct {
    int32_t              id;
    float                logprob;
    uint32_t             start;         /* where its text begins in the
                                           choice's */
    uint32_t             end;
    uint32_t             n_top;
} llm_emit_prob_t;

#endif /* LLM_EMIT_INTERNAL_H */
