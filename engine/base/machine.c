/*
 * CPUs and memory of the machine; see machine.h.
 *
 * /proc/self/cgroup has the path of this process' group in each hierarchy.  In
 * a container this may be a path of the host that does not exist inside; the
 * container's group is then the root of the mounted hierarchy.  So the limits
 * are read from all folders of the path, up to the root; folders that do not
 * exist are skipped.
 */

#define _GNU_SOURCE

#include "engine/base/machine.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* larger than the 1024 CPUs of cpu_set_t */
#define LLM_MACHINE_CPUS  8192

/* a limit of control groups; v1() and v2() read it from the folder of a group
   of cgroup version 1 or 2; 0: the group has no limit */
typedef struct {
    const char  *controller;            /* its name in version 1 */
    uint64_t   (*v1)(const char *dir);
    uint64_t   (*v2)(const char *dir);
} llm_machine_limit_t;


/* reads the first line of dir/name; 0: no such file, or empty */

static int
llm_machine_line(char *buf, size_t size, const char *dir, const char *name)
{
    int    n;
    char   path[PATH_MAX];
    FILE  *f;

    n = snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (n < 0 || (size_t) n >= sizeof(path)) {
        return 0;
    }

    f = fopen(path, "re");
    if (f == NULL) {
        return 0;
    }

    n = fgets(buf, (int) size, f) != NULL;
    fclose(f);

    return n;
}


/* CPUs, rounded up, from quota and period in microseconds; 0: no limit, as for
   a quota below 1 */

static uint64_t
llm_machine_of(long long quota, long long period)
{
    if (quota < 1 || period < 1 || (quota - 1) / period >= INT_MAX) {
        return 0;
    }

    return (uint64_t) ((quota - 1) / period + 1);
}


static uint64_t
llm_machine_cpu_v2(const char *dir)
{
    char       line[128];
    long long  quota, period;

    /* quota and period, or "max 100000": no limit */

    if (!llm_machine_line(line, sizeof(line), dir, "cpu.max")
        || sscanf(line, "%lld %lld", &quota, &period) != 2)
    {
        return 0;
    }

    return llm_machine_of(quota, period);
}


static uint64_t
llm_machine_cpu_v1(const char *dir)
{
    char  quota[64], period[64];

    if (!llm_machine_line(quota, sizeof(quota), dir, "cpu.cfs_quota_us")
        || !llm_machine_line(period, sizeof(period), dir, "cpu.cfs_period_us"))
    {
        return 0;
    }

    return llm_machine_of(atoll(quota), atoll(period));
}


/* the number in dir/name; 0: no such file, or not a number ("max") */

static uint64_t
llm_machine_number(const char *dir, const char *name)
{
    char                line[128];
    unsigned long long  n;

    if (!llm_machine_line(line, sizeof(line), dir, name)
        || line[0] < '0' || line[0] > '9' || sscanf(line, "%llu", &n) != 1)
    {
        return 0;
    }

    return n;
}


/* the number after key in the line of dir/name that begins with key; 0: there
   is none */

static uint64_t
llm_machine_keyed(const char *dir, const char *name, const char *key)
{
    char                line[256], path[PATH_MAX];
    FILE               *f;
    size_t              len;
    unsigned long long  n;

    if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= PATH_MAX) {
        return 0;
    }

    f = fopen(path, "re");
    if (f == NULL) {
        return 0;
    }

    n = 0;
    len = strlen(key);

    while (fgets(line, sizeof(line), f)) {
        if (strncmp(line, key, len) == 0
            && sscanf(line + len, " %llu", &n) == 1)
        {
            break;
        }
    }

    fclose(f);

    return n;
}


static uint64_t
llm_machine_memory_v2(const char *dir)
{
    return llm_machine_number(dir, "memory.max");
}


static uint64_t
llm_machine_memory_v1(const char *dir)
{
    return llm_machine_number(dir, "memory.limit_in_bytes");
}


/* bytes left of a limit, at least 1, as 0 means no limit; cache: bytes of used
   that are pages of files, which the kernel can drop */

static uint64_t
llm_machine_left(uint64_t limit, uint64_t used, uint64_t cache)
{
    used -= cache < used ? cache : used;

    return limit > used ? limit - used : 1;
}


static uint64_t
llm_machine_free_v2(const char *dir)
{
    uint64_t  limit;

    limit = llm_machine_memory_v2(dir);

    if (limit == 0) {
        return 0;
    }

    return llm_machine_left(limit, llm_machine_number(dir, "memory.current"),
                            llm_machine_keyed(dir, "memory.stat",
                                              "active_file")
                            + llm_machine_keyed(dir, "memory.stat",
                                                "inactive_file"));
}


static uint64_t
llm_machine_free_v1(const char *dir)
{
    uint64_t  limit;

    limit = llm_machine_memory_v1(dir);

    if (limit == 0) {
        return 0;
    }

    return llm_machine_left(limit,
                            llm_machine_number(dir, "memory.usage_in_bytes"),
                            llm_machine_keyed(dir, "memory.stat",
                                              "total_active_file")
                            + llm_machine_keyed(dir, "memory.stat",
                                                "total_inactive_file"));
}


static const llm_machine_limit_t  llm_machine_cpu_limit = {
    "cpu", llm_machine_cpu_v1, llm_machine_cpu_v2
};

static const llm_machine_limit_t  llm_machine_memory_limit = {
    "memory", llm_machine_memory_v1, llm_machine_memory_v2
};

static const llm_machine_limit_t  llm_machine_free_limit = {
    "memory", llm_machine_free_v1, llm_machine_free_v2
};


/* the lowest limit of the group at path and its parents, up to the mount point
   of the hierarchy; 0: no limit */

