/*
 * Identifies processes by pid and start time, because the kernel reuses pids.
 */

#ifndef LLM_PROCESS_H
#define LLM_PROCESS_H

#include <stdint.h>

/* start time of a process, in clock ticks since boot; 0: unknown */
uint64_t llm_process_born(int32_t pid);
/* does the process with this pid and start time still exist?  If either start
   time is unknown, any process with this pid is taken for it */
int llm_process_lives(int32_t pid, uint64_t born);

#endif /* LLM_PROCESS_H */
