/*
 * What calls.c and calls_tool.c share.
 */

#ifndef LLM_CALLS_H
#define LLM_CALLS_H

#include "engine/prepare/prepare.h"

/* how a tool's schema is kept to */
typedef enum {
    LLM_CALLS_CLOSED = 0,               /* without parameters that it does not
                                           name */
    LLM_CALLS_OPEN,                     /* as it stands */
    LLM_CALLS_LOOSE                     /* any object will do */
} llm_calls_how_t;

typedef struct {
    const llm_rule_ctx_t  *ctx;
    llm_gram_build_t      *b;
    const llm_form_t      *form;
    llm_err_t             *err;
    llm_gn_t               gap;         /* around an object */
    const llm_flat_t      *closed;      /* the schema of the tool that is
                                           written, if it is open; or NULL */
    llm_calls_how_t        how;         /* of that tool */
    llm_err_t              never;       /* why the first tool cannot be
                                           called; or no message */
} llm_calls_t;

/* two nodes, one behind the other */
llm_gn_t llm_calls_cat(llm_calls_t *c, llm_gn_t a, llm_gn_t b);
llm_gn_t llm_calls_maybe(llm_gram_build_t *b, llm_gn_t a);
/* a mark of the form */
llm_gn_t llm_calls_of(llm_calls_t *c, llm_str_t mark);
/* a call of this tool, without the marks around it */
int llm_calls_tool(llm_calls_t *c, const llm_tool_t *tool, llm_calls_how_t how,
    llm_gn_t *node);
/* why its schema cannot be used; LLM_ERROR */
int llm_calls_refuse(llm_calls_t *c, const llm_tool_t *tool,
    const llm_err_t *why);

#endif /* LLM_CALLS_H */
