/*
 * What the files share that learn from a template's output how its model
 * answers.  Internal to engine/text/chat/.
 *
 * A llm_str_t points into that output; only llm_chat_mark() copies.
 */

#ifndef LLM_CHAT_LEARN_H
#define LLM_CHAT_LEARN_H

#include "engine/text/chat/format.h"

/* longer text is no mark */
#define LLM_LEARN_MARK  160

/* pieces.c */

llm_str_t llm_learn_cut(llm_str_t s, size_t from, size_t to);
/* the first position of a word at or after `from`; SIZE_MAX: none */
size_t llm_learn_find(llm_str_t s, const char *word, size_t from);
llm_str_t llm_learn_trim(llm_str_t s);
/* the tag that s begins with, <...> or [...]; empty if there is none */
llm_str_t llm_learn_tag(llm_str_t s);
/* the first tag of s that is also in other; if other.data is NULL, the first
   tag */
llm_str_t llm_learn_tag_in(llm_str_t s, llm_str_t other);
/* s after the reasoning in it, which may be empty */
llm_str_t llm_learn_behind(const llm_format_t *f, llm_str_t s);

/*
 * forms.c: learns a form from an answer with one call and an answer with two;
 * tail: what follows an answer of content.  If nothing is learnt, form stays
 * unchanged; c->format.turn_end may be set.
 */
void llm_learn_form(llm_chat_t *c, llm_str_t tail, llm_form_t *form);

#endif /* LLM_CHAT_LEARN_H */
