/*
 * For tests of device=auto with the emulator under llm_cuda.so's name: the
 * program's own access(), by which the kernel's files show a GPU.
 */

#ifndef LLM_GPU_SEEN_H
#define LLM_GPU_SEEN_H

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int  gpu_seen = 1;


int
access(const char *path, int mode)
{
    if (gpu_seen && strcmp(path, "/dev/nvidiactl") == 0) {
        return 0;
    }

    return faccessat(AT_FDCWD, path, mode, 0);
}

#endif /* LLM_GPU_SEEN_H */
