/*
 * The functions of CUDA's runtime that the backend uses: the device, memory
 * that begins as 0xff and ends at a guard page, streams, events, graphs; and
 * the faults that the environment requests (emu.h).
 */

#include "t/gpu/emu/internal.h"

#include <sys/mman.h>

#define EMU_TOTAL       ((size_t) 4 << 30)   /* or LLM_EMU_MEMORY */

namespace emu {

static std::map<void *, size_t>  mapped;
static std::set<cudaStream_t>    streams;
static size_t                    in_use;
static unsigned long             n_allocs;
static Fault                     graph_fault("LLM_EMU_FAIL_GRAPH");


uint8_t *
guarded(size_t size)
{
    size_t    page, len;
    uint8_t  *p;

    page = 4096;
    len = (size + page - 1) / page * page;
    p = (uint8_t *) mmap(nullptr, len + page, PROT_READ|PROT_WRITE,
                         MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED) {
        return nullptr;
    }

    mprotect(p + len, page, PROT_NONE);

    return p + len - size;
}


/* unmaps the memory of guarded(size), for size 0 of guarded(256), and its guard
   page */

static void
unmap(void *p, size_t size)
{
    size_t  len;

    len = ((size ? size : 256) + 4095) / 4096 * 4096;
    munmap((uint8_t *) p + (size ? size : 256) - len, len + 4096);
}


static size_t
total_memory()
{
    return setting("LLM_EMU_MEMORY", EMU_TOTAL);
}


static bool
alloc_fails(size_t size, size_t most)
{
    return ++n_allocs == setting("LLM_EMU_FAIL_ALLOC", 0) || size > most;
}


/* A call that may wait for the device, in a thread that captures: CUDA ends the
   capture with an error.  Here it breaks the device. */

static bool
captures(const char *call)
{
    for (const cudaStream_t s : streams) {
        if (s->capture && s->capture->owner == std::this_thread::get_id()) {
            fprintf(stderr, "emu: %s() while this thread captures\n", call);
            broken = cudaErrorInvalidValue;
        }
    }

    return broken != cudaSuccess;
}


/* memory begins and ends to exist for kernels */

static void
map_for_ptx(void *p, size_t size)
{
    if (ptx_library()) {
        ptx_library()->mapped(p, size);
    }
}


static void
unmap_for_ptx(void *p)
{
    if (ptx_library()) {
        ptx_library()->unmapped(p);
    }
}


/* the error that calls report; on a broken device always the same */

static cudaError_t
verdict()
{
    return broken ? broken : last_error;
}

}  /* namespace emu */


using namespace emu;


void
emu_enqueue(cudaStream_t s, std::function<void()> work)
{
    enqueue(s, std::move(work));
}


/* ---- device ---- */

cudaError_t
cudaDriverGetVersion(int *version)
{
    *version = 13000;

    return cudaSuccess;
}


cudaError_t
cudaGetDeviceCount(int *n)
{
    n_allocs = 0;
    *n = 1;

    return cudaSuccess;
}


cudaError_t
cudaSetDevice(int n)
{
    return n == 0 ? cudaSuccess : cudaErrorInvalidValue;
}


cudaError_t
cudaGetDevice(int *n)
{
    *n = 0;

    return cudaSuccess;
}


cudaError_t
cudaGetDeviceProperties(cudaDeviceProp *p, int n)
{
    if (n != 0) {
        return cudaErrorInvalidValue;
    }

    memset(p, 0, sizeof(*p));
    snprintf(p->name, sizeof(p->name), "emulated GPU");
    p->totalGlobalMem = total_memory();
    p->sharedMemPerBlockOptin = emu::shared_most();
    p->major = (int) setting("LLM_EMU_CAPABILITY", 89) / 10;
    p->minor = (int) setting("LLM_EMU_CAPABILITY", 89) % 10;
    p->multiProcessorCount = 4;
    p->l2CacheSize = 1 << 20;

    return cudaSuccess;
}


cudaError_t
cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int n)
{
    (void) n;
    *v = a == cudaDevAttrMultiProcessorCount ? 4 : (int) emu::shared_most();

    return cudaSuccess;
}


cudaError_t
cudaDeviceSynchronize()
{
    run_queue();

    return verdict();
}


cudaError_t
cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    *total = total_memory();
    *free_bytes = *total > in_use ? *total - in_use : 0;

    return broken;
}


const char *
cudaGetErrorString(cudaError_t e)
{
    switch (e) {
    case cudaSuccess:               return "no error";
    case cudaErrorInvalidValue:     return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorNotReady:         return "not ready";
    case cudaErrorNoDevice:         return "no device";
    default:                        return "launch failure";
    }
}


cudaError_t
cudaGetLastError()
{
    cudaError_t  e = verdict();

    last_error = cudaSuccess;

    return e;
}


cudaError_t
cudaPeekAtLastError()
{
    return verdict();
}


cudaError_t
cudaFuncSetAttribute_(const void *f, int shared)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    if (shared < 0 || (size_t) shared > shared_most()) {
        return cudaErrorInvalidValue;
    }

    shared_set[f] = (size_t) shared;

    return broken;
}


/* ---- memory ---- */

