/*
 * Reads calls that a model has written almost in their form: with a missing or
 * superfluous comma, k=v, an unescaped quote in a string, a missing closing
 * mark, a superfluous brace.
 *
 * It is used only after strict reading (call.h) has failed, so that a correct
 * call is never read differently.  What is not certainly one call is refused.
 */

#ifndef LLM_LOOSE_H
#define LLM_LOOSE_H

#include "engine/emit/call.h"

/*
 * Reads a call whose begin has been read, after llm_call_start().  LLM_OK,
 * LLM_STOPPED (from put): the calls were handed out and end at c->at;
 * LLM_MORE: more text is needed to tell; LLM_ERROR: it is text (or there is no
 * memory: c->params.failed); LLM_ABSENT: it is a call, but of no known tool,
 * or cut before its name: it ends at c->at, and c->args is its text without
 * marks.
 *
 * If the call is cut, the arguments so far are handed out: they are incomplete
 * and no JSON.
 */
int llm_loose_run(llm_call_t *c, llm_str_t text, int last,
    llm_call_put_pt put, void *data);

/*
 * Reads body, all of the arguments of a call of this tool.  last: what follows
 * body, LLM_TEXT_GOES_ON: the end mark.  LLM_OK, LLM_STOPPED: they were handed
 * out; LLM_ERROR, LLM_ABSENT: they are no arguments (or there is no memory).
 */
int llm_loose_body(llm_call_t *c, const llm_tool_t *tool, llm_str_t body,
    int last, llm_call_put_pt put, void *data);

/* does text[c->at] begin an object whose first member has the name of a tool?
   LLM_OK: yes; LLM_MORE; LLM_ERROR: no */
int llm_loose_object_names(const llm_call_t *c, llm_str_t text, int last);

#endif /* LLM_LOOSE_H */
