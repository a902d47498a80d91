/*
 * How many CPUs this thread may use: its affinity (taskset, a cpuset, what
 * systemd's CPUAffinity= gave), and the share of time that its control group
 * and those around it allow (systemd's CPUQuota=, docker's --cpus).
 */

#ifndef LLM_CPU_CPUS_H
#define LLM_CPU_CPUS_H

#include <stdint.h>

/* at least 1 */
uint32_t llm_cpus(void);
/*
 * CPUs' worth of time that the control groups allow, rounded up; 0: as much
 * as there is.  root goes before "/proc" and "/sys": "", or a test's folder.
 */
uint32_t llm_cpus_quota(const char *root);

#endif /* LLM_CPU_CPUS_H */
