/*
 * The library of translated kernels: what the emulator calls, and the warp-wide
 * operations of kernels, which go to the emulator.
 */

#include "t/gpu/ptx/check.h"

#include <stdarg.h>
#include <stdio.h>

const ptx_emulator_t  *ptx_emulator;
const ptx_block_t     *ptx_block;
const ptx_kernel_t    *ptx_kernel;

/* the list that translate.py --index writes */
extern const ptx_module_t *const  ptx_modules[];
extern const int                  ptx_some;

static uint32_t  passed[1024];          /* barriers, of each thread */
static uint32_t  released;              /* barriers, of the block */


static uint32_t
number(void)
{
    return ptx_thread()->warp << 5 | ptx_thread()->lane;
}


/* ---- reports ---- */

/* the source of a line of the PTX: the last site at or before it */

static const ptx_site_t *
site_of(const ptx_module_t *m, uint32_t line)
{
    uint32_t  lo = 0, hi = m->n_sites, at;

    while (lo < hi) {
        at = (lo + hi) / 2;

        if (m->sites[at].ptx <= line) {
            lo = at + 1;

        } else {
            hi = at;
        }
    }

    return lo ? &m->sites[lo - 1] : NULL;
}


void
ptx_fail(uint32_t line, const char *format, ...)
{
    char                 text[1024];
    size_t               n;
    va_list              args;
    const ptx_site_t    *s;
    const ptx_module_t  *m = ptx_kernel->module;

    va_start(args, format);
    n = (size_t) vsnprintf(text, 512, format, args);
    va_end(args);

    n = n < 512 ? n : 511;
    n += (size_t) snprintf(text + n, sizeof(text) - n, " (%s:%u", m->name,
                           line);
    s = site_of(m, line);

    if (s) {
        n += (size_t) snprintf(text + n, sizeof(text) - n, ", %s:%u",
                               m->files[s->file], s->line);
    }

    if (s && s->into_line) {
        n += (size_t) snprintf(text + n, sizeof(text) - n, " in %s:%u",
                               m->files[s->into_file], s->into_line);
    }

    snprintf(text + n, sizeof(text) - n, ")");
    ptx_emulator->fail(text);
    __builtin_unreachable();
}


/* ---- barriers ---- */

/* The first thread that goes on after a barrier moves the clock: until then no
   thread has accessed memory since. */

void
ptx_barrier(void)
{
    ptx_emulator->barrier();

    if (++passed[number()] > released) {
        released++;
        ptx_race_barrier();
    }
}


static void
warp_has_met(uint8_t (*slots)[PTX_MEET_BYTES])
{
    (void) slots;
    ptx_race_warp_barrier(ptx_thread()->warp);
}


void
ptx_warp_barrier(uint32_t mask)
{
    uint32_t  threads, first, all;

    threads = ptx_block->threads[0] * ptx_block->threads[1]
              * ptx_block->threads[2];
    first = ptx_thread()->warp * 32;
    all = threads - first >= 32 ? 0xffffffffu : (1u << (threads - first)) - 1;

    if (mask == 0xffffffffu) {
        mask = all;
    }

    /* only a barrier of all lanes orders accesses of the warp */

    ptx_emulator->meet(mask, NULL, 0, mask == all ? warp_has_met : NULL);
}


/* ---- shuffles, votes ---- */

/* what lane `from` gives; the own value if that is no lane of the segment */

static uint32_t
shuffle(uint32_t v, uint32_t from, int in_segment, uint32_t mask, int *valid)
{
    uint32_t  r;

    ptx_emulator->meet(mask, &v, sizeof(v), NULL);
    memcpy(&r, ptx_emulator->at(in_segment ? from : ptx_thread()->lane),
           sizeof(r));
    *valid = in_segment;

    return r;
}


/* the clamp operand: the last lane of a segment, and in bits 8 to 12 which
   bits of a lane's number are those of its segment */

static uint32_t
segment(uint32_t clamp)
{
    return clamp >> 8 & 31;
}


static uint32_t
last_lane(uint32_t clamp)
{
    uint32_t  mask = segment(clamp);

    return (ptx_thread()->lane & mask) | (clamp & 31 & ~mask);
}


uint32_t
ptx_shfl_up(uint32_t v, uint32_t by, uint32_t clamp, uint32_t mask, int *valid)
{
    uint32_t  lane = ptx_thread()->lane;

    by &= 31;

    return shuffle(v, lane - by, (int) (lane - by) >= (int) last_lane(clamp),
                   mask, valid);
}


