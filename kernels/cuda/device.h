/*
 * What every source of the CUDA backend includes: the toolkit's headers, or
 * the emulator's when LLM_EMU is defined, and small wrappers around what
 * differs between the two: launches, dynamic shared memory, 16-bit and 8-bit
 * floats, asynchronous copies, tensor-core instructions.
 *
 * Invariant: all code outside this header and blas.* is the same for nvcc and
 * for the host's compiler.  A wrapper's host version keeps the instruction's
 * fragment layout (PTX ISA, "Matrix fragments for mma"), so a wrong layout
 * gives wrong results on the host, too.
 */

#ifndef LLM_CUDA_DEVICE_H
#define LLM_CUDA_DEVICE_H

#ifdef LLM_EMU

#include "t/gpu/emu/emu.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

/* dynamic shared memory; static __shared__ is never used */
#define LLM_SHARED(name)  uint8_t *name = emu::blk.shared

/* a function that is not inlined, so that its code exists once */
#define LLM_CALLED        __attribute__((noinline))

template<class K, class... A> static inline void
llm_launch_as(const char *name, K k, dim3 grid, dim3 block, size_t shared,
    cudaStream_t s, A... a)
{
    emu::call(s, name, 0, k, grid, block, shared, a...);
}

#define llm_launch(k, grid, block, shared, stream, ...)                      \
    llm_launch_as(#k, k, grid, block, shared, stream, __VA_ARGS__)

template<class K, class... A> static inline void
llm_launch_early_as(int early, const char *name, K k, dim3 grid, dim3 block,
    size_t shared, cudaStream_t s, A... a)
{
    emu::call(s, name, early, k, grid, block, shared, a...);
}

/* the same if early is 0; otherwise see "kernels that are launched before" */
#define llm_launch_early(early, k, grid, block, shared, stream, ...)         \
    llm_launch_early_as(early, #k, k, grid, block, shared, stream,           \
                        __VA_ARGS__)

/* a kernel that reads the memory of other GPUs, which its own may access */
template<class K, class... A> static inline void
llm_launch_peers_as(const char *name, K k, dim3 grid, dim3 block,
    size_t shared, cudaStream_t s, A... a)
{
    emu::call(s, name, EMU_PEERS, k, grid, block, shared, a...);
}

#define llm_launch_peers(k, grid, block, shared, stream, ...)                \
    llm_launch_peers_as(#k, k, grid, block, shared, stream, __VA_ARGS__)

#else

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <stdint.h>

#define LLM_CALLED  __noinline__

#define LLM_SHARED(name)                                                     \
    extern __shared__ __align__(128) uint8_t  llm_shared_mem[];              \
    uint8_t *name = llm_shared_mem

template<class K, class... A> static inline void
llm_launch_as(K k, dim3 grid, dim3 block, size_t shared, cudaStream_t s,
    A... a)
{
    k<<<grid, block, shared, s>>>(a...);
}

template<class... P, class... A> static inline void
llm_launch_early(int early, void (*k)(P...), dim3 grid, dim3 block,
    size_t shared, cudaStream_t s, A... a)
{
    cudaLaunchConfig_t   config = {};
    cudaLaunchAttribute  attr;

    attr.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attr.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = s;
    config.attrs = &attr;
    config.numAttrs = early ? 1 : 0;

    /* an error is cudaGetLastError()'s, too */
    (void) cudaLaunchKernelEx(&config, k, (P) a...);
}

/* a template with commas needs parentheses: llm_launch((k<1, 2>), ... */
#define llm_launch(k, grid, block, shared, stream, ...)                      \
    llm_launch_as(k, grid, block, shared, stream, __VA_ARGS__)

#define llm_launch_peers  llm_launch

#endif

#define LLM_FULL_WARP  0xffffffffu


/* ---- kernels that are launched before the previous one has ended ---- */

/*
 * llm_launch_early() lets a kernel begin while the kernel before it in the
 * stream still runs, once all blocks of that one have called llm_early_start()
 * or ended.  Each of its threads calls llm_early_wait(), which waits until all
 * earlier kernels have ended and their writes are seen.  Before that it reads
 * nothing but weights, its parameters and the step's arrays without tokens,
 * which are copied before the step's first kernel, and writes no global memory.
 * That first kernel is not launched early: it is that of the embedding, or the
 * first one after rows from another GPU (llm_cuda_early()).
 */

static __device__ __forceinline__ void
llm_early_start(void)
{
#if !defined(LLM_EMU) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
#endif
}


static __device__ __forceinline__ void
llm_early_wait(void)
{
#ifdef LLM_EMU
    emu::early_wait();
#elif __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;\n" ::: "memory");
#endif
}


/* for a kernel that has nothing to do before the wait */

static __device__ __forceinline__ void
llm_early_begin(void)
{
    llm_early_start();
    llm_early_wait();
}


/* ---- 16-bit floats, stored as uint16_t ---- */

#ifdef LLM_EMU

extern "C" {
uint16_t llm_f32_to_f16(float f);
uint16_t llm_f32_to_bf16(float f);
}

/* the emulator spends much of its time here */

#ifdef __F16C__

static inline float llm_h2f(uint16_t h) { return _cvtsh_ss(h); }
static inline uint16_t llm_f2h(float f) { return _cvtss_sh(f, 0); }

#else

/* without branches the compiler vectorizes loops over it */

static inline float
llm_h2f(uint16_t h)
{
    float     f;
    uint32_t  u, special;

    u = (uint32_t) (h & 0x7fff) << 13;
    special = u >= 0x7c00u << 13 ? 0x7f800000 : 0;

    memcpy(&f, &u, 4);
    f *= 0x1p112f;                      /* exact, also for denormals */
    memcpy(&u, &f, 4);

    u |= special | (uint32_t) (h & 0x8000) << 16;
    memcpy(&f, &u, 4);

    return f;
}


/* to the nearest, ties to even */

static inline uint16_t
llm_f2h(float f)
{
    float     tiny;
    uint32_t  u, sign, normal, denormal, special;

    memcpy(&u, &f, 4);
    sign = u >> 16 & 0x8000;
    u &= 0x7fffffff;

    /* the exponent's bias changes by 112 */
    normal = (u + 0xfff + (u >> 13 & 1) - (112u << 23)) >> 13;

    /* beside 0.5 a float has as many bits as a denormal */
    memcpy(&tiny, &u, 4);
    tiny += 0.5f;
    memcpy(&denormal, &tiny, 4);
    denormal -= 0x3f000000;

    special = u > 0x7f800000 ? 0x7e00 | (u >> 13 & 0x3ff) : 0x7c00;

    return (uint16_t) (sign | (u < 0x38800000 ? denormal
                               : u >= 0x477ff000 ? special : normal));
}

#endif


static inline uint16_t llm_f2b(float f) { return llm_f32_to_bf16(f); }

#else

static __device__ __forceinline__ float
llm_h2f(uint16_t h)
{
    return __half2float(__ushort_as_half(h));
}


static __device__ __forceinline__ uint16_t
llm_f2h(float f)
{
    return __half_as_ushort(__float2half_rn(f));
}


static __device__ __forceinline__ uint16_t
llm_f2b(float f)
{
    return __bfloat16_as_ushort(__float2bfloat16_rn(f));
}

#endif


static __device__ __forceinline__ float
llm_b2f(uint16_t b)
{
    return __uint_as_float((unsigned) b << 16);
}


/* ---- e4m3, stored as uint8_t; in f16 and in bf16 it is exact ---- */

#ifdef LLM_EMU

extern "C" {
float llm_e4m3_to_f32(uint8_t e);
uint8_t llm_f32_to_e4m3(float f);
}

static inline uint8_t llm_f2e(float f) { return llm_f32_to_e4m3(f); }


/* converts two e4m3, the low byte first, to two 16-bit floats */

static inline uint32_t
llm_e2x16(uint32_t two, int bf16)
{
    float  lo, hi;

    lo = llm_e4m3_to_f32((uint8_t) two);
    hi = llm_e4m3_to_f32((uint8_t) (two >> 8));

    return bf16 ? (uint32_t) llm_f2b(lo) | (uint32_t) llm_f2b(hi) << 16
                : (uint32_t) llm_f2h(lo) | (uint32_t) llm_f2h(hi) << 16;
}


/* products of two pairs of f16 */

static inline uint32_t
llm_mul_f16x2(uint32_t a, uint32_t b)
{
    return (uint32_t) llm_f2h(llm_h2f((uint16_t) a) * llm_h2f((uint16_t) b))
           | (uint32_t) llm_f2h(llm_h2f((uint16_t) (a >> 16))
                                * llm_h2f((uint16_t) (b >> 16))) << 16;
}


/* a b + c, rounded once, of f16: a float holds a product, and the sum, with the
   last bit set if something is lost, rounds to f16 as the exact one does */

static inline uint16_t
llm_fma_f16(uint16_t a, uint16_t b, uint16_t c)
{
    float     product, addend, sum, part, lost;
    uint32_t  u;

    product = llm_h2f(a) * llm_h2f(b);
    addend = llm_h2f(c);
    sum = product + addend;
    part = sum - product;
    lost = (product - (sum - part)) + (addend - part);

    memcpy(&u, &sum, 4);

    if (lost < 0 || lost > 0) {         /* not of infinities */
        u += u & 1 ? 0 : (lost > 0) == (sum > 0) ? 1 : -1;
    }

    memcpy(&sum, &u, 4);

    return llm_f2h(sum);
}


/* products and sums of pairs of f16: a b + c */

static inline uint32_t
llm_fma_f16x2(uint32_t a, uint32_t b, uint32_t c)
{
    return (uint32_t) llm_fma_f16((uint16_t) a, (uint16_t) b, (uint16_t) c)
           | (uint32_t) llm_fma_f16((uint16_t) (a >> 16), (uint16_t) (b >> 16),
                                    (uint16_t) (c >> 16)) << 16;
}


/* both halves become half h of w */

static inline uint32_t
llm_half_f16x2(uint32_t w, int h)
{
    return (h ? w >> 16 : w & 0xffff) * 0x10001u;
}


static inline uint32_t
llm_f16x2_to_bf16x2(uint32_t w)
{
    return (uint32_t) llm_f2b(llm_h2f((uint16_t) w))
           | (uint32_t) llm_f2b(llm_h2f((uint16_t) (w >> 16))) << 16;
}

#else

static __device__ __forceinline__ uint8_t
llm_f2e(float f)
{
    return (uint8_t) __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E4M3);
}


static __device__ __forceinline__ uint32_t
llm_e2x16(uint32_t two, int bf16)
{
    float2       f;
    __half2_raw  h;

    h = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t) two, __NV_E4M3);

    if (bf16) {
        f = __half22float2(__half2(h));
        return (uint32_t) llm_f2b(f.x) | (uint32_t) llm_f2b(f.y) << 16;
    }

    return (uint32_t) h.x | (uint32_t) h.y << 16;
}


