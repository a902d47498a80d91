/*
 * Starting a thread of the engine.  Signals are the host process's: none may
 * land on such a thread, except SIGBUS, which pages of a mapped file may
 * raise (gguf/map.h).
 */

#ifndef LLM_THREAD_H
#define LLM_THREAD_H

#include <pthread.h>

#include "engine/base/base.h"

/* the thread inherits the CPU affinity of its creator; 0, or an errno */
int llm_thread_start(pthread_t *t, void *(*main)(void *), void *arg);

#endif /* LLM_THREAD_H */
