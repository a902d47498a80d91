/*
 * The CPU backend's threads: every item of a loop runs once, before run()
 * returns, whoever runs it; loops short and long, in steps and outside,
 * more threads than cores, and a thread that is slow; each of them may read a
 * page of a mapped file that is not there any more.
 */

#include "engine/gguf/map.h"
#include "kernels/cpu/pool.h"
#include "t/unit/tap.h"

#include <stdatomic.h>
#include <unistd.h>

#define MAX_ITEMS    1000
#define MAX_THREADS  9                  /* of a pool that has grown */

typedef struct {
    _Atomic uint32_t  runs[MAX_ITEMS];  /* all threads add, the test reads */
    _Atomic uint32_t  by[MAX_THREADS];
    uint32_t          slow;             /* a thread that sleeps, or none */
    /* neighbours of items that the same thread ran one after another */
    _Atomic uint32_t  follows;
    uint32_t          last[MAX_THREADS][16];    /* its own thread's alone */
} loop_t;


static void
item(void *arg, uint32_t i, uint32_t thread)
{
    loop_t  *l = arg;

    atomic_fetch_add(&l->runs[i], 1);
    atomic_fetch_add(&l->by[thread], 1);

    if (i && l->last[thread][0] == i - 1) {
        atomic_fetch_add(&l->follows, 1);
    }

    l->last[thread][0] = i;

    if (thread == l->slow) {
        usleep(1000);
    }
}


static uint32_t
wrong(loop_t *l, uint32_t n)
{
    uint32_t  i, bad;

    for (i = 0, bad = 0; i < MAX_ITEMS; i++) {
        bad += (l->runs[i] != (i < n));
    }

    return bad;
}


static void
run(llm_pool_t *pool, loop_t *l, uint32_t n, uint32_t slow)
{
    memset(l, 0, sizeof(loop_t));
    l->slow = slow;
    llm_pool_run(pool, item, l, n);
}


static void
every_item_once(uint32_t threads)
{
    uint32_t        n, step, bad;
    llm_err_t       err;
    llm_pool_t     *pool;
    static loop_t   l;

    pool = llm_pool_create(threads, &err);
    ok(pool != NULL, "%u threads", threads);

    for (step = 0, bad = 0; step < 300; step++) {
        if (step == 100) {
            bad += llm_pool_grow(pool, threads + 1, &err) != LLM_OK;
        }

        /* steps of models that want different numbers of threads */
        llm_pool_enter(pool, 1 + step / 4 % llm_pool_threads(pool));

        for (n = 0; n < 40; n++) {
            run(pool, &l, n, MAX_THREADS);
            bad += wrong(&l, n);
        }

        run(pool, &l, MAX_ITEMS, MAX_THREADS);
        bad += wrong(&l, MAX_ITEMS);

        llm_pool_leave(pool);

        if (step % 100 == 0) {
            /* helpers fall asleep */
            usleep(2000);
            run(pool, &l, 7, MAX_THREADS);
            bad += wrong(&l, 7);
        }
    }

    is_int(bad, 0, "%u threads: every item once", threads);
    llm_pool_free(pool);
}


static void
slow_thread(void)
{
    llm_err_t       err;
    llm_pool_t     *pool;
    static loop_t   l;

    pool = llm_pool_create(2, &err);
    llm_pool_enter(pool, llm_pool_threads(pool));

    run(pool, &l, 200, 0);
    is_int(wrong(&l, 200), 0, "a slow thread: every item once");
    ok(l.by[0] < 100, "another takes of its share: %u of 200 left to it",
       (unsigned) l.by[0]);
    ok(l.follows > 60, "items in order within a share: %u follow another",
       (unsigned) l.follows);

    llm_pool_leave(pool);
    llm_pool_free(pool);
}


typedef struct {
    const char        *data;
    size_t             page;            /* bytes */
    _Atomic uint32_t   running;         /* each thread adds one and waits */
    _Atomic uint32_t   zeros;
} pages_t;


/* a thread that waits can't run another item: each runs one */

static void
read_page(void *arg, uint32_t i, uint32_t thread)
{
    pages_t  *p = arg;

    (void) thread;

    atomic_fetch_add(&p->running, 1);

    while (atomic_load(&p->running) < 2) {
        usleep(100);
    }

    atomic_fetch_add(&p->zeros, p->data[i * p->page] == 0);
}


/* the file was truncated: pages of zeros and a mark, in a helper too */

static void
pages_that_are_gone(void)
{
    int          fd;
    char         name[] = "/tmp/llm-pool-XXXXXX";
    pages_t      p;
    llm_err_t    err;
    llm_map_t   *m;
    llm_pool_t  *pool;

    memset(&p, 0, sizeof(pages_t));
    p.page = (size_t) sysconf(_SC_PAGESIZE);
    fd = mkstemp(name);
    pool = llm_pool_create(2, &err);

    if (fd == -1 || ftruncate(fd, (off_t) (2 * p.page)) == -1 || pool == NULL) {
        printf("Bail out! no file of two pages, or no threads\n");
        exit(1);
    }

    m = llm_map_open(fd, 2 * p.page, name, &err);

    if (m == NULL || ftruncate(fd, 0) == -1) {
        printf("Bail out! %s can't be mapped and emptied\n", name);
        exit(1);
    }

    p.data = llm_map_data(m);
    llm_pool_run(pool, read_page, &p, 2);
    is_int(p.zeros, 2, "pages that are gone are read as zeros by each thread");
    ok(!llm_map_intact(m), "and the mapping is not intact");

    llm_pool_free(pool);
    llm_map_close(m);
    close(fd);
    unlink(name);
}


int
main(void)
{
    pages_that_are_gone();
    every_item_once(1);
    every_item_once(2);
    every_item_once(3);
    every_item_once(8);
    slow_thread();

    return done_testing();
}
