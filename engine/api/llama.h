/*
 * What the endpoints of llama-server's own dialect share.
 */

#ifndef LLM_API_LLAMA_H
#define LLM_API_LLAMA_H

#include "engine/api/endpoint.h"

/* timings.c: adds "timings":{...} of an answer that goes on */
void llm_api_llama_now(llm_buf_t *out, const llm_api_t *a);
/* the same of an answer that is complete */
void llm_api_llama_timed(llm_buf_t *out, const llm_api_t *a);
/* adds "prompt_progress":{...} of a PROGRESS event, and timings if asked for */
void llm_api_llama_progress(llm_buf_t *out, const llm_api_t *a,
    const llm_event_t *ev, int timings);
/* llama_end.c: the text of a choice's prompt, without quotes */
void llm_api_llama_prompt(llm_buf_t *out, const llm_api_t *a,
    uint32_t choice);
/* did the context end the choice, whose prompt has n tokens? */
int llm_api_llama_truncated(const llm_api_t *a, const llm_api_choice_t *c,
    uint32_t n);
/* adds ,"__verbose":{...} of a chat; own is generation_settings, as text */
void llm_api_llama_verbose(llm_buf_t *out, const llm_api_t *a);
/* why a choice has ended: "limit", "word", "eos" */
const char *llm_api_llama_stop(const llm_api_choice_t *c);
/* adds the request's sampling as llama-server names it, an object; its lists
   are written */
void llm_api_llama_settings(llm_buf_t *out, const llm_api_reader_t *rd);

/* llama.c: leaves of the object that out has from `start` on the members with
   these names, `len` bytes with a NUL after each, as members by these names:
   "a/b" is the member b of a */
void llm_api_llama_filter(llm_buf_t *out, size_t start, const char *names,
    size_t len);

/* logprobs of a token, whose probabilities are those of the model; or its
   probability in the draw (post_sampling_probs) */
extern const llm_api_logprobs_t  llm_api_llama_logprobs;
extern const llm_api_logprobs_t  llm_api_llama_probs;

#endif /* LLM_API_LLAMA_H */
