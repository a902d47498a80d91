/*
 * Marks and headers of the harmony format, which harmony.c reads answers by.
 */

#ifndef LLM_HARMONY_H
#define LLM_HARMONY_H

#include "engine/emit/answer_internal.h"

/* longest mark */
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
    LLM_HARMONY_PART                    /* the text ends within a mark */
} llm_harmony_mark_t;

extern const llm_str_t  llm_harmony_marks[];

typedef struct {
    size_t     len;                     /* bytes, including the mark of the
                                           message */
    int        analysis;
    int        channel;                 /* 1: the header has a channel */
    llm_str_t  to;                      /* recipient; "": none */
} llm_harmony_header_t;

/* the mark at the beginning of p */
llm_harmony_mark_t llm_harmony_mark(const char *p, size_t n);
/* is the first of these words a channel? 2: analysis, 1: another channel, 0:
   no */
int llm_harmony_channel(llm_str_t s);
/* LLM_OK; LLM_MORE: the text ends within the header; LLM_ERROR: it is no
   header.  *h has what was read in any case */
int llm_harmony_read(llm_str_t s, llm_harmony_header_t *h);
/* does a header without a mark begin here? 1: yes; 0: no; -1: possibly */
int llm_harmony_begins(llm_str_t s);
/* does the header, as far as it has come, contain only what headers have? */
int llm_harmony_plain_header(llm_str_t s);

#endif /* LLM_HARMONY_H */
