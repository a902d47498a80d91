/*
 * What a model's answer means: splits its text, as it comes, into the parts of
 * a chat answer: reasoning, content, calls of tools.
 *
 * Invariant: the output does not depend on how the text is cut into pieces.  A
 * call is handed out when it is complete, or at the end of the answer, with
 * the arguments that were written so far; text that is no call is handed out
 * as content.  With LLM_ANSWER_SURE, where a grammar keeps calls to their
 * form, a call is handed out as it comes: its name, then pieces of its
 * arguments.  Text that is certainly a mark is never handed out: from the call
 * of an unknown tool only the text between its marks is.  White space next to
 * a mark belongs to the mark.
 *
 * A llm_answer_t owns its buffers; format and tools are shared and outlive it.
 * It holds back the text of the call that is being written, so its memory
 * counts with its request's (llm_answer_bytes()).
 */

#ifndef LLM_ANSWER_H
#define LLM_ANSWER_H

#include "engine/emit/call.h"
#include "engine/llm.h"

typedef struct llm_answer_s  llm_answer_t;

/* takes a piece of a part; returns LLM_OK; LLM_STOPPED: no more is wanted;
   LLM_ERROR */
typedef int (*llm_answer_put_pt)(void *data, llm_part_t part, uint32_t call,
    llm_str_t text);

/* parts that are looked for */
#define LLM_ANSWER_REASONING  1
#define LLM_ANSWER_TOOLS      2
/* reasoning is recognised, but not handed out */
#define LLM_ANSWER_HIDE       4
/* reasoning is not recognised: it stays in the content, with its marks */
#define LLM_ANSWER_MARKED     8
/* the answer ends with its first call */
#define LLM_ANSWER_SINGLE    16
/* a grammar constrains calls to opts.form */
#define LLM_ANSWER_SURE      32

typedef struct {
    const llm_format_t  *format;
    const llm_tools_t   *tools;         /* needed for LLM_ANSWER_TOOLS */
    unsigned             flags;         /* LLM_ANSWER_... */
    int                  open;          /* pair of reasoning that the prompt
                                           opened, see llm_answer_open() */
    const llm_form_t    *form;          /* one of format->forms, in which a
                                           grammar constrains calls; or NULL */
} llm_answer_opts_t;

/* how a call has begun: with the form's open, with its begin, or without a
   mark */
typedef enum {
    LLM_BEGUN_NOT = 0,
    LLM_BEGUN_OPEN,
    LLM_BEGUN_BEGIN,
    LLM_BEGUN_BARE
} llm_begun_t;

/* NULL: no memory; o is copied */
llm_answer_t *llm_answer_create(const llm_answer_opts_t *o,
    llm_answer_put_pt put, void *data);
void llm_answer_free(llm_answer_t *a);

/* LLM_OK; LLM_STOPPED: the answer is over, and later text is dropped; a result
   of put(); LLM_ERROR: no memory */
int llm_answer_push(llm_answer_t *a, llm_str_t text);
/* ends the text; how: LLM_TEXT_DONE if the model has ended its turn, otherwise
   LLM_TEXT_CUT */
int llm_answer_end(llm_answer_t *a, int how);

/*
 * Has a call in opts.form begun?  To be asked between two pushes; each call is
 * reported once.  *rest is the text after the sign of the call's beginning,
 * see llm_answer_sign().  A call without marks has begun when it has the name
 * of a tool; *rest is then the whole text of the call.
 */
llm_begun_t llm_answer_begun(llm_answer_t *a, llm_str_t *rest);
/* sets LLM_ANSWER_SURE from now on */
void llm_answer_sure(llm_answer_t *a);

/* offset in all pushed text of the text that put() is getting; undefined for
   calls */
size_t llm_answer_at(const llm_answer_t *a);
/* offset in all pushed text up to which the text has been handed out or
   dropped */
size_t llm_answer_decided(const llm_answer_t *a);

int llm_answer_is_reasoning(const llm_answer_t *a);
/* the pair of marks around the current reasoning */
int llm_answer_pair(const llm_answer_t *a);
uint32_t llm_answer_calls(const llm_answer_t *a);
size_t llm_answer_bytes(const llm_answer_t *a);

/* the pair of format->reasoning that a prompt leaves open, or a value below 0:
   the prompt has none, or has closed one, after which a model does not reason
   again.  tail: the end of the prompt that the template has written */
#define LLM_ANSWER_UNOPENED  -1
#define LLM_ANSWER_CLOSED    -2
int llm_answer_open(const llm_format_t *f, llm_str_t tail);

/* bytes of a mark of calls that are enough to recognise it: its first tag, if
   no other mark begins with that; otherwise the whole mark without the white
   space at its end */
size_t llm_answer_sign(const llm_format_t *f, llm_str_t mark);

/* is the token's text part of a mark of the parts in flags? */
int llm_answer_knows(const llm_format_t *f, unsigned flags, llm_str_t token);

#endif /* LLM_ANSWER_H */
