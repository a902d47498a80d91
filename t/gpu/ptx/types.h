/*
 * What a library of translated kernels (objs/llm_emu_ptx.so) and the emulator
 * know of each other; included by C and by C++.  The library is loaded by
 * t/gpu/emu/ptx.cpp, calls the emulator through ptx_emulator_t, and is called
 * through ptx_library_t.
 */

#ifndef LLM_PTX_TYPES_H
#define LLM_PTX_TYPES_H

#include <stddef.h>
#include <stdint.h>

#define PTX_MEET_BYTES  64              /* EMU_MEET_BYTES */

typedef struct ptx_module_s  ptx_module_t;

/* a thread of the running block: emu::Thread */

typedef struct {
    uint32_t             tid[3];
    uint32_t             lane;
    uint32_t             warp;
    uint32_t             early;         /* kernels before may still run */
    void                *met;           /* the emulator's own */
} ptx_thread_t;

/* the running block: emu::Block */

typedef struct {
    uint32_t             bid[3];
    uint32_t             threads[3];
    uint32_t             grid[3];
    uint8_t             *shared;
} ptx_block_t;

typedef struct ptx_kernel_s {
    const char          *name;          /* mangled */
    void               (*body)(const uint8_t *params);
    uint32_t             params;        /* bytes */
    uint32_t             shared;        /* bytes of static shared memory */
    uint32_t             threads;       /* most of a block; 0: any number */
    const ptx_module_t  *module;
} ptx_kernel_t;

/* the source of the PTX from a line on */

typedef struct {
    uint32_t             ptx;
    uint32_t             file;
    uint32_t             line;
    uint32_t             into_file;     /* where that was inlined */
    uint32_t             into_line;     /* 0: it was not */
} ptx_site_t;

/* memory of a file's .global and .const variables */

typedef struct {
    void                *p;
    size_t               size;
} ptx_variable_t;

struct ptx_module_s {
    const char            *name;        /* of the PTX */
    const char *const     *files;
    const ptx_site_t      *sites;       /* by lines of the PTX */
    uint32_t               n_sites;
    const ptx_variable_t  *variables;   /* the last one has p == NULL */
    const ptx_kernel_t    *kernels;     /* the last one has name == NULL */
};

typedef struct {
    const ptx_thread_t *const  *thread; /* *thread: the running one */
    const ptx_block_t          *block;

    void        (*barrier)(void);
    void        (*meet)(unsigned mask, const void *mine, size_t size,
                        void (*last)(uint8_t (*slots)[PTX_MEET_BYTES]));
    const void *(*at)(unsigned lane);
    void        (*copy_async)(void *dst, const void *src, size_t size);
    void        (*copy_commit)(void);
    void        (*copy_wait)(unsigned groups_left);
    void        (*mma)(float d[4], const uint32_t a[4], const uint32_t b[2],
                       int bf16);
    void        (*early_wait)(void);

    /* reports the running thread and ends the process */
    void        (*fail)(const char *what);
} ptx_emulator_t;

typedef struct {
    const ptx_module_t *const  *modules;        /* NULL ends them */
    int                         some;           /* not of all kernels */

    /* device memory or pinned memory begins and ends to exist */
    void        (*mapped)(void *p, size_t size);
    void        (*unmapped)(void *p);

    /* before the blocks of a launch; shared: the launch's dynamic bytes;
       early: kernels before it may still run */
    void        (*grid)(const ptx_kernel_t *kernel, size_t shared, int early);
    void        (*block)(void);

    /* an asynchronous copy has arrived */
    void        (*copied)(void *dst, size_t size);
} ptx_library_t;

/* of the library; the only symbol that it exports */
typedef const ptx_library_t *(*ptx_open_pt)(const ptx_emulator_t *emulator);


/* PTX's prmt: four bytes of b:a, chosen by the low four nibbles of sel; bit 3
   of a nibble repeats the byte's sign bit */

static inline uint32_t
ptx_permute(uint32_t a, uint32_t b, uint32_t sel)
{
    int       i;
    uint32_t  byte, r;

    for (i = 0, r = 0; i < 4; i++) {
        byte = (uint32_t) (((uint64_t) b << 32 | a) >> (sel >> 4 * i & 7) * 8)
               & 255;
        byte = sel >> 4 * i & 8 ? (byte & 128 ? 255u : 0) : byte;
        r |= byte << 8 * i;
    }

    return r;
}

#endif /* LLM_PTX_TYPES_H */
