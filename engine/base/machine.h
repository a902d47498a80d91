/*
 * What there is of the machine.
 *
 * How many CPUs this thread may use: its affinity (taskset, a cpuset, what
 * systemd's CPUAffinity= gave), and the share of time that its control group
 * and those around it allow (systemd's CPUQuota=, docker's --cpus).  How much
 * memory: the machine's, or what the same groups allow (MemoryMax=,
 * --memory).
 *
 * root goes before "/proc" and "/sys": "", or a test's folder.
 */

#ifndef LLM_MACHINE_H
#define LLM_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* at least 1 */
uint32_t llm_machine_cpus(void);
/* CPUs' worth of time that the control groups allow, rounded up; 0: as much
   as there is */
uint32_t llm_machine_quota(const char *root);

/* bytes of memory, in use or not */
size_t llm_machine_memory(const char *root);
/* bytes that this process may still take; pages of files that can be dropped
   count as free */
size_t llm_machine_memory_free(const char *root);

#endif /* LLM_MACHINE_H */