uint32_t
ptx_shfl_down(uint32_t v, uint32_t by, uint32_t clamp, uint32_t mask,
    int *valid)
{
    uint32_t  from = ptx_thread()->lane + (by & 31);

    return shuffle(v, from, from <= last_lane(clamp), mask, valid);
}


uint32_t
ptx_shfl_bfly(uint32_t v, uint32_t by, uint32_t clamp, uint32_t mask,
    int *valid)
{
    uint32_t  from = ptx_thread()->lane ^ (by & 31);

    return shuffle(v, from, from <= last_lane(clamp), mask, valid);
}


uint32_t
ptx_shfl_idx(uint32_t v, uint32_t from, uint32_t clamp, uint32_t mask,
    int *valid)
{
    uint32_t  bits = segment(clamp);

    from = (ptx_thread()->lane & bits) | (from & 31 & ~bits);

    return shuffle(v, from, from <= last_lane(clamp), mask, valid);
}


uint32_t
ptx_ballot(uint32_t mask, int given)
{
    uint32_t  i, r;

    given = given != 0;
    ptx_emulator->meet(mask, &given, sizeof(given), NULL);

    for (i = 0, r = 0; i < 32; i++) {
        if (mask >> i & 1) {
            r |= (uint32_t) *(const int *) ptx_emulator->at(i) << i;
        }
    }

    return r;
}


/* ---- matrices ---- */

/* Lane i gives the address of a row of 16 bytes; matrix m has those of lanes
   8 m to 8 m + 7.  The lane that gives a row reads it, as for races. */

void
ptx_ldmatrix(uint32_t r[4], uint32_t row, int n, int transposed, uint32_t line)
{
    int             m, i;
    uint32_t        lane = ptx_thread()->lane, g = lane / 4, t = lane % 4;
    uint32_t        at_row, at_col;
    uint8_t        *mine;
    const uint8_t  *p;
    uint16_t        e[2];

    mine = (int) lane < 8 * n ? ptx_shared_read_16(row, line) : NULL;
    ptx_emulator->meet(0xffffffffu, &mine, sizeof(mine), NULL);

    for (m = 0; m < n; m++) {
        for (i = 0; i < 2; i++) {
            at_row = transposed ? 2 * t + (uint32_t) i : g;
            at_col = transposed ? g : 2 * t + (uint32_t) i;
            memcpy(&p, ptx_emulator->at((uint32_t) m * 8 + at_row), sizeof(p));
            memcpy(&e[i], p + 2 * at_col, 2);
        }

        r[m] = (uint32_t) e[0] | (uint32_t) e[1] << 16;
    }
}


/*
 * The address of element k of row n of the right operand of wgmma at a
 * descriptor (PTX ISA, "Matrix descriptor") with the 128-byte swizzle;
 * `transposed`: n is contiguous, else k.
 */

static uint32_t
ptx_wgmma_at(uint64_t desc, int transposed, uint32_t n, uint32_t k)
{
    uint32_t  at, lead, stride;

    at = (uint32_t) (desc & 0x3fff) << 4;
    lead = (uint32_t) (desc >> 16 & 0x3fff) << 4;
    stride = (uint32_t) (desc >> 32 & 0x3fff) << 4;

    at += transposed ? k / 8 * stride + k % 8 * 128 + n / 64 * lead + n % 64 * 2
                     : n / 8 * stride + n % 8 * 128 + k * 2;

    return at ^ (at >> 3 & 0x70);
}


/* elements k and k + 1 of row n */

static uint32_t
ptx_wgmma_pair(uint64_t desc, int transposed, uint32_t n, uint32_t k,
    uint32_t line)
{
    int       j;
    uint16_t  e[2];

    for (j = 0; j < 2; j++) {
        memcpy(&e[j], ptx_shared_read_2(ptx_wgmma_at(desc, transposed, n,
                                                     k + (uint32_t) j), line),
               2);
    }

    return e[0] | (uint32_t) e[1] << 16;
}


void
ptx_wgmma_left(uint32_t a[4], uint64_t desc, uint32_t line)
{
    int       i;
    uint32_t  lane = ptx_thread()->lane;

    for (i = 0; i < 4; i++) {
        a[i] = ptx_wgmma_pair(desc, 0,
                              ptx_thread()->warp % 4 * 16 + lane / 4
                              + (uint32_t) (i % 2 * 8),
                              (uint32_t) (i / 2 * 8) + lane % 4 * 2, line);
    }
}


/* each warp has 16 rows, in the layout of mma.sync */

