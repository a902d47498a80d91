/*
 * Products of a warpgroup, four warps with 64 rows, by Hopper's wgmma: the left
 * operand in registers, as fragments of mma.sync (device.h), or in shared memory
 * as the right one.  Results are in the layout of mma.sync's, too, and have the
 * same bits: an element is a chain over K in steps of 16 in either case
 * (t/gpu/results, `bits`).
 *
 * The right operand of attention is a tile of 64 rows of 128 elements of 16
 * bits, as two halves of 64 columns.  A row of a half has 128 bytes, whose
 * chunks of 16 are in an order that depends on the row (the 128-byte swizzle),
 * so that neither reading nor writing columns has conflicts.  Products with a
 * weight have such rows, too.
 *
 * The products are asynchronous: until llm_wg_wait() no operand may change, and
 * no result may be read.  On the host they are done at once, and the operands
 * are found by the same descriptors.
 */

#ifndef LLM_CUDA_WGMMA_H
#define LLM_CUDA_WGMMA_H

#include "kernels/cuda/device.h"

#define LLM_WG_HALF   8192              /* bytes of a half of a tile */
#define LLM_WG_TILE   (2 * LLM_WG_HALF)
#define LLM_WG_ALIGN  1024              /* of a tile: 8 rows */

/* are there such instructions?  Otherwise kernels with them are empty. */
#if defined(LLM_EMU) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define LLM_WG_HERE  1
#else
#define LLM_WG_HERE  0
#endif


/* where 16 bytes of a tile are: columns 8 * chunk to 8 * chunk + 7 of a row */

static __device__ __forceinline__ uint32_t
llm_wg_place(uint32_t row, uint32_t chunk)
{
    return chunk / 8 * LLM_WG_HALF + row * 128 + ((chunk ^ row) % 8) * 16;
}


/* the block's shared memory from the first aligned byte on */

static __device__ __forceinline__ uint8_t *
llm_wg_memory(uint8_t *mem)
{
#ifdef LLM_EMU
    return mem + (-(uintptr_t) mem & (LLM_WG_ALIGN - 1));
#else
    return mem + (-(uint32_t) __cvta_generic_to_shared(mem)
                  & (LLM_WG_ALIGN - 1));
#endif
}


/* ---- descriptors: PTX ISA, "Matrix descriptor" ---- */

/* address in 16 bytes; 8 rows are 1024 bytes; if K goes along the rows, 64
   columns are a half; 128-byte swizzle */

static __device__ __forceinline__ uint64_t
llm_wg_descriptor(const uint8_t *mem, const uint8_t *tile)
{
    uint32_t  at;

#ifdef LLM_EMU
    at = (uint32_t) (tile - mem);
#else
    (void) mem;
    at = (uint32_t) __cvta_generic_to_shared(tile);
#endif

    return (uint64_t) ((at & 0x3ffff) >> 4)
           | (uint64_t) (LLM_WG_HALF >> 4) << 16
           | (uint64_t) (1024 >> 4) << 32 | (uint64_t) 1 << 62;
}


#ifdef LLM_EMU

/* element k of row n of the right operand at a descriptor; `transposed`: K goes
   along the tile's rows */

static inline uint16_t
llm_wg_element(const uint8_t *mem, uint64_t desc, int transposed, uint32_t n,
    uint32_t k)
{
    uint16_t  v;
    uint32_t  at, lead, stride;

    at = (uint32_t) (desc & 0x3fff) << 4;
    lead = (uint32_t) (desc >> 16 & 0x3fff) << 4;
    stride = (uint32_t) (desc >> 32 & 0x3fff) << 4;

    at += transposed ? k / 8 * stride + k % 8 * 128 + n / 64 * lead + n % 64 * 2
                     : n / 8 * stride + n % 8 * 128 + k * 2;
    at ^= at >> 3 & 0x70;
    memcpy(&v, mem + at, sizeof(v));

    return v;
}


