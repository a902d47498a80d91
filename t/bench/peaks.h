/*
 * The peaks of one thread, measured: multiply-accumulate operations of the
 * instructions that kernels consist of, and reads of memory.  Each function
 * runs for about a millisecond of CPU time.
 */

#ifndef LLM_BENCH_PEAKS_H
#define LLM_BENCH_PEAKS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)

#include <immintrin.h>

#define PEAK_LOOPS  100000

/* keeps the sums in registers */
#define PEAK_UNROLL  _Pragma("GCC unroll 12")

static inline double
peak_time(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);

    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}


/* GMAC/s of n instructions of `macs` multiply-adds since start */

static inline double
peak_rate(double start, double n, double macs)
{
    return n * macs / (peak_time() - start) * 1e-9;
}


/* 12 sums are in progress, more than any CPU needs to keep its units busy; the
   compiler may not know what becomes of them */

#define PEAK_12(instruction, class, acc, a, b)                               \
    __asm__ volatile (                                                       \
        instruction " %12, %13, %0\n" instruction " %12, %13, %1\n"          \
        instruction " %12, %13, %2\n" instruction " %12, %13, %3\n"          \
        instruction " %12, %13, %4\n" instruction " %12, %13, %5\n"          \
        instruction " %12, %13, %6\n" instruction " %12, %13, %7\n"          \
        instruction " %12, %13, %8\n" instruction " %12, %13, %9\n"          \
        instruction " %12, %13, %10\n" instruction " %12, %13, %11\n"        \
        : "+" class (acc[0]), "+" class (acc[1]), "+" class (acc[2]),        \
          "+" class (acc[3]), "+" class (acc[4]), "+" class (acc[5]),        \
          "+" class (acc[6]), "+" class (acc[7]), "+" class (acc[8]),        \
          "+" class (acc[9]), "+" class (acc[10]), "+" class (acc[11])       \
        : class (a), class (b))


/* GMAC/s of an instruction of `macs` multiply-adds, as a function; x: what it
   multiplies, zero: a sum's first value */

#define PEAK_OF(name, isa, instruction, class, macs, sum_t, zero, x_t, value) \
    __attribute__((target(isa), noinline)) static double                     \
    name(void)                                                               \
    {                                                                        \
        int     i;                                                           \
        x_t     x;                                                           \
        sum_t   acc[12];                                                     \
        double  t;                                                           \
                                                                             \
        x = value;                                                           \
                                                                             \
        PEAK_UNROLL                                                          \
        for (i = 0; i < 12; i++) {                                           \
            acc[i] = zero;                                                   \
        }                                                                    \
                                                                             \
        t = peak_time();                                                     \
                                                                             \
        for (i = 0; i < PEAK_LOOPS; i++) {                                   \
            PEAK_12(instruction, class, acc, x, x);                          \
        }                                                                    \
                                                                             \
        return peak_rate(t, 12.0 * PEAK_LOOPS, macs);                        \
    }

PEAK_OF(peak_f32_256, "avx2,fma", "vfmadd231ps", "x", 8,
        __m256, _mm256_setzero_ps(), __m256, _mm256_set1_ps(0.5f))

PEAK_OF(peak_f32_512, "avx512f", "vfmadd231ps", "v", 16,
        __m512, _mm512_setzero_ps(), __m512, _mm512_set1_ps(0.5f))

PEAK_OF(peak_bf16, "avx512f,avx512bf16", "vdpbf16ps", "v", 32,
        __m512, _mm512_setzero_ps(), __m512i, _mm512_set1_epi16(0x3f00))

PEAK_OF(peak_i16, "avx512f,avx512vnni", "vpdpwssd", "v", 32,
        __m512i, _mm512_setzero_si512(), __m512i, _mm512_set1_epi16(1))


static inline double
peak_f32(int wide)
{
    return wide ? peak_f32_512() : peak_f32_256();
}


PEAK_OF(peak_i8, "avx512f,avx512vnni", "vpdpbusd", "v", 64,
        __m512i, _mm512_setzero_si512(), __m512i, _mm512_set1_epi8(1))

