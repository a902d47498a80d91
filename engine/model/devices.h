/*
 * The devices of a process that models share.  A device is opened with the
 * first model that is loaded onto it and closed with the last one: models on
 * the CPUs have one pool of threads, and the scratch memory of one step.
 *
 * It also keeps account of the machine's memory: what models were promised and
 * do not use yet (promise.c).
 *
 * The registry is its creator's to free, after the models.  Any thread may load
 * or free a model; a lock is in here.
 */

#ifndef LLM_MODEL_DEVICES_H
#define LLM_MODEL_DEVICES_H

#include "kernels/kernels.h"

typedef struct llm_devices_s  llm_devices_t;

/* NULL: there is no memory */
llm_devices_t *llm_devices_create(void);
void llm_devices_free(llm_devices_t *devices);

/*
 * Opens a model's part of the device of this table, opts->index and opts->isa,
 * which is opened if it is not there yet; opts->device is set by this.
 */
int llm_devices_open(llm_devices_t *devices, const llm_ops_t *ops,
    const llm_dev_opts_t *opts, llm_dev_t **dev, llm_err_t *err);
/* closes it, and the device if no other model is on it */
void llm_devices_close(llm_devices_t *devices, llm_dev_t *dev);

#endif /* LLM_MODEL_DEVICES_H */
