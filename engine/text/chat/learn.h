/*
 * Learning from what a template writes how its model answers: what the files
 * that do so share.  Internal to engine/text/chat/.
 *
 * A llm_str_t points into what was written; only llm_chat_mark() copies.
 */

#ifndef LLM_CHAT_LEARN_H
#define LLM_CHAT_LEARN_H

#include "engine/text/chat/format.h"

/* more is no mark */
#define LLM_LEARN_MARK  160

/* pieces.c */

llm_str_t llm_learn_cut(llm_str_t s, size_t from, size_t to);
/* where a word begins behind `from`; SIZE_MAX: nowhere */
size_t llm_learn_find(llm_str_t s, const char *word, size_t from);
llm_str_t llm_learn_trim(llm_str_t s);
/* the tag that s begins with, <...> or [...]; empty if it is none */
llm_str_t llm_learn_tag(llm_str_t s);
/* the first tag of s that stands in other, too; any with other.data NULL */
llm_str_t llm_learn_tag_in(llm_str_t s, llm_str_t other);
/* s behind the reasoning in it, which may be an empty one */
llm_str_t llm_learn_behind(const llm_format_t *f, llm_str_t s);

/*
 * forms.c: what an answer with one call, and one with two, teach; tail is
 * what stands behind an answer of content.  form stays as it is if they
 * teach nothing; c->format.turn_end may be set.
 */
void llm_learn_form(llm_chat_t *c, llm_str_t tail, llm_form_t *form);

#endif /* LLM_CHAT_LEARN_H */
