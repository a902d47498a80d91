/*
 * Shared by emu.cpp, which runs kernels, launch.cpp, which has the queue of
 * work, ptx.cpp, which finds translated kernels, and runtime.cpp, which has the
 * CUDA runtime's functions for the backend.
 */

#ifndef LLM_EMU_INTERNAL_H
#define LLM_EMU_INTERNAL_H

#include "t/gpu/emu/emu.h"

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#define EMU_MAX_THREADS     1024            /* of a block */
#define EMU_SHARED_MAX      (227 * 1024)
#define EMU_SHARED_DEFAULT  (48 * 1024)     /* without the attribute */

struct EmuGraph {
    std::vector<std::function<void()>>  work;
    std::thread::id                     owner;      /* captures it */
};

struct EmuStream {
    EmuGraph  *capture;
};

struct EmuEvent {
    std::chrono::steady_clock::time_point  when;
    size_t                                 issued;      /* records enqueued */
    size_t                                 done;        /* records done */
};

namespace emu {

/* a fault that an environment variable requests */
struct Fault {
    const char  *name;
    size_t       at;
    size_t       calls;

    explicit Fault(const char *variable)
        : name(variable), at(0), calls(0)
    {
    }

    bool now();
};

extern std::recursive_mutex               lock;         /* of what follows */
extern std::deque<std::function<void()>>  queue;
extern cudaError_t                        last_error;
extern cudaError_t                        broken;       /* never cleared */
extern std::map<const void *, size_t>     shared_set;   /* a kernel's attribute
                                                           for shared memory */

void enqueue(cudaStream_t s, std::function<void()> work);
void run_queue(const EmuEvent *until = nullptr);

/* emu.cpp: prepares the emulator; runs all blocks of a launch */
void start();
void run_grid(const Kernel &k, dim3 grid, dim3 block, size_t shared,
    const std::function<void()> &f);

/* bytes of a kernel's static shared memory, before the dynamic one */
size_t static_shared(const Kernel &k);

/* the library of translated kernels, or nullptr without LLM_EMU_PTX */
const ptx_library_t *ptx_library();

/* reports the running thread and ends the process */
void die(const char *what);

/* the number in an environment variable, or `otherwise` */
size_t setting(const char *name, size_t otherwise);

/* most bytes of shared memory of a block */
size_t shared_most();

/* memory that ends at a guard page; nullptr: no memory */
uint8_t *guarded(size_t size);

}  /* namespace emu */

#endif /* LLM_EMU_INTERNAL_H */