template<int N, int BF16 = 0> static inline void
llm_wg_step(float d[N][4], const uint32_t a[4], const uint8_t *mem,
    uint64_t desc, int transposed)
{
    int       n, i;
    uint32_t  b[2], row, k;

    for (n = 0; n < N; n++) {
        row = (uint32_t) n * 8 + emu::cur->lane / 4;

        for (i = 0; i < 2; i++) {
            k = (uint32_t) i * 8 + emu::cur->lane % 4 * 2;
            b[i] = llm_wg_element(mem, desc, transposed, row, k)
                   | (uint32_t) llm_wg_element(mem, desc, transposed, row,
                                               k + 1) << 16;
        }

        if (BF16) {
            llm_mma_bf16(d[n], a, b);

        } else {
            llm_mma_f16(d[n], a, b);
        }
    }
}


/* the warp's fragment of a left operand at a descriptor */

static inline void
llm_wg_left(const uint8_t *mem, uint64_t desc, uint32_t a[4])
{
    int       i;
    uint32_t  row, k;

    for (i = 0; i < 4; i++) {
        row = threadIdx.x / 32 % 4 * 16 + emu::cur->lane / 4
              + (uint32_t) i % 2 * 8;
        k = (uint32_t) i / 2 * 8 + emu::cur->lane % 4 * 2;
        a[i] = llm_wg_element(mem, desc, 0, row, k)
               | (uint32_t) llm_wg_element(mem, desc, 0, row, k + 1) << 16;
    }
}

#endif


/* ---- order ---- */

/* call after registers of the products have changed, before the products */

static __device__ __forceinline__ void
llm_wg_begin(void)
{
#if !defined(LLM_EMU) && LLM_WG_HERE
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#endif
}


static __device__ __forceinline__ void
llm_wg_commit(void)
{
#if !defined(LLM_EMU) && LLM_WG_HERE
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
#endif
}


/* waits until at most n groups of products are under way */

template<int n> static __device__ __forceinline__ void
llm_wg_wait(void)
{
#if !defined(LLM_EMU) && LLM_WG_HERE
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" :: "n"(n) : "memory");
#endif
}


/* what a thread has written to shared memory, and its copies that it has waited
   for, may be operands after the next barrier */

static __device__ __forceinline__ void
llm_wg_written(void)
{
#if !defined(LLM_EMU) && LLM_WG_HERE
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
#endif
}


/* keeps the compiler from using results before a wait, from taking the registers
   of operands for something else before it, and from changing them after
   llm_wg_begin() */

template<int N> static __device__ __forceinline__ void
llm_wg_hold(float d[N][4])
{
#ifndef LLM_EMU
    int  n;

#pragma unroll
    for (n = 0; n < N; n++) {
        asm volatile("" : "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]),
                          "+f"(d[n][3]) :: "memory");
    }
#else
    (void) d;
#endif
}


template<int N> static __device__ __forceinline__ void
llm_wg_hold(uint32_t a[N][4])
{
#ifndef LLM_EMU
    int  n;

#pragma unroll
    for (n = 0; n < N; n++) {
        asm volatile("" : "+r"(a[n][0]), "+r"(a[n][1]), "+r"(a[n][2]),
                          "+r"(a[n][3]) :: "memory");
    }
#else
    (void) a;
#endif
}


/* ---- products ---- */

#define LLM_WG_4(d, n)                                                       \
    "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define LLM_WG_32(d, n)                                                      \
    LLM_WG_4(d, n), LLM_WG_4(d, n + 1), LLM_WG_4(d, n + 2),                  \
    LLM_WG_4(d, n + 3), LLM_WG_4(d, n + 4), LLM_WG_4(d, n + 5),              \
    LLM_WG_4(d, n + 6), LLM_WG_4(d, n + 7)


/* the places of the sums in an instruction's text */
#define LLM_WG_SUMS_32                                                       \
    "%0, %1, %2, %3, %4, %5, %6, %7, "                                       \
    "%8, %9, %10, %11, %12, %13, %14, %15, "                                 \
    "%16, %17, %18, %19, %20, %21, %22, %23, "                               \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define LLM_WG_SUMS_64                                                       \
    LLM_WG_SUMS_32 ", "                                                      \
    "%32, %33, %34, %35, %36, %37, %38, %39, "                               \
    "%40, %41, %42, %43, %44, %45, %46, %47, "                               \
    "%48, %49, %50, %51, %52, %53, %54, %55, "                               \
    "%56, %57, %58, %59, %60, %61, %62, %63"
