/*
 * The emulator of emu.h: fibers, barriers, warp-wide operations (meetings),
 * blocks and grids.  Launches and the queue of work are in launch.cpp.
 */

#include "t/gpu/emu/internal.h"

#include <sys/mman.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

/* an odd number of cache lines, so that the ends of stacks are in different
   sets of a cache */
#define EMU_STACK  (128 * 1024 + 11 * 64)

namespace emu {

enum State { READY, AT_BARRIER, AT_MEETING };

struct Copy {
    void        *dst;
    const void  *src;
    size_t       size;
};

struct Fiber {
    Thread                          thread;
    State                           state;
    unsigned                        phase;      /* slots of the last meeting */
    void                           *sp;
    uint8_t                        *stack;
    std::vector<std::vector<Copy>>  groups;     /* committed copies, oldest
                                                   first */
    std::vector<Copy>               open;       /* copies not committed yet */
#if !defined(__x86_64__)
    ucontext_t                      uc;
#endif
};

/* meetings alternate between two sets of slots, which is enough: a lane is
   never more than one meeting ahead of the slowest */

struct Warp {
    unsigned  arrived[2];
    unsigned  mask[2];
    alignas(16) uint8_t  slot[2][32][EMU_MEET_BYTES];
};

Thread  *cur;
Block    blk;

static Fiber                                fibers[EMU_MAX_THREADS];
static Warp                                 warps[EMU_MAX_THREADS / 32];
static unsigned                             n_threads;
static unsigned                             n_waiting;
static unsigned                             n_done;
static Fiber                               *running;
static Fiber                               *rounds[2][EMU_MAX_THREADS];
static Fiber                              **turns = rounds[0];  /* of this
                                                                   round */
static unsigned                             n_turns;
static unsigned                             turn;       /* next of turns */
static Fiber                              **coming = rounds[1]; /* of the next
                                                                   round */
static unsigned                             n_coming;
static const std::function<void()>         *body;
static const char                          *kernel;
static unsigned                             early;      /* the launch was */
static uint8_t                             *shared_mem;
static uint64_t                             rng;


void
where(const char *what)
{
    fprintf(stderr, "emu: kernel %s, block (%u,%u,%u), thread (%u,%u,%u): "
            "%s\n", kernel ? kernel : "?", blk.bid.x, blk.bid.y, blk.bid.z,
            cur ? cur->tid.x : 0, cur ? cur->tid.y : 0, cur ? cur->tid.z : 0,
            what);
}


void
die(const char *what)
{
    where(what);
    abort();
}


static unsigned
draw(unsigned n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;

    return (unsigned) ((rng >> 32) * n >> 32);
}


/* ---- fibers ---- */

static void fiber_main();

#if defined(__x86_64__)

static void  *main_sp;

extern "C" void emu_switch(void **from, void *to);

/* saves the registers that the ABI says a call preserves, and swaps stacks */

asm(".text\n"
    ".globl emu_switch\n"
    ".hidden emu_switch\n"
    ".type emu_switch, @function\n"
    "emu_switch:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n"
    ".size emu_switch, .-emu_switch\n");


static void
fiber_prepare(Fiber *f)
{
    void  **sp;

    /* what emu_switch pops, then the address that it returns to; the stack is
       aligned as after a call */

    sp = (void **) (f->stack + EMU_STACK - 64);
    *--sp = nullptr;
    *--sp = (void *) fiber_main;
    sp -= 6;
    memset(sp, 0, 6 * sizeof(void *));
    f->sp = sp;
}


static void
fiber_switch(Fiber *from, Fiber *to)
{
    emu_switch(from ? &from->sp : &main_sp, to ? to->sp : main_sp);
}

#else

static ucontext_t  main_uc;


static void
fiber_prepare(Fiber *f)
{
    getcontext(&f->uc);
    f->uc.uc_stack.ss_sp = f->stack;
    f->uc.uc_stack.ss_size = EMU_STACK;
    f->uc.uc_link = nullptr;
    makecontext(&f->uc, fiber_main, 0);
}


static void
fiber_switch(Fiber *from, Fiber *to)
{
    swapcontext(from ? &from->uc : &main_uc, to ? &to->uc : &main_uc);
}

#endif


/* ---- whose turn it is ---- */

static void
make_ready(Fiber *f)
{
    f->state = READY;
    coming[n_coming++] = f;
}


static void
release_barrier()
{
    unsigned  i;

    for (i = 0; i < n_threads; i++) {
        if (fibers[i].state == AT_BARRIER) {
            make_ready(&fibers[i]);
        }
    }

    n_waiting = 0;
}


static void
next_round()
{
    unsigned  i;

    if (n_waiting && n_waiting + n_done == n_threads) {
        release_barrier();
    }

    if (n_coming == 0) {
        die("threads wait for each other: a barrier or a warp operation "
            "that not all of them reach");
    }

    std::swap(turns, coming);
    n_turns = n_coming;
    n_coming = 0;
    turn = 0;

    for (i = 0; rng && i + 1 < n_turns; i++) {
        std::swap(turns[i], turns[i + draw(n_turns - i)]);
    }
}


/* switches to the next thread of the block, or, once all are done, back to
   run_block() */

static void
fiber_yield()
{
    Fiber  *me = running;

    if (n_done == n_threads) {
        running = nullptr;
        fiber_switch(me, nullptr);
        return;
    }

    if (turn == n_turns) {
        next_round();
    }

    running = turns[turn++];

    if (running != me) {
        cur = &running->thread;
        fiber_switch(me, running);
    }
}


static void
fiber_main()
{
    (*body)();

    if (running->thread.early) {
        die("launched early, and ends without llm_early_wait()");
    }

    if (!running->open.empty() || !running->groups.empty()) {
        running->open.clear();
        running->groups.clear();
    }

    n_done++;
    fiber_yield();
    die("a finished thread continued");
}


/* ---- meeting points ---- */

void
sync_block()
{
    running->state = AT_BARRIER;
    n_waiting++;

    /* threads that have returned count as arrived, as on a GPU */

    if (n_waiting + n_done == n_threads) {
        release_barrier();
    }

    fiber_yield();
}


void
meet(unsigned mask, const void *mine, size_t size,
    void (*last)(uint8_t (*slots)[EMU_MEET_BYTES]))
{
    unsigned   i, first, p;
    Warp      *w;

    if (size > EMU_MEET_BYTES) {
        die("a warp operation with too many bytes");
    }

    if (!(mask >> cur->lane & 1)) {
        die("a lane outside the mask of its own warp operation");
    }

    w = &warps[cur->warp];
    running->phase ^= 1;
    p = running->phase;
    cur->met = w->slot[p];

    if (w->arrived[p] == 0) {
        w->mask[p] = mask;

    } else if (w->mask[p] != mask) {
        die("lanes of a warp meet with different masks");
    }

    /* most are of 4 bytes, without a call of memcpy() */

    if (size == 4) {
        memcpy(w->slot[p][cur->lane], mine, 4);

    } else if (size) {
        memcpy(w->slot[p][cur->lane], mine, size);
    }

    w->arrived[p] |= 1u << cur->lane;

    if (w->arrived[p] != mask) {
        running->state = AT_MEETING;
        fiber_yield();
        return;
    }

    if (last) {
        last(w->slot[p]);
    }

    w->arrived[p] = 0;
    first = cur->warp * 32;

    for (i = first; i < first + 32 && i < n_threads; i++) {
        if ((mask >> (i - first) & 1) && fibers[i].state == AT_MEETING) {
            make_ready(&fibers[i]);
        }
    }
}


void
copy_async(void *dst, const void *src, size_t size)
{
    memset(dst, 0xff, size);
    running->open.push_back({ dst, src, size });
}


void
copy_commit()
{
    running->groups.push_back(std::move(running->open));
    running->open.clear();
}


void
copy_wait(unsigned left)
{
    while (running->groups.size() > left) {
        for (const Copy &c : running->groups.front()) {
            memcpy(c.dst, c.src, c.size);

            if (ptx_library()) {
                ptx_library()->copied(c.dst, c.size);
            }
        }

        running->groups.erase(running->groups.begin());
    }
}


/* ---- a block, a grid ---- */

static void
run_block()
{
    unsigned  i;

    memset(warps, 0, sizeof(Warp) * ((n_threads + 31) / 32));
    n_waiting = 0;
    n_done = 0;
    turn = 0;
    n_turns = 0;
    n_coming = 0;

    for (i = 0; i < n_threads; i++) {
        Fiber  *f = &fibers[i];

        f->thread.tid.x = i % blk.block.x;
        f->thread.tid.y = i / blk.block.x % blk.block.y;
        f->thread.tid.z = i / blk.block.x / blk.block.y;
        f->thread.lane = i % 32;
        f->thread.warp = i / 32;
        f->thread.early = early;
        f->phase = 0;
        fiber_prepare(f);
        make_ready(f);
    }

    running = nullptr;
    fiber_yield();
}


void
run_grid(const Kernel &k, dim3 grid, dim3 block, size_t shared,
    const std::function<void()> &f)
{
    uint64_t               n, i;
    std::vector<uint32_t>  order;

    kernel = k.name;
    early = k.early != 0;
    body = &f;
    n_threads = block.x * block.y * block.z;
    blk.block = block;
    blk.grid = grid;

    if (k.ptx) {
        ptx_library()->grid(k.ptx, shared, k.early);
        shared = static_shared(k) + shared;
    }

    blk.shared = shared_mem + EMU_SHARED_MAX - (shared + 15) / 16 * 16;
    n = (uint64_t) grid.x * grid.y * grid.z;

    for (i = 0; rng && i < n; i++) {
        order.push_back((uint32_t) i);
        std::swap(order[i], order[draw((unsigned) i + 1)]);
    }

    for (i = 0; i < n; i++) {
        uint64_t  b = rng ? order[i] : i;

        blk.bid.x = (unsigned) (b % grid.x);
        blk.bid.y = (unsigned) (b / grid.x % grid.y);
        blk.bid.z = (unsigned) (b / grid.x / grid.y);
        memset(blk.shared, 0xff, (shared + 15) / 16 * 16);

        if (k.ptx) {
            ptx_library()->block();
        }

        run_block();
    }

    kernel = nullptr;
    cur = nullptr;
}


void
start()
{
    unsigned     i;
    uint8_t     *stacks;
    const char  *seed;

    if (shared_mem) {
        return;
    }

    seed = getenv("LLM_EMU_SEED");
    rng = seed ? strtoull(seed, nullptr, 10) * 0x9e3779b97f4a7c15ull : 0;
    shared_mem = guarded(EMU_SHARED_MAX);
    stacks = (uint8_t *) mmap(nullptr, (size_t) EMU_STACK * EMU_MAX_THREADS,
                              PROT_READ|PROT_WRITE,
                              MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (shared_mem == nullptr || stacks == MAP_FAILED) {
        die("no memory for the emulator");
    }

    (void) madvise(stacks, (size_t) EMU_STACK * EMU_MAX_THREADS,
                   MADV_HUGEPAGE);

    for (i = 0; i < EMU_MAX_THREADS; i++) {
        fibers[i].stack = stacks + (size_t) i * EMU_STACK;
    }
}


}  /* namespace emu */
