/*
 * What emit.c, emit_event.c and emit_prob.c share.
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
    uint32_t             said_from;     /* what of these is content: until it
                                           has given some, all */
    uint32_t             said_to;
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

/* emit_prob.c */
size_t llm_emit_prob_size(const llm_emit_prob_t *prob);
/* adds a token's probability, before its bytes are given to the answer */
void llm_emit_note(llm_emit_t *e, const llm_sampled_t *token, size_t n,
    uint32_t flags);
/* the tokens that have given so many bytes of content, from at on */
void llm_emit_mark(llm_emit_t *e, size_t at, size_t n);
/* drops the tokens that have turned out to be none of content; what was given
   before `decided` is known */
void llm_emit_settle(llm_emit_t *e, size_t decided);
/* a stop string has ended the content there */
void llm_emit_cut(llm_emit_t *e, size_t to);
/* tokens that a stop string has cut off count, but have no text */
void llm_emit_mute_cut(llm_emit_t *e);
/* what of a token is content; all of one that might have been drawn */
llm_str_t llm_emit_prob_text(const llm_emit_t *e, const llm_emit_prob_t *prob,
    int32_t id);

#endif /* LLM_EMIT_INTERNAL_H */