static __device__ __forceinline__ __half2
llm_to_half2(uint32_t w)
{
    return reinterpret_cast<__half2 &>(w);
}


static __device__ __forceinline__ uint32_t
llm_of_half2(__half2 h)
{
    return reinterpret_cast<uint32_t &>(h);
}


static __device__ __forceinline__ uint32_t
llm_mul_f16x2(uint32_t a, uint32_t b)
{
    return llm_of_half2(__hmul2(llm_to_half2(a), llm_to_half2(b)));
}


static __device__ __forceinline__ uint32_t
llm_fma_f16x2(uint32_t a, uint32_t b, uint32_t c)
{
    return llm_of_half2(__hfma2(llm_to_half2(a), llm_to_half2(b),
                                llm_to_half2(c)));
}


static __device__ __forceinline__ uint32_t
llm_half_f16x2(uint32_t w, int h)
{
    return llm_of_half2(h ? __high2half2(llm_to_half2(w))
                          : __low2half2(llm_to_half2(w)));
}


static __device__ __forceinline__ uint32_t
llm_f16x2_to_bf16x2(uint32_t w)
{
    float2  f;

    f = __half22float2(llm_to_half2(w));

    return (uint32_t) llm_f2b(f.x) | (uint32_t) llm_f2b(f.y) << 16;
}

