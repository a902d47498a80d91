/*
 * The arguments of tool calls.  Requests have them as JSON text; some
 * templates want an object.  No JSON is read below engine/api, so what the
 * text says goes down beside it, as LLM_CHAT_ARGS (engine/llm.h), where it
 * is an object or no text at all, which stands for an empty one.  Other text
 * stays as it is, without a word.
 */

#ifndef LLM_ARGUMENTS_H
#define LLM_ARGUMENTS_H

#include "engine/api/json.h"

/*
 * Appends a copy of a message's tool_calls with their arguments read.  The
 * values read are taken from limits->values, also those of text that is no
 * JSON in the end; when none are left the request is refused with status
 * 400.  How deep arguments may be is not the caller's to say: limits->depth
 * is overwritten.  A LLM_CHAT_ARGS of the client is dropped.
 */
int llm_args_add_calls(const llm_flat_t *calls, llm_json_limits_t *limits,
    llm_buf_t *out, llm_err_t *err);

/* a copy of a whole request, an object with messages, for llm_chat_render();
   nothing in it need have been checked */
int llm_args_add_request(const llm_flat_t *request, llm_json_limits_t *limits,
    llm_buf_t *out, llm_err_t *err);

#endif /* LLM_ARGUMENTS_H */
