/*
 * Kernels with planted faults, each with a twin without it, for faults.t: nvcc
 * makes their PTX, the host's compiler this program, which runs the case that
 * it is told by name.  It prints the error that the runtime has at the end.
 */

#include "kernels/cuda/device.h"

#define N  64                           /* threads of a block */


/* rows of 16 bytes, `off` bytes too far */

__global__ void
ldmatrix(uint32_t *y, unsigned off)
{
    uint32_t  r[4];

    LLM_SHARED(mem);

    ((float4 *) mem)[threadIdx.x] = make_float4(1, 2, 3, 4);
    __syncthreads();

    llm_ldmatrix_x4<0>(r, mem + threadIdx.x % 32 * 16 + off);
    y[threadIdx.x] = r[0] + r[1] + r[2] + r[3];
}


/* each thread writes element `off` after its own, which for the last one is
   beyond the shared memory */

__global__ void
bounds(float *y, unsigned off)
{
    LLM_SHARED(mem);
    float  *x = (float *) mem;

    x[threadIdx.x + off] = 1;
    y[threadIdx.x] = 1;
}


/* each thread reads what its neighbour wrote */

__global__ void
barrier(float *y, int wait)
{
    LLM_SHARED(mem);
    float  *x = (float *) mem;

    x[threadIdx.x] = (float) threadIdx.x;

    if (wait) {
        __syncthreads();
    }

    y[threadIdx.x] = x[(threadIdx.x + 1) % N];
}


/* the same within a warp */

__global__ void
warp_barrier(float *y, int wait)
{
    LLM_SHARED(mem);
    float  *x = (float *) mem;

    x[threadIdx.x] = (float) threadIdx.x;

    if (wait) {
        __syncwarp();
    }

    y[threadIdx.x] = x[threadIdx.x ^ 1];
}


/* each thread overwrites what its neighbour reads, the second time */

__global__ void
read_before(float *y, int wait)
{
    int     i;

    LLM_SHARED(mem);
    float  *x = (float *) mem;

    for (i = 0; i < 2; i++) {
        x[threadIdx.x] = (float) i;
        __syncthreads();
        y[threadIdx.x] = x[(threadIdx.x + 1) % N];

        if (wait) {
            __syncthreads();
        }
    }
}


/* each block writes one element, all of them the same */

__global__ void
blocks(float *y, unsigned stride)
{
    y[blockIdx.x * stride] = (float) blockIdx.x;
}


/* each block reads the element of the next one and writes its own, to y or to
   the element itself */

__global__ void
neighbours(float *y, unsigned target)
{
    y[blockIdx.x + target] = y[blockIdx.x + 1] + 1;
}


/* all threads count, as they may */

__global__ void
count(uint32_t *y, int atomic)
{
    LLM_SHARED(mem);
    unsigned  *n = (unsigned *) mem;

    if (threadIdx.x == 0) {
        *n = 0;
    }

    __syncthreads();

    if (atomic) {
        atomicAdd(n, 1u);
        atomicAdd(y, 1u);

    } else {
        *n += 1;
    }
}


/* copies, and reads at once what was copied or after the wait */

__global__ void
copy(const float *x, float *y, int wait)
{
    LLM_SHARED(mem);

    llm_cp_async16(mem + threadIdx.x * 16, x + threadIdx.x * 4);
    llm_cp_async_commit();

    if (wait) {
        llm_cp_async_wait<0>();
    }

    __syncthreads();
    y[threadIdx.x] = ((float *) mem)[threadIdx.x];
}


/* copies from `off` floats on, where the source is not aligned */

__global__ void
copy_from(const float *x, float *y, unsigned off)
{
    LLM_SHARED(mem);

    llm_cp_async16(mem + threadIdx.x * 16, x + threadIdx.x * 4 + off);
    llm_cp_async_commit();
    llm_cp_async_wait<0>();
    __syncthreads();
    y[threadIdx.x] = ((float *) mem)[threadIdx.x];
}


/* loads four floats at once, from `off` floats on */

__global__ void
vector(const float *x, float *y, unsigned off)
{
    float4  v = *(const float4 *) (x + threadIdx.x * 4 + off);

    y[threadIdx.x] = v.x + v.y + v.z + v.w;
}


/* may have 32 threads */

__global__ void
__launch_bounds__(32)
few_threads(float *y)
{
    y[threadIdx.x] = 1;
}


/* a kernel for launches that are wrong themselves */

/* reads what the kernel before this one wrote */

__global__ void
early(const float *x, float *y, int before, int after)
{
    float  v = 0;

    llm_early_start();

    if (before) {
        v = x[threadIdx.x];
    }

    if (after) {
        llm_early_wait();
    }

    y[threadIdx.x] = v + x[threadIdx.x];
}


__global__ void
nothing(float *y)
{
    LLM_SHARED(mem);

    mem[threadIdx.x] = 0;
    y[threadIdx.x] = mem[threadIdx.x];
}


#ifdef LLM_EMU

