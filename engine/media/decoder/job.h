/*
 * One job of llm-media, in the process that was forked for it.
 */

#ifndef LLM_MEDIA_JOB_H
#define LLM_MEDIA_JOB_H

#include "engine/base/base.h"

/* enters the sandbox, reads the file from the socket fd, decodes it and writes
   the result; LLM_ERROR: a message was written, or nobody listens */
int llm_job_run(int fd, uint64_t memory, uint32_t seconds);
/* monotonic time in microseconds */
uint64_t llm_decode_now(void);

#endif /* LLM_MEDIA_JOB_H */
