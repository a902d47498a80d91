/*
 * What the process of a job gives up before it reads a byte; see decode.h.
 *
 * Resources (address space, CPU time, new descriptors, files, core dumps) and
 * new privileges, then all system calls but reading and writing open
 * descriptors, memory that is not executable, and the process's end.  Any other
 * call, open() and socket() among them, fails with EPERM.
 *
 * Under AddressSanitizer and ThreadSanitizer, which need more memory and calls
 * than that, only new descriptors and files are given up.
 */

#include "engine/media/decoder/decode.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define LLM_SANDBOX_SAN  1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LLM_SANDBOX_SAN  1
#endif
#endif

#ifndef LLM_SANDBOX_SAN
#define LLM_SANDBOX_SAN  0
#endif

#if defined __x86_64__
#define LLM_SANDBOX_ARCH  AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define LLM_SANDBOX_ARCH  AUDIT_ARCH_AARCH64
#elif defined __riscv && __riscv_xlen == 64
#define LLM_SANDBOX_ARCH  AUDIT_ARCH_RISCV64
#endif

#define LLM_SANDBOX_STATM  "/proc/self/statm"


static int
llm_sandbox_limit(int resource, uint64_t max)
{
    struct rlimit  r;

    r.rlim_cur = max;
    /* at the upper bound of time the kernel sends SIGKILL, which is to mean
       that another process did: SIGXCPU comes before it */
    r.rlim_max = resource == RLIMIT_CPU ? max + 1 : max;

    return setrlimit(resource, &r);
}


/* bytes of address space that the process has; generous if that is not known */

static uint64_t
llm_sandbox_size(void)
{
    FILE                *f;
    unsigned long long   pages;

    f = fopen(LLM_SANDBOX_STATM, "re");

    if (f == NULL) {
        return (uint64_t) 1 << 28;
    }

    if (fscanf(f, "%llu", &pages) != 1) {
        pages = 65536;
    }

    fclose(f);

    return pages * (uint64_t) sysconf(_SC_PAGESIZE);
}


static int
llm_sandbox_resources(uint64_t memory, uint32_t seconds)
{
    uint64_t  size;

    size = llm_sandbox_size();

    if (llm_sandbox_limit(RLIMIT_NOFILE, 0) != 0
        || llm_sandbox_limit(RLIMIT_FSIZE, 0) != 0
        || llm_sandbox_limit(RLIMIT_CORE, 0) != 0)
    {
        return LLM_ERROR;
    }

    if (LLM_SANDBOX_SAN) {
        return LLM_OK;
    }

    return llm_sandbox_limit(RLIMIT_CPU, seconds) == 0
           && llm_sandbox_limit(RLIMIT_AS, size + memory) == 0
           ? LLM_OK : LLM_ERROR;
}


#ifdef LLM_SANDBOX_ARCH

#define LLM_LOAD(field)                                                      \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LLM_RETURN(value)                                                    \
    BPF_STMT(BPF_RET | BPF_K, (value))
#define LLM_SKIP_UNLESS(value, n)                                            \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (n))
#define LLM_ALLOW(call)                                                      \
    LLM_SKIP_UNLESS(__NR_##call, 1), LLM_RETURN(SECCOMP_RET_ALLOW)
/* the third argument, of mmap() and mprotect(), is what may be done to the
   memory; in its lower half, as machines above have the lower bytes first */
#define LLM_ALLOW_DATA(call)                                                 \
    LLM_SKIP_UNLESS(__NR_##call, 4),                                         \
    LLM_LOAD(args[2]),                                                       \
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),                   \
    LLM_RETURN(SECCOMP_RET_ALLOW),                                           \
    LLM_RETURN(SECCOMP_RET_ERRNO | EPERM)

static int
llm_sandbox_calls(void)
{
    static struct sock_filter  filter[] = {

        LLM_LOAD(arch),
        LLM_SKIP_UNLESS(LLM_SANDBOX_ARCH, 1),
        BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
        LLM_RETURN(SECCOMP_RET_KILL_PROCESS),
        LLM_LOAD(nr),

        LLM_ALLOW(read),
        LLM_ALLOW(write),
        LLM_ALLOW(exit),
        LLM_ALLOW(exit_group),
        LLM_ALLOW_DATA(mmap),
        LLM_ALLOW_DATA(mprotect),
        LLM_ALLOW(munmap),
        LLM_ALLOW(mremap),
        LLM_ALLOW(madvise),
        LLM_ALLOW(brk),
        LLM_ALLOW(futex),
        LLM_ALLOW(clock_gettime),
        LLM_ALLOW(getrandom),
        LLM_ALLOW(rt_sigreturn),
        LLM_ALLOW(rt_sigprocmask),

        LLM_RETURN(SECCOMP_RET_ERRNO | EPERM)
    };

    static const struct sock_fprog  program = {
        llm_nelems(filter), filter
    };

    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0
           ? LLM_OK : LLM_ERROR;
}

#else

static int
llm_sandbox_calls(void)
{
    errno = ENOSYS;

    return LLM_ERROR;
}

#endif


int
llm_sandbox_enter(uint64_t memory, uint32_t seconds, const char **why)
{
    if (llm_sandbox_resources(memory, seconds) != LLM_OK) {
        *why = "limits of resources cannot be set";
        return LLM_ERROR;
    }

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        *why = "the kernel has no PR_SET_NO_NEW_PRIVS";
        return LLM_ERROR;
    }

    if (!LLM_SANDBOX_SAN && llm_sandbox_calls() != LLM_OK) {
        *why = "this kernel or machine has no filter of system calls (seccomp)";
        return LLM_ERROR;
    }

    return LLM_OK;
}
