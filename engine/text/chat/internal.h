/*
 * What chat.c, mend.c, probe.c and render.c share.
 */

#ifndef LLM_CHAT_INTERNAL_H
#define LLM_CHAT_INTERNAL_H

#include "engine/emit/format.h"
#include "engine/text/chat/norm.h"

struct llm_chat_s {
    llm_jinja_t  *template;
    char         *bos;
    char         *eos;
    uint64_t      norms;                /* LLM_CN_...: always apply */
    uint64_t      lenient;              /* and if the request is lenient */
    uint64_t      never;                /* and these do harm */
    int           works;                /* it renders what a user says */
    int           calls;                /* and shows calls of tools */
    int           no_marks;             /* but no answer with the marks of
                                           channels in it */
    llm_format_t  format;               /* of the model's answers */
};

/*
 * render.c: one rendering of the request with its messages normalised so.
 */
int llm_chat_render_as(const llm_chat_t *c, const llm_flat_t *request,
    uint64_t what, const llm_jinja_opts_t *opts, llm_prompt_t *out,
    llm_err_t *err);

/* the same in two steps; told as in norm.h */
int llm_chat_vars(const llm_chat_t *c, const llm_flat_t *request,
    uint64_t what, const llm_chat_told_t *told, int64_t now, llm_buf_t *b,
    llm_err_t *err);
int llm_chat_render_vars(const llm_chat_t *c, const llm_buf_t *vars,
    const llm_jinja_opts_t *opts, llm_prompt_t *out, llm_err_t *err);

/*
 * mend.c: renders the request as what says or, where the template refuses
 * that, with as little of it mended as will do; *mended is what was.  err says
 * why the template has refused the request as it is.
 */
int llm_chat_mend(const llm_chat_t *c, const llm_flat_t *request,
    uint64_t what, const llm_jinja_opts_t *opts, llm_prompt_t *out,
    uint64_t *mended, llm_err_t *err);

/* marks.c: the request itself, or a copy in b without marks of channels in what
   an assistant has said; NULL: no memory */
const llm_flat_t *llm_chat_unmark(const llm_flat_t *request, llm_buf_t *b);

/* probe.c: finds out what the template needs, and whether it works */
void llm_chat_probe(llm_chat_t *c);
/* probe_turns.c: the same of turns with calls, behind all else */
void llm_chat_probe_turns(llm_chat_t *c);

#endif /* LLM_CHAT_INTERNAL_H */
