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
    uint32_t             from;          /* where its bytes begin in all that the
                                           answer was given; a token without any
                                           has the next one */
    uint32_t             to;
    uint32_t             flags;         /* LLM_PROB_... */
    uint32_t             n_top;
} llm_emit_prob_t;

/* it has given content */
#define LLM_PROB_CONTENT  1
/* it has no text: it has ended the choice, or a stop string has cut it off */
#define LLM_PROB_MUTE     2
/* a control token among others: none of its text is content */
#define LLM_PROB_SILENT   4
/* the space before the text's first word is none of it */
#define LLM_PROB_FIRST    8

size_t llm_emit_prob_size(const llm_emit_prob_t *prob);

#endif /* LLM_EMIT_INTERNAL_H */
