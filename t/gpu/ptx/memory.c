/*
 * Alignment and bounds of every access to shared and global memory.  Shared
 * memory is what the launch asked for after the kernel's static variables;
 * global memory is the device's allocations, pinned memory and the variables of
 * the translated files.
 */

#include "t/gpu/ptx/check.h"

#include <stdlib.h>
#include <sys/mman.h>

#define CACHED     256                  /* pages whose memory is remembered */
#define OWN_STACK  (160 * 1024)         /* more than a fiber's */

typedef struct range_s  range_t;

struct range_s {
    uint8_t             *p;
    size_t               size;
    ptx_shadow_t         shadow;        /* made when it is first used */
};

ptx_shadow_t       ptx_shared_shadow;

static uint32_t    shared_end;          /* of the window */
static range_t   **ranges;              /* by address */
static size_t      n_ranges;
static range_t    *cache[CACHED];


static void
make_shadow(ptx_shadow_t *s, size_t size)
{
    void  *p;

    p = mmap(NULL, 2 * size * sizeof(uint32_t), PROT_READ|PROT_WRITE,
             MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED) {
        ptx_emulator->fail("no memory for the shadow of memory");
    }

    s->written = (uint32_t *) p;
    s->read = s->written + size;
}


void
ptx_each_shadow(void (*f)(ptx_shadow_t *shadow, size_t size))
{
    size_t  i;

    f(&ptx_shared_shadow, PTX_SHARED_MAX);

    for (i = 0; i < n_ranges; i++) {
        f(&ranges[i]->shadow, ranges[i]->size);
    }
}


/* the number of ranges that begin at p or before */

static size_t
before(const uint8_t *p)
{
    size_t  lo = 0, hi = n_ranges, at;

    while (lo < hi) {
        at = (lo + hi) / 2;

        if (ranges[at]->p <= p) {
            lo = at + 1;

        } else {
            hi = at;
        }
    }

    return lo;
}


void
ptx_mapped(void *p, size_t size)
{
    size_t    at;
    range_t  *r;

    at = before(p);
    r = calloc(1, sizeof(range_t));
    ranges = realloc(ranges, (n_ranges + 1) * sizeof(range_t *));

    if (r == NULL || ranges == NULL) {
        ptx_emulator->fail("no memory for the list of memory");
    }

    memmove(ranges + at + 1, ranges + at, (n_ranges - at) * sizeof(range_t *));
    r->p = p;
    r->size = size;
    ranges[at] = r;
    n_ranges++;
}


void
ptx_unmapped(void *p)
{
    size_t    at;
    range_t  *r;

    at = before(p);

    if (at == 0 || ranges[at - 1]->p != p) {
        return;
    }

    r = ranges[--at];

    if (r->shadow.written) {
        munmap(r->shadow.written, 2 * r->size * sizeof(uint32_t));
    }

    free(r);
    n_ranges--;
    memmove(ranges + at, ranges + at + 1, (n_ranges - at) * sizeof(range_t *));
    memset(cache, 0, sizeof(cache));
}


void
ptx_memory_grid(size_t shared)
{
    if (ptx_shared_shadow.written == NULL) {
        make_shadow(&ptx_shared_shadow, PTX_SHARED_MAX);
    }

    shared_end = PTX_WINDOW + ptx_kernel->shared + (uint32_t) shared;
}


void
ptx_misaligned(const char *space, uint64_t a, uint32_t n, uint32_t line)
{
    ptx_fail(line, "misaligned access to %u bytes at %s address %#llx", n,
             space, (unsigned long long) a);
}


/* ---- shared memory ---- */

uint32_t
ptx_dynamic(void)
{
    return PTX_WINDOW + (ptx_kernel->shared + 127) / 128 * 128;
}


uint8_t *
ptx_shared_at(uint32_t a, uint32_t n, uint32_t line)
{
    if (a % n) {
        ptx_misaligned("shared", a, n, line);
    }

    if (a < PTX_WINDOW || a > shared_end || shared_end - a < n) {
        ptx_fail(line, "access to %u bytes at shared address %#x: the launch "
                 "has %#x to %#x", n, a, PTX_WINDOW, shared_end);
    }

    return ptx_block->shared + (a - PTX_WINDOW);
}


uint64_t
ptx_generic(uint32_t shared)
{
    return (uint64_t) (uintptr_t) ptx_block->shared + shared - PTX_WINDOW;
}


uint32_t
ptx_to_shared(uint64_t generic)
{
    return (uint32_t) (generic - (uint64_t) (uintptr_t) ptx_block->shared)
           + PTX_WINDOW;
}


/* ---- global memory ---- */

