/*
 * What translated kernels call: arithmetic that C has no operator for, memory,
 * warps.  Memory is accessed through the pointers that the checks in memory.c
 * return; `line` is the line of the PTX.
 */

#ifndef LLM_PTX_RUN_H
#define LLM_PTX_RUN_H

#include "t/gpu/ptx/types.h"

#include <math.h>
#include <string.h>

#define PTX_WINDOW  1024u               /* translate.py's WINDOW */

extern const ptx_emulator_t  *ptx_emulator;
extern const ptx_block_t     *ptx_block;

uint16_t llm_f32_to_f16(float f);
uint16_t llm_f32_to_bf16(float f);
float llm_f16_to_f32(uint16_t h);
uint8_t llm_f32_to_e4m3(float f);
float llm_e4m3_to_f32(uint8_t e);


static inline const ptx_thread_t *
ptx_thread(void)
{
    return *ptx_emulator->thread;
}


/* ---- memory ---- */

/* the address of n bytes, after checks */

#define PTX_ACCESS(space, address, n)                                        \
    uint8_t *ptx_##space##_read_##n(address a, uint32_t line);               \
    uint8_t *ptx_##space##_write_##n(address a, uint32_t line);

#define PTX_SPACE(space, address)                                            \
    PTX_ACCESS(space, address, 1)                                            \
    PTX_ACCESS(space, address, 2)                                            \
    PTX_ACCESS(space, address, 4)                                            \
    PTX_ACCESS(space, address, 8)                                            \
    PTX_ACCESS(space, address, 16)

PTX_SPACE(shared, uint32_t)
PTX_SPACE(global, uint64_t)
PTX_SPACE(generic, uint64_t)

uint8_t *ptx_shared_atomic_4(uint32_t a, uint32_t line);
uint8_t *ptx_shared_atomic_8(uint32_t a, uint32_t line);
uint8_t *ptx_global_atomic_4(uint64_t a, uint32_t line);
uint8_t *ptx_global_atomic_8(uint64_t a, uint32_t line);

void ptx_misaligned(const char *space, uint64_t a, uint32_t n, uint32_t line);

/* a thread's own memory, which is the host's stack, and constants: only the
   alignment is checked */

