/*
 * What chat.c, probe.c and render.c share.
 */

#ifndef LLM_CHAT_INTERNAL_H
#define LLM_CHAT_INTERNAL_H

#include "engine/emit/format.h"
#include "engine/text/chat/norm.h"

struct llm_chat_s {
    llm_jinja_t  *template;
    char         *bos;
    char         *eos;
    unsigned      norms;                /* LLM_CN_...: always apply */
    unsigned      lenient;              /* and if the request is lenient */
    int           works;                /* it renders what a user says */
    llm_format_t  format;               /* of the model's answers */
};

/*
 * render.c: one rendering of the request with its messages normalised so.
 */
int llm_chat_render_as(const llm_chat_t *c, const llm_flat_t *request,
    unsigned what, const llm_jinja_opts_t *opts, llm_prompt_t *out,
    llm_err_t *err);

/* probe.c: finds out what the template needs, and whether it works */
void llm_chat_probe(llm_chat_t *c);

#endif /* LLM_CHAT_INTERNAL_H */
