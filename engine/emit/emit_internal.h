/*
 * What emit.c, emit_event.c and emit_prob.c share.
 */

#ifndef LLM_EMIT_INTERNAL_H
#define LLM_EMIT_INTERNAL_H

#include "engine/emit/emit.h"

/* most text of one event */
#define LLM_EMIT_TEXT    8192

/* a token whose probability has not been sent; n_top candidates follow */
typedef struct {
    int32_t              id;
    float                logprob;
    uint32_t             start;         /* offset of its text in the choice's */
    uint32_t             end;
    uint32_t             from;          /* offset of its bytes in all text
                                           given to the answer; a token without
                                           bytes has the offset of the next
                                           one */
    uint32_t             to;
    uint32_t             said_from;     /* range of these bytes that is
                                           content: all of them, until some
                                           have become content */
    uint32_t             said_to;
    uint32_t             flags;         /* LLM_PROB_... */
    uint32_t             n_top;
} llm_emit_prob_t;

/* the token has given content */
#define LLM_PROB_CONTENT  1
/* the token has no text: it has ended the choice, or a stop string has cut it
   off */
#define LLM_PROB_MUTE     2
/* a control token among others: none of its text is content */
#define LLM_PROB_SILENT   4
/* the space before the text's first word is not part of the text */
#define LLM_PROB_FIRST    8

/* emit_prob.c */
size_t llm_emit_prob_size(const llm_emit_prob_t *prob);
/* adds a token's probability, before the token's bytes are given to the
   answer */
void llm_emit_note(llm_emit_t *e, const llm_sampled_t *token, size_t n,
    uint32_t flags);
/* marks the tokens that have given n bytes of content at offset `at` */
void llm_emit_mark(llm_emit_t *e, size_t at, size_t n);
/* drops tokens that turned out not to be content; bytes before `decided` are
   known */
void llm_emit_settle(llm_emit_t *e, size_t decided);
/* a stop string has ended the content at offset `to` */
void llm_emit_cut(llm_emit_t *e, size_t to);
/* tokens that a stop string has cut off count, but lose their text */
void llm_emit_mute_cut(llm_emit_t *e);
/* the part of a token's text that is content; the whole text if the token is
   another candidate */
llm_str_t llm_emit_prob_text(const llm_emit_t *e, const llm_emit_prob_t *prob,
    int32_t id);

#endif /* LLM_EMIT_INTERNAL_H */
