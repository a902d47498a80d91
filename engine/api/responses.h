/*
 * What the files of the Responses endpoint share: its fields, the reader of
 * its input, and the writers of its answer.
 */

#ifndef LLM_API_RESPONSES_H
#define LLM_API_RESPONSES_H

#include "engine/api/chat.h"
#include "engine/api/draft.h"

typedef struct {
    llm_str_t          instructions;

    const llm_flat_t  *input;
    const llm_flat_t  *include;
    const llm_flat_t  *previous;        /* previous_response_id */
    const llm_flat_t  *reasoning;
    const llm_flat_t  *updated;         /* reasoning of an item that changes
                                           settings; NULL: none does */
    const llm_flat_t  *text;
    const llm_flat_t  *tools;
    const llm_flat_t  *tool_choice;

    int64_t            max_output_tokens;   /* or LLM_API_UNSET */
    int64_t            top_logprobs;
} llm_api_responses_t;

/* endpoint_responses.c: reads a request, except for the beginning of its
   answer */
extern const llm_api_fields_t  llm_api_responses_fields;
extern const llm_api_name_t    llm_api_responses_names[];
int llm_api_responses_parse(llm_api_reader_t *rd, llm_err_t *err);

/* responses_input.c: checks instructions and input, and writes them to the
   draft's messages */
int llm_api_responses_input(const llm_api_responses_t *b,
    llm_api_draft_t *d, llm_err_t *err);

/* responses_content.c: fills *where, the place of an item's parts */
void llm_api_responses_where(const llm_api_draft_t *d, int assistant,
    llm_api_part_at_t *where);
/* adds a string, or a list of content parts, to the open message */
int llm_api_responses_content(llm_api_draft_t *d, const llm_flat_t *content,
    const llm_api_at_t *at, llm_err_t *err);
/* adds the texts of a list of objects, a line each; returns 1 if there are
   any.  list may be NULL */
int llm_api_responses_texts(llm_buf_t *out, const llm_flat_t *list);

/* responses_items.c: reads an item that another server has recorded; LLM_END:
   its type is unknown, and it cannot be skipped */
int llm_api_responses_recorded(llm_api_draft_t *d, const llm_flat_t *item,
    const llm_flat_t *type, const llm_api_at_t *at, llm_err_t *err);
/* is the item a message, reasoning or a call of a model? */
int llm_api_responses_is_said(const llm_flat_t *item);
/* the array of tools that an item brings; NULL: none */
const llm_flat_t *llm_api_responses_brought(const llm_flat_t *item);

/* responses_tools.c: checks tools and writes them to the draft's tools */
int llm_api_responses_tools(llm_api_reader_t *rd, const llm_api_responses_t *b,
    llm_api_draft_t *d, llm_err_t *err);
/* the model's name of the function that v names, in a namespace unless space
   is NULL; the caller frees it */
int llm_api_responses_name(const llm_flat_t *v, const llm_flat_t *space,
    const llm_api_at_t *at, llm_buf_t *full, llm_err_t *err);
/* splits a model's name of a function: returns the namespace, or "", and sets
   *name to the function's own name */
llm_str_t llm_api_responses_space(const llm_api_t *a, llm_str_t *name);

/* responses_head.c: writes all of a response that is known before it begins to
   rd->head, left open */
void llm_api_responses_head(llm_api_reader_t *rd);

/* responses_output.c: as in llm_api_endpoint_t */
int llm_api_responses_keep(llm_api_t *a, const llm_event_t *ev,
    llm_err_t *err);
void llm_api_responses_event(llm_api_t *a, const llm_event_t *ev,
    llm_buf_t *out);
int llm_api_responses_body(llm_api_t *a, size_t max, llm_buf_t *out);
void llm_api_responses_fail(llm_api_t *a, const llm_err_t *err,
    llm_buf_t *out);

#endif /* LLM_API_RESPONSES_H */
