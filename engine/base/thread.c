/*
 * Starting a thread of the engine; see thread.h.
 */

#include "engine/base/thread.h"

#include <signal.h>


int
llm_thread_start(pthread_t *t, void *(*main)(void *), void *arg)
{
    int       rc;
    sigset_t  all, old;

    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    (void) pthread_sigmask(SIG_BLOCK, &all, &old);

    rc = pthread_create(t, NULL, main, arg);

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    return rc;
}
