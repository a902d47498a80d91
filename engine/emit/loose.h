/*
 * Calls that a model has written almost in their form: a comma is missing or
 * one too many, k=v, a quote in a string that is not escaped, a closing mark
 * that is not there, a brace too many.
 *
 * It is used only where strict reading (call.h) has failed, so that a call
 * that is right is never read as another.  What it cannot read as one call
 * with certainty is none.
 */

#ifndef LLM_LOOSE_H
#define LLM_LOOSE_H

#include "engine/emit/call.h"

/*
 * Reads a call whose begin has been read, after llm_call_start(): LLM_OK,
 * LLM_STOPPED (from put): the calls were handed out and end at c->at;
 * LLM_MORE: that cannot be told before more has come; LLM_ERROR: it is text
 * (or there is no memory: c->params.failed); LLM_ABSENT: it is a call, but of
 * no tool, or cut before its name: c->args is what is left of it without
 * marks, and it ends at c->at.
 *
 * Of a call that is cut the arguments that were written are handed out: they
 * are not whole then, and no JSON.
 */
int llm_loose_run(llm_call_t *c, llm_str_t text, int last,
    llm_call_put_pt put, void *data);

/*
 * body is all that there is of the arguments of a call of this tool; last:
 * what follows it, LLM_TEXT_GOES_ON: its end.  LLM_OK, LLM_STOPPED: they were
 * handed out; LLM_ERROR, LLM_ABSENT: they are none (or there is no memory).
 */
int llm_loose_body(llm_call_t *c, const llm_tool_t *tool, llm_str_t body,
    int last, llm_call_put_pt put, void *data);

/* does an object begin at text[c->at] that has the name of a tool first?
   LLM_OK; LLM_MORE; LLM_ERROR: no */
int llm_loose_object_names(const llm_call_t *c, llm_str_t text, int last);

#endif /* LLM_LOOSE_H */
