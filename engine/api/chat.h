/*
 * What the files of the chat endpoint share: its fields, the checks of
 * messages and tools (chat_messages.c, chat_tools.c), and the writing of the
 * object for the template (chat_object.c).
 */

#ifndef LLM_API_CHAT_H
#define LLM_API_CHAT_H

#include "engine/api/parts.h"


typedef struct {
    llm_api_body_t     body;

    llm_str_t          reasoning_effort;
    llm_str_t          reasoning_format;
    llm_str_t          json_instruction;        /* added to the system prompt
                                                   where the answer must be
                                                   JSON */

    const llm_flat_t  *messages;
    const llm_flat_t  *tools;
    const llm_flat_t  *tool_choice;
    const llm_flat_t  *functions;               /* older name of tools */
    const llm_flat_t  *function_call;           /* older name of tool_choice */
    const llm_flat_t  *documents;
    const llm_flat_t  *chat_template_kwargs;
    const llm_flat_t  *modalities;
    const llm_flat_t  *prediction;
    const llm_flat_t  *thinking;
    const llm_flat_t  *reasoning;

    int64_t            max_completion_tokens;   /* newer name of max_tokens */
    int64_t            top_logprobs;            /* -1: not given */
    int64_t            thinking_budget;         /* -1: none */

    int                enable_thinking;         /* -1: not given */
    int                include_reasoning;       /* -1: not given */
    int                return_progress;         /* of chats alone, as the next
                                                   two */
    int                timings_per_token;
    int                verbose;
    int                parallel_tool_calls;     /* -1: not given */
    int                add_generation_prompt;   /* -1: not given */
    int                continue_final_message;  /* -1: not given */
} llm_api_chat_t;

/* endpoint_chat.c: its fields, and their defaults */
extern const llm_api_fields_t  llm_api_chat_fields;
void llm_api_chat_defaults(llm_api_chat_t *b);
/* endpoint_chat.c: reads rd->root, a chat request, to the message, except for
   the beginning of the answer, which depends on the endpoint */
int llm_api_read_chat(llm_api_reader_t *rd, llm_err_t *err);
extern const llm_api_logprobs_t  llm_api_chat_logprobs;
/* adds "token":…; ,"bytes":[…]; "token":…,"logprob":…,"bytes":[…] */
void llm_api_add_entry_token(llm_buf_t *out, const llm_api_t *a, int32_t id,
    llm_ref_t bytes, const llm_event_t *ev);
void llm_api_add_entry_bytes(llm_buf_t *out, llm_ref_t bytes,
    const llm_event_t *ev);
void llm_api_add_entry(llm_buf_t *out, const llm_api_t *a, int32_t id,
    float logprob, llm_ref_t bytes, const llm_event_t *ev);

/* chat_messages.c */
int llm_api_check_messages(const llm_api_reader_t *rd,
    const llm_flat_t *messages, llm_err_t *err);
/* can the answer continue the last message?  The model has to read that
   message as its own words */
int llm_api_check_goes_on(const llm_api_reader_t *rd,
    const llm_flat_t *messages, const llm_flat_t *last, llm_err_t *err);
/* fills *where, the place of a message's parts; old as in llm_api_part_at_t */
void llm_api_chat_where(const llm_api_reader_t *rd, const llm_flat_t *msg,
    int old, llm_api_part_at_t *where);
/* checks a function, or the call of a function: {"name": ...}; at is its
   place */
int llm_api_check_name(const llm_flat_t *function, const llm_api_at_t *at,
    llm_err_t *err);
/* checks a list of tools or calls: {"type": "function", "function": {"name":
   ...}} */
int llm_api_check_functions(const llm_flat_t *list, const llm_api_at_t *at,
    llm_err_t *err);

/* chat_prediction.c: writes the prediction's text to the message's end */
int llm_api_write_prediction(llm_api_reader_t *rd, const llm_api_chat_t *b,
    llm_err_t *err);

/* chat_tools.c: checks a function's "parameters" and "strict"; at is the
   function's place */
int llm_api_check_signature(const llm_flat_t *function,
    const llm_api_at_t *at, llm_err_t *err);
/* checks tools, or functions, and documents */
int llm_api_check_tools(const llm_api_chat_t *b, llm_err_t *err);
/* writes the tools for the template; returns 1 if there are any, otherwise 0 */
int llm_api_write_tools(const llm_api_chat_t *b, llm_buf_t *out);
/* writes tool_choice to rd->r and the message's end, and checks it */
int llm_api_write_choice(llm_api_reader_t *rd, const llm_api_chat_t *b,
    llm_err_t *err);

/* chat_thinking.c: copies members of "thinking" and "reasoning" to the fields
   of the same meaning, unless the request has these fields */
int llm_api_chat_thinking(llm_api_chat_t *b, llm_err_t *err);
/* sets the bound and the form of reasoning in rd->r */
int llm_api_chat_reasons(llm_api_reader_t *rd, const llm_api_chat_t *b,
    llm_err_t *err);

/* chat_object.c: appends the flat object for llm_chat_render() to the
   message; its fields have been checked */
int llm_api_write_chat(llm_api_reader_t *rd, const llm_api_chat_t *b,
    llm_err_t *err);

#endif /* LLM_API_CHAT_H */
