/*
 * The device that tests of the CUDA backend's kernels run on.
 */

#ifndef LLM_TEST_EMU_DEV_H
#define LLM_TEST_EMU_DEV_H

#include "engine/model/backend.h"
#include "t/unit/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* the emulator, or the device of LLM_GPU_DEVICE; NULL without */

static inline llm_exec_t *
open_tested(const llm_exec_opts_t *o)
{
    llm_exec_t  *d;
    llm_err_t    err;
    const char  *objs, *device;

    objs = getenv("LLM_OBJS");
    device = getenv("LLM_GPU_DEVICE");

    if (llm_backend_open(device ? device : "emu", objs ? objs : "objs", NULL,
                         o, &d, &err) != LLM_OK)
    {
        printf("# %s\n", err.msg);
        return NULL;
    }

    return d;
}


/* the emulator for a model of one kind of cache; NULL: there is none */

static inline llm_exec_t *
open_emulator(uint32_t tokens, uint32_t seqs, uint32_t pages,
    uint32_t weight_type)
{
    llm_exec_t       *d;
    llm_err_t         err;
    const char       *objs;
    llm_exec_opts_t   o;

    objs = getenv("LLM_OBJS");
    memset(&o, 0, sizeof(o));
    o.index = -1;
    o.max_tokens = tokens;
    o.max_seqs = seqs;
    o.max_pages = pages;
    o.max_out = seqs;
    o.weight_type = weight_type;
    o.n_kinds = 1;

    if (llm_backend_open("emu", objs ? objs : "objs", NULL, &o, &d, &err)
        != LLM_OK)
    {
        printf("# %s\n", err.msg);
        return NULL;
    }

    return d;
}


/* the end of a program that has no device, which is wrong if one was asked
   for */

static inline int
done_without_device(void)
{
    if (getenv("LLM_GPU_DEVICE")) {
        ok(0, "the device that was asked for");

    } else {
        skip("there is no llm_emu.so");
    }

    return done_testing();
}

#endif /* LLM_TEST_EMU_DEV_H */
