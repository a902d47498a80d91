/*
 * What a model's answer means: its text, as it comes, to the parts of a chat
 * answer: reasoning, content, calls of tools.
 *
 * Invariant: what is handed out does not depend on how the text is cut.  A
 * call is handed out when it is whole, or at the end of the answer, with the
 * arguments that were written so far; text that is no call is handed out as
 * content.  With LLM_ANSWER_SURE, where a grammar keeps calls to their form, a
 * call is handed out as it comes: its name, then pieces of its arguments.
 * What is certainly a mark is never handed out: of a call of a tool that there
 * is not, only what stands between its marks.  White space beside a mark
 * belongs to the mark.
 *
 * A llm_answer_t owns its buffers; format and tools are shared and outlive
 * it.  It holds back the text of the call that is being written, so its
 * memory counts with its request's (llm_answer_bytes()).
 */

#ifndef LLM_ANSWER_H
#define LLM_ANSWER_H

#include "engine/emit/call.h"
#include "engine/llm.h"

typedef struct llm_answer_s  llm_answer_t;

/* LLM_OK; LLM_STOPPED: enough, nothing is to follow; LLM_ERROR */
typedef int (*llm_answer_put_pt)(void *data, llm_part_t part, uint32_t call,
    llm_str_t text);

/* what is looked for */
#define LLM_ANSWER_REASONING  1
#define LLM_ANSWER_TOOLS      2
/* reasoning is found, but not handed out */
#define LLM_ANSWER_HIDE       4
/* reasoning is not looked for: it stays in the content, with its marks */
#define LLM_ANSWER_MARKED     8
/* the answer ends with its first call */
#define LLM_ANSWER_SINGLE    16
/* calls in opts.form are written by a grammar */
#define LLM_ANSWER_SURE      32

typedef struct {
    const llm_format_t  *format;
    const llm_tools_t   *tools;         /* for LLM_ANSWER_TOOLS */
    unsigned             flags;         /* LLM_ANSWER_... */
    int                  open;          /* as llm_answer_open() says */
    const llm_form_t    *form;          /* of format->forms: the one in which a
                                           grammar writes calls; or NULL */
} llm_answer_opts_t;

/* how a call has begun: with the sign of the form's open, with that of its
   begin, or without either */
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

/* LLM_OK; LLM_STOPPED: the answer is over, what follows is dropped; what
   put() returned; LLM_ERROR: no memory */
int llm_answer_push(llm_answer_t *a, llm_str_t text);
/* no text will follow; how: LLM_TEXT_DONE, the model has ended its turn, or
   LLM_TEXT_CUT */
int llm_answer_end(llm_answer_t *a, int how);

/*
 * Has a call in opts.form begun, between two pushes?  It is told once of each
 * call.  *rest is what has come of it behind the sign of its beginning: see
 * llm_answer_sign().  A call without marks has begun when it has the name of
 * a tool; *rest is then all of it.
 */
llm_begun_t llm_answer_begun(llm_answer_t *a, llm_str_t *rest);
/* LLM_ANSWER_SURE from now on */
void llm_answer_sure(llm_answer_t *a);

/* where in all text that was pushed begins what put() gets just now; that of
   calls is from nowhere */
size_t llm_answer_at(const llm_answer_t *a);
/* what was pushed before this was handed out, or never will be */
size_t llm_answer_decided(const llm_answer_t *a);

int llm_answer_is_reasoning(const llm_answer_t *a);
/* which pair of marks it stands in, if it is reasoning */
int llm_answer_pair(const llm_answer_t *a);
uint32_t llm_answer_calls(const llm_answer_t *a);
size_t llm_answer_bytes(const llm_answer_t *a);

/* the pair of format->reasoning that a prompt leaves open, or below 0: it has
   none, or one that it closed, behind which a model does not reason again;
   tail is the end of the prompt that the template has written */
#define LLM_ANSWER_UNOPENED  -1
#define LLM_ANSWER_CLOSED    -2
int llm_answer_open(const llm_format_t *f, llm_str_t tail);

/* how many bytes of a mark with which calls begin tell that it is one: its
   first tag, if nothing else begins with that, else all but the white space
   behind it */
size_t llm_answer_sign(const llm_format_t *f, llm_str_t mark);

/* is the text of this token part of a mark that the flags name? */
int llm_answer_knows(const llm_format_t *f, unsigned flags, llm_str_t token);

#endif /* LLM_ANSWER_H */
