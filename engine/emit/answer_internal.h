/*
 * The state of the reader of an answer, which its files share.
 */

#ifndef LLM_ANSWER_INTERNAL_H
#define LLM_ANSWER_INTERNAL_H

#include "engine/emit/answer.h"
#include "engine/emit/loose.h"

typedef enum {
    LLM_STATE_START = 1,                /* beginning of the answer */
    LLM_STATE_FRESH,                    /* after a mark, no text yet */
    LLM_STATE_ENDED,                    /* the same, after the end of content */
    LLM_STATE_AFTER,                    /* the same, after a call */
    LLM_STATE_REASONING,
    LLM_STATE_CONTENT,
    LLM_STATE_OVER                      /* the turn has ended */
} llm_state_t;

struct llm_answer_s {
    llm_answer_opts_t    o;
    llm_answer_put_pt    put;
    void                *data;

    llm_state_t          state;
    llm_buf_t            text;          /* text not yet handed out */
    size_t               pos;           /* bytes of text that have been read */
    size_t               base;          /* offset of text in all pushed text;
                                           space_at and at are offsets in that,
                                           too */
    size_t               space_at;      /* offset of space */
    size_t               at;            /* offset of the text that is being
                                           handed out */
    llm_buf_t            space;         /* white space before pos that may
                                           belong to the next mark */
    int                  lead;          /* 1: the next white space belongs to
                                           the mark before it */
    int                  open;          /* pair of marks of REASONING */
    uint32_t             ticks;         /* backticks right before pos */
    uint32_t             spans;         /* backticks earlier in the line */
    int                  fenced;        /* 1: pos is in a block of code */

    llm_call_t           call;
    int                  calling;
    int                  whole;         /* 1: the call is complete, but in
                                           reasoning that may still be closed */
    size_t               close;         /* offset where the closing mark is
                                           looked for */
    uint32_t             entry;         /* index of the entry, among those of
                                           all forms, that is tried at pos:
                                           first strictly, then loosely */
    size_t               failed;        /* furthest offset that a failed call
                                           has reached */
    uint32_t             n_calls;
    const llm_form_t    *form;          /* form of the last call */
    int                  unended;       /* 1: the last call had no end mark;
                                           one that comes belongs to it */

    llm_live_t           live;          /* progress of a call in o.form */
    int                  named;         /* the tool's name was handed out */
    uint32_t             n_live;        /* calls handed out of the list that is
                                           being read */
    llm_buf_t            piece;         /* piece of the call's arguments */
    int                  told;          /* 1: llm_answer_begun() has reported
                                           the call at pos */
};

/* answer_text.c */
/* moves pos past a mark or a call */
void llm_answer_enter(llm_answer_t *a, llm_state_t state, size_t len);
/* hands out text of the current part */
int llm_answer_put(llm_answer_t *a, const char *p, size_t n, size_t at);
/* offset of p, which points into a->text, in all pushed text */
size_t llm_answer_place(const llm_answer_t *a, const char *p);
/* hands out text that is no mark, which begins at that offset */
int llm_answer_plain(llm_answer_t *a, const char *p, size_t n, size_t at);

/* answer_entry.c */
/* tries to begin a call at a->pos.  LLM_OK: a->calling tells whether one has
   begun; LLM_MORE; last: LLM_TEXT_... */
int llm_answer_try(llm_answer_t *a, llm_str_t rest, int last);
/* begins a call of this form at rest.data[at] */
void llm_answer_start(llm_answer_t *a, const llm_form_t *form, size_t at,
    llm_call_step_t step, int bare);

/* answer_calls.c */
/* continues the call that is being tried */
int llm_answer_go(llm_answer_t *a, llm_str_t rest, int last);
/* ends the call after len bytes; rc: LLM_OK, or LLM_STOPPED after the last
   call */
int llm_answer_called(llm_answer_t *a, size_t len, int rc);
/* reads body, the arguments of a call of this tool, loosely; as
   llm_loose_body() */
int llm_answer_body(llm_answer_t *a, const llm_tool_t *tool, llm_str_t body,
    int last);

/* harmony.c: reads one mark, header, call or run of text of an answer that is
   written in messages; LLM_MORE */
int llm_harmony_next(llm_answer_t *a, llm_str_t rest, int last);

#endif /* LLM_ANSWER_INTERNAL_H */
