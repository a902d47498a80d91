/*
 * Shared objects of other systems and processors; see kind.h.
 */

#include "engine/base/kind.h"

#include <stdio.h>

static const char  llm_advice_build[] =
    "build it on this system: ./build.sh build";


/* e_machine of ELF */

static const struct {
    uint16_t     number;
    const char  *name;
} llm_kind_machines[] = {
    { 3, "i386" }, { 8, "MIPS" }, { 20, "PowerPC" }, { 21, "ppc64" },
    { 22, "s390x" }, { 40, "ARM" }, { 43, "SPARC" }, { 62, "x86-64" },
    { 183, "ARM64 (aarch64)" }, { 243, "RISC-V" }, { 258, "LoongArch" }
};

#if defined(__x86_64__)
#define LLM_KIND_MACHINE  62
#elif defined(__aarch64__)
#define LLM_KIND_MACHINE  183
#elif defined(__riscv)
#define LLM_KIND_MACHINE  243
#elif defined(__s390x__)
#define LLM_KIND_MACHINE  22
#elif defined(__powerpc64__)
#define LLM_KIND_MACHINE  21
#else
#define LLM_KIND_MACHINE  0             /* unknown: accept any */
#endif


static const char *
llm_kind_machine(uint32_t number)
{
    size_t  i;

    for (i = 0; i < llm_nelems(llm_kind_machines); i++) {
        if (llm_kind_machines[i].number == number) {
            return llm_kind_machines[i].name;
        }
    }

    return "another processor";
}


int
llm_file_kind_object(const char *data, size_t n, uint64_t len,
    llm_file_kind_t *k)
{
    uint16_t  machine;

    if (n < 20 || memcmp(data, "\x7f" "ELF", 4) != 0) {
        llm_file_kind(data, n, len, k);
        k->advice = llm_advice_build;
        return LLM_OK;
    }

    memset(k, 0, sizeof(llm_file_kind_t));
    memcpy(&machine, data + 18, sizeof(machine));

    /* EI_DATA: 1 is little-endian */

    if (data[5] != 1) {
        machine = (uint16_t) (machine << 8 | machine >> 8);
    }

    if (LLM_KIND_MACHINE == 0 || machine == LLM_KIND_MACHINE) {
        return LLM_ABSENT;
    }

    snprintf(k->what, sizeof(k->what), "a library for %s, and this machine "
             "is %s", llm_kind_machine(machine),
             llm_kind_machine(LLM_KIND_MACHINE));
    k->advice = llm_advice_build;

    return LLM_OK;
}
