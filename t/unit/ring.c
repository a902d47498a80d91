/*
 * The ring: records of random sizes between two threads and between two
 * processes arrive whole and in order; nonsense in it does no harm.
 */

#include "engine/ipc/ring.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/unit/tap.h"

#define RECORDS  100000

typedef struct {
    llm_record_t  head;
    uint64_t      number;
    uint64_t      data[];
} rec_t;


static uint64_t
mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x7fb5d329728ea185ull;
    x = (x ^ x >> 27) * 0x81dadef4bc2dd44dull;

    return x ^ x >> 33;
}


static uint32_t
words_of(uint64_t n)
{
    return mix(n) % 8 == 0 ? mix(n + 7) % 200 : mix(n + 3) % 12;
}


static void
produce(llm_ring_mem_t *mem, uint64_t from, uint64_t to)
{
    size_t      size;
    rec_t      *r;
    uint32_t    k, words;
    uint64_t    n;
    llm_ring_t  ring;

    llm_ring_producer(&ring, mem);

    for (n = from; n < to; n++) {
        words = words_of(n);
        size = sizeof(*r) + words * 8;

        while ((r = llm_ring_reserve(&ring, size)) == NULL) {
            (void) llm_ring_publish(&ring);
            sched_yield();
        }

        r->head.size = (uint32_t) size;
        r->head.type = 1 + (uint32_t) (n % 5);
        r->number = n;

        for (k = 0; k < words; k++) {
            r->data[k] = mix(n * 1000 + k);
        }

        llm_ring_push(&ring, &r->head);

        if (mix(n) % 3 == 0) {
            (void) llm_ring_publish(&ring);
        }
    }

    (void) llm_ring_publish(&ring);
}


/* returns the number of the first record that is not as it was sent */

static uint64_t
consume(llm_ring_mem_t *mem, uint64_t from, uint64_t to)
{
    uint32_t      k;
    uint64_t      n;
    llm_ring_t    ring;
    const rec_t  *r;

    llm_ring_consumer(&ring, mem);

    for (n = from; n < to; n++) {
        while ((r = (const rec_t *) llm_ring_next(&ring)) == NULL) {
            llm_ring_release(&ring);
            sched_yield();
        }

        if (r->number != n || r->head.type != 1 + n % 5
            || r->head.size != sizeof(*r) + words_of(n) * 8)
        {
            return n;
        }

        for (k = 0; k < words_of(n); k++) {
            if (r->data[k] != mix(n * 1000 + k)) {
                return n;
            }
        }

        if (mix(n + 1) % 4 == 0) {
            llm_ring_release(&ring);
        }
    }

    llm_ring_release(&ring);

    return to;
}


static void *
producer_main(void *mem)
{
    produce(mem, 0, RECORDS);

    return NULL;
}


static void
test_threads(size_t bytes)
{
    void       *mem;
    pthread_t   t;

    mem = aligned_alloc(64, bytes);
    llm_ring_format(mem, bytes);

    pthread_create(&t, NULL, producer_main, mem);
    is_int(consume(mem, 0, RECORDS), RECORDS, "%d records through %zu bytes, "
           "two threads", RECORDS, bytes);
    pthread_join(t, NULL);

    free(mem);
}


static void
test_processes(void)
{
    int      status;
    void    *mem;
    pid_t    pid;
    size_t   bytes = 8192;

    mem = mmap(NULL, bytes, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS,
               -1, 0);
    llm_ring_format(mem, bytes);

    pid = fork();

    if (pid == 0) {
        produce(mem, 0, RECORDS / 4);
        _exit(0);
    }

    is_int(consume(mem, 0, RECORDS / 4), RECORDS / 4,
           "%d records between two processes", RECORDS / 4);
    waitpid(pid, &status, 0);

    munmap(mem, bytes);
}


/* a producer that stops before it publishes leaves nothing behind */

static void
test_takeover(void)
{
    void        *mem;
    rec_t       *r;
    size_t       bytes = 65536;
    llm_ring_t   ring;

    mem = aligned_alloc(64, bytes);
    llm_ring_format(mem, bytes);

    produce(mem, 0, 10);

    llm_ring_producer(&ring, mem);
    r = llm_ring_reserve(&ring, 64);
    memset(r, 0xff, 64);

    r->head.size = 64;
    llm_ring_push(&ring, &r->head);

    is_int(consume(mem, 0, 10), 10, "what was published is there");

    produce(mem, 10, 20);
    is_int(consume(mem, 10, 20), 20,
           "a new producer goes on where the last record was published");

    free(mem);
}


