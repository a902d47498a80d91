/*
 * What emit.c and emit_event.c share.
 */

#ifndef LLM_EMIT_INTERNAL_H
#define LLM_EMIT_INTERNAL_H

#include "engine/emit/emit.h"

/* text of one event, at most */
#define LLM_EMIT_TEXT    8192

/* a token whose logprobs wait for its text; n_top candidates follow */
typedef struct {
    int32_t              id;
    float                logprob;
    uint32_t             start;         /* of its text in the choice's */
    uint32_t             end;
    uint32_t             n_top;
} llm_emit_prob_t;

#endif /* LLM_EMIT_INTERNAL_H */
