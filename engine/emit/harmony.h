/*
 * Marks and headers of the harmony format, which harmony.c reads answers by.
 */

#ifndef LLM_HARMONY_H
#define LLM_HARMONY_H

#include "engine/emit/answer_internal.h"

/* no mark is longer */
#define LLM_HARMONY_MARK  ((size_t) 13)

typedef enum {
    LLM_HARMONY_START = 0,
    LLM_HARMONY_CHANNEL,
    LLM_HARMONY_CONSTRAIN,
    LLM_HARMONY_MESSAGE,
    LLM_HARMONY_END,
    LLM_HARMONY_CALL,
    LLM_HARMONY_RETURN,
    LLM_HARMONY_NONE,
    LLM_HARMONY_PART                    /* the text ends in one */
} llm_harmony_mark_t;

extern const llm_str_t  llm_harmony_marks[];

typedef struct {
    size_t     len;                     /* with the mark of the message */
    int        analysis;
    int        channel;                 /* there is one */
    llm_str_t  to;                      /* "": to nobody */
} llm_harmony_header_t;

/* which one begins there */
llm_harmony_mark_t llm_harmony_mark(const char *p, size_t n);
/* the first of these words is that of a channel: 1, 2: analysis */
int llm_harmony_channel(llm_str_t s);
/* LLM_OK; LLM_MORE: the text ends before the header does; LLM_ERROR: it is
   none; what was read of it is in *h in any case */
int llm_harmony_read(llm_str_t s, llm_harmony_header_t *h);
/* does a header begin here without a mark?  1; 0: no; -1: it may */
int llm_harmony_begins(llm_str_t s);
/* is all that has come of a header what headers have, and nothing else? */
int llm_harmony_plain_header(llm_str_t s);

#endif /* LLM_HARMONY_H */
