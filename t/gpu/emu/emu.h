/*
 * CUDA's execution model on the host, so that the sources of kernels/cuda
 * run and are tested on machines without a GPU.  kernels/cuda/device.h
 * includes this instead of the toolkit's headers when LLM_EMU is defined.
 *
 * What is emulated: a grid of blocks, one after another; the threads of a
 * block as fibers of one host thread, switched at barriers and warp-wide
 * operations; dynamic shared memory; atomics; asynchronous copies; streams,
 * events and graphs.  Only one thread of a block runs at a time.  With
 * LLM_EMU_SEED set to a number other than 0, the order of blocks, and of
 * threads between two barriers, is random, which shows missing barriers.
 *
 * Invariant: a program that relies on what CUDA does not guarantee fails.
 * Fresh device memory and every block's shared memory are filled with 0xff
 * (NaN); a buffer ends at a guard page; work of a stream is done only when
 * somebody waits for it (LLM_EMU_EAGER=1: at once, which CUDA also allows;
 * 0,1: at once on device 1 alone);
 * work of one device cannot touch the memory of another, but for a copy between
 * the two and for kernels that are launched to do so, if the device has enabled
 * that; nor can a thread launch on another device than its own; the target of
 * an asynchronous copy is filled with 0xff until then.  Streams captured into
 * one graph wait for each other in it as they do outside.  Work on the legacy
 * stream breaks the device, and so do capturing a kernel that was never
 * launched, as it might not be loaded yet, and allocating or freeing memory in
 * the thread that captures.  A launch fails that asks for more than 48 KiB of
 * shared memory without the kernel's attribute for it.  A kernel that is
 * launched early has to wait in each thread, and is not the first one after its
 * stream waited for an event; that it reads nothing of the kernels before it
 * until then is seen with LLM_EMU_PTX.
 *
 * Environment variables, for the device and its faults:
 *
 *   LLM_EMU_DEVICES        how many devices there are (2)
 *   LLM_EMU_MEMORY         the devices' memory, bytes (4 GiB); with commas that
 *                          of device 0, of device 1 ..., the last for the rest
 *   LLM_EMU_PEERS=0        no device can access the memory of another
 *   LLM_EMU_CLOSE=n        on a CPU without protection keys, where closing the
 *                          memory of other devices takes most of the time: it
 *                          is closed for every n-th kernel (1)
 *   LLM_EMU_CAPABILITY     80: Ampere; 89: Ada, the default; 90: Hopper; each
 *                          with the shared memory that its blocks have
 *   LLM_EMU_COMPILED       the capability that kernels were compiled for, if
 *                          that is a lower one: the driver compiles their PTX
 *   LLM_EMU_NO_IMAGE=e     kernels have no code for the device: error e (209:
 *                          there is none, 222: the driver is too old for it)
 *   LLM_EMU_DRY=1          kernels are launched, but do not run
 *   LLM_EMU_FAIL_ALLOC=n   the n-th allocation of device or pinned memory
 *                          after the last cudaGetDeviceCount() fails
 *   LLM_EMU_FAIL_LAUNCH=n  the n-th kernel after the variable was set to n
 *                          fails
 *   LLM_EMU_STICKY=1       a failed kernel is a sticky error, as most errors of
 *                          a GPU: all calls on its device fail until the
 *                          process ends
 *   LLM_EMU_FAIL_GRAPH=n   the n-th instantiation or launch of a graph after
 *                          the variable was set to n fails for lack of memory
 *   LLM_EMU_FAIL_CAPTURE=n the n-th kernel, event or wait that is captured after
 *                          the variable was set to n makes its capture invalid
 *   LLM_EMU_PTX=1          kernels are those of nvcc's PTX, translated to C
 *                          (t/gpu/ptx), and all their accesses to memory are
 *                          checked; or the path of a library of such kernels
 *   LLM_EMU_MMA=1          tensor cores add as those of the capability do
 *                          (mma.cpp), which takes several times as long; else
 *                          an instruction's products are added one by one
 *
 * Not emulated: speed, the memory model's weak ordering, warps in lockstep.
 * The fibers' stacks belong to emu.cpp, the queue to launch.cpp.
 */

#ifndef LLM_EMU_H
#define LLM_EMU_H

#include "t/gpu/ptx/types.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

/* visible, so that a kernel's name can be found by its address (ptx.cpp) */
#define __global__       __attribute__((visibility("default")))
#define __device__
#define __host__
#define __forceinline__  inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n)     alignas(n)


/* ---- vector types ---- */

