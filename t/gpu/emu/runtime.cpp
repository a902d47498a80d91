/*
 * The functions of CUDA's runtime that the backend uses: the device, memory
 * that begins as 0xff and ends at a guard page, streams, events, graphs; and
 * the faults that the environment requests (emu.h).
 */

#include "t/gpu/emu/internal.h"

#include <algorithm>
#include <csignal>

#include <sys/mman.h>

#define EMU_TOTAL       ((size_t) 4 << 30)   /* or LLM_EMU_MEMORY */

namespace emu {

struct Mapped {
    size_t  size;
    int     device;
};

static std::map<uint8_t *, Mapped>  mapped;
static unsigned                     opened = ~0u;   /* devices whose memory is
                                                       accessible, a bit for
                                                       each */
static unsigned                     with_keys;      /* those whose memory has
                                                       a protection key */
static unsigned long                n_allocs;
static Fault                        graph_fault("LLM_EMU_FAIL_GRAPH");


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


/* unmaps the memory of guarded(size), and its guard page */

static void
unmap(void *p, size_t size)
{
    size_t  len;

    len = (size + 4095) / 4096 * 4096;
    munmap((uint8_t *) p + size - len, len + 4096);
}


/* lets host and kernels access an allocation, or not; its guard page stays */

static void
protect(uint8_t *p, size_t size, int accessible)
{
    size_t  len;

    len = (size + 4095) / 4096 * 4096;
    mprotect(p + size - len, len, accessible ? PROT_READ|PROT_WRITE
                                             : PROT_NONE);
}


/* the protection key of a device's memory, with which a thread closes and opens
   all of it at once; -1 if the CPU or the kernel has none */

static int
key_of(int device)
{
    static int  keys[EMU_MAX_DEVICES], n;

    for ( /* void */ ; n <= device; n++) {
        keys[n] = pkey_alloc(0, 0);
    }

    return keys[device];
}


void
open_memory(unsigned which)
{
    int              i, key;
    size_t           every;
    unsigned         was;
    static unsigned  turn;

    for (i = 0; i < EMU_MAX_DEVICES && with_keys; i++) {
        key = with_keys >> i & 1 ? key_of(i) : -1;

        if (key != -1) {
            (void) pkey_set(key, which >> i & 1 ? 0 : PKEY_DISABLE_ACCESS);
        }
    }

    every = setting("LLM_EMU_CLOSE", 1);

    if (every > 1 && which != ~0u && ++turn % every) {
        which = ~0u;
    }

    if (which == opened) {
        return;
    }

    for (const auto &m : mapped) {
        if (with_keys >> m.second.device & 1) {
            continue;
        }

        was = opened >> m.second.device & 1;

        if (was != (which >> m.second.device & 1)) {
            protect(m.first, m.second.size, !was);
        }
    }

    opened = which;
}


/* a new allocation: as accessible as the device's others */

static void
close_new(uint8_t *p, size_t size)
{
    int     key = key_of(current);
    size_t  len;

    len = (size + 4095) / 4096 * 4096;

    if (key != -1 && pkey_mprotect(p + size - len, len, PROT_READ|PROT_WRITE,
                                   key) == 0)
    {
        with_keys |= 1u << current;

    } else if (!(opened >> current & 1)) {
        protect(p, size, 0);
    }
}


/* says what memory a fault was of, if it is a device's; then the fault comes
   again, without this handler */

static void
faulted(int signo, siginfo_t *info, void *context)
{
    size_t    len;
    uint8_t  *at = (uint8_t *) info->si_addr;

    (void) context;

    for (const auto &m : mapped) {
        len = (m.second.size + 4095) / 4096 * 4096;

        if (at >= m.first + m.second.size - len
            && at < m.first + m.second.size + 4096)
        {
            where(at < m.first + m.second.size
                  ? "access to the memory of another device"
                  : "access beyond the end of an allocation");
            fprintf(stderr, "emu: %p, of device %d\n", info->si_addr,
                    m.second.device);
        }
    }

    (void) signal(signo, SIG_DFL);
}


static void
explain_faults()
{
    static bool       done;
    struct sigaction  sa, old;

    if (done || sigaction(SIGSEGV, nullptr, &old) != 0
        || (old.sa_flags & SA_SIGINFO) || old.sa_handler != SIG_DFL)
    {
        return;
    }

    done = true;
    memset(&sa, 0, sizeof(sa));
    sa.sa_sigaction = faulted;
    sa.sa_flags = SA_SIGINFO | SA_NODEFER;
    (void) sigaction(SIGSEGV, &sa, nullptr);
}


static int
n_devices()
{
    return (int) std::min(setting("LLM_EMU_DEVICES", 2),
                          (size_t) EMU_MAX_DEVICES);
}


static size_t
total_memory()
{
    return setting("LLM_EMU_MEMORY", EMU_TOTAL, current);
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
            devices[s->device].broken = cudaErrorInvalidValue;
        }
    }

    return devices[current].broken != cudaSuccess;
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


static cudaError_t
broken()
{
    return devices[current].broken;
}


/* the error that calls report; on a broken device always the same */

