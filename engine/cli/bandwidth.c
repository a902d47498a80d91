/*
 * Reads of the machine's memory, to measure its bandwidth: a thread for each
 * slice of a buffer that is larger than the CPU's caches.  The caller owns the
 * buffer until llm_cli_memory_free().
 */

#include "engine/cli/cli.h"

#include <pthread.h>
#include <sys/mman.h>

/* distance of prefetches, in vectors: on some machines the prefetching of the
   hardware does not reach the full bandwidth */
#define LLM_MEMORY_AHEAD  8
#define LLM_MEMORY_READS  5             /* of llm_cli_bandwidth(), of each
                                           kind */


/* 64 bytes; the compiler splits them into registers of the target's size */
typedef uint64_t  llm_memory_vec_t __attribute__((vector_size(64)));

/* the slice of the buffer that one thread reads */
typedef struct {
    pthread_t               thread;
    int                     started;
    int                     ahead;      /* 1: with prefetches */
    const llm_memory_vec_t  *data;
    size_t                  n;
    uint64_t                sum;        /* stored, so that the compiler keeps
                                           the reads */
} llm_memory_reader_t;

struct llm_cli_memory_s {
    void                   *buf;
    uint32_t                n;          /* threads */
    llm_memory_reader_t      r[];
};


static void *
llm_memory_read(void *arg)
{
    size_t               i;
    llm_memory_vec_t      a, b;
    llm_memory_reader_t  *r = arg;

    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));

    for (i = 0; i + 2 <= r->n; i += 2) {
        if (r->ahead) {
            __builtin_prefetch(r->data + i + LLM_MEMORY_AHEAD);
            __builtin_prefetch(r->data + i + LLM_MEMORY_AHEAD + 1);
        }

        a += r->data[i];
        b += r->data[i + 1];
    }

    a += b;
    r->sum = a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];

    return NULL;
}


/*
 * Returns the seconds that reading all slices once takes, a thread for each.
 * The calling thread reads the first slice, and each slice whose thread could
 * not be started.
 */

static double
llm_memory_pass(llm_memory_reader_t *r, uint32_t n)
{
    uint32_t  i;
    uint64_t  start;

    start = llm_now_us();

    for (i = 1; i < n; i++) {
        r[i].started = pthread_create(&r[i].thread, NULL, llm_memory_read,
                                      &r[i]) == 0;
    }

    for (i = 0; i < n; i++) {
        if (!r[i].started) {
            (void) llm_memory_read(&r[i]);
        }
    }

    for (i = 1; i < n; i++) {
        if (r[i].started) {
            (void) pthread_join(r[i].thread, NULL);
        }
    }

    return (double) (llm_now_us() - start) * 1e-6;
}


llm_cli_memory_t *
llm_cli_memory_create(uint32_t n)
{
    size_t               slice;
    uint32_t             i;
    llm_cli_memory_t  *m;

    m = calloc(1, sizeof(llm_cli_memory_t) + n * sizeof(llm_memory_reader_t));

    if (m == NULL
        || posix_memalign(&m->buf, 1 << 21, LLM_CLI_MEMORY) != 0)
    {
        free(m);
        return NULL;
    }

    (void) madvise(m->buf, LLM_CLI_MEMORY, MADV_HUGEPAGE);
    memset(m->buf, 1, LLM_CLI_MEMORY);

    m->n = n;
    slice = LLM_CLI_MEMORY / sizeof(llm_memory_vec_t) / n;

    for (i = 0; i < n; i++) {
        m->r[i].data = (const llm_memory_vec_t *) m->buf + i * slice;
        m->r[i].n = slice;
    }

    return m;
}


void
llm_cli_memory_free(llm_cli_memory_t *m)
{
    if (m) {
        free(m->buf);
        free(m);
    }
}


double
llm_cli_memory_read(llm_cli_memory_t *m, int ahead)
{
    uint32_t  i;

    for (i = 0; i < m->n; i++) {
        m->r[i].ahead = ahead;
    }

    return llm_memory_pass(m->r, m->n);
}


static int
llm_memory_cmp(const void *one, const void *two)
{
    double  a = *(const double *) one, b = *(const double *) two;

    return a < b ? -1 : a > b;
}


/* the medians of several reads, as other programs may disturb one */

double
llm_cli_bandwidth(uint32_t n)
{
    double             t[2][LLM_MEMORY_READS];
    uint32_t           i;
    llm_cli_memory_t  *m;

    m = llm_cli_memory_create(n);

    if (m == NULL) {
        return 0;
    }

    for (i = 0; i < LLM_MEMORY_READS * 2; i++) {
        t[i % 2][i / 2] = llm_cli_memory_read(m, i % 2);
    }

    llm_cli_memory_free(m);

    for (i = 0; i < 2; i++) {
        qsort(t[i], LLM_MEMORY_READS, sizeof(double), llm_memory_cmp);
    }

    return (double) LLM_CLI_MEMORY / llm_min(t[0][LLM_MEMORY_READS / 2],
                                             t[1][LLM_MEMORY_READS / 2]);
}
