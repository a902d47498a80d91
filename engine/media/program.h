/*
 * A program that decodes as a pool knows it: where it is, its process, and the
 * socket on which jobs are asked for; see wire.h.
 */

#ifndef LLM_MEDIA_PROGRAM_H
#define LLM_MEDIA_PROGRAM_H

#include "engine/media/wire.h"

#include <sys/types.h>

typedef struct {
    pid_t     pid;                      /* 0: it does not run */
    int       socket;
    uint64_t  born;                     /* its start time, of process.h */
    int       killed;                   /* 1: a signal ended it before it had
                                           said anything */
} llm_media_program_t;

/* name: "llm-media" or another; dir: as of llm_media_pool_create().
   LLM_ABSENT: it is not there, or ends at once (see killed); LLM_ERROR: another reason, as
   that it says nothing for 20 seconds; *err says it, with status 500 or 503 */
int llm_media_program_start(llm_media_program_t *p, const char *name,
    const char *dir, llm_err_t *err);
/* asks for a job with these two descriptors, which stay the caller's;
   LLM_ERROR: the program has gone */
int llm_media_program_ask(llm_media_program_t *p,
    const llm_media_start_t *start, int socket, int status);
/* ends the program, and with it its jobs, if it runs */
void llm_media_program_stop(llm_media_program_t *p);

#endif /* LLM_MEDIA_PROGRAM_H */