static cudaError_t
verdict()
{
    return broken() ? broken() : devices[current].last_error;
}

}  /* namespace emu */


using namespace emu;


void
emu_enqueue(cudaStream_t s, std::function<void()> work, double ms)
{
    enqueue(s, [=]() {
        work();
        clock_ms += ms;
    });
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
    *n = n_devices();

    return cudaSuccess;
}


cudaError_t
cudaSetDevice(int n)
{
    if (n < 0 || n >= n_devices()) {
        return cudaErrorInvalidValue;
    }

    current = n;

    return cudaSuccess;
}


cudaError_t
cudaGetDevice(int *n)
{
    *n = current;

    return cudaSuccess;
}


cudaError_t
cudaGetDeviceProperties(cudaDeviceProp *p, int n)
{
    if (n < 0 || n >= n_devices()) {
        return cudaErrorInvalidValue;
    }

    memset(p, 0, sizeof(*p));
    snprintf(p->name, sizeof(p->name), "emulated GPU");
    p->totalGlobalMem = setting("LLM_EMU_MEMORY", EMU_TOTAL, n);
    p->sharedMemPerBlockOptin = emu::shared_most();
    p->major = emu::capability() / 10;
    p->minor = emu::capability() % 10;
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
    run_all();

    return verdict();
}


cudaError_t
cudaDeviceCanAccessPeer(int *can, int n, int peer)
{
    *can = n != peer && setting("LLM_EMU_PEERS", 1);

    return cudaSuccess;
}


cudaError_t
cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    (void) flags;

    if (peer < 0 || peer >= n_devices() || peer == current) {
        return cudaErrorInvalidValue;
    }

    devices[current].peers |= 1u << peer;

    return cudaSuccess;
}


cudaError_t
cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    *total = total_memory();
    *free_bytes = *total - std::min(*total, devices[current].in_use);

    return broken();
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
    case cudaErrorStreamCaptureInvalidated:
        return "operation failed due to a previous error during capture";
    case cudaErrorInvalidResourceHandle:
        return "invalid resource handle";
    case cudaErrorNoKernelImageForDevice:
        return "no kernel image is available for execution on the device";
    case cudaErrorUnsupportedPtxVersion:
        return "the provided PTX was compiled with an unsupported toolchain.";
    default:                        return "launch failure";
    }
}


cudaError_t
cudaGetLastError()
{
    cudaError_t  e = verdict();

    e = e ? e : thread_error;
    devices[current].last_error = cudaSuccess;
    thread_error = cudaSuccess;

    return e;
}


cudaError_t
cudaPeekAtLastError()
{
    return verdict();
}


cudaError_t
cudaFuncGetAttributes_(cudaFuncAttributes *a, const void *f)
{
    cudaError_t  e;

    (void) f;
    e = (cudaError_t) setting("LLM_EMU_NO_IMAGE", cudaSuccess);
    a->ptxVersion = emu::compiled();
    a->binaryVersion = emu::capability();

    return e ? e : broken();
}


cudaError_t
cudaFuncSetAttribute_(const void *f, int shared)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    if (shared < 0 || (size_t) shared > shared_most()) {
        return cudaErrorInvalidValue;
    }

    shared_set[{ current, f }] = (size_t) shared;
    count("cudaFuncSetAttribute", 1);

    return broken();
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
        return broken();
    }

    if (alloc_fails(devices[current].in_use + size, total_memory())) {
        return cudaErrorMemoryAllocation;
    }

    size = size ? size : 256;
    *p = guarded(size);
    if (*p == nullptr) {
        return cudaErrorMemoryAllocation;
    }

    memset(*p, 0xff, size);
    mapped[(uint8_t *) *p] = { size, current };
    map_for_ptx(*p, asked);
    devices[current].in_use += size;
    close_new((uint8_t *) *p, size);

    explain_faults();

    return cudaSuccess;
}


cudaError_t
cudaFree(void *p)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    if (captures("cudaFree")) {
        return broken();
    }

    if (p == nullptr) {
        return cudaSuccess;
    }

    auto  it = mapped.find((uint8_t *) p);

    if (it == mapped.end()) {
        return cudaErrorInvalidValue;
    }

    run_all();
    unmap_for_ptx(p);
    unmap(p, it->second.size);
    devices[it->second.device].in_use -= it->second.size;
    mapped.erase(it);

    return cudaSuccess;
}


cudaError_t
cudaHostAlloc_(void **p, size_t size, unsigned flags)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    (void) flags;

    if (captures("cudaHostAlloc")) {
        return broken();
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
        return broken();
    }

    run_all();
    unmap_for_ptx(p);
    free(p);

    return cudaSuccess;
}


cudaError_t
cudaMemcpyAsync(void *dst, const void *src, size_t size, cudaMemcpyKind kind,
    cudaStream_t s)
{
    if (kind == cudaMemcpyDeviceToHost && s && !s->capture && !broken()) {
        memset(dst, 0xff, size);        /* not to be read before the wait */
    }

    enqueue(s, [=]() { memmove(dst, src, size); });

    return broken();
}


/* is this memory of the device? */

