/*
 * CPUs and memory of the machine; see machine.h.
 *
 * /proc/self/cgroup names our group in each hierarchy, as the kernel sees
 * it.  In a container the path may be one of the host's that is not there:
 * then the container's own group is what is mounted, so that the way up from
 * the path to the root always finds what counts.
 */

#define _GNU_SOURCE

#include "kernels/cpu/machine.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* more CPUs than a cpu_set_t has */
#define LLM_MACHINE_CPUS  8192


/* one line of a small file; 0: there is none */

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


/* quota and period of one group in us; a quota below 1 is none */

static uint32_t
llm_machine_of(long long quota, long long period)
{
    if (quota < 1 || period < 1 || (quota - 1) / period >= INT_MAX) {
        return 0;
    }

    return (uint32_t) ((quota - 1) / period + 1);
}


static uint32_t
llm_machine_group_v2(const char *dir)
{
    char       line[128];
    long long  quota, period;

    /* "max 100000", or quota and period */

    if (!llm_machine_line(line, sizeof(line), dir, "cpu.max")
        || sscanf(line, "%lld %lld", &quota, &period) != 2)
    {
        return 0;
    }

    return llm_machine_of(quota, period);
}


static uint32_t
llm_machine_group_v1(const char *dir)
{
    char  quota[64], period[64];

    if (!llm_machine_line(quota, sizeof(quota), dir, "cpu.cfs_quota_us")
        || !llm_machine_line(period, sizeof(period), dir, "cpu.cfs_period_us"))
    {
        return 0;
    }

    return llm_machine_of(atoll(quota), atoll(period));
}


/* the least of a group and all around it, up to where it is mounted */

static uint32_t
llm_machine_way_up(const char *root, const char *mount, const char *path,
    uint32_t (*group)(const char *dir))
{
    int        n;
    char       dir[PATH_MAX];
    size_t     len, top;
    uint32_t   c, least;

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


static uint32_t
llm_machine_least(uint32_t a, uint32_t b)
{
    return (a && (b == 0 || a < b)) ? a : b;
}


/* is "cpu" one of the controllers "a,b,c"? */

static int
llm_machine_has(const char *list)
{
    size_t  n;

    for ( ;; ) {
        n = strcspn(list, ",");

        if (n == 3 && memcmp(list, "cpu", 3) == 0) {
            return 1;
        }

        if (list[n] == '\0') {
            return 0;
        }

        list += n + 1;
    }
}


/* a line "ID:CONTROLLERS:PATH"; version 2 has no controllers */

static uint32_t
llm_machine_hierarchy(const char *root, char *line)
{
    char      *list, *path, mount[256];
    uint32_t   c;

    line[strcspn(line, "\n")] = '\0';

    list = strchr(line, ':');
    path = list ? strchr(list + 1, ':') : NULL;

    if (path == NULL) {
        return 0;
    }

    list++;
    *path++ = '\0';

    /* outside of our namespace: only its root can be seen */

    if (strncmp(path, "/..", 3) == 0) {
        path = "";
    }

    if (*list == '\0') {
        c = llm_machine_way_up(root, "", path, llm_machine_group_v2);

        return llm_machine_least(c, llm_machine_way_up(root, "/unified", path,
                                                 llm_machine_group_v2));
    }

    if (!llm_machine_has(list)
        || snprintf(mount, sizeof(mount), "/%s", list) >= (int) sizeof(mount))
    {
        return 0;
    }

    c = llm_machine_way_up(root, "/cpu", path, llm_machine_group_v1);

    return llm_machine_least(c, llm_machine_way_up(root, mount, path,
                                             llm_machine_group_v1));
}


uint32_t
llm_machine_quota(const char *root)
{
    char      path[PATH_MAX], line[PATH_MAX];
    FILE     *f;
    uint32_t  least;

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
        least = llm_machine_least(least, llm_machine_hierarchy(root, line));
    }

    fclose(f);

    return least;
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
llm_machine_memory(void)
{
    long    pages, size;
    size_t  bytes;

    pages = sysconf(_SC_PHYS_PAGES);
    size = sysconf(_SC_PAGESIZE);

    if (pages < 1 || size < 1
        || __builtin_mul_overflow((size_t) pages, (size_t) size, &bytes))
    {
        return SIZE_MAX;
    }

    return bytes;
}
