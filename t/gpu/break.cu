/*
 * Loaded before nginx (LD_PRELOAD), it breaks the GPU's context of a worker
 * when the file that LLM_GPU_BREAK names comes to be: a kernel writes where
 * there is nothing, an error that sticks.  See run.sh, sticky.
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


/* in the worker: the master has no CUDA, and a thread does not survive fork */

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