#define LLM_WG_SUMS_128                                                      \
    LLM_WG_SUMS_64 ", "                                                      \
    "%64, %65, %66, %67, %68, %69, %70, %71, "                               \
    "%72, %73, %74, %75, %76, %77, %78, %79, "                               \
    "%80, %81, %82, %83, %84, %85, %86, %87, "                               \
    "%88, %89, %90, %91, %92, %93, %94, %95, "                               \
    "%96, %97, %98, %99, %100, %101, %102, %103, "                           \
    "%104, %105, %106, %107, %108, %109, %110, %111, "                       \
    "%112, %113, %114, %115, %116, %117, %118, %119, "                       \
    "%120, %121, %122, %123, %124, %125, %126, %127"


/* one step of llm_wg_scores(); add: "0" if d is set, "1" if added to */
#define LLM_WG_SCORES(add)                                                   \
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "       \
                 "{" LLM_WG_SUMS_32 "}, "                                    \
                 "{%32, %33, %34, %35}, %36, " add ", 1, 1, 0;\n"            \
                 : LLM_WG_32(d, 0)                                           \
                 : "r"(a[k][0]), "r"(a[k][1]), "r"(a[k][2]), "r"(a[k][3]),   \
                   "l"(desc) : "memory")


/* d = A B: 128 elements of K, which are a tile's columns, and 64 columns, which
   are its rows */

static __device__ __forceinline__ void
llm_wg_scores(float d[8][4], const uint32_t a[8][4], const uint8_t *mem,
    const uint8_t *tile)
{
#ifdef LLM_EMU
    int  k;

    memset(d, 0, 8 * sizeof(d[0]));

    for (k = 0; k < 8; k++) {
        llm_wg_step<8>(d, a[k], mem,
                       llm_wg_descriptor(mem, tile + k / 4 * LLM_WG_HALF
                                              + k % 4 * 32), 0);
    }
#elif LLM_WG_HERE
    int       k;
    uint64_t  desc;

#pragma unroll
    for (k = 0; k < 8; k++) {
        desc = llm_wg_descriptor(mem, tile)
               + (k / 4 * LLM_WG_HALF + k % 4 * 32) / 16;

        if (k == 0) {
            LLM_WG_SCORES("0");

        } else {
            LLM_WG_SCORES("1");
        }
    }
#else
    (void) d; (void) a; (void) mem; (void) tile;
#endif
}


/* d += A B: 16 elements of K, which are a tile's rows from row 16 * k on, and
   128 columns */

static __device__ __forceinline__ void
llm_wg_values(float d[16][4], const uint32_t a[4], const uint8_t *mem,
    const uint8_t *tile, int k)
{
#ifdef LLM_EMU
    llm_wg_step<16>(d, a, mem, llm_wg_descriptor(mem, tile + k * 2048), 1);
#elif LLM_WG_HERE
    uint64_t  desc;

    desc = llm_wg_descriptor(mem, tile) + k * 2048 / 16;

    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 "{" LLM_WG_SUMS_64 "}, "
                 "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;\n"
                 : LLM_WG_32(d, 0), LLM_WG_32(d, 8)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
                   "l"(desc) : "memory");
#else
    (void) d; (void) a; (void) mem; (void) tile; (void) k;
#endif
}


/*
 * Steps of products with a weight: d += A B, 16 elements of K from the tiles'
 * columns on which `x`, and `w`, point to.  The rows of a tile have 128 bytes,
 * swizzled, as a half of the tiles above; x is any number of rows, of which N *
 * 8 are the columns of the result.  A is in registers, or at w in shared
 * memory, 64 rows of a tile.
 */

#define LLM_WG_LEFT(shape, type, sums, a0, a1, a2, a3, desc)                 \
    "wgmma.mma_async.sync.aligned." shape "k16.f32." type "." type           \
    " {" sums "}, {" a0 ", " a1 ", " a2 ", " a3 "}, " desc ", 1, 1, 1, 0;\n"