PEAK_OF(peak_i8_256, "avx2", "%{vex%} vpdpbusd", "x", 32,
        __m256i, _mm256_setzero_si256(), __m256i, _mm256_set1_epi8(1))


/* of VPMADDUBSW and the addition that each of its results needs */

__attribute__((target("avx2"), noinline)) static double
peak_u8_256(void)
{
    int      i, k;
    double   t;
    __m256i  acc[12], x, y;

    x = _mm256_set1_epi8(1);

    PEAK_UNROLL
    for (k = 0; k < 12; k++) {
        acc[k] = _mm256_setzero_si256();
    }

    t = peak_time();

    for (i = 0; i < PEAK_LOOPS; i++) {
        PEAK_UNROLL
        for (k = 0; k < 12; k++) {
            __asm__ volatile ("vpmaddubsw %1, %1, %0" : "=x" (y) : "x" (x));
            __asm__ volatile ("vpaddw %1, %0, %0" : "+x" (acc[k]) : "x" (y));
        }
    }

    return peak_rate(t, 12.0 * PEAK_LOOPS, 32);
}


/* the thread has opened a device that uses tiles; all of them have zeros */

__attribute__((target("amx-tile"), noinline)) static void
peak_tiles(void)
{
    int             i;
    static uint8_t  config[64];

    config[0] = 1;

    for (i = 0; i < 8; i++) {
        config[16 + 2 * i] = 64;
        config[48 + i] = 16;
    }

    /* what is configured anew is 0 */
    _tile_loadconfig(config);
}


/* products of floats, of which twelve are beside one instruction of tiles */

__attribute__((target("amx-tile,avx512f"), noinline)) static double
peak_f32_beside_tiles(void)
{
    int     i;
    double  t;
    __m512  x, acc[12];

    peak_tiles();
    x = _mm512_set1_ps(0.5f);

    PEAK_UNROLL
    for (i = 0; i < 12; i++) {
        acc[i] = _mm512_setzero_ps();
    }

    t = peak_time();

    for (i = 0; i < PEAK_LOOPS; i++) {
        _tile_zero(0);
        PEAK_12("vfmadd231ps", "v", acc, x, x);
    }

    t = peak_rate(t, 12.0 * PEAK_LOOPS, 16);
    _tile_release();

    return t;
}


__attribute__((target("amx-tile,amx-bf16,amx-int8"), noinline)) static double
peak_amx(int int8)
{
    int     i;
    double  t;

    peak_tiles();

    t = peak_time();

    for (i = 0; i < PEAK_LOOPS / 8; i++) {
        if (int8) {
            _tile_dpbssd(0, 4, 6);
            _tile_dpbssd(1, 4, 7);
            _tile_dpbssd(2, 5, 6);
            _tile_dpbssd(3, 5, 7);

        } else {
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }

    t = peak_rate(t, PEAK_LOOPS / 8 * 4, 16 * 16 * (int8 ? 64 : 32));
    _tile_release();

    return t;
}

#else

static double peak_f32(int wide) { (void) wide; return 0; }
static double peak_bf16(void) { return 0; }
static double peak_i16(void) { return 0; }
static double peak_i8(void) { return 0; }
static double peak_u8_256(void) { return 0; }
static double peak_i8_256(void) { return 0; }
static double peak_f32_beside_tiles(void) { return 0; }
static double peak_amx(int int8) { (void) int8; return 0; }

#endif


/* reads n bytes */

static void
peak_sum(const uint8_t *p, size_t n)
{
    size_t             i;
    volatile uint64_t  sink;

    typedef uint64_t  vec_t __attribute__((vector_size(64)));

    const vec_t  *v = (const vec_t *) (const void *) p;
    vec_t         a = { 0 }, b = { 0 };

    for (i = 0; i + 2 <= n / sizeof(vec_t); i += 2) {
        __builtin_prefetch(v + i + 16);
        __builtin_prefetch(v + i + 17);
        a += v[i];
        b += v[i + 1];
    }

    a += b;
    sink = a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];
    (void) sink;
}

#endif /* LLM_BENCH_PEAKS_H */