#endif


/* ---- bytes ---- */

/* four bytes of b:a: byte i is the one that the lower three bits of nibble i of
   sel name, or eight times its sign if the nibble's highest bit is set; the
   upper half of sel is not used */

static __device__ __forceinline__ uint32_t
llm_permute(uint32_t a, uint32_t b, uint32_t sel)
{
#ifdef LLM_EMU
    return ptx_permute(a, b, sel);
#else
    uint32_t  r;

    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(sel));

    return r;
#endif
}


/* the same with a constant that asks for no sign, which nvcc knows more of */

static __device__ __forceinline__ uint32_t
llm_choose_bytes(uint32_t a, uint32_t b, uint32_t sel)
{
#ifdef LLM_EMU
    return ptx_permute(a, b, sel);
#else
    return __byte_perm(a, b, sel);
#endif
}


/* ---- asynchronous copies, global to shared (Ampere's cp.async) ---- */

/* starts copying 16 bytes, both addresses 16-byte aligned; with ok == 0 zeros
   are written and src is not read */

static __device__ __forceinline__ void
llm_cp_async16(void *shared, const void *global, int ok = 1)
{
#ifdef LLM_EMU
    if (ok) {
        emu::copy_async(shared, global, 16);

    } else {
        memset(shared, 0, 16);
    }
#else
    unsigned  dst = (unsigned) __cvta_generic_to_shared(shared);

    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n"
                 :: "r"(dst), "l"(global), "r"(ok ? 16 : 0));
