/*
 * Checks of a model's file and configuration before anything is loaded.
 * `nginx -t`, a reload, llm_admin and objs/llm info make the same checks.
 */

#ifndef LLM_SERVE_CHECK_H
#define LLM_SERVE_CHECK_H

#include "engine/llm.h"
#include "engine/model/model.h"

#define LLM_TEMPLATE_MAX  (4u << 20)    /* bytes of a template file */

/*
 * Can the file with this header be served?  LLM_ERROR and err: no.  Refuses
 * all that loading would refuse, except lack of memory and unreadable pages of
 * the file.  *hp is filled in.
 */
int llm_file_usable(const llm_gguf_t *g, llm_hparams_t *hp, llm_err_t *err);

/* load.c: the sizes that the configuration asks for, of a file of which so many
   sequences run at once */
void llm_instance_sizes(const llm_engine_model_t *conf, uint32_t parallel,
    llm_model_opts_t *opts);
/* load.c: what is loaded after the model, for which memory is left */
void llm_instance_beside(const llm_engine_model_t *conf,
    llm_model_opts_t *opts);
/* common.c: is this kind among those of speculate=? */
int llm_conf_drafts(const llm_engine_model_t *conf, llm_draft_kind_t kind);

#endif /* LLM_SERVE_CHECK_H */
