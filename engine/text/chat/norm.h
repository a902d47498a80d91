/*
 * Messages made to fit a template: flat values in, flat values out.
 * Internal to engine/text/chat/.
 */

#ifndef LLM_CHAT_NORM_H
#define LLM_CHAT_NORM_H

#include "engine/text/chat/chat.h"

/* parts joined to a string, for messages of one role */
#define LLM_CN_JOIN_SYSTEM     0x001
#define LLM_CN_JOIN_USER       0x002
#define LLM_CN_JOIN_ASSISTANT  0x004
#define LLM_CN_JOIN_TOOL       0x008
#define LLM_CN_JOIN            0x00f
/* strings made parts, for a template that takes nothing else */
#define LLM_CN_PARTS           0x010
/* arguments of tool calls: the object that their JSON text says */
#define LLM_CN_ARGS            0x020
/* null or missing content made "" */
#define LLM_CN_NULL            0x040
/* ids of tool calls made nine letters or digits, as Mistral wants them */
#define LLM_CN_IDS             0x080
/* developer is system */
#define LLM_CN_DEVELOPER       0x100
/* tool calls and results told in the text of the messages */
#define LLM_CN_TOOL_TEXT       0x200
/* reasoning_content is also thinking */
#define LLM_CN_THINKING        0x400
/* messages of one side in a row made one; a system message that is not the
   first said by the user; and the first, too.  Only for lenient requests */
#define LLM_CN_SIDES           0x2000
#define LLM_CN_NO_SYSTEM       0x4000
/* LLM_CHAT_TAG behind the last message's content */
#define LLM_CN_TAG             0x800

/* for llm_chat_render_as(): no tools are an empty list of them */
#define LLM_CN_NO_TOOLS        0x1000
/* functions and datetime are variables, too, as firefunction's template has
   them */
#define LLM_CN_FUNCTIONS       0x8000
/* a description, parameters and properties where a tool has none */
#define LLM_CN_WHOLE_TOOLS     0x10000
/* tools are told in the system message; the template sees none.  Only for
   lenient requests */
#define LLM_CN_TELL_TOOLS      0x20000

/* where a message that is left open ends; what transformers uses */
#define LLM_CHAT_TAG  "CONTINUE_FINAL_MESSAGE_TAG "

/* appends the array of messages to out; what does not apply is copied */
int llm_chat_normalise(const llm_flat_t *messages, unsigned what,
    llm_buf_t *out, llm_err_t *err);

/* what tooltext.c does, before all else */
#define LLM_CN_AS_TEXT  (LLM_CN_TOOL_TEXT | LLM_CN_SIDES | LLM_CN_NO_SYSTEM)

/* tooltext.c: the step for LLM_CN_AS_TEXT alone */
int llm_chat_as_text(const llm_flat_t *messages, unsigned what,
    llm_buf_t *out, llm_err_t *err);

/* tools.c */

/* the value of the variable tools; tools may be NULL */
void llm_chat_add_tools(const llm_flat_t *tools, unsigned what,
    llm_buf_t *out);
/* the variables of LLM_CN_FUNCTIONS: their number; now as in
   llm_jinja_opts_t */
uint32_t llm_chat_add_functions(const llm_flat_t *tools, int64_t now,
    llm_buf_t *out);

/* appends the array of messages with the tools in the first of them */
int llm_chat_tell_tools(const llm_flat_t *messages, const llm_flat_t *tools,
    llm_buf_t *out, llm_err_t *err);

/* content.c */

int llm_chat_add_json(llm_buf_t *out, const llm_flat_t *v);

/* appends the texts of parts with newlines between; a string as it is */
int llm_chat_add_text(llm_buf_t *out, const llm_flat_t *content);

/* has the object a member of this name that is true? */
int llm_chat_flag(const llm_flat_t *request, const char *key);

/* is it a string, and this one? v may be NULL */
int llm_chat_is(const llm_flat_t *v, const char *s);

#endif /* LLM_CHAT_NORM_H */