#endif
}


static __device__ __forceinline__ void
llm_cp_async_commit(void)
{
#ifdef LLM_EMU
    emu::copy_commit();
#else
    asm volatile("cp.async.commit_group;\n" ::);
#endif
}


/* waits until at most n of this thread's groups are in flight */

template<int n> static __device__ __forceinline__ void
llm_cp_async_wait(void)
{
#ifdef LLM_EMU
    emu::copy_wait(n);
#else
    asm volatile("cp.async.wait_group %0;\n" :: "n"(n));
#endif
}


/* ---- tensor cores: D (16 x 8) += A (16 x k) B (k x 8) ---- */

#ifdef LLM_EMU

/*
 * Fragments of m16n8k16 with 16-bit elements; g = lane / 4, t = lane % 4:
 * a[0] holds A[g][2t, 2t+1], a[1] A[g+8][2t, 2t+1], a[2] A[g][2t+8, 2t+9],
 * a[3] A[g+8][2t+8, 2t+9]; b[0] holds B[2t, 2t+1][g], b[1] B[2t+8, 2t+9][g];
 * d[0], d[1] are D[g][2t, 2t+1], d[2], d[3] are D[g+8][2t, 2t+1].
 */

/* a lane's fragments: element j of register i is a[2 i + j]; d is read and
   written */

struct llm_mma_lane {
    uint16_t  a[8];
    uint16_t  b[4];
    float     d[4];
};


/* the emulator spends much of its time from here to the end of the next
   function: rows are gathered by words, and converted and summed by eights */

typedef float  llm_mma_row_t __attribute__((vector_size(32)));

template<float (*cvt)(uint16_t), int bf16> static inline void
llm_mma_convert(const uint16_t in[16], float out[16])
{
    int  k;

#ifdef __F16C__
    if (!bf16) {
        for (k = 0; k < 16; k += 8) {
            _mm256_storeu_ps(out + k, _mm256_cvtph_ps(
                                 _mm_loadu_si128((__m128i *) &in[k])));
        }

        return;
    }
#endif

    for (k = 0; k < 16; k++) {
        out[k] = cvt(in[k]);
    }
}


