/*
 * Starts threads of the engine.  They block all signals, which are for the
 * threads of the host process, except SIGBUS: reading a mapped file may raise
 * it in any thread (gguf/map.h).
 */

#ifndef LLM_THREAD_H
#define LLM_THREAD_H

#include <pthread.h>

#include "engine/base/base.h"

/* the thread inherits the CPU affinity of its creator; 0, or an errno */
int llm_thread_start(pthread_t *t, void *(*main)(void *), void *arg);

#endif /* LLM_THREAD_H */
