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

#define LLM_BACKEND_NAME     16         /* room for a device's name */

/* the devices that a name stands for: "cuda:0,1" is "cuda:0" and "cuda:1" */
typedef struct {
    uint32_t     n;
    char         name[LLM_MAX_DEVICES][LLM_BACKEND_NAME];
} llm_backend_list_t;

/* an error if the name is not of a known form, or lists a device twice; whether
   there are such devices is not checked.  device NULL: "auto" */
int llm_backend_list(const char *device, llm_backend_list_t *list,
    llm_err_t *err);

/*
 * device: "auto" (or NULL), "cpu", "cuda", "cuda:N", "emu", "emu:N",
 * "reference"; of a list the first.  auto takes the GPU if there is one, else
 * the CPU, and logs which and why; it loads nothing if the kernel's files show
 * no GPU.  dir: folder of the shared objects; NULL:
 * the folder of the file with this code.  devices: the registry of devices that
 * models share; NULL: the model gets a device of its own.  opts->index is not
 * read, but taken from the name.  The CPU refuses fp8 in opts.
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