/* computes D of all lanes; products are added in the order of K, or as tensor
   cores add them (mma.cpp) */

template<float (*cvt)(uint16_t), int bf16> static void
llm_mma_16_warp(uint8_t (*slots)[EMU_MEET_BYTES])
{
    int            i, k, g, t, row, col;
    float          a[16], bt[8][16];
    uint16_t       ha[16][16], hb[8][16], bits[16][24];
    llm_mma_row_t  b[16], d[16];
    llm_mma_lane  *lane;

    for (i = 0; i < 32; i++) {
        lane = (llm_mma_lane *) (void *) slots[i];
        g = i / 4;
        t = i % 4 * 2;

        for (k = 0; k < 4; k++) {
            memcpy(&ha[g + k % 2 * 8][t + k / 2 * 8], &lane->a[2 * k], 4);
        }

        for (k = 0; k < 2; k++) {
            memcpy(&hb[g][t + k * 8], &lane->b[2 * k], 4);
            memcpy((float *) &d[g + k * 8] + t, &lane->d[2 * k], 8);
        }
    }

    if (emu::mma_rule()) {
        for (k = 0; k < 16; k++) {
            memcpy(bits[k], ha[k], sizeof(ha[k]));

            for (col = 0; col < 8; col++) {
                bits[k][16 + col] = hb[col][k];
            }
        }

        emu::mma_16(bits, bf16, (float (*)[8]) d);

    } else {
        for (col = 0; col < 8; col++) {
            llm_mma_convert<cvt, bf16>(hb[col], bt[col]);
        }

        for (k = 0; k < 16; k++) {
            b[k] = (llm_mma_row_t) { bt[0][k], bt[1][k], bt[2][k], bt[3][k],
                                     bt[4][k], bt[5][k], bt[6][k], bt[7][k] };
        }

        for (row = 0; row < 16; row++) {
            llm_mma_convert<cvt, bf16>(ha[row], a);

            for (k = 0; k < 16; k++) {
                d[row] += a[k] * b[k];
            }
        }
    }

    for (i = 0; i < 32; i++) {
        lane = (llm_mma_lane *) (void *) slots[i];

        for (k = 0; k < 2; k++) {
            memcpy(&lane->d[2 * k], (float *) &d[i / 4 + k * 8] + i % 4 * 2, 8);
        }
    }
}


template<float (*cvt)(uint16_t), int bf16> static inline void
llm_mma_16_host(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    llm_mma_lane  mine;

    memcpy(mine.a, a, sizeof(mine.a));
    memcpy(mine.b, b, sizeof(mine.b));
    memcpy(mine.d, d, sizeof(mine.d));

    emu::meet(LLM_FULL_WARP, &mine, sizeof(mine), llm_mma_16_warp<cvt, bf16>);

    memcpy(&mine, emu::at(emu::cur->lane), sizeof(mine));
    memcpy(d, mine.d, sizeof(mine.d));
}

#endif


static __device__ __forceinline__ void
llm_mma_f16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
#ifdef LLM_EMU
    llm_mma_16_host<llm_h2f, 0>(d, a, b);
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
                   "r"(b[0]), "r"(b[1]));
#endif
}


static __device__ __forceinline__ void
llm_mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
#ifdef LLM_EMU
    llm_mma_16_host<llm_b2f, 1>(d, a, b);
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
                   "r"(b[0]), "r"(b[1]));
#endif
}


/*
 * The same for m16n8k32 of e4m3, whose fragments have four bytes for two 16-bit
 * elements.  Before Ada there is no such instruction, on a Hopper nvcc makes
 * conversions and two of m16n8k16 of it, and the host does the same.
 */

