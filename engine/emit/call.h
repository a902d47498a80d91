/*
 * Reading one call of a tool, or one list of such, while its text still
 * comes, and what it says: names, and arguments as JSON.
 *
 * A llm_call_t owns the places of its parameters; the text is the caller's
 * and must keep what was there at each run.
 */

#ifndef LLM_CALL_H
#define LLM_CALL_H

#include "engine/base/flat.h"
#include "engine/emit/format.h"
#include "engine/emit/literal.h"

/* the tools of a request; both point into it */
typedef struct {
    llm_str_t          name;
    const llm_flat_t  *schema;          /* of its arguments, or NULL */
    uint32_t           index;           /* in the request's list */
    int                strict;          /* its arguments must fit the schema */
} llm_tool_t;

typedef struct {
    uint32_t           n;
    llm_tool_t        *tool;            /* owned */
} llm_tools_t;

/* list as a chat request has it, checked; LLM_ERROR: no memory */
int llm_tools_init(llm_tools_t *t, const llm_flat_t *list);
void llm_tools_free(llm_tools_t *t);
/* NULL: there is none of this name */
const llm_tool_t *llm_tools_find(const llm_tools_t *t, llm_str_t name);
/* the same, with what some models write around names: functions.NAME,
   NAME.call */
const llm_tool_t *llm_tools_named(const llm_tools_t *t, llm_str_t name);
/* in types.c: is a parameter always a string, so that it is read as it stands
   between marks? */
int llm_tool_takes_text(const llm_tool_t *tool, llm_str_t key);

/* a run of bytes of the text */
typedef struct {
    size_t             off;
    size_t             len;
} llm_cut_t;

typedef struct {
    llm_cut_t          key;
    llm_cut_t          value;
    int                is_text;         /* the format says that it is a
                                           string, */
    int                is_data;         /* that it is none */
} llm_param_t;

typedef enum {
    LLM_CALL_BEGIN = 1,                 /* what comes next */
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
    int                bare;            /* no mark says that it is a call */
    int                needs_end;       /* without its end it is no call */
    int                cut;             /* it is a call only if the text ends
                                           in it */
    int                loose;           /* it is read by llm_loose_run() */
    uint32_t           n_ends;          /* marks of its end that were found to
                                           stand in a string */
    int                ended;           /* the mark of its end was there */
    size_t             at;              /* where the next step begins */
    size_t             seen;            /* of a value: not its end, so far */
    llm_cut_t          name;
    llm_cut_t          args;
    llm_param_t        param;           /* the one that is being read */
    int                has_param;       /* its value has ended, or it seems
                                           so */
    llm_buf_t          params;          /* llm_param_t */
    int                scanning;
    llm_lit_scan_t     scan;
} llm_call_t;

/* what follows the text: more of it; nothing, for the model has ended its
   turn; nothing, for the answer was cut */
#define LLM_TEXT_GOES_ON  0
#define LLM_TEXT_DONE     1
#define LLM_TEXT_CUT      2

void llm_call_init(llm_call_t *c);
void llm_call_free(llm_call_t *c);
/* begins one at text[at]; step: BEGIN, or that of the form behind its begin
   (0) */
void llm_call_start(llm_call_t *c, const llm_form_t *form,
    const llm_tools_t *tools, size_t at, llm_call_step_t step, int bare);
/*
 * LLM_OK: it is there and ends at c->at; LLM_MORE; LLM_ERROR: this is no
 * call, and none begins before c->at (or there is no memory:
 * c->params.failed).  last: LLM_TEXT_...
 */
int llm_call_run(llm_call_t *c, llm_str_t text, int last);

/*
 * What it says, call by call, in args.c: put() gets names of tools and JSON
 * texts.  LLM_ERROR: it says nothing that can be called, put() was not
 * called.
 */
typedef int (*llm_call_put_pt)(void *data, llm_str_t name, llm_str_t args);

int llm_call_read(const llm_call_t *c, llm_str_t text, llm_call_put_pt put,
    void *data);
/* is it a key of a name, of arguments, in a call of this form? */
int llm_call_is_name(const llm_form_t *form, llm_str_t key);
int llm_call_is_args(const llm_form_t *form, llm_str_t key);
/* appends the i-th of the parameters that have ended, as a member of an object
   of JSON; LLM_ERROR: no memory */
int llm_call_param(const llm_call_t *c, llm_str_t text, size_t i,
    const llm_flat_t *schema, llm_buf_t *out);


/*
 * What a call has said so far, in live.c, for text that a grammar keeps to
 * the form: the pieces are what llm_call_read() says of the whole.  Where it
 * is a list, one of its calls after the other.
 */
typedef enum {
    LLM_LIVE_HEAD = 0,                  /* up to the arguments */
    LLM_LIVE_ARGS,
    LLM_LIVE_TAIL,                      /* behind them */
    LLM_LIVE_LOST                       /* not written as by a grammar */
} llm_live_stage_t;

typedef struct {
    llm_live_stage_t   stage;
    const llm_tool_t  *tool;            /* NULL: its name is not whole yet */
    size_t             from;            /* what is new begins here in the text;
                                           of PARAMS: with this parameter */
    llm_lit_scan_t     scan;            /* of OBJECT's arguments */
} llm_live_t;

void llm_live_start(llm_live_t *v);
/* whom it calls; NULL: that is not known yet, or never will be */
const llm_tool_t *llm_live_tool(llm_live_t *v, const llm_call_t *c,
    llm_str_t text);
/* appends its arguments that are new; whole: llm_call_run() has found its end.
   LLM_ERROR: no memory */
int llm_live_args(llm_live_t *v, const llm_call_t *c, llm_str_t text,
    int whole, llm_buf_t *out);
/* goes on to the next call of a list: 1 if there is one */
int llm_live_next(llm_live_t *v, const llm_call_t *c, llm_str_t text);

#endif /* LLM_CALL_H */
