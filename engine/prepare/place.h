/*
 * Where the images and sounds of a prompt are, by the placeholders that its
 * template has written; see layout.h for what replaces them.
 */

#ifndef LLM_PREPARE_PLACE_H
#define LLM_PREPARE_PLACE_H

#include "engine/prepare/layout.h"
#include "engine/text/jinja/jinja.h"

/* lays out the image or sound of place k, from 0; LLM_ERROR and *err end the
   layout; LLM_LATER: not yet, it is asked for again by the next call */
typedef struct {
    void   *data;
    int   (*add)(void *data, uint32_t k, llm_layout_t *l, llm_err_t *err);
} llm_place_images_t;

/* placeholders in the prompt; kinds: LLM_MEDIUM_... of the first `most` of
   them, may be NULL */
uint32_t llm_place_count(const llm_prompt_t *p, const llm_image_rule_t *rule,
    uint32_t *kinds, uint32_t most);

typedef struct llm_place_s  llm_place_t;

/* for the layout of a prompt, which must stay until the end; NULL: no memory */
llm_place_t *llm_place_create(const llm_prompt_t *p,
    const llm_image_rule_t *rule);
void llm_place_free(llm_place_t *t);
/* lays out the whole prompt, in order; LLM_LATER: as far as images->add() goes
   now, the next call with the same layout goes on */
int llm_place_images(llm_place_t *t, const llm_place_images_t *images,
    llm_layout_t *l, llm_err_t *err);

#endif /* LLM_PREPARE_PLACE_H */
