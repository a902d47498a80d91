/*
 * What is checked of a file and of a model's configuration before anything is
 * loaded: the same for `nginx -t`, for a reload, for llm_admin and for
 * objs/llm info.
 */

#ifndef LLM_SERVE_CHECK_H
#define LLM_SERVE_CHECK_H

#include "engine/llm.h"
#include "engine/model/model.h"

#define LLM_TEMPLATE_MAX  (4u << 20)    /* bytes of a template file */

/*
 * Can a file of this header be served?  It can, unless memory is short or
 * pages of the file are unreadable: whatever else loading would refuse of it
 * is refused here.
 */
int llm_file_usable(const llm_gguf_t *g, llm_hparams_t *hp, llm_err_t *err);

/* load.c: the sizes that a configuration asks for */
void llm_instance_sizes(const llm_engine_model_t *conf, llm_model_opts_t *opts);

#endif /* LLM_SERVE_CHECK_H */