struct dim3 {
    unsigned  x, y, z;

    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
        : x(x_), y(y_), z(z_)
    {
    }
};

struct uint3 { unsigned x, y, z; };

/* visible, as a kernel that is a template of one would not be found otherwise */

#pragma GCC visibility push(default)

struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };

#pragma GCC visibility pop

static inline float2 make_float2(float x, float y) { return { x, y }; }
static inline float4 make_float4(float x, float y, float z, float w)
    { return { x, y, z, w }; }
static inline uint2 make_uint2(unsigned x, unsigned y) { return { x, y }; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
    { return { x, y, z, w }; }
static inline int2 make_int2(int x, int y) { return { x, y }; }
static inline int4 make_int4(int x, int y, int z, int w)
    { return { x, y, z, w }; }


/* ---- threads and blocks ---- */

#define EMU_MEET_BYTES  64      /* of a lane, in a warp-wide operation */

namespace emu {

struct Thread {
    uint3      tid;
    unsigned   lane;
    unsigned   warp;
    unsigned   early;       /* kernels before this one may still run */
    uint8_t  (*met)[EMU_MEET_BYTES];    /* the lanes' bytes of the last
                                           warp-wide operation */
};

struct Block {
    uint3      bid;
    dim3       block;
    dim3       grid;
    uint8_t   *shared;
};

extern Thread  *cur;
extern Block    blk;

void sync_block();

/*
 * A warp-wide operation: waits until all lanes of mask have called this, each
 * with `size` bytes (at most EMU_MEET_BYTES).  at(lane) returns a lane's bytes,
 * until the caller's next meeting.  `last`, unless NULL, is called once when
 * all have arrived; it may change the lanes' bytes.
 */
void meet(unsigned mask, const void *mine, size_t size,
    void (*last)(uint8_t (*slots)[EMU_MEET_BYTES]) = nullptr);
static inline const void *at(unsigned lane) { return cur->met[lane & 31]; }

/* mma.cpp: are products added as tensor cores do; and d += A B in their
   arithmetic: rows[i] is A[i][0 .. 15], then B[i][0 .. 7] */
bool mma_rule();
void mma_16(const uint16_t rows[16][24], int bf16, float d[16][8]);

/* copies that happen at the wait; see llm_cp_async16() in device.h */
void copy_async(void *dst, const void *src, size_t size);
void copy_commit();
void copy_wait(unsigned groups_left);

/* of a thread: kernels before this one have ended */
static inline void early_wait() { cur->early = 0; }

/* a kernel's function and the name that the source gives it; ptx: its
   translation, to be run instead, or NULL */
struct Kernel {
    const char           *name;
    int                   early;        /* see llm_launch_early() */
    int                   peers;        /* see llm_launch_peers() */
    const void           *entry;
    const ptx_kernel_t   *ptx;
};

void launch(void *stream, const Kernel &kernel, dim3 grid, dim3 block,
    size_t shared, std::function<void()> body);

/* ptx.cpp: the translation of a kernel whose parameters have so many bytes, or
   NULL if LLM_EMU_PTX is not set */
const ptx_kernel_t *ptx_kernel(const void *entry, const char *name,
    size_t params);
void ptx_run(const ptx_kernel_t *k, const uint8_t *params);

/* appends a parameter as CUDA's ABI places it */

template<class T> static inline void
put_param(std::vector<uint8_t> &params, const T &v)
{
    size_t  start = (params.size() + alignof(T) - 1) / alignof(T) * alignof(T);

    params.resize(start + sizeof(T));
    memcpy(params.data() + start, &v, sizeof(T));
}


/* k<<<grid, block, shared, stream>>>(a...); how: EMU_EARLY, EMU_PEERS */

#define EMU_EARLY  1
#define EMU_PEERS  2

template<class... P, class... A> static inline void
call(void *stream, const char *name, int how, void (*k)(P...), dim3 grid,
    dim3 block, size_t shared, A... a)
{
    Kernel                kernel = { name, how & EMU_EARLY, how & EMU_PEERS,
                                     (const void *) k, nullptr };
    std::vector<uint8_t>  params;

    (put_param<P>(params, (P) a), ...);
    kernel.ptx = ptx_kernel(kernel.entry, name, params.size());

    if (kernel.ptx) {
        launch(stream, kernel, grid, block, shared,
               [=]() { ptx_run(kernel.ptx, params.data()); });

    } else {
        launch(stream, kernel, grid, block, shared, [=]() { k(a...); });
    }
}


template<class T> static inline T
shuffle(unsigned mask, T v, unsigned from)
{
    T  r;

    meet(mask, &v, sizeof(T));
    memcpy(&r, at(from), sizeof(T));

    return r;
}

}  /* namespace emu */

#define threadIdx  (emu::cur->tid)
#define blockIdx   (emu::blk.bid)
#define blockDim   (emu::blk.block)
#define gridDim    (emu::blk.grid)

static inline void __syncthreads() { emu::sync_block(); }
static inline void __threadfence() { }
static inline void __threadfence_block() { }

static inline void
__syncwarp(unsigned mask = 0xffffffffu)
{
    emu::meet(mask, nullptr, 0);
}


template<class T> static inline T
__shfl_sync(unsigned mask, T v, int lane, int width = 32)
{
    unsigned  base = emu::cur->lane & ~(unsigned) (width - 1);

    return emu::shuffle(mask, v, base + ((unsigned) lane & (width - 1)));
}


template<class T> static inline T
__shfl_xor_sync(unsigned mask, T v, int x, int width = 32)
{
    unsigned  from = emu::cur->lane ^ (unsigned) x;

    (void) width;

    return emu::shuffle(mask, v, from);
}


template<class T> static inline T
__shfl_down_sync(unsigned mask, T v, unsigned d, int width = 32)
{
    unsigned  lane = emu::cur->lane;
    unsigned  pos = lane & (unsigned) (width - 1);

    return emu::shuffle(mask, v, pos + d < (unsigned) width ? lane + d : lane);
}


template<class T> static inline T
__shfl_up_sync(unsigned mask, T v, unsigned d, int width = 32)
{
    unsigned  lane = emu::cur->lane;
    unsigned  pos = lane & (unsigned) (width - 1);

    return emu::shuffle(mask, v, pos >= d ? lane - d : lane);
}


static inline unsigned
__ballot_sync(unsigned mask, int pred)
{
    unsigned  i, r;

    pred = pred != 0;
    emu::meet(mask, &pred, sizeof(int));

    for (i = 0, r = 0; i < 32; i++) {
        if (mask >> i & 1) {
            r |= (unsigned) *(const int *) emu::at(i) << i;
        }
    }

    return r;
}


static inline int
__any_sync(unsigned mask, int pred)
{
    return __ballot_sync(mask, pred) != 0;
}


static inline int
__all_sync(unsigned mask, int pred)
{
    return __ballot_sync(mask, pred) == mask;
}


/* ---- arithmetic ---- */

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __clz(int x)
    { return x ? __builtin_clz((unsigned) x) : 32; }
static inline unsigned __brev(unsigned x)
{
    unsigned  i, r;

    for (i = 0, r = 0; i < 32; i++) {
        r |= (x >> i & 1) << (31 - i);
    }

    return r;
}

/* the low word of hi:lo shifted right */
static inline unsigned
__funnelshift_r(unsigned lo, unsigned hi, unsigned n)
{
    return (unsigned) (((uint64_t) hi << 32 | lo) >> (n & 31));
}

static inline float __uint_as_float(unsigned u)
    { float f; memcpy(&f, &u, 4); return f; }
static inline unsigned __float_as_uint(float f)
    { unsigned u; memcpy(&u, &f, 4); return u; }
static inline float __int_as_float(int u)
    { float f; memcpy(&f, &u, 4); return f; }
static inline int __float_as_int(float f)
    { int u; memcpy(&u, &f, 4); return u; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c)
    { return fmaf(a, b, c); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline int __float2int_rn(float f) { return (int) rintf(f); }
static inline unsigned __umulhi(unsigned a, unsigned b)
    { return (unsigned) ((uint64_t) a * b >> 32); }

template<class T> static inline T
__ldg(const T *p)
{
    return *p;
}

static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }


/* ---- atomics: one host thread runs all blocks ---- */

template<class T> static inline T
atomicAdd(T *p, T v)
{
    T  old = *p;

    *p = old + v;

    return old;
}


template<class T> static inline T
atomicMax(T *p, T v)
{
    T  old = *p;

    if (v > old) {
        *p = v;
    }

    return old;
}


template<class T> static inline T
atomicMin(T *p, T v)
{
    T  old = *p;

    if (v < old) {
        *p = v;
    }

    return old;
}


template<class T> static inline T
atomicExch(T *p, T v)
{
    T  old = *p;

    *p = v;

    return old;
}


template<class T> static inline T
atomicCAS(T *p, T want, T v)
{
    T  old = *p;

    if (old == want) {
        *p = v;
    }

    return old;
}


/* ---- the runtime's functions that the backend uses ---- */

typedef enum {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorNotReady = 600,
    cudaErrorLaunchFailure = 719,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorInvalidPtx = 218,
    cudaErrorJitCompilerNotFound = 221,
    cudaErrorUnsupportedPtxVersion = 222,
    cudaErrorJitCompilationDisabled = 223,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorPeerAccessAlreadyEnabled = 704,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorStreamCaptureUnjoined = 904,
    cudaErrorStreamCaptureIsolation = 905
} cudaError_t;

typedef enum {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
} cudaMemcpyKind;

typedef struct EmuStream     *cudaStream_t;
typedef struct EmuEvent      *cudaEvent_t;
typedef struct EmuGraph      *cudaGraph_t;
typedef struct EmuGraph      *cudaGraphExec_t;

typedef enum {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal,
    cudaStreamCaptureModeRelaxed
} cudaStreamCaptureMode;

typedef enum {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8
} cudaFuncAttribute;

struct cudaFuncAttributes {
    int       ptxVersion;
    int       binaryVersion;
};

typedef enum {
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
} cudaDeviceAttr;

struct cudaDeviceProp {
    char      name[256];
    size_t    totalGlobalMem;
    size_t    sharedMemPerBlockOptin;
    int       major;
    int       minor;
    int       multiProcessorCount;
    int       l2CacheSize;
};

#define cudaStreamNonBlocking     1
#define cudaEventDisableTiming    2

cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaSetDevice(int n);
cudaError_t cudaGetDevice(int *n);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int n);
cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int n);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceCanAccessPeer(int *can, int n, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);
const char *cudaGetErrorString(cudaError_t e);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

