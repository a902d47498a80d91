/*
 * The table of the engines of one nginx; see engines.h.
 */

#include "engine/base/process.h"
#include "engine/ipc/engines.h"
#include "engine/ipc/zone.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* number of the layout of struct llm_engines_s in a file; changes with it */
#define LLM_ENGINES_LAYOUT  0x6c6c6d656e670001ull

/* an engine takes an entry by setting pid (compare and exchange), then sets
   the other fields; any process reads */
typedef struct {
    _Atomic int32_t    pid;             /* 0: free */
    _Atomic uint32_t   serial;          /* order of the engines; 0: not known
                                           yet */
    _Atomic uint64_t   born;            /* start time of that process, as pids
                                           are used again */
} llm_engines_place_t;

struct llm_engines_s {
    _Atomic uint64_t     layout;        /* in a file LLM_ENGINES_LAYOUT, written
                                           by the process that maps it first;
                                           else 0 */
    _Atomic uint32_t     serial;        /* the last one given out */
    llm_engines_place_t  places[LLM_ENGINES_MAX];
};


size_t
llm_engines_size(void)
{
    return sizeof(llm_engines_t);
}


/*
 * The file is never truncated or removed: another process may have mapped it,
 * and would be killed by SIGBUS or use a table that no other process sees.
 */

static int
llm_engines_open(const char *path, llm_err_t *err)
{
    int          fd;
    struct stat  st;

    fd = open(path, O_RDWR|O_CREAT|O_NOFOLLOW|O_CLOEXEC|O_NONBLOCK, 0600);

    if (fd == -1 || fstat(fd, &st) == -1) {
        (void) llm_fail(err, "%s", strerror(errno));

    } else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
        (void) llm_fail(err, "not a regular file of this user");

    } else if (st.st_size < (off_t) sizeof(llm_engines_t)
               && ftruncate(fd, sizeof(llm_engines_t)) == -1)
    {
        (void) llm_fail(err, "%s", strerror(errno));

    } else {
        return fd;
    }

    if (fd != -1) {
        (void) close(fd);
    }

    return -1;
}


llm_engines_t *
llm_engines_map(const char *path, llm_err_t *err)
{
    int             fd;
    uint64_t        layout;
    llm_engines_t  *t;

    fd = llm_engines_open(path, err);
    if (fd == -1) {
        return NULL;
    }

    t = mmap(NULL, sizeof(llm_engines_t), PROT_READ|PROT_WRITE, MAP_SHARED,
             fd, 0);

    if (t == MAP_FAILED) {
        (void) llm_fail(err, "%s", strerror(errno));
        (void) close(fd);
        return NULL;
    }

    (void) close(fd);

    layout = 0;

    if (!atomic_compare_exchange_strong(&t->layout, &layout,
                                        LLM_ENGINES_LAYOUT)
        && layout != LLM_ENGINES_LAYOUT)
    {
        (void) munmap(t, sizeof(llm_engines_t));
        (void) llm_fail(err, "not a table of engines of this version");
        return NULL;
    }

    return t;
}


static int
llm_engines_lives(const llm_engines_place_t *e, int32_t pid)
{
    return llm_process_lives(pid, atomic_load(&e->born));
}


uint32_t
llm_engines_enter(llm_engines_t *t)
{
    int32_t               pid;
    uint32_t              i;
    llm_engines_place_t  *e;

    for (i = 0; i < LLM_ENGINES_MAX; i++) {
        e = &t->places[i];
        pid = atomic_load(&e->pid);

        if (llm_engines_lives(e, pid)) {
            continue;
        }

        /* otherwise the new engine would seem dead, by the old start time */
        atomic_store(&e->born, 0);

        if (!atomic_compare_exchange_strong(&e->pid, &pid, getpid())) {
            continue;
        }

        atomic_store(&e->serial, 0);
        atomic_store(&e->born, llm_process_born(getpid()));
        atomic_store(&e->serial, atomic_fetch_add(&t->serial, 1) + 1);

        return i;
    }

    return UINT32_MAX;
}


void
llm_engines_leave(llm_engines_t *t, uint32_t place)
{
    if (t && place != UINT32_MAX) {
        atomic_store(&t->places[place].serial, 0);
        atomic_store(&t->places[place].born, 0);
        atomic_store(&t->places[place].pid, 0);
    }
}


uint32_t
llm_engines_older(llm_engines_t *t, uint32_t place)
{
    uint32_t              i, n, mine, serial;
    llm_engines_place_t  *e;

    if (t == NULL || place == UINT32_MAX) {
        return 0;
    }

    mine = atomic_load(&t->places[place].serial);

    for (i = 0, n = 0; i < LLM_ENGINES_MAX; i++) {
        e = &t->places[i];
        serial = atomic_load(&e->serial);

        n += i != place && serial && (int32_t) (mine - serial) > 0
             && llm_engines_lives(e, atomic_load(&e->pid));
    }

    return n;
}


uint32_t
llm_engines_newer(llm_engines_t *t, int32_t pid)
{
    uint32_t              i, n, mine, serial;
    llm_engines_place_t  *e;

    mine = 0;

    for (i = 0; i < LLM_ENGINES_MAX; i++) {
        e = &t->places[i];

        if (atomic_load(&e->pid) == pid) {
            mine = atomic_load(&e->serial);
        }
    }

    for (i = 0, n = 0; mine && i < LLM_ENGINES_MAX; i++) {
        e = &t->places[i];
        serial = atomic_load(&e->serial);

        n += serial && (int32_t) (serial - mine) > 0
             && llm_engines_lives(e, atomic_load(&e->pid));
    }

    return n;
}


int
llm_zone_replaced(llm_zone_t *z, llm_engines_t *t)
{
    int32_t  pid;

    pid = atomic_load(&z->engine_pid);

    return pid > 0 && llm_engines_newer(t, pid) != 0;
}
