/*
 * Text Embeddings Inference's API, see tei.c.
 */

#ifndef LLM_API_TEI_H
#define LLM_API_TEI_H

#include "engine/api/endpoint.h"

/* takes the value of truncation_direction, or one without data; *left: 1 for
   'Left' */
int llm_api_tei_direction(llm_str_t s, int *left, llm_err_t *err);
/* llm_api_endpoint_t's error() */
void llm_api_tei_error(const llm_err_t *err, llm_str_t id, llm_buf_t *out);

#endif /* LLM_API_TEI_H */
