/*
 * How many CPUs a thread may use, and how much memory: control groups in
 * made-up folders, and the affinity that this thread gives itself.
 */

#include "engine/base/machine.h"
#include "kernels/cpu/pool.h"
#include "t/unit/tap.h"

#include <ftw.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>


static char  root[] = "/tmp/llm-machine-XXXXXX";


/* a file below root, with the folders on its way */

static void
put(const char *name, const char *text)
{
    char   path[512], *p;
    FILE  *f;

    snprintf(path, sizeof(path), "%s/%s", root, name);

    for (p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        (void) mkdir(path, 0700);
        *p = '/';
    }

    f = fopen(path, "w");
    if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}


static int
forget(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void) st;
    (void) flag;
    (void) ftw;

    return remove(path);
}


static void
clear(void)
{
    (void) nftw(root, forget, 8, FTW_DEPTH | FTW_PHYS);
    (void) mkdir(root, 0700);
}


#define CGROUP  "sys/fs/cgroup"

static void
version_2(void)
{
    clear();
    is_int(llm_machine_quota(root), 0, "no cgroups at all: no bound");

    put("proc/self/cgroup", "0::/system.slice/nginx.service\n");
    is_int(llm_machine_quota(root), 0, "v2: no cpu.max: no bound");

    put(CGROUP "/system.slice/nginx.service/cpu.max", "max 100000\n");
    is_int(llm_machine_quota(root), 0, "v2: max: no bound");

    put(CGROUP "/system.slice/nginx.service/cpu.max", "400000 100000\n");
    is_int(llm_machine_quota(root), 4, "v2: four CPUs");

    put(CGROUP "/system.slice/nginx.service/cpu.max", "350000 100000\n");
    is_int(llm_machine_quota(root), 4, "v2: three and a half are four");

    put(CGROUP "/system.slice/nginx.service/cpu.max", "20000 100000\n");
    is_int(llm_machine_quota(root), 1, "v2: a fifth is one");

    put(CGROUP "/system.slice/nginx.service/cpu.max", "800000 100000\n");
    put(CGROUP "/system.slice/cpu.max", "300000 100000\n");
    is_int(llm_machine_quota(root), 3, "v2: a slice around it has less");

    put(CGROUP "/system.slice/cpu.max", "max 100000\n");
    put(CGROUP "/cpu.max", "200000 100000\n");
    is_int(llm_machine_quota(root), 2, "v2: and so has the root");

    put("proc/self/cgroup", "0::/\n");
    is_int(llm_machine_quota(root), 2, "v2: a container's own root");

    put("proc/self/cgroup", "0::/../../elsewhere\n");
    is_int(llm_machine_quota(root), 2, "v2: a path outside of the namespace");

    put("proc/self/cgroup", "0::/docker/0123456789abcdef\n");
    is_int(llm_machine_quota(root), 2, "v2: the host's path in a container");

    put(CGROUP "/cpu.max", "nonsense\n");
    is_int(llm_machine_quota(root), 0, "v2: nonsense: no bound");

    put(CGROUP "/cpu.max", "100000 0\n");
    is_int(llm_machine_quota(root), 0, "v2: a period of 0: no bound");

    put("proc/self/cgroup", "nonsense\n\n:\n0::\n::::\n");
    is_int(llm_machine_quota(root), 0, "a file of nonsense: no bound");
}


static void
version_1(void)
{
    clear();
    put("proc/self/cgroup", "5:memory:/m\n4:cpuset:/s\n"
        "3:cpuacct,cpu:/docker/abc\n1:name=systemd:/x\n0::/\n");
    is_int(llm_machine_quota(root), 0, "v1: no files: no bound");

    put(CGROUP "/cpuset/s/cpu.cfs_quota_us", "100000\n");
    put(CGROUP "/cpuset/s/cpu.cfs_period_us", "100000\n");
    is_int(llm_machine_quota(root), 0, "v1: another controller: no bound");

    put(CGROUP "/cpuacct,cpu/docker/abc/cpu.cfs_quota_us", "-1\n");
    put(CGROUP "/cpuacct,cpu/docker/abc/cpu.cfs_period_us", "100000\n");
    is_int(llm_machine_quota(root), 0, "v1: -1: no bound");

    put(CGROUP "/cpuacct,cpu/docker/abc/cpu.cfs_quota_us", "250000\n");
    is_int(llm_machine_quota(root), 3, "v1: two and a half are three");

    put(CGROUP "/cpuacct,cpu/cpu.cfs_quota_us", "100000\n");
    put(CGROUP "/cpuacct,cpu/cpu.cfs_period_us", "50000\n");
    is_int(llm_machine_quota(root), 2, "v1: the group around it has less");

    put(CGROUP "/cpu/docker/cpu.cfs_quota_us", "50000\n");
    put(CGROUP "/cpu/docker/cpu.cfs_period_us", "50000\n");
    is_int(llm_machine_quota(root), 1, "v1: mounted as cpu");
}


