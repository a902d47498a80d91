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
    uint64_t      norms;                /* LLM_CN_...: applied to every
                                           request */
    uint64_t      lenient;              /* applied to lenient requests, too */
    uint64_t      never;                /* not applied, because they do harm */
    int           works;                /* 1: the template renders what a user
                                           says */
    int           calls;                /* 1: the template shows calls of
                                           tools */
    int           no_marks;             /* 1: the template refuses answers that
                                           contain marks of channels */
    llm_format_t  format;               /* format of the model's answers */
};

/*
 * render.c: renders the request once, with its messages normalised as `what`
 * says.
 */
int llm_chat_render_as(const llm_chat_t *c, const llm_flat_t *request,
    uint64_t what, const llm_jinja_opts_t *opts, llm_prompt_t *out,
    llm_err_t *err);

/* the same in two steps; told: see norm.h */
int llm_chat_vars(const llm_chat_t *c, const llm_flat_t *request,
    uint64_t what, const llm_chat_told_t *told, int64_t now, llm_buf_t *b,
    llm_err_t *err);
int llm_chat_render_vars(const llm_chat_t *c, const llm_buf_t *vars,
    const llm_jinja_opts_t *opts, llm_prompt_t *out, llm_err_t *err);

/*
 * mend.c: renders the request as `what` says.  If the template refuses that,
 * mends as little as possible; *mended: what was mended.  err says why the
 * template has refused the unchanged request.
 */
int llm_chat_mend(const llm_chat_t *c, const llm_flat_t *request,
    uint64_t what, const llm_jinja_opts_t *opts, llm_prompt_t *out,
    uint64_t *mended, llm_err_t *err);

/* marks.c: the request itself or, if an assistant's message contains marks of
   channels, a copy in b without them; NULL: no memory */
const llm_flat_t *llm_chat_unmark(const llm_flat_t *request, llm_buf_t *b);

/* probe.c: finds out what the template needs, and whether it works at all */
void llm_chat_probe(llm_chat_t *c);
/* probe_turns.c: the same for turns with calls; called after everything else */
void llm_chat_probe_turns(llm_chat_t *c);

#endif /* LLM_CHAT_INTERNAL_H */
