/*
 * What the files that read an answer share: its state.
 */

#ifndef LLM_ANSWER_INTERNAL_H
#define LLM_ANSWER_INTERNAL_H

#include "engine/emit/answer.h"
#include "engine/emit/loose.h"

typedef enum {
    LLM_STATE_START = 1,                /* of the answer */
    LLM_STATE_FRESH,                    /* behind a mark, no text yet */
    LLM_STATE_ENDED,                    /* the same, behind the end of
                                           content */
    LLM_STATE_AFTER,                    /* the same, behind a call */
    LLM_STATE_REASONING,
    LLM_STATE_CONTENT,
    LLM_STATE_OVER                      /* the turn has ended */
} llm_state_t;

struct llm_answer_s {
    llm_answer_opts_t    o;
    llm_answer_put_pt    put;
    void                *data;

    llm_state_t          state;
    llm_buf_t            text;          /* not yet handed out */
    size_t               pos;           /* what is read of it */
    size_t               base;          /* where it begins in all text that was
                                           pushed; so do the two below tell */
    size_t               space_at;      /* where space begins */
    size_t               at;            /* where what is being handed out
                                           begins */
    llm_buf_t            space;         /* white space before pos that the next
                                           mark may want */
    int                  lead;          /* the next white space belongs to the
                                           mark before it */
    int                  open;          /* the pair of REASONING */
    uint32_t             ticks;         /* backticks right before pos */
    uint32_t             spans;         /* backticks before it in its line */
    int                  fenced;        /* it is in a block of code */

    llm_call_t           call;
    int                  calling;
    int                  whole;         /* the call is, in reasoning that may
                                           yet be closed */
    size_t               close;         /* where that is looked for */
    uint32_t             entry;         /* the entry, of all of all forms, that
                                           is tried at pos: strictly, then
                                           loosely */
    size_t               failed;        /* the furthest that one came */
    uint32_t             n_calls;
    const llm_form_t    *form;          /* of the last call */
    int                  unended;       /* it had no end, so that one that
                                           comes is its */

    llm_live_t           live;          /* of a call in o.form */
    int                  named;         /* the tool's name was handed out */
    uint32_t             n_live;        /* calls that were, of the one that is
                                           being read */
    llm_buf_t            piece;         /* of its arguments */
    int                  told;          /* llm_answer_begun() has told of the
                                           call at pos */
};

/* answer_text.c */
/* pos moves on, behind a mark or a call */
void llm_answer_enter(llm_answer_t *a, llm_state_t state, size_t len);
/* hands out text of the state */
int llm_answer_put(llm_answer_t *a, const char *p, size_t n, size_t at);
/* where p, in a->text, is in all that was pushed */
size_t llm_answer_place(const llm_answer_t *a, const char *p);
/* text that is no mark, and has come at that place */
int llm_answer_plain(llm_answer_t *a, const char *p, size_t n, size_t at);

/* answer_entry.c */
/* is a call being tried at a->pos?  LLM_OK: a->calling says; LLM_MORE; last:
   LLM_TEXT_... */
int llm_answer_try(llm_answer_t *a, llm_str_t rest, int last);
/* begins one of this form at rest.data[at] */
void llm_answer_start(llm_answer_t *a, const llm_form_t *form, size_t at,
    llm_call_step_t step, int bare);

/* answer_calls.c */
/* goes on with the call that is tried */
int llm_answer_go(llm_answer_t *a, llm_str_t rest, int last);
/* the call ends behind len bytes; rc: LLM_OK, or LLM_STOPPED for the last */
int llm_answer_called(llm_answer_t *a, size_t len, int rc);
/* body is the arguments of a call of this tool, loosely: as
   llm_loose_body() */
int llm_answer_body(llm_answer_t *a, const llm_tool_t *tool, llm_str_t body,
    int last);

/* harmony.c: one mark, one header, one call or a run of text of an answer
   that is written in messages; LLM_MORE */
int llm_harmony_next(llm_answer_t *a, llm_str_t rest, int last);

#endif /* LLM_ANSWER_INTERNAL_H */