/* memory in MiB, as a group allows it, and what is left of that */

static void
memory(void)
{
    size_t  all = llm_machine_memory("");

    clear();
    ok(llm_machine_memory(root) >= all, "no cgroups: the machine's memory");

    put("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 2048 kB\n");
    is_int(llm_machine_memory_free(root), 2 << 20, "what is available");

    put("proc/self/cgroup", "0::/system.slice/nginx.service\n");
    put(CGROUP "/system.slice/nginx.service/memory.max", "max\n");
    is_int(llm_machine_memory_free(root), 2 << 20, "v2: max: no bound");

    put(CGROUP "/system.slice/memory.max", "1048576\n");
    is_int(llm_machine_memory(root), 1 << 20, "v2: the group around it");
    is_int(llm_machine_memory_free(root), 1 << 20, "v2: all of it is left");

    put(CGROUP "/system.slice/memory.current", "1048576\n");
    is_int(llm_machine_memory_free(root), 1, "v2: nothing is left");

    put(CGROUP "/system.slice/memory.stat", "anon 262144\nfile 786432\n"
        "inactive_file 500000\nactive_file 24288\nslab 0\n");
    is_int(llm_machine_memory_free(root), 524288,
           "v2: pages of files make room");

    put(CGROUP "/system.slice/memory.stat", "inactive_file 5000000\n");
    is_int(llm_machine_memory_free(root), 1 << 20,
           "v2: no more than there are");

    put("proc/meminfo", "MemAvailable: 512 kB\n");
    is_int(llm_machine_memory_free(root), 512 << 10,
           "the machine has less than the group");

    clear();
    put("proc/meminfo", "MemAvailable: 2048 kB\n");
    put("proc/self/cgroup", "5:memory:/m\n4:cpu:/c\n");
    put(CGROUP "/cpu/c/memory.limit_in_bytes", "4096\n");
    is_int(llm_machine_memory_free(root), 2 << 20, "v1: another controller");

    put(CGROUP "/memory/m/memory.limit_in_bytes", "9223372036854771712\n");
    is_int(llm_machine_memory_free(root), 2 << 20, "v1: no bound");

    put(CGROUP "/memory/memory.limit_in_bytes", "1000000\n");
    put(CGROUP "/memory/memory.usage_in_bytes", "900000\n");
    put(CGROUP "/memory/memory.stat", "cache 5\ninactive_file 1\n"
        "total_inactive_file 300000\ntotal_active_file 100000\n");
    is_int(llm_machine_memory(root), 1000000, "v1: a bound");
    is_int(llm_machine_memory_free(root), 500000, "v1: what is left of it");
}


static void
affinity(void)
{
    uint32_t      all, quota;
    cpu_set_t     old, one;
    llm_err_t     err;
    llm_pool_t   *pool;

    if (sched_getaffinity(0, sizeof(old), &old) != 0) {
        skip("no affinity to be had");
        return;
    }

    all = CPU_COUNT(&old);
    quota = llm_machine_quota("");

    is_int(llm_machine_cpus(), quota && quota < all ? quota : all,
           "as many CPUs as this thread may use");

    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ok(sched_setaffinity(0, sizeof(one), &one) == 0, "bound to one");

    is_int(llm_machine_cpus(), 1, "one CPU");

    pool = llm_pool_create(0, &err);
    is_int(llm_pool_threads(pool), 1, "a pool has one thread then");
    llm_pool_free(pool);

    (void) sched_setaffinity(0, sizeof(old), &old);
}


int
main(void)
{
    if (mkdtemp(root) == NULL) {
        perror(root);
        return 1;
    }

    version_2();
    version_1();
    memory();
    affinity();

    clear();
    (void) rmdir(root);

    return done_testing();
}
