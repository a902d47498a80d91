/*
 * The device that tests of the CUDA backend's kernels run on.
 */

#ifndef LLM_TEST_EMU_DEV_H
#define LLM_TEST_EMU_DEV_H

#include "engine/model/backend.h"
#include "t/unit/tap.h"

#include <stdio.h>
#include <stdlib.h>


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
