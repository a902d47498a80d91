/*
 * Mapped files and the handler of SIGBUS; see map.h.
 *
 * The handler may run in any thread at any time, so it takes no lock and
 * searches a fixed table.  While it runs, the entry of the mapping whose page
 * was read does not change; other entries may, so start is read twice.
 */

#define _GNU_SOURCE

#include "engine/gguf/map.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define LLM_MAP_MAX  1024

struct llm_map_s {
    /* the handler reads these without the lock: open() stores end before
       start */
    _Atomic uintptr_t  start;           /* 0: nothing is mapped */
    _Atomic uintptr_t  end;
    _Atomic int        fault;           /* set by the handler */
    int                taken;           /* under the lock */
};

static llm_map_t          llm_maps[LLM_MAP_MAX];
static pthread_mutex_t    llm_map_lock = PTHREAD_MUTEX_INITIALIZER;
static int                llm_map_installed;    /* under the lock */

/* set before the handler is installed, then read only by the handler */
static size_t             llm_map_page;
static struct sigaction   llm_map_old;


static llm_map_t *
llm_map_find(uintptr_t at)
{
    uint32_t    i;
    uintptr_t   start, end;
    llm_map_t  *m;

    for (i = 0; i < LLM_MAP_MAX; i++) {
        m = &llm_maps[i];

        start = atomic_load(&m->start);
        end = atomic_load(&m->end);

        if (start && at >= start && at < end
            && atomic_load(&m->start) == start)
        {
            return m;
        }
    }

    return NULL;
}


static void
llm_map_handler(int signo, siginfo_t *info, void *context)
{
    int         saved;
    void       *page;
    uintptr_t   at;
    llm_map_t  *m;

    saved = errno;
    at = (uintptr_t) info->si_addr;
    m = info->si_code > 0 ? llm_map_find(at) : NULL;

    if (m) {
        page = (void *) (at - at % llm_map_page);

        if (mmap(page, llm_map_page, PROT_READ,
                 MAP_PRIVATE|MAP_ANONYMOUS|MAP_FIXED, -1, 0)
            == page)
        {
            atomic_store(&m->fault, 1);
            errno = saved;
            return;
        }
    }

    errno = saved;

    if (llm_map_old.sa_flags & SA_SIGINFO) {
        llm_map_old.sa_sigaction(signo, info, context);
        return;
    }

    if (llm_map_old.sa_handler != SIG_DFL && llm_map_old.sa_handler != SIG_IGN)
    {
        llm_map_old.sa_handler(signo);
        return;
    }

    /* a fault occurs again after the return, then without a handler; a signal
       that was sent by a process is raised again */

    (void) signal(signo, SIG_DFL);

    if (info->si_code <= 0) {
        (void) raise(signo);
    }
}


static int
llm_map_install(void)
{
    struct sigaction  sa;

    if (llm_map_installed) {
        return LLM_OK;
    }

    llm_map_page = (size_t) sysconf(_SC_PAGESIZE);

    memset(&sa, 0, sizeof(sa));
    sigemptyset(&sa.sa_mask);
    sa.sa_sigaction = llm_map_handler;
    sa.sa_flags = SA_SIGINFO|SA_RESTART|SA_ONSTACK;

    if (sigaction(SIGBUS, NULL, &llm_map_old) == -1
        || sigaction(SIGBUS, &sa, NULL) == -1)
    {
        return LLM_ERROR;
    }

    llm_map_installed = 1;

    return LLM_OK;
}


/* takes a free entry; NULL: there is none, or no handler could be installed */

static llm_map_t *
llm_map_take(void)
{
    uint32_t    i;
    llm_map_t  *m;

    m = NULL;

    pthread_mutex_lock(&llm_map_lock);

    for (i = 0; i < LLM_MAP_MAX && llm_map_install() == LLM_OK; i++) {
        if (!llm_maps[i].taken) {
            m = &llm_maps[i];
            m->taken = 1;
            atomic_store(&m->fault, 0);
            break;
        }
    }

    pthread_mutex_unlock(&llm_map_lock);

    return m;
}


static void
llm_map_give(llm_map_t *m)
{
    pthread_mutex_lock(&llm_map_lock);
    m->taken = 0;
    pthread_mutex_unlock(&llm_map_lock);
}


llm_map_t *
llm_map_open(int fd, size_t len, const char *name, llm_err_t *err)
{
    void       *p;
    llm_map_t  *m;

    m = llm_map_take();

    if (m == NULL) {
        (void) llm_fail(err, "%s: more than %d files are mapped", name,
                        LLM_MAP_MAX);
        return NULL;
    }

    p = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);

    if (p == MAP_FAILED) {
        (void) llm_fail(err, "%s: mmap: %s", name, strerror(errno));
        llm_map_give(m);
        return NULL;
    }

    /* a core dump needs no copy of the file; some file systems have huge
       pages */

    (void) madvise(p, len, MADV_DONTDUMP);
    (void) madvise(p, len, MADV_HUGEPAGE);

    atomic_store(&m->end, (uintptr_t) p + len);
    atomic_store(&m->start, (uintptr_t) p);

    return m;
}


void
llm_map_close(llm_map_t *m)
{
    char    *p;
    size_t   len;

    p = (char *) atomic_load(&m->start);
    len = atomic_load(&m->end) - (uintptr_t) p;

    atomic_store(&m->start, 0);
    (void) munmap(p, len);

    llm_map_give(m);
}


const char *
llm_map_data(const llm_map_t *m)
{
    return (const char *) atomic_load(&m->start);
}


int
llm_map_intact(const llm_map_t *m)
{
    return !atomic_load(&m->fault);
}


/* the last page may have bytes that are still to be read, so it stays */

void
llm_map_release(const void *p, size_t size)
{
    uintptr_t   start, end;
    llm_map_t  *m;

    start = (uintptr_t) p;
    m = llm_map_find(start);

    if (m == NULL || size > atomic_load(&m->end) - start) {
        return;
    }

    end = start + size;
    end -= end % llm_map_page;
    start -= start % llm_map_page;

    if (start < end) {
        (void) madvise((void *) start, end - start, MADV_DONTNEED);
    }
}
