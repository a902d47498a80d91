/*
 * What calls.c and calls_tool.c share.
 */

#ifndef LLM_CALLS_H
#define LLM_CALLS_H

#include "engine/prepare/prepare.h"

/* how strictly arguments follow a tool's schema */
typedef enum {
    LLM_CALLS_CLOSED = 0,               /* with no parameters that the schema
                                           does not name */
    LLM_CALLS_OPEN,                     /* as the schema says */
    LLM_CALLS_LOOSE                     /* any object */
} llm_calls_how_t;

typedef struct {
    const llm_rule_env_t  *ctx;
    llm_gram_build_t      *b;
    const llm_form_t      *form;
    llm_err_t             *err;
    llm_gn_t               gap;         /* white space around an object */
    const llm_flat_t      *closed;      /* closed copy of the current tool's
                                           schema; NULL: the schema itself is
                                           used */
    llm_calls_how_t        how;         /* for the current tool */
    llm_err_t              never;       /* why the first tool cannot be
                                           called; empty message: it can */
} llm_calls_t;

/* the node a followed by b */
llm_gn_t llm_calls_cat(llm_calls_t *c, llm_gn_t a, llm_gn_t b);
/* the node a, or nothing */
llm_gn_t llm_calls_maybe(llm_gram_build_t *b, llm_gn_t a);
/* the node of a mark of the form */
llm_gn_t llm_calls_of(llm_calls_t *c, llm_str_t mark);
/* makes the node of a call of a tool, without the marks around it */
int llm_calls_tool(llm_calls_t *c, const llm_tool_t *tool, llm_calls_how_t how,
    llm_gn_t *node);
/* reports why a tool's schema cannot be used, with the path of its parameters
   in the client's request; LLM_ERROR */
int llm_calls_refuse(llm_calls_t *c, const llm_tool_t *tool,
    const llm_err_t *why);

#endif /* LLM_CALLS_H */
