/*
 * What contents consist of, in all dialects: parts of a chat or of Responses,
 * blocks of Messages.  The endpoints' readers see only the texts that these
 * become.
 */

#ifndef LLM_API_PARTS_H
#define LLM_API_PARTS_H

#include "engine/api/media.h"

/* what stands for an image without a name that the model cannot read */
#define LLM_API_PART_IMAGE  "[image]"

/* what the model sees of a part */
typedef enum {
    LLM_API_PART_NOTHING = 0,           /* nothing: only the writer of the part
                                           can read it */
    LLM_API_PART_TEXT,
    LLM_API_PART_REASONING,
    LLM_API_PART_MEDIA                  /* an image or sound */
} llm_api_part_kind_t;

typedef struct {
    llm_api_part_kind_t  kind;
    llm_str_t            text;          /* points into the body, or into made */
    llm_buf_t            made;
    llm_api_media_t      media;         /* of MEDIA; points into the body */
} llm_api_part_t;

/* the place of a part */
typedef struct {
    /* in an assistant's message, which may have reasoning */
    int          assistant;
    /* the part comes before the last turn of an assistant, so it has been
       answered: a part that the model cannot read, such as an image, becomes a
       placeholder */
    int          old;
    /* the part is in a message that the answer continues, word for word: it
       must not become a placeholder */
    int          goes_on;
    /* end of an error's message: the types that the endpoint takes */
    const char  *known;
    /* what the model takes; filled by llm_api_media_rules() */
    llm_api_media_rules_t  rules;
} llm_api_part_at_t;

void llm_api_part_init(llm_api_part_t *p);
void llm_api_part_free(llm_api_part_t *p);
/* reads an object of a list of parts; what p held before is dropped.  Media
   that the model takes are not decoded yet */
int llm_api_part_read(llm_api_part_t *p, const llm_flat_t *part,
    const llm_api_part_at_t *where, const llm_api_at_t *at, llm_err_t *err);

/* is this item of a list said by an assistant? */
typedef int (*llm_api_is_said_pt)(const llm_flat_t *item);

/* the number of items before the last turn of an assistant; a turn at the end
   of the list, which the answer continues, does not count */
uint32_t llm_api_old_turns(const llm_flat_t *list, llm_api_is_said_pt said);
/* the same for messages with a role */
uint32_t llm_api_old_messages(const llm_flat_t *messages);

#endif /* LLM_API_PARTS_H */
