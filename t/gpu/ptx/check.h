/*
 * Shared by memory.c, races.c and run.c of the library of translated kernels.
 */

#ifndef LLM_PTX_CHECK_H
#define LLM_PTX_CHECK_H

#include "t/gpu/ptx/run.h"

/* most shared memory of a block, EMU_SHARED_MAX, and static memory before it */
#define PTX_SHARED_MAX  (256 * 1024)

typedef enum {
    PTX_READ = 0,
    PTX_WRITE,
    PTX_ATOMIC_OP
} ptx_access_t;

/* for each byte of memory, who wrote it last and who has read it (races.c) */

typedef struct {
    uint32_t            *written;
    uint32_t            *read;
} ptx_shadow_t;

extern const ptx_kernel_t  *ptx_kernel;
extern ptx_shadow_t         ptx_shared_shadow;

/* reports what a line of the PTX has done, and ends the process */
void ptx_fail(uint32_t line, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

/* memory.c */
void ptx_mapped(void *p, size_t size);
void ptx_unmapped(void *p);
void ptx_memory_grid(size_t shared);
uint8_t *ptx_shared_at(uint32_t a, uint32_t n, uint32_t line);
uint8_t *ptx_global_at(uint64_t a, uint32_t n, uint32_t line);
void ptx_each_shadow(void (*f)(ptx_shadow_t *shadow, size_t size));

/* races.c: the times of barriers, and accesses to n bytes whose shadow begins
   at `at` of s */
void ptx_race_grid(int early);
void ptx_race_block(void);
void ptx_race_barrier(void);
void ptx_race_warp_barrier(unsigned warp);

void ptx_race_1(const ptx_shadow_t *s, size_t at, ptx_access_t access,
    int global, uint64_t a, uint32_t line);
void ptx_race_2(const ptx_shadow_t *s, size_t at, ptx_access_t access,
    int global, uint64_t a, uint32_t line);
void ptx_race_4(const ptx_shadow_t *s, size_t at, ptx_access_t access,
    int global, uint64_t a, uint32_t line);
void ptx_race_8(const ptx_shadow_t *s, size_t at, ptx_access_t access,
    int global, uint64_t a, uint32_t line);
void ptx_race_16(const ptx_shadow_t *s, size_t at, ptx_access_t access,
    int global, uint64_t a, uint32_t line);

/* shared memory that an asynchronous copy writes until it is waited for */
void ptx_race_copying(size_t at, size_t size);
void ptx_race_copied(size_t at, size_t size);

#endif /* LLM_PTX_CHECK_H */