static range_t *
range_of(uint64_t a)
{
    size_t    at;
    range_t  *r, **slot = &cache[a >> 12 & (CACHED - 1)];

    r = *slot;

    if (r && a - (uint64_t) (uintptr_t) r->p < r->size) {
        return r;
    }

    at = before((const uint8_t *) (uintptr_t) a);

    if (at == 0 || a - (uint64_t) (uintptr_t) ranges[at - 1]->p
                   >= ranges[at - 1]->size)
    {
        return NULL;
    }

    r = ranges[at - 1];

    if (r->shadow.written == NULL) {
        make_shadow(&r->shadow, r->size);
    }

    *slot = r;

    return r;
}


static range_t *
global_range(uint64_t a, uint32_t n, uint32_t line)
{
    range_t  *r;

    if (a % n) {
        ptx_misaligned("global", a, n, line);
    }

    r = range_of(a);

    if (r == NULL) {
        size_t  at = before((const uint8_t *) (uintptr_t) a);

        if (at) {
            r = ranges[at - 1];
            ptx_fail(line, "access to %u bytes at global address %#llx: no "
                     "allocation has them; the one before has %zu bytes at "
                     "%p", n, (unsigned long long) a, r->size, (void *) r->p);
        }

        ptx_fail(line, "access to %u bytes at global address %#llx: no "
                 "allocation has them", n, (unsigned long long) a);
    }

    if (r->size - (a - (uint64_t) (uintptr_t) r->p) < n) {
        ptx_fail(line, "access to %u bytes at global address %#llx, beyond the "
                 "%zu bytes of the allocation at %p", n,
                 (unsigned long long) a, r->size, (void *) r->p);
    }

    return r;
}


uint8_t *
ptx_global_at(uint64_t a, uint32_t n, uint32_t line)
{
    (void) global_range(a, n, line);

    return (uint8_t *) (uintptr_t) a;
}


/* ---- loads and stores ---- */

static inline int
is_shared(uint64_t a)
{
    return a - (uint64_t) (uintptr_t) ptx_block->shared
           < shared_end - PTX_WINDOW;
}


/* is a generic address in the running thread's stack? */

static inline int
is_local(uint64_t a)
{
    uint8_t  here;

    return a + OWN_STACK - (uint64_t) (uintptr_t) &here < 2 * OWN_STACK;
}


#define PTX_SHARED(access, kind, n)                                          \
    uint8_t *                                                                \
    ptx_shared_##access##_##n(uint32_t a, uint32_t line)                     \
    {                                                                        \
        uint8_t  *p = ptx_shared_at(a, n, line);                             \
                                                                             \
        ptx_race_##n(&ptx_shared_shadow, a - PTX_WINDOW, kind, 0, a, line);  \
                                                                             \
        return p;                                                            \
    }

#define PTX_GLOBAL(access, kind, n)                                          \
    uint8_t *                                                                \
    ptx_global_##access##_##n(uint64_t a, uint32_t line)                     \
    {                                                                        \
        range_t  *r = global_range(a, n, line);                              \
        uint8_t  *p = (uint8_t *) (uintptr_t) a;                             \
                                                                             \
        ptx_race_##n(&r->shadow, (size_t) (p - r->p), kind, 1, a, line);     \
                                                                             \
        return p;                                                            \
    }

#define PTX_GENERIC(access, n)                                               \
    uint8_t *                                                                \
    ptx_generic_##access##_##n(uint64_t a, uint32_t line)                    \
    {                                                                        \
        return is_shared(a)                                                  \
               ? ptx_shared_##access##_##n(ptx_to_shared(a), line)           \
               : is_local(a) ? ptx_local_##access##_##n(a, line)             \
               : ptx_global_##access##_##n(a, line);                         \
    }

#define PTX_ALL(n)                                                           \
    PTX_SHARED(read, PTX_READ, n)                                            \
    PTX_SHARED(write, PTX_WRITE, n)                                          \
    PTX_GLOBAL(read, PTX_READ, n)                                            \
    PTX_GLOBAL(write, PTX_WRITE, n)                                          \
    PTX_GENERIC(read, n)                                                     \
    PTX_GENERIC(write, n)

PTX_ALL(1)
PTX_ALL(2)
PTX_ALL(4)
PTX_ALL(8)
PTX_ALL(16)

PTX_SHARED(atomic, PTX_ATOMIC_OP, 4)
PTX_SHARED(atomic, PTX_ATOMIC_OP, 8)
PTX_GLOBAL(atomic, PTX_ATOMIC_OP, 4)
PTX_GLOBAL(atomic, PTX_ATOMIC_OP, 8)
