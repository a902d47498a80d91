/*
 * What the tests of tiny towers share: the devices and their bounds, a file that
 * is written anew for each tower, its load, and its rows.
 */

#ifndef TOWER_RIG_H
#define TOWER_RIG_H

#include "engine/model/tower.h"
#include "t/unit/model_run.h"
#include "t/unit/tap.h"
#include "t/unit/tower_build.h"

#include <unistd.h>

static const struct {
    const char  *device;
    const char  *isa;
    double       bound;
} devices[] = {
    { "reference", NULL, 1e-5 },
    { "cpu", "avx2", 0.002 },
    { "cpu", "avx512", 0.002 },
    { "cpu", "amx", 0.002 },
    { "emu", NULL, 0.005 }
};

static char         path[] = "/tmp/llm-tower-XXXXXX";
static const char  *products;           /* of towers that are loaded */


/* LLM_GPU_DEVICE: a GPU in the emulator's place */

static inline const char *
device_of(size_t k)
{
    const char  *gpu = getenv("LLM_GPU_DEVICE");

    return gpu && strcmp(devices[k].device, "emu") == 0 ? gpu
                                                        : devices[k].device;
}


static inline int
make_path(void)
{
    int  fd = mkstemp(path);

    if (fd >= 0) {
        close(fd);
    }

    return ok(fd >= 0, "a temporary file");
}


static inline int
write_tower(const tower_tiny_t *tiny, const tower_change_t *c)
{
    int         rc;
    FILE       *out;
    llm_buf_t   b;

    tower_make(tiny, c, &b);
    out = fopen(path, "wb");
    rc = out && fwrite(b.data, 1, b.len, out) == b.len;

    if (out) {
        fclose(out);
    }

    llm_buf_free(&b);

    return rc;
}


static inline llm_tower_t *
load_part(const char *device, const char *isa, uint32_t batch, int listens,
    llm_err_t *err)
{
    llm_model_opts_t  o;
    llm_tower_opts_t  to = { .model = &o, .batch = batch,
                             .max_patches = 400, .sound = listens };

    memset(&o, 0, sizeof(o));
    o.device = device;
    o.isa = isa;
    o.threads = 2;
    o.products = products;
    o.backend_dir = getenv("LLM_OBJS") ? getenv("LLM_OBJS") : "objs";

    return llm_tower_load(path, NULL, &to, err);
}


static inline llm_tower_t *
load(const char *device, const char *isa, uint32_t batch, llm_err_t *err)
{
    return load_part(device, isa, batch, 0, err);
}


static inline int
encode(llm_tower_t *t, const llm_tower_entry_t *e, uint32_t n, float *out)
{
    int               rc;
    llm_err_t         err;
    llm_tower_job_t  *job;

    job = llm_tower_begin(t, e, n, out, &err);

    if (job == NULL) {
        printf("# %s\n", err.msg);
        return 0;
    }

    do {
        rc = llm_tower_step(job, &err);
    } while (rc == LLM_MORE);

    if (rc != LLM_OK) {
        printf("# %s\n", err.msg);
    }

    llm_tower_end(job);

    return rc == LLM_OK;
}


static inline void
check_rows(const tower_tiny_t *tiny, const float *got, double bound,
    const char *what)
{
    float   max;
    double  sum;
    size_t  i;

    for (i = 0, sum = 0, max = 0; i < tiny->n_rows; i++) {
        sum += pow(got[i] - tiny->rows[i], 2);
        max = fmaxf(max, fabsf(tiny->rows[i]));
    }

    sum = sqrt(sum / (double) tiny->n_rows);
    ok(sum <= bound * max, "%s, %s: the rows, %g of %g", tiny->name, what,
       sum, max);
}


static inline const tower_tiny_t *
find_tiny(const char *name)
{
    size_t  i;

    for (i = 0; strcmp(tower_tiny[i].name, name) != 0; i++) {
        /* void */
    }

    return &tower_tiny[i];
}


static inline const tower_tiny_t *
find_ear(const char *name)
{
    size_t  i;

    for (i = 0; strcmp(tower_ears[i].name, name) != 0; i++) {
        /* void */
    }

    return &tower_ears[i];
}


/* a file of an encoder of sound is not loaded; its error says why */

static inline void
unheard_file(const tower_tiny_t *tiny, const tower_change_t *c)
{
    llm_err_t     err;
    llm_tower_t  *t;

    if (!ok(write_tower(tiny, c), "a file")) {
        return;
    }

    err.msg[0] = '\0';
    t = load_part("reference", NULL, 0, 1, &err);

    if (!ok(t == NULL && strstr(err.msg, c->error), "%s: refused: %s",
            tiny->name, c->error))
    {
        printf("# %s\n", err.msg);
    }

    llm_tower_free(t);
}

#endif