static uint64_t
llm_machine_way_up(const char *root, const char *mount, const char *path,
    uint64_t (*group)(const char *dir))
{
    int        n;
    char       dir[PATH_MAX];
    size_t     len, top;
    uint64_t   c, least;

    n = snprintf(dir, sizeof(dir), "%s/sys/fs/cgroup%s", root, mount);
    if (n < 0 || (size_t) n >= sizeof(dir)) {
        return 0;
    }

    top = n;

    n = snprintf(dir + top, sizeof(dir) - top, "%s", path);
    if (n < 0 || (size_t) n >= sizeof(dir) - top) {
        n = 0;
    }

    least = 0;

    for (len = top + n; /* void */ ; len--) {

        if (len == top || (dir[len] == '/' && dir[len - 1] != '/')
            || dir[len] == '\0')
        {
            dir[len] = '\0';

            c = group(dir);
            if (c && (least == 0 || c < least)) {
                least = c;
            }
        }

        if (len == top) {
            return least;
        }
    }
}


static uint64_t
llm_machine_least(uint64_t a, uint64_t b)
{
    return (a && (b == 0 || a < b)) ? a : b;
}


/* is the controller in a list like "cpu,cpuacct"? */

static int
llm_machine_has(const char *list, const char *controller)
{
    size_t  n;

    for ( ;; ) {
        n = strcspn(list, ",");

        if (n == strlen(controller) && memcmp(list, controller, n) == 0) {
            return 1;
        }

        if (list[n] == '\0') {
            return 0;
        }

        list += n + 1;
    }
}


/* the lowest limit of a hierarchy, given as a line of /proc/self/cgroup:
   "ID:CONTROLLERS:PATH"; CONTROLLERS is empty for version 2 */

static uint64_t
llm_machine_hierarchy(const char *root, char *line,
    const llm_machine_limit_t *limit)
{
    char      *list, *path, mount[256];
    uint64_t   c;

    line[strcspn(line, "\n")] = '\0';

    list = strchr(line, ':');
    path = list ? strchr(list + 1, ':') : NULL;

    if (path == NULL) {
        return 0;
    }

    list++;
    *path++ = '\0';

    /* a group outside our cgroup namespace, of which only the root is
       visible */

    if (strncmp(path, "/..", 3) == 0) {
        path = "";
    }

    if (*list == '\0') {
        c = llm_machine_way_up(root, "", path, limit->v2);

        return llm_machine_least(c, llm_machine_way_up(root, "/unified", path,
                                                       limit->v2));
    }

    if (!llm_machine_has(list, limit->controller)
        || snprintf(mount, sizeof(mount), "/%s", list) >= (int) sizeof(mount))
    {
        return 0;
    }

    c = llm_machine_way_up(root, mount, path, limit->v1);
    snprintf(mount, sizeof(mount), "/%s", limit->controller);

    return llm_machine_least(c, llm_machine_way_up(root, mount, path,
                                                   limit->v1));
}


/* the lowest limit of our groups in all hierarchies; 0: no limit */

static uint64_t
llm_machine_groups(const char *root, const llm_machine_limit_t *limit)
{
    char      path[PATH_MAX], line[PATH_MAX];
    FILE     *f;
    uint64_t  least;

    if (snprintf(path, sizeof(path), "%s/proc/self/cgroup", root)
        >= (int) sizeof(path))
    {
        return 0;
    }

    f = fopen(path, "re");
    if (f == NULL) {
        return 0;
    }

    least = 0;

    while (fgets(line, sizeof(line), f)) {
        least = llm_machine_least(least, llm_machine_hierarchy(root, line,
                                                               limit));
    }

    fclose(f);

    return least;
}


uint32_t
llm_machine_quota(const char *root)
{
    return (uint32_t) llm_machine_groups(root, &llm_machine_cpu_limit);
}


uint32_t
llm_machine_cpus(void)
{
    long           n;
    uint32_t       quota;
    unsigned long  mask[LLM_MACHINE_CPUS / CHAR_BIT / sizeof(unsigned long)];

    memset(mask, 0, sizeof(mask));

    if (sched_getaffinity(0, sizeof(mask), (cpu_set_t *) mask) == 0) {
        n = CPU_COUNT_S(sizeof(mask), (cpu_set_t *) mask);

    } else {
        n = sysconf(_SC_NPROCESSORS_ONLN);
    }

    quota = llm_machine_quota("");

    if (quota && (n < 1 || quota < (uint32_t) n)) {
        n = quota;
    }

    return n < 1 ? 1 : (uint32_t) n;
}


size_t
llm_machine_memory(const char *root)
{
    long      pages, size;
    uint64_t  bytes, limit;

    pages = sysconf(_SC_PHYS_PAGES);
    size = sysconf(_SC_PAGESIZE);
    limit = llm_machine_groups(root, &llm_machine_memory_limit);

    if (pages < 1 || size < 1
        || __builtin_mul_overflow((uint64_t) pages, (uint64_t) size, &bytes))
    {
        bytes = SIZE_MAX;
    }

    return (size_t) (limit && limit < bytes ? limit : bytes);
}


size_t
llm_machine_memory_free(const char *root)
{
    char      proc[PATH_MAX];
    uint64_t  bytes, limit;

    bytes = snprintf(proc, sizeof(proc), "%s/proc", root) < PATH_MAX
            ? llm_machine_keyed(proc, "meminfo", "MemAvailable:") * 1024 : 0;

    if (bytes == 0) {
        bytes = (uint64_t) sysconf(_SC_AVPHYS_PAGES)
                * (uint64_t) sysconf(_SC_PAGESIZE);
    }

    limit = llm_machine_groups(root, &llm_machine_free_limit);

    return (size_t) (limit && limit < bytes ? limit : bytes);
}
