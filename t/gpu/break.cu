/*
 * Loaded with LD_PRELOAD into nginx, this library breaks a worker's context on
 * the GPU when the file that LLM_GPU_BREAK names is created: a kernel writes to
 * an invalid address, which is a sticky error.  See `run.sh sticky`.
 */

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>


__global__ void
break_kernel(int *p)
{
    *p = 1;
}


static void *
break_watch(void *name)
{
    while (unlink((const char *) name) == -1) {
        usleep(20000);
    }

    (void) cudaSetDevice(0);
    break_kernel<<<1, 1>>>((int *) 8);
    (void) cudaDeviceSynchronize();

    return NULL;
}


/* starts the thread in the worker: nginx's master does not use CUDA, and
   threads do not survive a fork */

static void
break_child(void)
{
    char       *name;
    pthread_t   thread;

    name = getenv("LLM_GPU_BREAK");

    if (name && pthread_create(&thread, NULL, break_watch, name) == 0) {
        (void) pthread_detach(thread);
    }
}


__attribute__((constructor)) static void
break_init(void)
{
    (void) pthread_atfork(NULL, NULL, break_child);
}
