/*
 * Memory of the CPU backend.
 *
 * Weights and scratch memory are in huge pages: a step reads all weights, and
 * with small pages it would also wait for reads of the page table.
 * Activations are in small pages, because they are used in small parts.  A KV
 * cache has both (kv.c).
 *
 * These mappings are left out of core dumps: weights are gigabytes that the
 * model file has, too, and KV pages are computed from what users wrote.  Blocks
 * smaller than a huge page come from the heap, and are in core dumps.
 *
 * Most weights are too small for huge pages of their own.  They are allocated
 * one after another from slabs, in the order in which they are created, which
 * is also the order in which a step reads them.  A slab is freed with its last
 * weight.  If there is no memory for a slab of the usual size, a smaller one is
 * allocated: the model may fit although a control group allows no more.
 */

#define _GNU_SOURCE

#include "kernels/cpu/cpu.h"
#include "engine/base/machine.h"

#include <sys/mman.h>
#include <unistd.h>

/* since Linux 5.14; with an older kernel the call fails, and each page is read
   when it is first used */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#endif

#define LLM_CPU_SLAB     ((size_t) 64 << 20)


/* Sizes that exceed the machine's memory are refused here, because the kernel
   would grant them and kill the process once it uses the memory. */

void *
llm_cpu_alloc(size_t size, int huge)
{
    char    *p, *start;
    void    *m;
    size_t   n;

    if (size < LLM_HUGE_PAGE) {
        n = llm_align(size ? size : 1, 64);
        m = aligned_alloc(64, n);

        return m ? memset(m, 0, n) : NULL;
    }

    if (size > SIZE_MAX - 2 * LLM_HUGE_PAGE || size > llm_machine_memory("")) {
        return NULL;
    }

    n = llm_align(size, 4096);

    p = mmap(NULL, n + LLM_HUGE_PAGE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        return NULL;
    }

    start = (char *) llm_align((uintptr_t) p, LLM_HUGE_PAGE);

    if (start > p) {
        munmap(p, (size_t) (start - p));
    }

    if (p + LLM_HUGE_PAGE > start) {
        munmap(start + n, (size_t) (p + LLM_HUGE_PAGE - start));
    }

    (void) madvise(start, n, MADV_DONTDUMP);

    if (huge) {
        llm_cpu_huge(start, n, 1);
    }

    return start;
}


void
llm_cpu_huge(void *p, size_t size, int huge)
{
    uintptr_t  start, end, unit;

    unit = huge ? LLM_HUGE_PAGE : 4096;
    start = llm_align((uintptr_t) p, unit);
    end = ((uintptr_t) p + size) / 4096 * 4096;

    if (start < end) {
        (void) madvise((void *) start, end - start,
                       huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    }
}


void
llm_cpu_free(void *p, size_t size)
{
    if (p == NULL) {
        return;
    }

    if (size < LLM_HUGE_PAGE) {
        free(p);

    } else {
        munmap(p, llm_align(size, 4096));
    }
}


/* memory from the heap counts as used */

size_t
llm_cpu_unused(const void *p, size_t size)
{
    size_t          at, i, n, page, used;
    unsigned char   here[4096];         /* one byte for each page; bit 0: it is
                                           in memory */

    if (size < LLM_HUGE_PAGE) {
        return 0;
    }

    page = (size_t) sysconf(_SC_PAGESIZE);
    used = 0;

    for (at = 0; at < size; at += n * page) {
        n = llm_min((size - at + page - 1) / page, sizeof(here));

        if (mincore((char *) (uintptr_t) p + at, n * page, here) == -1) {
            return 0;
        }

        for (i = 0; i < n; i++) {
            used += here[i] & 1;
        }
    }

    return size - llm_min(size, used * page);
}


static void
llm_cpu_advise(const void *p, size_t size, int advice)
{
    char       *start;
    uintptr_t   page;

    page = (uintptr_t) sysconf(_SC_PAGESIZE);
    start = (char *) ((uintptr_t) p & ~(page - 1));
    size += (size_t) ((const char *) p - start);

    (void) madvise(start, size, advice);
}


void
llm_cpu_populate(const void *p, size_t size)
{
    llm_cpu_advise(p, size, MADV_POPULATE_READ);
}


void
llm_cpu_read_file(const void *p, size_t size)
{
    llm_cpu_advise(p, 2 * size, MADV_WILLNEED);
    llm_cpu_populate(p, size);
}


llm_cpu_slab_t *
llm_cpu_slab_take(llm_cpu_t *cpu, size_t size, uint8_t **data)
{
    llm_cpu_slab_t  *slab;

    slab = cpu->slab;

    if (slab == NULL || size > slab->size - slab->used) {

        slab = calloc(1, sizeof(llm_cpu_slab_t));
        if (slab == NULL) {
            return NULL;
        }

        slab->size = llm_max(size, LLM_CPU_SLAB);

        while ((slab->data = llm_cpu_alloc(slab->size, 1)) == NULL
               && slab->size > size)
        {
            slab->size = llm_max(size, slab->size / 2);
        }

        if (slab->data == NULL) {
            free(slab);
            return NULL;
        }

        cpu->slab = slab;
    }

    *data = slab->data + slab->used;

    slab->used += llm_min(llm_align(size, 64), slab->size - slab->used);
    slab->n_weights++;

    return slab;
}


void
llm_cpu_slab_free(llm_cpu_t *cpu, llm_cpu_slab_t *slab)
{
    if (slab == NULL || --slab->n_weights) {
        return;
    }

    if (cpu->slab == slab) {
        cpu->slab = NULL;
    }

    llm_cpu_free(slab->data, slab->size);
    free(slab);
}