#define PTX_OWN(space, access, n)                                            \
    static inline uint8_t *                                                  \
    ptx_##space##_##access##_##n(uint64_t a, uint32_t line)                  \
    {                                                                        \
        if (a % n) {                                                         \
            ptx_misaligned(#space, a, n, line);                              \
        }                                                                    \
                                                                             \
        return (uint8_t *) a;                                                \
    }

#define PTX_OWN_SPACE(space, access)                                         \
    PTX_OWN(space, access, 1)                                                \
    PTX_OWN(space, access, 2)                                                \
    PTX_OWN(space, access, 4)                                                \
    PTX_OWN(space, access, 8)                                                \
    PTX_OWN(space, access, 16)

PTX_OWN_SPACE(local, read)
PTX_OWN_SPACE(local, write)
PTX_OWN_SPACE(const, read)

uint32_t ptx_dynamic(void);
uint64_t ptx_generic(uint32_t shared);
uint32_t ptx_to_shared(uint64_t generic);

void ptx_copy(uint32_t dst, uint64_t src, uint32_t size, uint32_t read,
    uint32_t line);
void ptx_copy_commit(void);
void ptx_copy_wait(unsigned groups_left);

/* what an atomic operation leaves, from the value x there and v */

#define PTX_ATOMIC(op, type, ctype, after)                                   \
    static inline ctype                                                      \
    atomic_##op##_##type(uint8_t *p, ctype v)                                \
    {                                                                        \
        ctype  x = *(ctype *) p;                                             \
                                                                             \
        *(ctype *) p = after;                                                \
                                                                             \
        return x;                                                            \
    }

#define PTX_ATOMICS(type, ctype)                                             \
    PTX_ATOMIC(add, type, ctype, x + v)                                      \
    PTX_ATOMIC(min, type, ctype, v < x ? v : x)                              \
    PTX_ATOMIC(max, type, ctype, v > x ? v : x)                              \
    PTX_ATOMIC(exch, type, ctype, v)

PTX_ATOMICS(u32, uint32_t)
PTX_ATOMICS(s32, int32_t)
PTX_ATOMICS(b32, uint32_t)
PTX_ATOMICS(f32, float)
PTX_ATOMICS(u64, uint64_t)
PTX_ATOMICS(s64, int64_t)
PTX_ATOMICS(b64, uint64_t)
PTX_ATOMIC(and, b32, uint32_t, x & v)
PTX_ATOMIC(or, b32, uint32_t, x | v)


static inline uint32_t
atomic_cas_b32(uint8_t *p, uint32_t want, uint32_t v)
{
    uint32_t  x = *(uint32_t *) p;

    *(uint32_t *) p = x == want ? v : x;

    return x;
}


/* ---- warps ---- */

void ptx_barrier(void);
void ptx_early_wait(void);
void ptx_warp_barrier(uint32_t mask);

uint32_t ptx_shfl_up(uint32_t v, uint32_t by, uint32_t clamp, uint32_t mask,
    int *valid);
uint32_t ptx_shfl_down(uint32_t v, uint32_t by, uint32_t clamp, uint32_t mask,
    int *valid);
uint32_t ptx_shfl_bfly(uint32_t v, uint32_t by, uint32_t clamp, uint32_t mask,
    int *valid);
uint32_t ptx_shfl_idx(uint32_t v, uint32_t from, uint32_t clamp, uint32_t mask,
    int *valid);
uint32_t ptx_ballot(uint32_t mask, int given);

void ptx_ldmatrix(uint32_t r[4], uint32_t row, int n, int transposed,
    uint32_t line);


static inline void
ptx_mma(float d[4], const uint32_t ab[6], int bf16)
{
    ptx_emulator->mma(d, ab, ab + 4, bf16);
}


/* d += A B, or d = A B unless `add`: m64n`n`k16 of wgmma */
void ptx_wgmma(float *d, int n, const uint32_t a[4], uint64_t desc, int add,
    int transposed, int bf16, uint32_t line);
/* the warp's fragment of its left operand at a descriptor, not transposed */
void ptx_wgmma_left(uint32_t a[4], uint64_t desc, uint32_t line);
/* the same by m64n`n`k32 of e4m3, and d += A B by m16n8k32 */
void ptx_wgmma_e4m3(float *d, int n, const uint32_t a[4], uint64_t desc,
    int add, uint32_t line);
void ptx_mma_e4m3(float d[4], const uint32_t a[4], const uint32_t b[2]);


void ptx_trap(uint32_t line);


/* ---- bits ---- */

static inline uint32_t
bits_of(float f)
{
    uint32_t  u;

    memcpy(&u, &f, 4);

    return u;
}


static inline uint64_t
bits_of_64(double f)
{
    uint64_t  u;

    memcpy(&u, &f, 8);

    return u;
}


static inline float
float_of(uint32_t u)
{
    float  f;

    memcpy(&f, &u, 4);

    return f;
}


static inline double
double_of(uint64_t u)
{
    double  f;

    memcpy(&f, &u, 8);

    return f;
}


/* ---- integers ---- */

/* a product of uint16_t would be one of int, which may overflow */

static inline uint32_t mul_u16(uint32_t a, uint32_t b) { return a * b; }
static inline uint32_t mul_u32(uint32_t a, uint32_t b) { return a * b; }
static inline uint64_t mul_u64(uint64_t a, uint64_t b) { return a * b; }

static inline uint32_t mulhi_u16(uint32_t a, uint32_t b)
    { return a * b >> 16; }
static inline uint32_t mulhi_u32(uint32_t a, uint32_t b)
    { return (uint32_t) ((uint64_t) a * b >> 32); }
static inline int32_t mulhi_s32(int32_t a, int32_t b)
    { return (int32_t) ((int64_t) a * b >> 32); }
static inline uint64_t mulhi_u64(uint64_t a, uint64_t b)
    { return (uint64_t) ((unsigned __int128) a * b >> 64); }
static inline int64_t mulhi_s64(int64_t a, int64_t b)
    { return (int64_t) ((__int128) a * b >> 64); }

/* the quotient by 0 is not specified: here all bits are set */

#define PTX_DIVISION(type, ctype, is_signed)                                 \
    static inline ctype                                                      \
    div_##type(ctype a, ctype b)                                             \
    {                                                                        \
        return b == 0 ? (ctype) -1                                           \
               : is_signed && b == (ctype) -1 ? (ctype) (0 - (uint64_t) a)   \
               : (ctype) (a / b);                                            \
    }                                                                        \
                                                                             \
    static inline ctype                                                      \
    rem_##type(ctype a, ctype b)                                             \
    {                                                                        \
        return b == 0 ? (ctype) -1                                           \
               : is_signed && b == (ctype) -1 ? 0 : (ctype) (a % b);         \
    }

PTX_DIVISION(u16, uint16_t, 0)
PTX_DIVISION(s16, int16_t, 1)
PTX_DIVISION(u32, uint32_t, 0)
PTX_DIVISION(s32, int32_t, 1)
PTX_DIVISION(u64, uint64_t, 0)
PTX_DIVISION(s64, int64_t, 1)

/* shifts by the width and more give 0, or the sign */

#define PTX_SHIFTS(n)                                                        \
    static inline uint##n##_t                                                \
    shl_u##n(uint##n##_t a, uint32_t by)                                     \
    {                                                                        \
        return by < n ? (uint##n##_t) ((uint64_t) a << by) : 0;              \
    }                                                                        \
                                                                             \
    static inline uint##n##_t                                                \
    shr_u##n(uint##n##_t a, uint32_t by)                                     \
    {                                                                        \
        return by < n ? (uint##n##_t) (a >> by) : 0;                         \
    }                                                                        \
                                                                             \
    static inline int##n##_t                                                 \
    shr_s##n(int##n##_t a, uint32_t by)                                      \
    {                                                                        \
        return (int##n##_t) (a >> (by < n ? by : n - 1));                    \
    }

PTX_SHIFTS(16)
PTX_SHIFTS(32)
PTX_SHIFTS(64)


static inline uint32_t
shf_l_wrap(uint32_t a, uint32_t b, uint32_t by)
{
    return (uint32_t) (((uint64_t) b << 32 | a) << (by & 31) >> 32);
}


static inline uint32_t
shf_r_wrap(uint32_t a, uint32_t b, uint32_t by)
{
    return (uint32_t) (((uint64_t) b << 32 | a) >> (by & 31));
}


static inline uint32_t
shf_l_clamp(uint32_t a, uint32_t b, uint32_t by)
{
    return by < 32 ? shf_l_wrap(a, b, by) : a;
}


static inline uint32_t
shf_r_clamp(uint32_t a, uint32_t b, uint32_t by)
{
    return by < 32 ? shf_r_wrap(a, b, by) : b;
}


/* the lowest n bits */

static inline uint64_t
ones(uint32_t n)
{
    return n < 64 ? ((uint64_t) 1 << n) - 1 : ~(uint64_t) 0;
}


static inline uint64_t
bfe_u64(uint64_t a, uint32_t at, uint32_t n)
{
    return shr_u64(a, at & 255) & ones(n & 255);
}


static inline uint32_t
bfe_u32(uint32_t a, uint32_t at, uint32_t n)
{
    return (uint32_t) bfe_u64(a, at, n);
}


static inline uint64_t
bfi_b64(uint64_t a, uint64_t b, uint32_t at, uint32_t n)
{
    uint64_t  mask = shl_u64(ones(n & 255), at & 255);

    return (b & ~mask) | (shl_u64(a, at & 255) & mask);
}


static inline uint32_t
bfi_b32(uint32_t a, uint32_t b, uint32_t at, uint32_t n)
{
    return (uint32_t) bfi_b64(a, b, at, n);
}


static inline uint32_t clz_b32(uint32_t a)
    { return a ? (uint32_t) __builtin_clz(a) : 32; }
static inline uint32_t clz_b64(uint64_t a)
    { return a ? (uint32_t) __builtin_clzll(a) : 64; }


static inline uint32_t
brev_b32(uint32_t a)
{
    int       i;
    uint32_t  r;

    for (i = 0, r = 0; i < 32; i++) {
        r |= (a >> i & 1) << (31 - i);
    }

    return r;
}


/* ---- floats ---- */

static inline int nan_f32(float a, float b) { return a != a || b != b; }
static inline int nan_f64(double a, double b) { return a != a || b != b; }

/* of a NaN and a number the number; -0 is less than +0 */

#define PTX_MIN_MAX(type, ctype, sign)                                       \
    static inline ctype                                                      \
    min_##type(ctype a, ctype b)                                             \
    {                                                                        \
        return a < b ? a : b < a ? b : a != a ? b : sign(a) ? a : b != b     \
               ? a : b;                                                      \
    }                                                                        \
                                                                             \
    static inline ctype                                                      \
    max_##type(ctype a, ctype b)                                             \
    {                                                                        \
        return a > b ? a : b > a ? b : a != a ? b : sign(a) ? (b != b ? a    \
               : b) : a;                                                     \
    }

PTX_MIN_MAX(f32, float, __builtin_signbitf)
PTX_MIN_MAX(f64, double, __builtin_signbit)

static inline float
ftz(float f)
{
    return __builtin_fabsf(f) < 0x1p-126f ? __builtin_copysignf(0, f) : f;
}


/* the lower half of the result's bits is 0 */

static inline double
rcp_f64(double a)
{
    return double_of(bits_of_64(1 / a) >> 32 << 32);
}


/* what is lost in the sum s of a and b */

static inline double
lost(double a, double b, double s)
{
    double  t = s - a;

    return (a - (s - t)) + (b - t);
}


static inline float
fma_rm(float a, float b, float c)
{
    float   f;
    double  p = (double) a * b, s = p + c;

    f = (float) s;

    return f > s || (f == s && lost(p, c, s) < 0) ? nextafterf(f, -INFINITY)
                                                  : f;
}


static inline float
add_rz(float a, float b)
{
    float   f;
    double  s = (double) a + b, more = lost(a, b, s);

    f = (float) s;

    if ((s > 0 && (f > s || (f == s && more < 0)))
        || (s < 0 && (f < s || (f == s && more > 0))))
    {
        return nextafterf(f, 0);
    }

    return f;
}


static inline float
saturate(float f)
{
    return f >= 1 ? 1 : f > 0 ? f : 0;
}


/* to an integer: towards zero, to the nearest even, down, up */

static inline double rzi(double f) { return __builtin_trunc(f); }
static inline double rni(double f) { return __builtin_rint(f); }
static inline double rmi(double f) { return __builtin_floor(f); }
static inline double rpi(double f) { return __builtin_ceil(f); }

/* the nearest integer of a type, 0 of a NaN */

#define PTX_INTEGER(type, ctype, least, most)                                \
    static inline ctype                                                      \
    int_##type(double f)                                                     \
    {                                                                        \
        return f != f ? 0 : f <= (double) least ? least                      \
               : f >= (double) most ? most : (ctype) f;                      \
    }

PTX_INTEGER(u32, uint32_t, 0, UINT32_MAX)
PTX_INTEGER(s32, int32_t, INT32_MIN, INT32_MAX)
PTX_INTEGER(u64, uint64_t, 0, UINT64_MAX)
PTX_INTEGER(s64, int64_t, INT64_MIN, INT64_MAX)

static inline float f16_f32(uint16_t h) { return llm_f16_to_f32(h); }
static inline uint16_t f32_f16(float f) { return llm_f32_to_f16(f); }
static inline uint16_t f32_bf16(float f) { return llm_f32_to_bf16(f); }


static inline uint32_t
mul_f16x2(uint32_t a, uint32_t b)
{
    float  lo, hi;

    lo = f16_f32((uint16_t) a) * f16_f32((uint16_t) b);
    hi = f16_f32((uint16_t) (a >> 16)) * f16_f32((uint16_t) (b >> 16));

    return (uint32_t) f32_f16(hi) << 16 | f32_f16(lo);
}


/* a b + c of f16, rounded once: a double holds the product, and the sum as a
   float has its last bit set if something is lost */

static inline uint16_t
fma_f16(uint16_t a, uint16_t b, uint16_t c)
{
    float   f;
    double  sum;

    sum = (double) f16_f32(a) * f16_f32(b) + f16_f32(c);
    f = (float) sum;

    if ((double) f != sum && f == f) {
        f = __builtin_fabs((double) f) > __builtin_fabs(sum)
            ? __builtin_nextafterf(f, 0) : f;
        f = float_of(bits_of(f) | 1);
    }

    return f32_f16(f);
}


static inline uint32_t
fma_f16x2(uint32_t a, uint32_t b, uint32_t c)
{
    return (uint32_t) fma_f16((uint16_t) (a >> 16), (uint16_t) (b >> 16),
                              (uint16_t) (c >> 16)) << 16
           | fma_f16((uint16_t) a, (uint16_t) b, (uint16_t) c);
}


static inline uint32_t
e4m3x2_f16x2(uint16_t two)
{
    return (uint32_t) f32_f16(llm_e4m3_to_f32((uint8_t) (two >> 8))) << 16
           | f32_f16(llm_e4m3_to_f32((uint8_t) two));
}


static inline uint16_t
f32_e4m3x2(float hi, float lo)
{
    return (uint16_t) (llm_f32_to_e4m3(hi) << 8 | llm_f32_to_e4m3(lo));
}

#endif /* LLM_PTX_RUN_H */
