/*
 * What call.c, call_params.c and tools.c share.
 */

#ifndef LLM_CALL_INTERNAL_H
#define LLM_CALL_INTERNAL_H

#include "engine/emit/call.h"

/* tools.c */
/* length of the namespace that p begins with, 0: none; *part: it may become
   one when more has come */
size_t llm_tools_space(const char *p, size_t n, int *part);
/* does a tool's name begin with this text? */
int llm_tools_begin(const llm_tools_t *t, const char *p, size_t n);

/* call_params.c: the steps of PARAMS */
int llm_call_key(llm_call_t *c, llm_str_t text);
int llm_call_value(llm_call_t *c, llm_str_t text);
int llm_call_key_or_end(llm_call_t *c, llm_str_t text, int last);


static inline void
llm_call_skip(llm_call_t *c, llm_str_t text)
{
    while (c->at < text.len && llm_mark_is_space(text.data[c->at])) {
        c->at++;
    }
}


static inline llm_mark_t
llm_call_mark(const llm_call_t *c, llm_str_t mark, llm_str_t text, size_t *len)
{
    return llm_mark_match(mark, text.data + c->at, text.len - c->at, len);
}

#endif /* LLM_CALL_INTERNAL_H */