cudaError_t
cudaMalloc_(void **p, size_t size)
{
    size_t                                 asked = size;
    std::lock_guard<std::recursive_mutex>  guard(lock);

    /* cudaMalloc's own alignment */
    size = (size + 255) / 256 * 256;

    if (captures("cudaMalloc")) {
        return broken;
    }

    if (alloc_fails(in_use + size, total_memory())) {
        return cudaErrorMemoryAllocation;
    }

    *p = guarded(size ? size : 256);
    if (*p == nullptr) {
        return cudaErrorMemoryAllocation;
    }

    memset(*p, 0xff, size);
    mapped[*p] = size;
    map_for_ptx(*p, asked);
    in_use += size;

    return cudaSuccess;
}


cudaError_t
cudaFree(void *p)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    if (captures("cudaFree")) {
        return broken;
    }

    if (p == nullptr) {
        return cudaSuccess;
    }

    auto  it = mapped.find(p);

    if (it == mapped.end()) {
        return cudaErrorInvalidValue;
    }

    run_queue();
    unmap_for_ptx(p);
    unmap(p, it->second);
    in_use -= it->second;
    mapped.erase(it);

    return cudaSuccess;
}


cudaError_t
cudaHostAlloc_(void **p, size_t size, unsigned flags)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    (void) flags;

    if (captures("cudaHostAlloc")) {
        return broken;
    }

    if (alloc_fails(0, 0)) {
        return cudaErrorMemoryAllocation;
    }

    *p = aligned_alloc(4096, (size + 4095) / 4096 * 4096);

    if (*p == nullptr) {
        return cudaErrorMemoryAllocation;
    }

    map_for_ptx(*p, size);

    return cudaSuccess;
}


cudaError_t
cudaFreeHost(void *p)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    if (captures("cudaFreeHost")) {
        return broken;
    }

    run_queue();
    unmap_for_ptx(p);
    free(p);

    return cudaSuccess;
}


cudaError_t
cudaMemcpyAsync(void *dst, const void *src, size_t size, cudaMemcpyKind kind,
    cudaStream_t s)
{
    if (kind == cudaMemcpyDeviceToHost && s && !s->capture && !broken) {
        memset(dst, 0xff, size);        /* not to be read before the wait */
    }

    enqueue(s, [=]() { memmove(dst, src, size); });

    return broken;
}


cudaError_t
cudaMemsetAsync(void *p, int v, size_t size, cudaStream_t s)
{
    enqueue(s, [=]() { memset(p, v, size); });

    return broken;
}


/* ---- streams, events, graphs ---- */

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    (void) flags;
    *s = new EmuStream { nullptr };
    streams.insert(*s);

    return cudaSuccess;
}


cudaError_t
cudaStreamDestroy(cudaStream_t s)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    run_queue();
    streams.erase(s);
    delete s;

    return cudaSuccess;
}


cudaError_t
cudaStreamSynchronize(cudaStream_t s)
{
    if (s && s->capture) {
        return cudaErrorInvalidValue;
    }

    run_queue();

    return verdict();
}


cudaError_t
cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
    (void) s;
    (void) e;
    (void) flags;

    return cudaSuccess;                 /* the queue is in issue order */
}


cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
    (void) flags;
    *e = new EmuEvent();

    return cudaSuccess;
}


cudaError_t
cudaEventCreate(cudaEvent_t *e)
{
    return cudaEventCreateWithFlags(e, 0);
}


cudaError_t
cudaEventDestroy(cudaEvent_t e)
{
    run_queue();
    delete e;

    return cudaSuccess;
}


cudaError_t
cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    e->issued++;
    enqueue(s, [=]() {
        e->when = std::chrono::steady_clock::now();
        e->done++;
    });

    return cudaSuccess;
}


cudaError_t
cudaEventSynchronize(cudaEvent_t e)
{
    run_queue(e);

    return verdict();
}


cudaError_t
cudaEventQuery(cudaEvent_t e)
{
    run_queue(e);

    return cudaSuccess;
}


cudaError_t
cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b)
{
    run_queue();
    *ms = std::chrono::duration<float, std::milli>(b->when - a->when).count();

    return cudaSuccess;
}


cudaError_t
cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    (void) mode;

    if (s == nullptr || s->capture) {
        return cudaErrorInvalidValue;
    }

    s->capture = new EmuGraph;
    s->capture->owner = std::this_thread::get_id();

    return cudaSuccess;
}


cudaError_t
cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    if (s == nullptr || s->capture == nullptr) {
        return cudaErrorInvalidValue;
    }

    *g = s->capture;
    s->capture = nullptr;

    return cudaSuccess;
}


cudaError_t
cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g,
    unsigned long long flags)
{
    (void) flags;

    if (graph_fault.now()) {
        return cudaErrorMemoryAllocation;
    }

    *x = new EmuGraph(*g);

    return cudaSuccess;
}


cudaError_t
cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s)
{
    if (graph_fault.now()) {
        return cudaErrorMemoryAllocation;
    }

    for (const auto &work : x->work) {
        enqueue(s, work);
    }

    return broken;
}


cudaError_t
cudaGraphDestroy(cudaGraph_t g)
{
    delete g;

    return cudaSuccess;
}


cudaError_t
cudaGraphExecDestroy(cudaGraphExec_t x)
{
    run_queue();
    delete x;

    return cudaSuccess;
}