#define LLM_WG_BOTH(shape, type, sums, left, right)                          \
    "wgmma.mma_async.sync.aligned." shape "k16.f32." type "." type           \
    " {" sums "}, " left ", " right ", 1, 1, 1, 0, 0;\n"

#define LLM_WG_64(d, n)   LLM_WG_32(d, n), LLM_WG_32(d, n + 8)
#define LLM_WG_128(d, n)  LLM_WG_64(d, n), LLM_WG_64(d, n + 16)

#define LLM_WG_LINEAR(type)                                                  \
    if constexpr (N == 8) {                                                  \
        asm volatile(LLM_WG_LEFT("m64n64", type, LLM_WG_SUMS_32,             \
                                 "%32", "%33", "%34", "%35", "%36")          \
                     : LLM_WG_32(d, 0)                                       \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),           \
                       "l"(right) : "memory");                               \
    } else {                                                                 \
        asm volatile(LLM_WG_LEFT("m64n128", type, LLM_WG_SUMS_64,            \
                                 "%64", "%65", "%66", "%67", "%68")          \
                     : LLM_WG_64(d, 0)                                       \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),           \
                       "l"(right) : "memory");                               \
    }

#define LLM_WG_LINEAR_SHARED(type)                                           \
    if constexpr (N == 8) {                                                  \
        asm volatile(LLM_WG_BOTH("m64n64", type, LLM_WG_SUMS_32,             \
                                 "%32", "%33")                               \
                     : LLM_WG_32(d, 0)                                       \
                     : "l"(left), "l"(right) : "memory");                    \
    } else if constexpr (N == 16) {                                          \
        asm volatile(LLM_WG_BOTH("m64n128", type, LLM_WG_SUMS_64,            \
                                 "%64", "%65")                               \
                     : LLM_WG_64(d, 0)                                       \
                     : "l"(left), "l"(right) : "memory");                    \
    } else {                                                                 \
        asm volatile(LLM_WG_BOTH("m64n256", type, LLM_WG_SUMS_128,           \
                                 "%128", "%129")                             \
                     : LLM_WG_128(d, 0)                                      \
                     : "l"(left), "l"(right) : "memory");                    \
    }


/* N is 8 or 16 */

template<int N, int BF16> static __device__ __forceinline__ void
llm_wg_linear(float d[N][4], const uint32_t a[4], const uint8_t *mem,
    const uint8_t *x)
{
#ifdef LLM_EMU
    llm_wg_step<N, BF16>(d, a, mem, llm_wg_descriptor(mem, x), 0);
#elif LLM_WG_HERE
    uint64_t  right;

    static_assert(N == 8 || N == 16, "there is no such step");

    right = llm_wg_descriptor(mem, x);

    if constexpr (BF16) {
        LLM_WG_LINEAR("bf16");

    } else {
        LLM_WG_LINEAR("f16");
    }
#else
    (void) d; (void) a; (void) mem; (void) x;
#endif
}


/* N is 8, 16 or 32 */

template<int N, int BF16> static __device__ __forceinline__ void
llm_wg_linear_shared(float d[N][4], const uint8_t *mem, const uint8_t *w,
    const uint8_t *x)
{
#ifdef LLM_EMU
    uint32_t  a[4];

    llm_wg_left(mem, llm_wg_descriptor(mem, w), a);
    llm_wg_step<N, BF16>(d, a, mem, llm_wg_descriptor(mem, x), 0);
#elif LLM_WG_HERE
    uint64_t  left, right;

    static_assert(N == 8 || N == 16 || N == 32, "there is no such step");

    left = llm_wg_descriptor(mem, w);
    right = llm_wg_descriptor(mem, x);

    if constexpr (BF16) {
        LLM_WG_LINEAR_SHARED("bf16");

    } else {
        LLM_WG_LINEAR_SHARED("f16");
    }
#else
    (void) d; (void) mem; (void) w; (void) x;
#endif
}


/* ---- e4m3 ---- */

