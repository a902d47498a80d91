/*
 * The arguments of tool calls.  Requests have them as JSON text; some
 * templates want an object.  No JSON is read below engine/api, so the parsed
 * value goes along with the text, as LLM_CHAT_ARGS (engine/llm.h), if the text
 * is an object, or is empty, which stands for an empty object.  Other text
 * stays as it is, without an error.
 */

#ifndef LLM_ARGUMENTS_H
#define LLM_ARGUMENTS_H

#include "engine/api/json.h"

/*
 * Appends a copy of a message's tool_calls with their arguments read.  Each
 * value read counts against limits->values, also in text that turns out not to
 * be JSON; when none are left the request is refused with status 400.
 * limits->depth is overwritten: the depth of arguments has a bound of its own.
 * A LLM_CHAT_ARGS of the client is dropped.
 */
int llm_args_add_calls(const llm_flat_t *calls, llm_json_limits_t *limits,
    llm_buf_t *out, llm_err_t *err);

/* copies a whole request, an object with messages, for llm_chat_render(); the
   request need not have been checked */
int llm_args_add_request(const llm_flat_t *request, llm_json_limits_t *limits,
    llm_buf_t *out, llm_err_t *err);

#endif /* LLM_ARGUMENTS_H */
