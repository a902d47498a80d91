/*
 * The CPU time of this thread, for bounds of work: other processes do not
 * count, the machine's load does not matter.
 */

#ifndef LLM_T_CPU_H
#define LLM_T_CPU_H

#include <stdint.h>
#include <time.h>

static inline uint64_t
cpu_us(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);

    return (uint64_t) t.tv_sec * 1000000 + (uint64_t) t.tv_nsec / 1000;
}

#endif /* LLM_T_CPU_H */
