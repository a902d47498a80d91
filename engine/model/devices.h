/*
 * A registry of the devices that the models of a process share.  A device is
 * opened with its first model and closed with its last one: all models on the
 * CPUs have one pool of threads, and the scratch memory of one step.
 *
 * The registry also has the list of models that were promised memory of the
 * machine and do not use all of it yet (promise.c).
 *
 * The creator frees the registry, after the models.  Models may be loaded and
 * freed by any thread: the registry has a lock.
 */

#ifndef LLM_MODEL_DEVICES_H
#define LLM_MODEL_DEVICES_H

#include "kernels/kernels.h"

typedef struct llm_devices_s  llm_devices_t;

/* NULL: no memory */
llm_devices_t *llm_devices_create(void);
void llm_devices_free(llm_devices_t *devices);

/*
 * Opens a model's part of the device with these ops, opts->index and opts->isa;
 * the device itself is opened if it is not open yet.  opts->device is not read.
 */
int llm_devices_open(llm_devices_t *devices, const llm_ops_t *ops,
    const llm_exec_opts_t *opts, llm_exec_t **exec, llm_err_t *err);
/* closes a model's part, and the device if no other model is on it */
void llm_devices_close(llm_devices_t *devices, llm_exec_t *exec);

#endif /* LLM_MODEL_DEVICES_H */
