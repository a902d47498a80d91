/*
 * What contents consist of, in the words of all dialects: parts of a chat or
 * of Responses, blocks of Messages.  The endpoints' readers see texts only.
 */

#ifndef LLM_API_PARTS_H
#define LLM_API_PARTS_H

#include "engine/api/endpoint.h"

/* what a part is to the model */
typedef enum {
    LLM_API_PART_NOTHING = 0,           /* nobody but its writer can read it */
    LLM_API_PART_TEXT,
    LLM_API_PART_REASONING
} llm_api_part_kind_t;

typedef struct {
    llm_api_part_kind_t  kind;
    llm_str_t            text;          /* in the body, or in made */
    llm_buf_t            made;
} llm_api_part_t;

/* where it stands */
typedef struct {
    /* in an assistant's message, which may have reasoning */
    int          assistant;
    /* before the last turn of an assistant: it has been answered, so that of
       what the model cannot read, an image, a placeholder is left */
    int          old;
    /* in a message that the answer goes on from, in the same words: there is
       no placeholder in it */
    int          goes_on;
    /* how an error ends: what the endpoint would take */
    const char  *known;
} llm_api_part_at_t;

void llm_api_part_init(llm_api_part_t *p);
void llm_api_part_free(llm_api_part_t *p);
/* an object of a list of parts; what p had is gone */
int llm_api_part_read(llm_api_part_t *p, const llm_flat_t *part,
    const llm_api_part_at_t *where, const llm_api_at_t *at, llm_err_t *err);

/* is this item of a list an assistant's? */
typedef int (*llm_api_is_said_pt)(const llm_flat_t *item);

/* how many items are before the last turn of an assistant; one at the end of
   the list, which an answer goes on, does not count */
uint32_t llm_api_old_turns(const llm_flat_t *list, llm_api_is_said_pt said);
/* the same for messages with a role */
uint32_t llm_api_old_messages(const llm_flat_t *messages);

#endif /* LLM_API_PARTS_H */