void
ptx_wgmma(float *d, int n, const uint32_t a[4], uint64_t desc, int add,
    int transposed, int bf16, uint32_t line)
{
    int       i, j;
    uint32_t  b[2], lane = ptx_thread()->lane;

    for (i = 0; i < n / 8; i++) {
        for (j = 0; j < 2; j++) {
            b[j] = ptx_wgmma_pair(desc, transposed,
                                  (uint32_t) i * 8 + lane / 4,
                                  (uint32_t) j * 8 + lane % 4 * 2, line);
        }

        if (!add) {
            memset(d + 4 * i, 0, 4 * sizeof(float));
        }

        ptx_emulator->mma(d + 4 * i, a, b, bf16);
    }
}


/* as two of 16-bit elements: llm_mma_e4m3() of device.h */

void
ptx_mma_e4m3(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    int       h, i;
    uint32_t  wide[6];

    for (h = 0; h < 2; h++) {
        for (i = 0; i < 6; i++) {
            wide[i] = e4m3x2_f16x2((uint16_t) ((i < 4 ? a[i] : b[i - 4])
                                               >> 16 * h));
        }

        ptx_emulator->mma(d, wide, wide + 4, 0);
    }
}


void
ptx_wgmma_e4m3(float *d, int n, const uint32_t a[4], uint64_t desc, int add,
    uint32_t line)
{
    int       i, j;
    uint32_t  b[2], at, lane = ptx_thread()->lane;

    for (i = 0; i < n / 8; i++) {
        for (j = 0; j < 2; j++) {
            /* four elements are two of 16 bits */
            at = ptx_wgmma_at(desc, 0, (uint32_t) i * 8 + lane / 4,
                              (uint32_t) j * 8 + lane % 4 * 2);
            memcpy(&b[j], ptx_shared_read_4(at, line), 4);
        }

        if (!add) {
            memset(d + 4 * i, 0, 4 * sizeof(float));
        }

        ptx_mma_e4m3(d + 4 * i, a, b);
    }
}


void
ptx_trap(uint32_t line)
{
    ptx_fail(line, "trap");
}


/* ---- asynchronous copies ---- */

/* copies `read` bytes of size and fills the rest with zeros */

void
ptx_copy(uint32_t dst, uint64_t src, uint32_t size, uint32_t read,
    uint32_t line)
{
    uint8_t               *p;
    static const uint8_t   zeros[16];

    if (size == 4) {
        p = ptx_shared_write_4(dst, line);

    } else if (size == 8) {
        p = ptx_shared_write_8(dst, line);

    } else {
        p = ptx_shared_write_16(dst, line);
    }

    if (read > size) {
        ptx_fail(line, "an asynchronous copy of %u bytes of %u", read, size);
    }

    if (src % size) {
        ptx_misaligned("global", src, size, line);
    }

    if (read == size) {
        (void) (size == 16 ? ptx_global_read_16(src, line)
                : size == 8 ? ptx_global_read_8(src, line)
                : ptx_global_read_4(src, line));

    } else if (read) {
        (void) ptx_global_at(src, 1, line);
        (void) ptx_global_at(src + read - 1, 1, line);
    }

    ptx_race_copying(dst - PTX_WINDOW, size);

    if (read) {
        ptx_emulator->copy_async(p, (const void *) (uintptr_t) src, read);
    }

    if (read < size) {
        ptx_emulator->copy_async(p + read, zeros, size - read);
    }
}


void
ptx_copy_commit(void)
{
    ptx_emulator->copy_commit();
}


void
ptx_copy_wait(unsigned groups_left)
{
    ptx_emulator->copy_wait(groups_left);
}


void
ptx_early_wait(void)
{
    ptx_emulator->early_wait();
}


/* ---- what the emulator calls ---- */

static void
copied(void *dst, size_t size)
{
    ptx_race_copied((size_t) ((uint8_t *) dst - ptx_block->shared), size);
}


static void
grid(const ptx_kernel_t *kernel, size_t shared, int early)
{
    ptx_kernel = kernel;
    ptx_memory_grid(shared);
    ptx_race_grid(early);
}


static void
block(void)
{
    memset(passed, 0, sizeof(passed));
    released = 0;
    ptx_race_block();
}


__attribute__((visibility("default"))) const ptx_library_t *
ptx_open(const ptx_emulator_t *emulator)
{
    size_t                      i;
    const ptx_variable_t       *v;
    static ptx_library_t        library = {
        ptx_modules, 0, ptx_mapped, ptx_unmapped, grid, block, copied
    };

    library.some = ptx_some;
    ptx_emulator = emulator;
    ptx_block = emulator->block;

    for (i = 0; ptx_modules[i]; i++) {
        for (v = ptx_modules[i]->variables; v->p; v++) {
            ptx_mapped(v->p, v->size);
        }
    }

    return &library;
}