static bool
is_of(int device, const void *p, size_t size)
{
    auto  it = mapped.upper_bound((uint8_t *) p);

    if (it == mapped.begin()) {
        return false;
    }

    it--;

    return it->second.device == device
           && (const uint8_t *) p + size <= it->first + it->second.size;
}


cudaError_t
cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
    size_t size, cudaStream_t s)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    if (s == nullptr || !is_of(dst_device, dst, size)
        || !is_of(src_device, src, size)
        || (s->device != dst_device && s->device != src_device))
    {
        return cudaErrorInvalidValue;
    }

    enqueue(s, [=]() { memmove(dst, src, size); },
            1u << dst_device | 1u << src_device);

    return devices[src_device].broken ? devices[src_device].broken
                                      : devices[dst_device].broken;
}


cudaError_t
cudaMemsetAsync(void *p, int v, size_t size, cudaStream_t s)
{
    enqueue(s, [=]() { memset(p, v, size); });

    return broken();
}


/* ---- streams, events, graphs ---- */

/* what the stream is given from now on becomes a lane of the graph */

static void
capture_into(EmuGraph *g, cudaStream_t s)
{
    s->capture = g;
    s->lane = g->lanes.size();
    g->lanes.push_back(s->device);
    g->streams.push_back(s);
}



cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    (void) flags;
    *s = new EmuStream { current, nullptr, 0, {}, false, false };
    streams.push_back(*s);

    return cudaSuccess;
}


cudaError_t
cudaStreamDestroy(cudaStream_t s)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    run_stream(s);
    streams.erase(std::find(streams.begin(), streams.end(), s));
    delete s;

    return cudaSuccess;
}


cudaError_t
cudaStreamSynchronize(cudaStream_t s)
{
    if (s == nullptr || s->capture) {
        return cudaErrorInvalidValue;
    }

    run_stream(s);

    return verdict();
}


cudaError_t
cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
    (void) flags;

    std::lock_guard<std::recursive_mutex>  guard(lock);

    if (s == nullptr) {
        return cudaErrorInvalidValue;
    }

    if (s->capture && e->graph != s->capture) {
        fprintf(stderr, "emu: a captured stream waits for what is not captured "
                "with it\n");
        return cudaErrorStreamCaptureIsolation;
    }

    if (e->graph && s->capture == nullptr) {
        capture_into(e->graph, s);
    }

    if (s->capture && invalidated(s->capture)) {
        return cudaErrorStreamCaptureInvalidated;
    }

    enqueue_wait(s, e);

    return devices[s->device].broken;
}


cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
    (void) flags;
    *e = new EmuEvent();
    (*e)->device = current;

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
    run_all();
    delete e;

    return cudaSuccess;
}


cudaError_t
cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    if (s && s->device != e->device) {
        return cudaErrorInvalidResourceHandle;
    }

    if (s && s->capture) {
        s->capture->events.push_back(e);
        e->graph = s->capture;

        if (invalidated(s->capture)) {
            return cudaErrorStreamCaptureInvalidated;
        }

        s->capture->nodes.push_back({ nullptr, 0, s->lane, 0 });
        e->node = s->capture->nodes.size();
        return cudaSuccess;
    }

    if (e->stream != s) {
        run_until(e);
    }

    e->stream = s;
    e->issued++;
    enqueue(s, [=]() {
        e->when = clock_ms;
        e->done++;
    });

    return cudaSuccess;
}


cudaError_t
cudaEventSynchronize(cudaEvent_t e)
{
    run_until(e);

    return verdict();
}


cudaError_t
cudaEventQuery(cudaEvent_t e)
{
    run_until(e);

    return cudaSuccess;
}


cudaError_t
cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b)
{
    run_until(a);
    run_until(b);
    *ms = (float) (b->when - a->when);

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

    capture_into(new EmuGraph(), s);
    s->capture->owner = std::this_thread::get_id();
    s->begins = s->waits;

    return cudaSuccess;
}


cudaError_t
cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
    cudaError_t                            e;
    std::lock_guard<std::recursive_mutex>  guard(lock);

    if (s == nullptr || s->capture == nullptr || s->lane) {
        return cudaErrorInvalidValue;
    }

    *g = s->capture;

    for (const cudaEvent_t one : (*g)->events) {
        one->graph = nullptr;
    }

    for (const cudaStream_t one : (*g)->streams) {
        one->capture = nullptr;
    }

    if ((*g)->invalid || !joined(**g)) {
        e = (*g)->invalid ? cudaErrorStreamCaptureInvalidated
                          : cudaErrorStreamCaptureUnjoined;
        delete *g;
        *g = nullptr;
        return e;
    }

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
    count("cudaGraphInstantiate", 1);

    return cudaSuccess;
}


cudaError_t
cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s)
{
    if (graph_fault.now()) {
        return cudaErrorMemoryAllocation;
    }

    if (s) {
        s->waits = false;
    }

    count("cudaGraphLaunch", 1);

    enqueue(s, [=]() { run_graph(*x); });

    return broken();
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
    run_all();
    delete x;

    return cudaSuccess;
}
