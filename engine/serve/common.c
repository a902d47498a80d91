/*
 * What all files of the engine call: its log, its wake-ups, its threads, and
 * the notice that the process has to end.
 */

#include "engine/serve/engine.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>


void
llm_engine_log(llm_engine_t *e, int level, const char *fmt, ...)
{
    char     msg[1024];
    va_list  args;

    if (e->log == NULL) {
        return;
    }

    va_start(args, fmt);
    vsnprintf(msg, sizeof(msg), fmt, args);
    va_end(args);

    e->log(e->log_data, level, msg);
}


void
llm_engine_wake(llm_engine_t *e)
{
    llm_zone_wake(e->zone, e->fd);
}


int
llm_engine_thread(pthread_t *t, void *(*main)(void *), void *arg)
{
    int       rc;
    sigset_t  all, old;

    /* except SIGBUS, which pages of a mapped file may raise: gguf/map.h */

    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    (void) pthread_sigmask(SIG_BLOCK, &all, &old);

    rc = pthread_create(t, NULL, main, arg);

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    return rc == 0 ? LLM_OK : LLM_ERROR;
}


int
llm_engine_lost(llm_engine_t *e)
{
    return atomic_load(&e->lost);
}


void
llm_engine_lose(llm_engine_t *e)
{
    ssize_t   n;
    uint64_t  one = 1;

    if (atomic_exchange(&e->lost, 1)) {
        return;
    }

    do {
        n = write(e->peers[0].port.fd, &one, sizeof(one));
    } while (n == -1 && errno == EINTR);
}
