/*
 * Work of a step on the device's threads, and the scratch that they have.
 */

#include "kernels/cpu/cpu.h"

/* work below so many nanoseconds is not worth waking a thread */
#define LLM_RUN_ALONE    3000.0


int
llm_cpu_scratch_reserve(llm_cpu_t *cpu, size_t size, llm_err_t *err)
{
    size_t    total;
    uint32_t  n;

    /* an odd number of lines apart: threads do not share cache sets */
    size = llm_align(size, 128) + 64;
    if (size <= cpu->scratch_size) {
        return LLM_OK;
    }

    n = llm_pool_threads(cpu->pool);

    llm_cpu_free(cpu->scratch, n * cpu->scratch_size);
    cpu->scratch = NULL;
    cpu->scratch_size = 0;

    if (llm_mul_overflow(n, size, &total)
        || (cpu->scratch = llm_cpu_alloc(total, 1)) == NULL)
    {
        return llm_fail(err, "cpu: no memory for scratch of %u threads", n);
    }

    cpu->scratch_size = size;

    return LLM_OK;
}


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

    llm_pool_run(cpu->pool, fn, arg, n);
}


uint32_t
llm_cpu_rows(const llm_cpu_t *cpu, llm_rows_t rows)
{
    return rows == LLM_ROWS_ALL ? cpu->batch->n_tokens : cpu->batch->n_out;
}
