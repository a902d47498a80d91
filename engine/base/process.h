/*
 * Which process it is that has a pid: pids are used again.
 */

#ifndef LLM_PROCESS_H
#define LLM_PROCESS_H

#include <stdint.h>

/* when a process started, in ticks of this boot; 0: not known */
uint64_t llm_process_born(int32_t pid);
/* is the process still there that had this pid and was born then?  If its
   birth is not known (0) any process with this pid counts */
int llm_process_lives(int32_t pid, uint64_t born);

#endif /* LLM_PROCESS_H */
