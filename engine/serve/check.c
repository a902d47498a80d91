/*
 * Checks of a configuration against the machine, before an engine runs.  They
 * do not touch a GPU, so that nginx's master may call them.
 */

#include "engine/llm.h"
#include "engine/model/backend.h"
#include "kernels/cpu/machine.h"


int
llm_device_check(const char *device, llm_err_t *err)
{
    return llm_backend_check(device, NULL, err);
}


int
llm_kv_cache_check(const char *device, size_t kv_cache, llm_err_t *err)
{
    size_t  memory;

    memory = llm_machine_memory("");

    if (kv_cache <= memory || !llm_backend_is_cpu(device, NULL)) {
        return LLM_OK;
    }

    return llm_fail(err, "kv_cache is %zu MiB, and this machine has %zu MiB "
                    "of memory", kv_cache >> 20, memory >> 20);
}