cudaError_t cudaMalloc_(void **p, size_t size);
cudaError_t cudaFree(void *p);
cudaError_t cudaHostAlloc_(void **p, size_t size, unsigned flags);
cudaError_t cudaFreeHost(void *p);

template<class T> static inline cudaError_t
cudaMalloc(T **p, size_t size)
{
    return cudaMalloc_((void **) p, size);
}


template<class T> static inline cudaError_t
cudaMallocHost(T **p, size_t size)
{
    return cudaHostAlloc_((void **) p, size, 0);
}


template<class T> static inline cudaError_t
cudaHostAlloc(T **p, size_t size, unsigned flags)
{
    return cudaHostAlloc_((void **) p, size, flags);
}


/*
 * There is no cudaMemcpy() and no cudaMemset(): they use the legacy stream,
 * which does not wait for a non-blocking one.  There is no cudaMemcpy2D(),
 * because CUDA limits the pitch of its rows.
 */
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size,
    cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src,
    int src_device, size_t size, cudaStream_t s);
cudaError_t cudaMemsetAsync(void *p, int v, size_t size, cudaStream_t s);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e,
    unsigned flags = 0);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags);
cudaError_t cudaEventCreate(cudaEvent_t *e);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventQuery(cudaEvent_t e);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b);

