/*
 * Replaces NVML, NVIDIA's management library, in tests: two GPUs, the second
 * of which cannot report its power.  Numbers are read at each call, from lines
 * "NAME NUMBER" of the file "gpu" in the folder DIR.
 */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static unsigned long
number(const char *what)
{
    FILE           *f = fopen(DIR "/gpu", "r");
    char            name[32];
    unsigned long   n, found = 0;

    while (f && fscanf(f, "%31s %lu", name, &n) == 2) {
        found = strcmp(name, what) ? found : n;
    }

    if (f) {
        fclose(f);
    }

    return found;
}

int nvmlInit_v2(void) { return number("init"); }
#ifndef NO_SHUTDOWN
int nvmlShutdown(void) { return 0; }
#endif
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }

int
nvmlDeviceGetHandleByIndex_v2(unsigned i, void **gpu)
{
#ifdef LOST
    if (i == LOST) {
        return 15;                      /* NVML_ERROR_GPU_IS_LOST */
    }
#endif
    *gpu = (void *) (unsigned long) (i + 1);
    return 0;
}

int
nvmlDeviceGetName(void *gpu, char *s, unsigned size)
{
    snprintf(s, size, "NVIDIA \"H%lu\"\n", (unsigned long) gpu);
    return 0;
}

int
nvmlDeviceGetUUID(void *gpu, char *s, unsigned size)
{
    snprintf(s, size, "GPU-%lu", (unsigned long) gpu);
    return 0;
}

int
nvmlDeviceGetUtilizationRates(void *gpu, unsigned *rates)
{
    while (number("hang")) {
        sleep(1);
    }

    rates[0] = number("busy") / (unsigned long) gpu;
    rates[1] = number("busy") / 2 / (unsigned long) gpu;
    return 0;
}

int
nvmlDeviceGetMemoryInfo(void *gpu, unsigned long long *m)
{
    m[0] = 80ull << 30;
    m[1] = 20ull << 30;
    m[2] = 60ull << 30;
    return 0;
}

int
nvmlDeviceGetPowerUsage(void *gpu, unsigned *mw)
{
    *mw = 345600;
    return gpu == (void *) 2 ? 3 : 0;
}

#ifndef NO_TEMPERATURE

int
nvmlDeviceGetTemperature(void *gpu, int sensor, unsigned *n)
{
    (void) gpu;
    *n = 41 + sensor;
    return 0;
}

#endif
