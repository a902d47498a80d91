/*
 * Runs the work of a step on the device's threads.
 */

#include "kernels/cpu/cpu.h"

/* nanoseconds; shorter work runs on the calling thread alone */
#define LLM_RUN_ALONE    3000.0


void
llm_cpu_run(llm_cpu_t *cpu, llm_pool_pt fn, void *arg, uint32_t n,
    double work)
{
    uint32_t  i;

    if (work < LLM_RUN_ALONE) {
        for (i = 0; i < n; i++) {
            fn(arg, i, 0);
        }

        return;
    }

    llm_pool_run(cpu->device->pool, fn, arg, n);
}


uint32_t
llm_cpu_rows(const llm_cpu_t *cpu, llm_rows_t rows)
{
    return rows == LLM_ROWS_ALL ? cpu->batch->n_tokens : cpu->batch->n_out;
}
