/*
 * Selects the kernels for this CPU, by CPUID, by the registers that the
 * operating system saves (XCR0), and by Linux' permission to use AMX tiles.
 */

#define _GNU_SOURCE

#include "kernels/cpu/cpu.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* arch_prctl(2): requests a dynamic feature; 18 is the data of tiles */
#define LLM_ARCH_REQ_XCOMP_PERM  0x1023
#define LLM_XFEATURE_TILEDATA    18

/* CPUID 7, EDX: AMX-BF16, AMX-TILE, AMX-INT8 */
#define LLM_BIT_AMX      (1u << 22 | 1u << 24 | 1u << 25)

/* CPUID 7.1, EAX */
#define LLM_BIT_VNNI     (1u << 4)
#define LLM_BIT_BF16     (1u << 5)

#define LLM_XCR0_AVX     0x6
#define LLM_XCR0_AVX512  0xe6
#define LLM_XCR0_AMX     0x60000


typedef struct {
    int  avx2;
    int  avxvnni;
    int  avx512;
    int  bf16;
    int  amx;
} llm_cpu_isa_t;


static uint64_t
llm_isa_xcr0(void)
{
    uint32_t  lo, hi;

    __asm__ volatile ("xgetbv" : "=a" (lo), "=d" (hi) : "c" (0));

    return (uint64_t) hi << 32 | lo;
}


static int
llm_isa_tiles_allowed(void)
{
    return syscall(SYS_arch_prctl, LLM_ARCH_REQ_XCOMP_PERM,
                   LLM_XFEATURE_TILEDATA) == 0;
}


#define llm_isa_all(reg, mask)  (((reg) & (mask)) == (mask))

static void
llm_isa_detect(llm_cpu_isa_t *isa)
{
    uint32_t  a, b, c, d, b7, c7, d7, a71;
    uint64_t  xcr0;

    memset(isa, 0, sizeof(llm_cpu_isa_t));

    if (!__get_cpuid(1, &a, &b, &c, &d)
        || !llm_isa_all(c, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C))
    {
        return;
    }

    xcr0 = llm_isa_xcr0();

    if (!llm_isa_all(xcr0, LLM_XCR0_AVX)
        || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d7))
    {
        return;
    }

    isa->avx2 = llm_isa_all(b7, bit_AVX2);

    a71 = 0;
    if (isa->avx2) {
        (void) __get_cpuid_count(7, 1, &a71, &b, &c, &d);
        isa->avxvnni = llm_isa_all(a71, LLM_BIT_VNNI);
    }

    if (!isa->avx2 || !llm_isa_all(xcr0, LLM_XCR0_AVX512)) {
        return;
    }

    isa->avx512 = llm_isa_all(b7, (uint32_t) (bit_AVX512F | bit_AVX512DQ
                                              | bit_AVX512BW | bit_AVX512VL))
                  && llm_isa_all(c7, bit_AVX512VNNI);

    isa->bf16 = isa->avx512 && llm_isa_all(a71, LLM_BIT_BF16);

    isa->amx = isa->bf16
               && llm_isa_all(d7, LLM_BIT_AMX)
               && llm_isa_all(xcr0, LLM_XCR0_AMX);
}


int
llm_cpu_select(const char *name, llm_cpu_kernels_t *k, llm_err_t *err)
{
    int            want;
    llm_cpu_isa_t  isa;

    memset(k, 0, sizeof(llm_cpu_kernels_t));
    llm_isa_detect(&isa);

    if (name == NULL) {
        want = 4;

    } else if (strcmp(name, "avx2") == 0) {
        want = 1;

    } else if (strcmp(name, "avxvnni") == 0) {
        want = 2;

    } else if (strcmp(name, "avx512") == 0) {
        want = 3;

    } else if (strcmp(name, "amx") == 0) {
        want = 4;

    } else {
        return llm_fail(err, "cpu: unknown instruction set \"%s\"", name);
    }

    if (want == 4 && isa.amx && llm_isa_tiles_allowed()) {
        llm_cpu_kernels_amx(k);
        return LLM_OK;
    }

    if (isa.avx512 && (name == NULL || want == 3)) {
        llm_cpu_kernels_avx512(k);

        if (isa.bf16) {
            llm_cpu_kernels_avx512_bf16(k);
        }

        return LLM_OK;
    }

    if (isa.avxvnni && (name == NULL || want == 2)) {
        llm_cpu_kernels_avxvnni(k);
        return LLM_OK;
    }

    if (isa.avx2 && (name == NULL || want == 1)) {
        llm_cpu_kernels_avx2(k);
        return LLM_OK;
    }

    return llm_fail(err, "cpu: %s is not available on this machine",
                    name ? name : "AVX2");
}


#else

int
llm_cpu_select(const char *name, llm_cpu_kernels_t *k, llm_err_t *err)
{
    memset(k, 0, sizeof(llm_cpu_kernels_t));

    return llm_fail(err, "cpu: %s is not available on this machine",
                    name ? name : "AVX2");
}

#endif
