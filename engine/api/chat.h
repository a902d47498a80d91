/*
 * What the files of the chat endpoint share: its fields, checked by
 * chat_messages.c, and the object for the template, by chat_object.c.
 */

#ifndef LLM_API_CHAT_H
#define LLM_API_CHAT_H

#include "engine/api/endpoint.h"


typedef struct {
    llm_api_body_t     body;

    llm_str_t          reasoning_effort;

    const llm_flat_t  *messages;
    const llm_flat_t  *tools;
    const llm_flat_t  *tool_choice;
    const llm_flat_t  *documents;
    const llm_flat_t  *chat_template_kwargs;
    const llm_flat_t  *modalities;

    int64_t            max_completion_tokens;   /* as max_tokens */
    int64_t            top_logprobs;            /* -1: not given */

    int                enable_thinking;         /* -1: not given */
    int                add_generation_prompt;   /* -1: not given */
    int                continue_final_message;  /* -1: not given */
} llm_api_chat_t;

/* chat_messages.c */
int llm_api_check_messages(const llm_flat_t *messages, llm_err_t *err);
int llm_api_check_tools(const llm_api_chat_t *b, llm_err_t *err);

/* chat_object.c: appends the flat object for llm_chat_render() to the
   message; its fields have been checked */
int llm_api_write_chat(llm_api_reader_t *rd, const llm_api_chat_t *b,
    llm_err_t *err);

#endif /* LLM_API_CHAT_H */
