/*
 * CPUs and memory that this process may use.
 *
 * CPUs are limited by the thread's affinity (taskset, a cpuset, systemd's
 * CPUAffinity=) and by the CPU time of its control group and the group's
 * parents (systemd's CPUQuota=, docker's --cpus).  Memory is the machine's,
 * or the limit of the same groups (MemoryMax=, --memory).
 *
 * root: prefix of "/proc" and "/sys": "", or the folder of a test.
 */

#ifndef LLM_MACHINE_H
#define LLM_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* CPUs that this thread may use, at least 1 */
uint32_t llm_machine_cpus(void);
/* CPU time that the control groups allow, in CPUs, rounded up; 0: no limit */
uint32_t llm_machine_quota(const char *root);

/* bytes of memory, used or free */
size_t llm_machine_memory(const char *root);
/* bytes that this process may still allocate; cached pages of files count as
   free */
size_t llm_machine_memory_free(const char *root);

#endif /* LLM_MACHINE_H */
