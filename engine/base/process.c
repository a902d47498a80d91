/*
 * Start times of processes, from Linux' /proc; see process.h.
 */

#include "engine/base/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>


uint64_t
llm_process_born(int32_t pid)
{
    int                  n;
    char                 path[64], buf[1024], *p;
    FILE                *f;
    size_t               len;
    unsigned long long   born;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);

    f = fopen(path, "re");
    if (f == NULL) {
        return 0;
    }

    len = fread(buf, 1, sizeof(buf) - 1, f);
    fclose(f);
    buf[len] = '\0';

    /* "PID (NAME) ...": NAME may have spaces and parentheses; the start time
       is the 20th field after it */

    p = strrchr(buf, ')');

    for (n = 0; p && n < 20; n++) {
        p = strchr(p + 1, ' ');
    }

    return p && sscanf(p, " %llu", &born) == 1 ? born : 0;
}


int
llm_process_lives(int32_t pid, uint64_t born)
{
    uint64_t  now;

    if (pid <= 0 || (kill(pid, 0) == -1 && errno == ESRCH)) {
        return 0;
    }

    now = born ? llm_process_born(pid) : 0;

    return born == 0 || now == 0 || born == now;
}
