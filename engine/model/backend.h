/*
 * Opens a device by its name: the CPU's operations are linked in, CUDA's and
 * the emulator's are shared objects that are loaded when needed, so that one
 * engine runs with and without a GPU.
 *
 * A shared object stays loaded until the process ends.  What is opened is the
 * caller's to close, by llm_devices_close() if it is on a device that models
 * share.
 */

#ifndef LLM_MODEL_BACKEND_H
#define LLM_MODEL_BACKEND_H

#include "engine/model/devices.h"

/*
 * device: "auto" (or NULL), "cpu", "cuda", "cuda:N", "emu", "reference".
 * auto takes the GPU if there is one, else the CPU, and logs which and why.
 * dir is the folder of the shared objects; NULL: that of this code's own
 * file.  devices: those that it may share; NULL: it gets one of its own.
 * index in opts is set from the name.  The CPU refuses fp8 in opts.
 */
int llm_backend_open(const char *device, const char *dir,
    llm_devices_t *devices, const llm_dev_opts_t *opts, llm_dev_t **dev,
    llm_err_t *err);

/* the folder of the shared objects, dir or this code's own, in buf */
int llm_backend_folder(const char *dir, char *buf, size_t size);
/* is the shared object of a CUDA device there?  If not, err says how to get
   it; other devices are not checked */
int llm_backend_check(const char *device, const char *dir, llm_err_t *err);
/* does a model on this device use the machine's own memory, whatever GPU there
   may be? */
int llm_backend_is_cpu(const char *device, const char *dir);

/* an error if the device is a CUDA device that this machine does not have, as
   far as the kernel shows it: the driver is not asked.  root goes before the
   kernel's paths: "" */
int llm_backend_gpu_check(const char *device, const char *root,
    llm_err_t *err);

#endif /* LLM_MODEL_BACKEND_H */