static __device__ __forceinline__ void
llm_mma_e4m3(float d[4], const uint32_t a[4], const uint32_t b[2])
{
#ifdef LLM_EMU
    int       h, i;
    uint32_t  wide[6];

    for (h = 0; h < 2; h++) {
        for (i = 0; i < 6; i++) {
            wide[i] = llm_e2x16((i < 4 ? a[i] : b[i - 4]) >> 16 * h & 0xffff,
                                0);
        }

        llm_mma_f16(d, wide, wide + 4);
    }
#elif __CUDA_ARCH__ >= 890
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
                   "r"(b[0]), "r"(b[1]));
#else
    (void) d; (void) a; (void) b;
#endif
}


template<int MT, int NT> static __device__ __forceinline__ void
llm_zero(float acc[MT][NT][4])
{
    int  m, n, i;

#pragma unroll
    for (m = 0; m < MT; m++) {
#pragma unroll
        for (n = 0; n < NT; n++) {
#pragma unroll
            for (i = 0; i < 4; i++) {
                acc[m][n][i] = 0;
            }
        }
    }
}


/* acc += A B: MT tiles of 16 rows of A, NT tiles of 8 columns of B, over 32
   elements of K */

template<int MT, int NT> static __device__ __forceinline__ void
llm_mma_tiles(float acc[MT][NT][4], const uint32_t a[MT][2][4],
    const uint32_t b[NT][4], int bf16)
{
    int  k, m, n;

#pragma unroll
    for (k = 0; k < 2; k++) {
#pragma unroll
        for (m = 0; m < MT; m++) {
#pragma unroll
            for (n = 0; n < NT; n++) {
                if (bf16) {
                    llm_mma_bf16(acc[m][n], a[m][k], b[n] + 2 * k);

                } else {
                    llm_mma_f16(acc[m][n], a[m][k], b[n] + 2 * k);
                }
            }
        }
    }
}


/*
 * Loads four 8 x 8 matrices of 16-bit elements from shared memory: lane i
 * passes the address of a row of 16 bytes (lanes 0 to 7: the first matrix, and
 * so on); r[m] becomes elements 2 (lane % 4) and the next of row lane / 4 of
 * matrix m, or with `transposed` of column lane / 4.
 */

template<int transposed> static __device__ __forceinline__ void
llm_ldmatrix_x4(uint32_t r[4], const void *row)
{
#ifdef LLM_EMU
    int         m;
    unsigned    g, t;

    emu::meet(LLM_FULL_WARP, &row, sizeof(row));
    g = emu::cur->lane / 4;
    t = emu::cur->lane % 4;

    for (m = 0; m < 4; m++) {
        uint16_t         e[2];
        int              i;

        for (i = 0; i < 2; i++) {
            unsigned         rr, cc;
            const uint16_t  *p;

            rr = transposed ? 2 * t + (unsigned) i : g;
            cc = transposed ? g : 2 * t + (unsigned) i;
            p = *(const uint16_t *const *) emu::at((unsigned) m * 8 + rr);
            e[i] = p[cc];
        }

        r[m] = (uint32_t) e[0] | (uint32_t) e[1] << 16;
    }
#else
    unsigned  p = (unsigned) __cvta_generic_to_shared(row);

    if (transposed) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                     "{%0, %1, %2, %3}, [%4];\n"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(p));

    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                     "{%0, %1, %2, %3}, [%4];\n"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(p));
    }
#endif
}


/* ---- sum and maximum over a warp; every lane gets the result ---- */

static __device__ __forceinline__ float
llm_warp_sum(float v)
{
    int  i;

    for (i = 16; i > 0; i /= 2) {
        v += __shfl_xor_sync(LLM_FULL_WARP, v, i);
    }

    return v;
}


static __device__ __forceinline__ float
llm_warp_max(float v)
{
    int  i;

    for (i = 16; i > 0; i /= 2) {
        v = fmaxf(v, __shfl_xor_sync(LLM_FULL_WARP, v, i));
    }

    return v;
}

#endif /* LLM_CUDA_DEVICE_H */
