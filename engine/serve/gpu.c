/*
 * Metrics of the machine's GPUs, from NVML, NVIDIA's management library, which
 * comes with the driver: a thread queries it every two seconds and writes the
 * results into the zone.  The library is loaded when a model first runs on a
 * GPU, not earlier, as it starts the driver.  Without it there are no metrics.
 *
 * A call can hang when its GPU hangs.  So the thread shares only the zone with
 * the engine, and if it does not end in time it is left running, with its code
 * and memory.
 */

#define _GNU_SOURCE

#include "engine/serve/engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

#define LLM_GPU_EACH   2                /* seconds between queries */
#define LLM_GPU_GRACE  2                /* seconds until a thread that does not
                                           end is left running */

/* the part of NVML's interface that is used here; functions return 0 or an
   error */

typedef struct llm_nvml_gpu_s  llm_nvml_gpu_t;      /* a handle */

typedef struct {
    unsigned             gpu;
    unsigned             memory;
} llm_nvml_busy_t;

typedef struct {
    unsigned long long   total;
    unsigned long long   free;
    unsigned long long   used;
} llm_nvml_memory_t;

typedef struct {
    int                (*init)(void);
    int                (*shutdown)(void);
    int                (*count)(unsigned *n);
    int                (*handle)(unsigned i, llm_nvml_gpu_t **gpu);
    int                (*name)(llm_nvml_gpu_t *gpu, char *s, unsigned size);
    int                (*uuid)(llm_nvml_gpu_t *gpu, char *s, unsigned size);
    int                (*busy)(llm_nvml_gpu_t *gpu, llm_nvml_busy_t *b);
    int                (*memory)(llm_nvml_gpu_t *gpu, llm_nvml_memory_t *m);
    int                (*power)(llm_nvml_gpu_t *gpu, unsigned *mw);
    int                (*celsius)(llm_nvml_gpu_t *gpu, int sensor,
                            unsigned *celsius);
} llm_nvml_t;

struct llm_gpu_s {
    llm_zone_t          *zone;
    llm_log_pt           log;
    void                *log_data;
    pthread_t            thread;

    void                *lib;
    llm_nvml_t           nvml;
    llm_nvml_gpu_t      *handle[LLM_ZONE_GPUS];     /* NULL: no answer */
    uint32_t             n;

    pthread_mutex_t      lock;
    pthread_cond_t       wake;
    int                  quit;          /* guarded by lock */
};


static const struct {
    const char          *name;
    size_t               offset;        /* in llm_nvml_t */
    int                  needed;        /* 0: only a metric is missing without
                                           it */
} llm_nvml_names[] = {
    { "nvmlInit_v2", offsetof(llm_nvml_t, init), 1 },
    { "nvmlShutdown", offsetof(llm_nvml_t, shutdown), 1 },
    { "nvmlDeviceGetCount_v2", offsetof(llm_nvml_t, count), 1 },
    { "nvmlDeviceGetHandleByIndex_v2", offsetof(llm_nvml_t, handle), 1 },
    { "nvmlDeviceGetName", offsetof(llm_nvml_t, name), 1 },
    { "nvmlDeviceGetUUID", offsetof(llm_nvml_t, uuid), 1 },
    { "nvmlDeviceGetUtilizationRates", offsetof(llm_nvml_t, busy), 0 },
    { "nvmlDeviceGetMemoryInfo", offsetof(llm_nvml_t, memory), 0 },
    { "nvmlDeviceGetPowerUsage", offsetof(llm_nvml_t, power), 0 },
    { "nvmlDeviceGetTemperature", offsetof(llm_nvml_t, celsius), 0 },
};


/* ---- the thread ---- */

static void
llm_gpu_say(llm_gpu_t *g, const char *what, const char *why)
{
    char  msg[256];

    snprintf(msg, sizeof(msg), "no metrics of GPUs: %s%s", what, why);

    pthread_mutex_lock(&g->lock);

    if (!g->quit && g->log) {           /* else the log may be gone */
        g->log(g->log_data, LLM_LOG_NOTICE, msg);
    }

    pthread_mutex_unlock(&g->lock);
}


static int
llm_gpu_open(llm_gpu_t *g)
{
    void    *f;
    size_t   i;

    g->lib = dlopen("libnvidia-ml.so.1", RTLD_NOW|RTLD_LOCAL);

    if (g->lib == NULL) {
        llm_gpu_say(g, "there is no libnvidia-ml.so.1", "");
        return LLM_ERROR;
    }

    for (i = 0; i < llm_nelems(llm_nvml_names); i++) {
        f = dlsym(g->lib, llm_nvml_names[i].name);

        if (f == NULL && llm_nvml_names[i].needed) {
            llm_gpu_say(g, "libnvidia-ml.so.1 has no ",
                        llm_nvml_names[i].name);
            return LLM_ERROR;
        }

        memcpy((char *) &g->nvml + llm_nvml_names[i].offset, &f, sizeof(f));
    }

    if (g->nvml.init() != 0) {
        llm_gpu_say(g, "nvmlInit_v2() failed", "");
        return LLM_ERROR;
    }

    return LLM_OK;
}


/* copies a name; what a metric's label would have to escape becomes _ */

static void
llm_gpu_plain(char *to, size_t size, const char *from)
{
    size_t  i;

    for (i = 0; i + 1 < size && from[i]; i++) {
        to[i] = from[i] < ' ' || from[i] > '~' || from[i] == '"'
                || from[i] == '\\' ? '_' : from[i];
    }

    to[i] = '\0';
}


