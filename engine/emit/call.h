/*
 * Reads one call of a tool, or one list of calls, while its text still comes,
 * and what it says: names, and arguments as JSON.
 *
 * A llm_call_t owns the places of its parameters.  The text is the caller's;
 * each run must get the same text as before, which may have grown.
 */

#ifndef LLM_CALL_H
#define LLM_CALL_H

#include "engine/base/flat.h"
#include "engine/emit/format.h"
#include "engine/emit/literal.h"

/* the tools of a request; names and schemas point into it */
typedef struct {
    llm_str_t          name;
    const llm_flat_t  *schema;          /* schema of the arguments, or NULL */
    uint32_t           index;           /* in the request's list */
    int                strict;          /* 1: arguments must fit the schema */
} llm_tool_t;

typedef struct {
    uint32_t           n;
    llm_tool_t        *tool;            /* owned */
} llm_tools_t;

/* list: tools as in a chat request, checked; LLM_ERROR: no memory */
int llm_tools_init(llm_tools_t *t, const llm_flat_t *list);
void llm_tools_free(llm_tools_t *t);
/* NULL: no tool has this name */
const llm_tool_t *llm_tools_find(const llm_tools_t *t, llm_str_t name);
/* the same, also with what some models add to names: functions.NAME,
   NAME.call */
const llm_tool_t *llm_tools_named(const llm_tools_t *t, llm_str_t name);
/* types.c: is the parameter always a string, so that the text between its
   marks is its value? */
int llm_tool_takes_text(const llm_tool_t *tool, llm_str_t key);

/* a run of bytes of the text */
typedef struct {
    size_t             off;
    size_t             len;
} llm_cut_t;

typedef struct {
    llm_cut_t          key;
    llm_cut_t          value;
    int                is_text;         /* 1: the format marks the value as a
                                           string */
    int                is_data;         /* 1: the format marks the value as no
                                           string */
} llm_param_t;

typedef enum {
    LLM_CALL_BEGIN = 1,                 /* the step that is next */
    LLM_CALL_NAME,
    LLM_CALL_NAME_END,
    LLM_CALL_ARGS,
    LLM_CALL_KEY_OR_END,
    LLM_CALL_KEY,
    LLM_CALL_VALUE,
    LLM_CALL_END
} llm_call_step_t;

typedef struct {
    const llm_form_t  *form;
    const llm_tools_t *tools;
    llm_call_step_t    step;
    int                bare;            /* 1: no mark says that the text is a
                                           call */
    int                needs_end;       /* 1: without its end mark it is no
                                           call */
    int                cut;             /* 1: it is a call only if the text
                                           ends within it */
    int                loose;           /* 1: llm_loose_run() reads it */
    uint32_t           n_ends;          /* end marks that turned out to be
                                           inside a string */
    int                ended;           /* 1: its end mark was there */
    size_t             at;              /* offset where the next step begins */
    size_t             seen;            /* offset up to which a value has no
                                           end mark */
    llm_cut_t          name;
    llm_cut_t          args;
    llm_param_t        param;           /* parameter that is being read */
    int                has_param;       /* 1: its value has ended, or seems to
                                           have */
    llm_buf_t          params;          /* parameters that have ended,
                                           llm_param_t */
    int                scanning;
    llm_lit_scan_t     scan;
} llm_call_t;

/* what follows the text: more text; nothing, because the model has ended its
   turn; nothing, because the answer was cut */
#define LLM_TEXT_GOES_ON  0
#define LLM_TEXT_DONE     1
#define LLM_TEXT_CUT      2

void llm_call_init(llm_call_t *c);
void llm_call_free(llm_call_t *c);
/* begins a call at text[at]; step: BEGIN, or 0 for the form's step after its
   begin */
void llm_call_start(llm_call_t *c, const llm_form_t *form,
    const llm_tools_t *tools, size_t at, llm_call_step_t step, int bare);
/*
 * LLM_OK: the call is complete and ends at c->at; LLM_MORE; LLM_ERROR: this is
 * no call, and none begins before c->at (or there is no memory:
 * c->params.failed).  last: LLM_TEXT_...
 */
int llm_call_run(llm_call_t *c, llm_str_t text, int last);

/*
 * args.c: reads what the call says; put() gets the name of the tool and the
 * arguments as JSON, call by call.  LLM_ERROR: nothing in it can be called,
 * and put() was not called.
 */
typedef int (*llm_call_put_pt)(void *data, llm_str_t name, llm_str_t args);

int llm_call_read(const llm_call_t *c, llm_str_t text, llm_call_put_pt put,
    void *data);
/* is this the key of the name, or of the arguments, in a call of this form? */
int llm_call_is_name(const llm_form_t *form, llm_str_t key);
int llm_call_is_args(const llm_form_t *form, llm_str_t key);
/* appends the i-th parameter that has ended as a member of a JSON object;
   LLM_ERROR: no memory */
int llm_call_param(const llm_call_t *c, llm_str_t text, size_t i,
    const llm_flat_t *schema, llm_buf_t *out);


/*
 * live.c: what a call has said so far, where a grammar keeps the text to the
 * form.  The pieces are together what llm_call_read() gives for the whole
 * call.  The calls of a list are read one after the other.
 */
typedef enum {
    LLM_LIVE_HEAD = 0,                  /* before the arguments */
    LLM_LIVE_ARGS,
    LLM_LIVE_TAIL,                      /* after the arguments */
    LLM_LIVE_LOST                       /* the text is not as a grammar would
                                           constrain it */
} llm_live_stage_t;

typedef struct {
    llm_live_stage_t   stage;
    const llm_tool_t  *tool;            /* NULL: its name is not complete yet */
    size_t             from;            /* offset in the text of what is new;
                                           PARAMS: index of the next
                                           parameter */
    llm_lit_scan_t     scan;            /* scan of OBJECT's arguments */
} llm_live_t;

void llm_live_start(llm_live_t *v);
/* the tool that is called; NULL: not known yet, or never */
const llm_tool_t *llm_live_tool(llm_live_t *v, const llm_call_t *c,
    llm_str_t text);
/* appends the new part of the arguments; whole: llm_call_run() has found the
   call's end.  LLM_ERROR: no memory */
int llm_live_args(llm_live_t *v, const llm_call_t *c, llm_str_t text,
    int whole, llm_buf_t *out);
/* moves on to the next call of a list; 1 if there is one */
int llm_live_next(llm_live_t *v, const llm_call_t *c, llm_str_t text);

#endif /* LLM_CALL_H */
