/*
 * Finds out how a template's model answers; see engine/emit/format.h for the
 * result.  Internal to engine/text/chat/.
 */

#ifndef LLM_CHAT_FORMAT_H
#define LLM_CHAT_FORMAT_H

#include "engine/emit/answer.h"
#include "engine/text/chat/internal.h"

/*
 * format.c: learns from what the template writes for given answers.  A form of
 * calls is kept only if the calls that it was learnt from can be read back
 * with it.  What cannot be learnt is left out; c->format must be empty before.
 */
void llm_chat_learn(llm_chat_t *c, llm_str_t src);

/* families.c: what the template's source tells by name */
/* called before the template is probed; returns 1 if nothing remains to be
   learnt */
int llm_chat_family(llm_format_t *f, llm_str_t src);
/* adds reasoning that the template does not show */
void llm_chat_family_reasoning(llm_format_t *f, llm_str_t src);
/* adds forms of calls; if none are known, those that any model may use */
void llm_chat_family_calls(llm_format_t *f, llm_str_t src);

/* adds the form of calls that this server describes to a model in text */
void llm_chat_family_told(llm_format_t *f);

/* a mark: a copy of s without the white space around it, except for white
   space that must follow a word */
llm_str_t llm_chat_mark(llm_format_t *f, llm_str_t s);
/* these add to a list that is not full */
void llm_chat_add_pair(llm_format_t *f, llm_str_t open, llm_str_t close);
void llm_chat_add_mark(llm_str_t *list, uint32_t *n, llm_str_t mark);

#endif /* LLM_CHAT_FORMAT_H */