/*
 * The right operand is a tile of N * 8 rows of 128 bytes, swizzled, as a half
 * of the tiles above is.  An e4m3's sums in wgmma are less precise than in
 * mma.sync, so there is no product that may be either.
 */

#ifdef LLM_EMU

template<int N> static inline void
llm_wg_step_e4m3(float d[N][4], const uint32_t a[4], const uint8_t *mem,
    uint64_t desc)
{
    int       n, i;
    uint32_t  b[2], at;

    for (n = 0; n < N; n++) {
        for (i = 0; i < 2; i++) {
            at = ((uint32_t) (desc & 0x3fff) << 4)
                 + (uint32_t) n * ((uint32_t) (desc >> 32 & 0x3fff) << 4)
                 + emu::cur->lane / 4 * 128 + (uint32_t) i * 16
                 + emu::cur->lane % 4 * 4;
            memcpy(&b[i], mem + (at ^ (at >> 3 & 0x70)), sizeof(b[i]));
        }

        llm_mma_e4m3(d[n], a, b);
    }
}

#endif


#define LLM_WG_E4M3(shape, sums, a0, a1, a2, a3, desc, add)                  \
    "wgmma.mma_async.sync.aligned." shape ".f32.e4m3.e4m3 {" sums "}, "      \
    "{" a0 ", " a1 ", " a2 ", " a3 "}, " desc ", " add ", 1, 1;\n"

/* one step; add: "0" if d is set, "1" if added to */
#define LLM_WG_E4M3_STEP(add)                                                \
    if constexpr (N == 1) {                                                  \
        asm volatile(LLM_WG_E4M3("m64n8k32", "%0, %1, %2, %3",               \
                                 "%4", "%5", "%6", "%7", "%8", add)          \
                     : LLM_WG_4(d, 0)                                        \
                     : "r"(a[k][0]), "r"(a[k][1]), "r"(a[k][2]),             \
                       "r"(a[k][3]), "l"(desc) : "memory");                  \
    } else if constexpr (N == 2) {                                           \
        asm volatile(LLM_WG_E4M3("m64n16k32",                                \
                                 "%0, %1, %2, %3, %4, %5, %6, %7",           \
                                 "%8", "%9", "%10", "%11", "%12", add)       \
                     : LLM_WG_4(d, 0), LLM_WG_4(d, 1)                        \
                     : "r"(a[k][0]), "r"(a[k][1]), "r"(a[k][2]),             \
                       "r"(a[k][3]), "l"(desc) : "memory");                  \
    } else {                                                                 \
        asm volatile(LLM_WG_E4M3("m64n64k32", LLM_WG_SUMS_32,                \
                                 "%32", "%33", "%34", "%35", "%36", add)     \
                     : LLM_WG_32(d, 0)                                       \
                     : "r"(a[k][0]), "r"(a[k][1]), "r"(a[k][2]),             \
                       "r"(a[k][3]), "l"(desc) : "memory");                  \
    }


/* d = A B of 128 elements of K; N is 1, 2 or 8; the asynchronous part only, see
   llm_wg_begin() and llm_wg_wait() */

template<int N> static __device__ __forceinline__ void
llm_wg_product_e4m3(float d[N][4], const uint32_t a[4][4],
    const uint8_t *mem, const uint8_t *tile)
{
#ifdef LLM_EMU
    int  k;

    memset(d, 0, N * sizeof(d[0]));

    for (k = 0; k < 4; k++) {
        llm_wg_step_e4m3<N>(d, a[k], mem,
                            llm_wg_descriptor(mem, tile + k * 32));
    }
#elif LLM_WG_HERE
    int       k;
    uint64_t  desc;

    static_assert(N == 1 || N == 2 || N == 8, "there is no such step");

#pragma unroll
    for (k = 0; k < 4; k++) {
        desc = llm_wg_descriptor(mem, tile) + k * 32 / 16;

        if (k == 0) {
            LLM_WG_E4M3_STEP("0");

        } else {
            LLM_WG_E4M3_STEP("1");
        }
    }
#else
    (void) d; (void) a; (void) mem; (void) tile;
#endif
}

#endif /* LLM_CUDA_WGMMA_H */
