/*
 * Renders a chat request to a prompt: the request's messages, tools and
 * template arguments (a flat object, as engine/api writes it) go through the
 * model's chat template.  Differences between templates are evened out here:
 * templates that take only strings, or that support no tools, no system role,
 * no thinking.
 *
 * An llm_chat_t is made once per model and is then read-only; it owns the
 * compiled template and what probing has found out about it.
 */

#ifndef LLM_CHAT_H
#define LLM_CHAT_H

#include "engine/emit/format.h"
#include "engine/text/jinja/jinja.h"

typedef struct llm_chat_s  llm_chat_t;

/* src: the template's text; bos and eos: the tokens' texts, "" if there is
   none */
llm_chat_t *llm_chat_create(llm_str_t src, llm_str_t bos, llm_str_t eos,
    llm_err_t *err);
void llm_chat_free(llm_chat_t *c);

/*
 * request is a checked flat object with
 *   messages                 array, required; in tool calls, arguments are
 *                            text, with LLM_CHAT_ARGS (engine/llm.h) where
 *                            a template may have an object instead
 *   tools, documents         arrays, optional
 *   add_generation_prompt    bool, default true
 *   continue_final_message   bool: the last message is an assistant's and is
 *                            left open, without an end of turn
 *   chat_template_kwargs     object, merged into the variables
 *   bos_token, eos_token     strings, override the model's (for checks);
 *                            trusted, so never a client's
 *   lenient                  bool, default false: also even out what a
 *                            template takes without failing, but not as
 *                            meant: null content that it writes as "None",
 *                            reasoning_content where it reads "thinking"
 *                            (gpt-oss), tools and their results that it
 *                            drops.  For requests of clients; without it the
 *                            prompt is transformers' own wherever that gives
 *                            one
 * Errors of the request have status 400 and name the field in param.
 *
 * What the template refuses is mended (mend.c).  *mended, which may be NULL,
 * is a set of the remedies, one bit each; the sets of several requests may be
 * joined.
 */
int llm_chat_render(const llm_chat_t *c, const llm_flat_t *request,
    const llm_jinja_opts_t *opts, llm_prompt_t *out, uint64_t *mended,
    llm_err_t *err);

/* removes a remedy from the set and returns what it does, for a log; NULL:
   none is left that changes what a turn says or how */
const char *llm_chat_mended(uint64_t *mended);

/* how the model writes its answers, as far as the template shows it */
const llm_format_t *llm_chat_format(const llm_chat_t *c);

/* the end of a prompt: what the template wrote after a client's last message,
   and the message that is to be continued */
llm_str_t llm_chat_tail(const llm_prompt_t *p);

#endif /* LLM_CHAT_H */
