/*
 * Opens a device by its name: the CPU's operations are linked in, CUDA's and
 * the emulator's are shared objects that are loaded when needed, so that one
 * engine runs with and without a GPU.
 *
 * A shared object stays loaded until the process ends.  The caller closes what
 * was opened, by llm_devices_close() if it is on a device that models share.
 */

#ifndef LLM_MODEL_BACKEND_H
#define LLM_MODEL_BACKEND_H

#include "engine/model/devices.h"

/*
 * device: "auto" (or NULL), "cpu", "cuda", "cuda:N", "emu", "reference".
 * auto takes the GPU if there is one, else the CPU, and logs which and why.
 * dir: folder of the shared objects; NULL: the folder of the file with this
 * code.  devices: the registry of devices that models share; NULL: the model
 * gets a device of its own.  opts->index is not read, but taken from the name.
 * The CPU refuses fp8 in opts.
 */
int llm_backend_open(const char *device, const char *dir,
    llm_devices_t *devices, const llm_exec_opts_t *opts, llm_exec_t **exec,
    llm_err_t *err);

/* writes the folder of the shared objects, see dir above, into buf; LLM_ERROR
   without a message if it is not known or too long */
int llm_backend_folder(const char *dir, char *buf, size_t size);
/* an error, which says how to get it, if the shared object of a CUDA device is
   missing; other devices are not checked */
int llm_backend_check(const char *device, const char *dir, llm_err_t *err);
/* whether a model on this device surely uses the machine's own memory, even if
   there is a GPU */
int llm_backend_is_cpu(const char *device, const char *dir);

/* an error if the device is a CUDA device that this machine does not have, as
   far as the kernel's files show: the driver is not asked.  root: prefix of
   their paths, "" but in tests */
int llm_backend_gpu_check(const char *device, const char *root,
    llm_err_t *err);

#endif /* LLM_MODEL_BACKEND_H */