/* lists the GPUs in NVML's order; one that does not answer keeps its index,
   without metrics */

static void
llm_gpu_list(llm_gpu_t *g)
{
    char             text[96];
    unsigned         i, n;
    llm_zone_gpu_t  *z;

    n = 0;

    if (g->nvml.count(&n) != 0) {
        llm_gpu_say(g, "nvmlDeviceGetCount_v2() failed", "");
        return;
    }

    for (i = 0; i < n && i < LLM_ZONE_GPUS; i++) {
        g->n++;
        z = &g->zone->gpus[i];
        z->name[0] = '\0';
        z->uuid[0] = '\0';
        llm_zone_set(z->has, 0);

        if (g->nvml.handle(i, &g->handle[i]) != 0) {
            g->handle[i] = NULL;
            continue;
        }

        memset(text, 0, sizeof(text));
        (void) g->nvml.name(g->handle[i], text, sizeof(text) - 1);
        llm_gpu_plain(z->name, sizeof(z->name), text);

        memset(text, 0, sizeof(text));
        (void) g->nvml.uuid(g->handle[i], text, sizeof(text) - 1);
        llm_gpu_plain(z->uuid, sizeof(z->uuid), text);
    }
}


static void
llm_gpu_look(llm_gpu_t *g, uint32_t i)
{
    unsigned            n;
    uint32_t            has;
    llm_zone_gpu_t     *z;
    llm_nvml_busy_t     busy;
    llm_nvml_memory_t   memory;

    z = &g->zone->gpus[i];
    has = 0;

    if (g->nvml.busy && g->nvml.busy(g->handle[i], &busy) == 0) {
        llm_zone_set(z->busy, busy.gpu);
        llm_zone_set(z->memory_busy, busy.memory);
        has |= LLM_GPU_BUSY;
    }

    if (g->nvml.memory && g->nvml.memory(g->handle[i], &memory) == 0) {
        llm_zone_set(z->memory_used, memory.used);
        llm_zone_set(z->memory_total, memory.total);
        has |= LLM_GPU_MEMORY;
    }

    if (g->nvml.power && g->nvml.power(g->handle[i], &n) == 0) {
        llm_zone_set(z->power_mw, n);
        has |= LLM_GPU_POWER;
    }

    if (g->nvml.celsius && g->nvml.celsius(g->handle[i], 0, &n) == 0) {
        llm_zone_set(z->celsius, n);
        has |= LLM_GPU_CELSIUS;
    }

    atomic_store(&z->has, has);
}


/* sleeps until the next query; 0: the thread is to end */

static int
llm_gpu_sleep(llm_gpu_t *g)
{
    int              quit;
    struct timespec  t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += LLM_GPU_EACH;

    pthread_mutex_lock(&g->lock);

    if (!g->quit) {
        (void) pthread_cond_timedwait(&g->wake, &g->lock, &t);
    }

    quit = g->quit;
    pthread_mutex_unlock(&g->lock);

    return !quit;
}


static void *
llm_gpu_main(void *data)
{
    uint32_t    i;
    llm_gpu_t  *g = data;

    (void) pthread_setname_np(pthread_self(), "llm-gpu");

    if (llm_gpu_open(g) != LLM_OK) {
        return NULL;
    }

    llm_gpu_list(g);

    do {
        for (i = 0; i < g->n; i++) {
            if (g->handle[i]) {
                llm_gpu_look(g, i);
            }
        }

        atomic_store(&g->zone->n_gpus, g->n);
    } while (llm_gpu_sleep(g));

    atomic_store(&g->zone->n_gpus, 0);
    (void) g->nvml.shutdown();

    return NULL;
}


/* ---- start and stop ---- */

/* keeps this code mapped, even if nginx unloads the module */

static void
llm_gpu_stay(void)
{
    Dl_info  info;

    if (dladdr((void *) (uintptr_t) &llm_nvml_names, &info)
        && info.dli_fname)
    {
        (void) dlopen(info.dli_fname, RTLD_NOW|RTLD_NOLOAD|RTLD_NODELETE);
    }
}


llm_gpu_t *
llm_gpu_start(llm_engine_t *e)
{
    llm_gpu_t           *g;
    pthread_condattr_t   clock;

    g = calloc(1, sizeof(*g));
    if (g == NULL) {
        return NULL;
    }

    g->zone = e->zone;
    g->log = e->log;
    g->log_data = e->log_data;

    pthread_mutex_init(&g->lock, NULL);

    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&g->wake, &clock);
    pthread_condattr_destroy(&clock);

    if (llm_thread_start(&g->thread, llm_gpu_main, g) != 0) {
        free(g);
        return NULL;
    }

    return g;
}


void
llm_gpu_stop(llm_gpu_t *g)
{
    struct timespec  t;

    if (g == NULL) {
        return;
    }

    pthread_mutex_lock(&g->lock);
    g->quit = 1;
    pthread_cond_signal(&g->wake);
    pthread_mutex_unlock(&g->lock);

    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += LLM_GPU_GRACE;

    if (pthread_timedjoin_np(g->thread, NULL, &t) != 0) {
        llm_gpu_stay();
        return;
    }

    if (g->lib) {
        (void) dlclose(g->lib);
    }

    pthread_cond_destroy(&g->wake);
    pthread_mutex_destroy(&g->lock);
    free(g);
}
