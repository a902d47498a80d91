/*
 * What emu.cpp, which runs kernels, and runtime.cpp, which is the CUDA
 * runtime to the backend, share.
 */

#ifndef LLM_EMU_INTERNAL_H
#define LLM_EMU_INTERNAL_H

#include "t/gpu/emu/emu.h"

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#define EMU_SHARED_MAX  (227 * 1024)

struct EmuGraph {
    std::vector<std::function<void()>>  work;
};

struct EmuStream {
    EmuGraph  *capture;
};

struct EmuEvent {
    std::chrono::steady_clock::time_point  when;
    size_t                                 issued;      /* records asked for */
    size_t                                 done;        /* and come by */
};

namespace emu {

/* a fault that the environment asks for */
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

extern std::recursive_mutex               lock;         /* of all below */
extern std::deque<std::function<void()>>  queue;
extern cudaError_t                        last_error;
extern cudaError_t                        broken;       /* for ever */

void enqueue(cudaStream_t s, std::function<void()> work);
void run_queue(const EmuEvent *until = nullptr);

/* a number of the environment */
size_t setting(const char *name, size_t otherwise);

/* bytes of shared memory that a block of the GPU may have */
size_t shared_most();

/* memory that ends at a guard page, nullptr when there is none */
uint8_t *guarded(size_t size);

}  /* namespace emu */

#endif /* LLM_EMU_INTERNAL_H */
