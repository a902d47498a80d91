/*
 * Races, found by shadow words.
 *
 * A clock advances at each launch, block, barrier and barrier of a warp.  For
 * each byte of memory there is a stamp of its last write, and one of the reads
 * since: the time, the thread, and for reads how many others have read it,
 * too.  An access races with an earlier one if neither is a read, or one is,
 * and nothing orders the two: not the same thread, no barrier of the block
 * since, no barrier of the warp since, or another block of the same launch.
 * Before a thread of a kernel that was launched early has waited, nothing
 * orders its accesses after those of the kernels before it, back to the last
 * one that was not launched early.
 *
 * The clock has 20 bits.  When they are used up, all stamps are forgotten, so
 * a race between what was before and after that is not found.  It begins at 1:
 * a stamp of 0, which nothing has made, is before all launches.
 */

#include "t/gpu/ptx/check.h"

#include <sys/mman.h>

/* a stamp: 20 bits of time, 10 of a thread, 2 of how many have read */

#define TIME(stamp)     ((stamp) >> 12)
#define THREAD(stamp)   ((stamp) >> 2 & 1023)
#define WARP(stamp)     ((stamp) >> 7 & 31)
#define READERS(stamp)  ((stamp) & 3)

#define LAST_TIME       0xffffeu
#define COPYING         0xffffffffu     /* not waited for yet */

enum {
    ONE_THREAD = 0,
    ONE_WARP,                           /* several threads of a warp */
    ONE_BLOCK,                          /* several warps of a block */
    BLOCKS
};

static uint32_t  now = 1;
static uint32_t  launched = 1;          /* when the launch began */
static uint32_t  apart = 1;             /* when the last launch began that was
                                           not early */
static uint32_t  begun;                 /* when the block began */
static uint32_t  met;                   /* the block's last barrier */
static uint32_t  warp_met[32];
static int       n_copying;             /* bytes of copies in flight */


static void
forget(ptx_shadow_t *s, size_t size)
{
    if (s->written) {
        madvise(s->written, 2 * size * sizeof(uint32_t), MADV_DONTNEED);
    }
}


static uint32_t
tick(void)
{
    if (now == LAST_TIME) {
        ptx_each_shadow(forget);
        memset(warp_met, 0, sizeof(warp_met));
        now = 1;
        launched = apart = begun = met = now;
        n_copying = 0;
    }

    return ++now;
}


void
ptx_race_grid(int early)
{
    launched = tick();

    if (!early) {
        apart = launched;
    }
}


/* the time before which all accesses are before those that the thread makes
   now: its launch, or with kernels that may still run, theirs */

static inline uint32_t
since(int global)
{
    return !global ? met : ptx_thread()->early ? apart : launched;
}


void
ptx_race_block(void)
{
    /* copies that nobody waited for ended with their threads */

    if (n_copying) {
        madvise(ptx_shared_shadow.written,
                2 * PTX_SHARED_MAX * sizeof(uint32_t), MADV_DONTNEED);
        n_copying = 0;
    }

    begun = tick();
    met = begun;
}


void
ptx_race_barrier(void)
{
    met = tick();
}


void
ptx_race_warp_barrier(unsigned warp)
{
    warp_met[warp] = tick();
}


/* does something order an earlier write before the access `mine`? */

static inline int
write_is_before(uint32_t earlier, uint32_t mine, int global)
{
    uint32_t  time = TIME(earlier);

    if (time < since(global)) {
        return 1;
    }

    if (earlier == COPYING || (global && time < begun)) {
        return 0;
    }

    return time < met || THREAD(earlier) == THREAD(mine)
           || (WARP(earlier) == WARP(mine) && time < warp_met[WARP(mine)]);
}


/* does something order earlier reads before the write `mine`? */

static inline int
reads_are_before(uint32_t earlier, uint32_t mine, int global)
{
    uint32_t  time = TIME(earlier);

    if (time < since(global)) {
        return 1;
    }

    if (READERS(earlier) == BLOCKS || (global && time < begun)) {
        return 0;
    }

    if (time < met) {
        return 1;
    }

    if (READERS(earlier) == ONE_BLOCK) {
        return 0;
    }

    if (WARP(earlier) == WARP(mine) && time < warp_met[WARP(mine)]) {
        return 1;
    }

    return READERS(earlier) == ONE_THREAD && THREAD(earlier) == THREAD(mine);
}


/* the stamp of earlier reads and of `mine` */