static void
test_bounds(void)
{
    void        *mem;
    size_t       bytes = sizeof(llm_ring_mem_t) + 1024;
    rec_t       *r;
    uint32_t     n, off;
    llm_ring_t   in, out;

    bytes = llm_align(bytes, 64);
    mem = aligned_alloc(64, bytes);
    llm_ring_format(mem, bytes);
    llm_ring_producer(&in, mem);
    llm_ring_consumer(&out, mem);

    ok(llm_ring_empty(&out), "empty at first");
    ok(llm_ring_next(&out) == NULL, "no record in it");

    for (n = 0; (r = llm_ring_reserve(&in, 128)) != NULL; n++) {
        r->head.size = 128;
        r->head.type = 1;
        llm_ring_push(&in, &r->head);
    }

    is_int(n, 8, "1024 bytes hold 8 records of 128");
    ok(llm_ring_next(&out) == NULL, "none is seen before publish()");
    ok(llm_ring_publish(&in), "publish");
    ok(!llm_ring_publish(&in), "nothing more to publish");
    ok(!llm_ring_empty(&out), "not empty");

    for (n = 0; llm_ring_next(&out); n++) { /* void */ }

    is_int(n, 8, "all are there");
    ok(llm_ring_reserve(&in, 8) == NULL, "no room before release()");
    llm_ring_release(&out);
    ok(llm_ring_reserve(&in, 8) != NULL, "room after it");

    /* the largest record fits at any position of an empty ring */

    for (off = 0, n = 0; off < 1024; off += 8) {
        llm_ring_format(mem, bytes);
        atomic_store(&((llm_ring_mem_t *) mem)->head, off);
        atomic_store(&((llm_ring_mem_t *) mem)->tail, off);
        llm_ring_producer(&in, mem);
        n += llm_ring_reserve(&in, llm_ring_max(&in)) != NULL;
    }

    is_int(n, 128, "the largest record fits at every position");
    ok(llm_ring_reserve(&in, 4096) == NULL, "one beyond the ring never");

    free(mem);
}


static void
test_nonsense(void)
{
    void            *mem;
    char            *data;
    size_t           bytes = 1024, i;
    uint32_t         round, n;
    llm_ring_t       out;
    llm_ring_mem_t  *m;

    mem = aligned_alloc(64, bytes);
    n = 0;

    for (round = 0; round < 20000; round++) {
        llm_ring_format(mem, bytes);
        m = mem;
        data = (char *) (m + 1);

        for (i = 0; i < m->size; i++) {
            data[i] = (char) (mix(round * 5000 + i) % (round % 2 ? 4 : 256));
        }

        atomic_store(&m->tail, mix(round) % (round % 3 ? 1024 : 1 << 20)
                               & ~7ull);
        llm_ring_consumer(&out, mem);

        for (i = 0; i < 5000 && llm_ring_next(&out); i++) { /* void */ }

        n += i < 5000 && llm_ring_empty(&out);
        llm_ring_release(&out);
    }

    is_int(n, 20000, "random bytes: the consumer always comes to an end");

    free(mem);
}


/* a record's size is what was checked, whatever its producer writes later */

static void
test_changed(void)
{
    void                *mem;
    llm_ring_t           in, out;
    llm_record_t        *rec;
    const llm_record_t  *got;

    mem = aligned_alloc(64, 4096);
    llm_ring_format(mem, 4096);
    llm_ring_producer(&in, mem);
    llm_ring_consumer(&out, mem);

    rec = llm_ring_reserve(&in, 64);
    rec->size = 64;
    rec->type = 7;
    llm_ring_push(&in, rec);
    (void) llm_ring_publish(&in);

    got = llm_ring_next(&out);
    rec->size = 1 << 30;
    ok(got == rec && out.taken == 64, "the size that was checked is kept");

    llm_ring_release(&out);
    ok(llm_ring_empty(&out), "and the record after it is where it was");

    free(mem);
}


int
main(void)
{
    test_bounds();
    test_threads(1024 * 8);
    test_threads(1 << 18);
    test_processes();
    test_takeover();
    test_nonsense();
    test_changed();

    return done_testing();
}
