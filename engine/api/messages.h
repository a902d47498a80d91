/*
 * What the files of the Messages endpoint share: its fields, the reader of
 * its input, and the writers of its answer.
 */

#ifndef LLM_API_MESSAGES_H
#define LLM_API_MESSAGES_H

#include "engine/api/draft.h"

typedef struct {
    const llm_flat_t  *messages;
    const llm_flat_t  *output_config;
    const llm_flat_t  *output_format;
    const llm_flat_t  *stop_sequences;
    const llm_flat_t  *system;
    const llm_flat_t  *thinking;
    const llm_flat_t  *tools;
    const llm_flat_t  *tool_choice;

    int64_t            max_tokens;      /* or LLM_API_UNSET */
    float              temperature;     /* not given: -1 */
} llm_api_messages_t;

/* endpoint_messages.c: reads a request, except for the beginning of its
   answer */
extern const llm_api_fields_t  llm_api_messages_fields;
extern const llm_api_name_t    llm_api_messages_names[];
int llm_api_messages_parse(llm_api_reader_t *rd, llm_err_t *err);

/* messages_input.c: write system and messages to the draft's messages, tools
   to its tools.  Both check what they read; messages come first */
int llm_api_messages_input(const llm_api_messages_t *b, llm_api_draft_t *d,
    llm_err_t *err);
int llm_api_messages_tools(const llm_api_messages_t *b, llm_api_draft_t *d,
    llm_err_t *err);

/* messages_output.c: as in llm_api_endpoint_t */
int llm_api_messages_keep(llm_api_t *a, const llm_event_t *ev,
    llm_err_t *err);
void llm_api_messages_event(llm_api_t *a, const llm_event_t *ev,
    llm_buf_t *out);
int llm_api_messages_body(llm_api_t *a, size_t max, llm_buf_t *out);
void llm_api_messages_error(const llm_err_t *err, llm_str_t id,
    llm_buf_t *out);
void llm_api_messages_fail(llm_api_t *a, const llm_err_t *err,
    llm_buf_t *out);

#endif /* LLM_API_MESSAGES_H */
