/*
 * How a template's model answers; see engine/emit/format.h for what is found
 * out.  Internal to engine/text/chat/.
 */

#ifndef LLM_CHAT_FORMAT_H
#define LLM_CHAT_FORMAT_H

#include "engine/emit/answer.h"
#include "engine/text/chat/internal.h"

/*
 * format.c: from what the template writes for given answers.  A form of
 * calls is kept only if it reads back the calls that it was learnt from.
 * What cannot be learnt is left out; c->format is to be empty.
 */
void llm_chat_learn(llm_chat_t *c, llm_str_t src);

/* families.c: what the template's source tells by name */
/* before the template is asked: 1 if all is known by that */
int llm_chat_family(llm_format_t *f, llm_str_t src);
/* reasoning that the template does not show */
void llm_chat_family_reasoning(llm_format_t *f, llm_str_t src);
/* forms of calls; and, where none are known, those that any model may use */
void llm_chat_family_calls(llm_format_t *f, llm_str_t src);

/* the form of calls that this server tells a model of in text */
void llm_chat_family_told(llm_format_t *f);

/* a mark: s without the white space around it, but for what must follow a
   word; copied */
llm_str_t llm_chat_mark(llm_format_t *f, llm_str_t s);
/* these add to a list that is not full */
void llm_chat_add_pair(llm_format_t *f, llm_str_t open, llm_str_t close);
void llm_chat_add_mark(llm_str_t *list, uint32_t *n, llm_str_t mark);

#endif /* LLM_CHAT_FORMAT_H */