static inline uint32_t
merged(uint32_t earlier, uint32_t mine, int global)
{
    uint32_t  time = TIME(earlier), readers = READERS(earlier);

    if (time < since(global)) {
        return mine;
    }

    if (readers == BLOCKS || (global && time < begun)) {
        return mine | BLOCKS;
    }

    if (time < met) {
        return mine;
    }

    if (readers == ONE_BLOCK || WARP(earlier) != WARP(mine)) {
        return mine | ONE_BLOCK;
    }

    if (time < warp_met[WARP(mine)]) {
        return mine;
    }

    return mine | (readers == ONE_WARP || THREAD(earlier) != THREAD(mine)
                   ? ONE_WARP : ONE_THREAD);
}


static const char *
space(int global)
{
    return global ? "global" : "shared";
}


static void
report(uint32_t earlier, const char *did, ptx_access_t access, int global,
    uint64_t a, uint32_t line)
{
    static const char *const  names[] = { "read", "write", "atomic" };

    if (earlier == COPYING) {
        ptx_fail(line, "%s of %s address %#llx, to which an asynchronous copy "
                 "is on its way", names[access], space(global),
                 (unsigned long long) a);
    }

    if (global && TIME(earlier) < launched) {
        ptx_fail(line, "race between kernels: %s of global address %#llx, "
                 "which a kernel %s that may still run: this was launched "
                 "early and has not waited", names[access],
                 (unsigned long long) a, did);
    }

    if (global && (TIME(earlier) < begun || READERS(earlier) == BLOCKS)) {
        ptx_fail(line, "race between blocks: %s of global address %#llx, which "
                 "another block %s in this launch", names[access],
                 (unsigned long long) a, did);
    }

    ptx_fail(line, "race: %s of %s address %#llx, which thread %u %s since the "
             "last barrier", names[access], space(global),
             (unsigned long long) a, THREAD(earlier), did);
}


static inline int
all_equal(const uint32_t *x, unsigned n)
{
    unsigned  i;
    uint32_t  differ;

    for (i = 1, differ = 0; i < n; i++) {
        differ |= x[i] ^ x[0];
    }

    return differ == 0;
}


/* an atomic operation is checked as a read is: it races with writes */

static inline __attribute__((always_inline)) void
access_bytes(const ptx_shadow_t *s, size_t at, unsigned n,
    ptx_access_t access, int global, uint64_t a, uint32_t line)
{
    unsigned             i, step;
    uint32_t             mine, *written = s->written + at;
    uint32_t            *read = s->read + at;
    const ptx_thread_t  *t = ptx_thread();

    mine = now << 12 | (t->warp << 5 | t->lane) << 2;
    step = all_equal(written, n) ? n : 1;

    for (i = 0; i < n; i += step) {
        if (!write_is_before(written[i], mine, global)) {
            report(written[i], "wrote", access, global, a + i, line);
        }
    }

    step = all_equal(read, n) ? n : 1;

    if (access == PTX_WRITE) {
        for (i = 0; i < n; i += step) {
            if (!reads_are_before(read[i], mine, global)) {
                report(read[i], "read", access, global, a + i, line);
            }
        }

        for (i = 0; i < n; i++) {
            written[i] = mine;
        }

        return;
    }

    if (step == n) {
        mine = merged(read[0], mine, global);

        for (i = 0; i < n; i++) {
            read[i] = mine;
        }

        return;
    }

    for (i = 0; i < n; i++) {
        read[i] = merged(read[i], mine, global);
    }
}


#define PTX_RACE(n)                                                          \
    void                                                                     \
    ptx_race_##n(const ptx_shadow_t *s, size_t at, ptx_access_t access,      \
        int global, uint64_t a, uint32_t line)                               \
    {                                                                        \
        access_bytes(s, at, n, access, global, a, line);                     \
    }

PTX_RACE(1)
PTX_RACE(2)
PTX_RACE(4)
PTX_RACE(8)
PTX_RACE(16)


void
ptx_race_copying(size_t at, size_t size)
{
    size_t  i;

    for (i = 0; i < size; i++) {
        ptx_shared_shadow.written[at + i] = COPYING;
    }

    n_copying += (int) size;
}


void
ptx_race_copied(size_t at, size_t size)
{
    size_t               i;
    const ptx_thread_t  *t = ptx_thread();

    for (i = 0; i < size; i++) {
        ptx_shared_shadow.written[at + i] = now << 12
                                            | (t->warp << 5 | t->lane) << 2;
    }

    n_copying -= (int) size;
}