cudaError_t cudaStreamBeginCapture(cudaStream_t s,
    cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g,
    unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s);
cudaError_t cudaGraphDestroy(cudaGraph_t g);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x);

cudaError_t cudaFuncGetAttributes_(cudaFuncAttributes *a, const void *f);
cudaError_t cudaFuncSetAttribute_(const void *f, int shared);

template<class F> static inline cudaError_t
cudaFuncGetAttributes(cudaFuncAttributes *a, F *f)
{
    return cudaFuncGetAttributes_(a, (const void *) f);
}


template<class F> static inline cudaError_t
cudaFuncSetAttribute(F *f, cudaFuncAttribute, int shared)
{
    return cudaFuncSetAttribute_((const void *) f, shared);
}

/*
 * For tests, which find it by this name in llm_emu.so: the sum of all that was
 * counted under names with `name` in them: blocks of kernels that were
 * launched, neither captured nor replayed, under the kernel's; "replayed":
 * blocks of all kernels of graphs that were launched; "cudaGraphInstantiate",
 * "cudaGraphLaunch" and "cudaFuncSetAttribute" that succeeded.
 */
extern "C" __attribute__((visibility("default"))) unsigned long
    llm_emu_count(const char *name);

/* enqueues host work on a stream as if it were a kernel, which takes `ms` by the
   clock of events (blas.cpp) */
void emu_enqueue(cudaStream_t s, std::function<void()> work, double ms = 1);

#endif /* LLM_EMU_H */