static cudaStream_t   stream;
static float         *x, *y;            /* of 4 N and N floats, x after */


static void
big_shared(bool allowed)
{
    if (allowed) {
        cudaFuncSetAttribute(nothing,
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             49 * 1024);
    }

    llm_launch(nothing, 1, N, 49 * 1024, stream, y);
}


/* the third kernel, too, could read before the first has ended */

static void
two_early(int before, int after)
{
    llm_launch(barrier, 1, N, N * 4, stream, x, 1);
    llm_launch_early(1, early, 1, N, 0, stream, x + N, y, 0, 1);
    llm_launch_early(1, early, 1, N, 0, stream, x, x + N, before, after);
}


/* the process's first kernels are early; the second one reads what nothing has
   written, or what the first one writes */

static void
first_early(int written)
{
    llm_launch_early(1, early, 1, N, 0, stream, x, y, 0, 1);
    llm_launch_early(1, early, 1, N, 0, stream, written ? y : x + N, x, 1, 1);
}


/* what: 'a' allocates, 'l' uses the legacy stream, 'n' neither */

static void
capture(char what)
{
    void         *p;
    cudaGraph_t   g;

    llm_launch(nothing, 1, N, N, stream, y);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    llm_launch(nothing, 1, N, N, stream, y);

    if (what == 'a') {
        cudaMalloc(&p, 256);
    }

    if (what == 'l') {
        cudaMemsetAsync(y, 0, 4, nullptr);
    }

    cudaStreamEndCapture(stream, &g);
    cudaGraphDestroy(g);
}


int
main(int argc, char **argv)
{
    size_t       i, size = N * 4;
    bool         found = false;
    const char  *name = argc > 1 ? argv[1] : "";

    struct {
        const char             *name;
        std::function<void()>   run;
    } cases[] = {
#define RUN(name, k, ...)                                                    \
        { name, [=]() { llm_launch(k, 1, N, size, stream, __VA_ARGS__); } }
#define RUN_4(name, k, ...)                                                  \
        { name, [=]() { llm_launch(k, 1, N, 4 * size, stream, __VA_ARGS__); } }
#define BLOCKS(name, k, ...)                                                 \
        { name, [=]() { llm_launch(k, N / 4, 1, 0, stream, __VA_ARGS__); } }

        RUN_4("ldmatrix", ldmatrix, (uint32_t *) y, 0u),
        RUN_4("ldmatrix misaligned", ldmatrix, (uint32_t *) y, 4u),
        RUN("shared", bounds, y, 0u),
        RUN("shared beyond", bounds, y, 1u),
        RUN("barrier", barrier, y, 1),
        RUN("barrier missing", barrier, y, 0),
        RUN("warp barrier", warp_barrier, y, 1),
        RUN("warp barrier missing", warp_barrier, y, 0),
        RUN("read", read_before, y, 1),
        RUN("read overwritten", read_before, y, 0),
        BLOCKS("blocks", blocks, y, 1u),
        BLOCKS("blocks racing", blocks, y, 0u),
        BLOCKS("neighbours", neighbours, y, (unsigned) N / 2),
        BLOCKS("neighbours racing", neighbours, y, 0u),
        RUN("count", count, (uint32_t *) y, 1),
        RUN("count racing", count, (uint32_t *) y, 0),
        RUN_4("copy", copy, (const float *) x, y, 1),
        RUN_4("copy early", copy, (const float *) x, y, 0),
        RUN_4("copy misaligned", copy_from, (const float *) x, y, 1u),
        RUN_4("copy beyond", copy_from, (const float *) x, y, 4u),
        RUN("vector", vector, (const float *) x, y, 0u),
        RUN("vector misaligned", vector, (const float *) x, y, 1u),
        RUN("vector beyond", vector, (const float *) x, y, 4u),
        { "threads", [=]() {
            llm_launch(few_threads, 1, 32, 0, stream, y); } },
        { "threads too many", [=]() {
            llm_launch(few_threads, 1, 33, 0, stream, y); } },
        { "big", [=]() { big_shared(true); } },
        { "big not allowed", [=]() { big_shared(false); } },
        { "early", [=]() { two_early(0, 1); } },
        { "early reading", [=]() { two_early(1, 1); } },
        { "early never waiting", [=]() { two_early(0, 0); } },
        { "first", [=]() { first_early(0); } },
        { "first reading", [=]() { first_early(1); } },
        { "capture", [=]() { capture('n'); } },
        { "capture allocating", [=]() { capture('a'); } },
        { "capture legacy", [=]() { capture('l'); } },
    };

    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(&y, size);
    cudaMalloc(&x, 4 * size);
    cudaMemsetAsync(x, 0, 4 * size, stream);
    cudaMemsetAsync(y, 0, size, stream);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(cases[i].name, name) == 0) {
            cases[i].run();
            found = true;
        }
    }

    cudaStreamSynchronize(stream);
    printf("%s: %s\n", name, found ? cudaGetErrorString(cudaGetLastError())
                                   : "no such case");

    return 0;
}

#endif
