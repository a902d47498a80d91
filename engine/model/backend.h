/*
 * From a device's name to an open device: the CPU's operations are linked
 * in, CUDA's and the emulator's are shared objects that are looked for when
 * they are asked for, so that one engine runs with and without a GPU.
 *
 * A shared object stays loaded until the process ends; the device is the
 * caller's to close.
 */

#ifndef LLM_MODEL_BACKEND_H
#define LLM_MODEL_BACKEND_H

#include "kernels/kernels.h"

/*
 * device: "auto" (or NULL), "cpu", "cuda", "cuda:N", "emu", "reference".
 * auto takes the GPU if there is one, else the CPU, and logs which and why.
 * dir is where the shared objects lie; NULL: beside this code's own file.
 * index in opts is set from the name.  fp8 in opts is refused by the CPU.
 */
int llm_backend_open(const char *device, const char *dir,
    const llm_dev_opts_t *opts, llm_dev_t **dev, llm_err_t *err);

/* is the shared object of a CUDA device there?  If not err says how to get
   it; others are taken as they are */
int llm_backend_check(const char *device, const char *dir, llm_err_t *err);
/* is the model's memory the machine's, whatever GPU there may be? */
int llm_backend_is_cpu(const char *device, const char *dir);

#endif /* LLM_MODEL_BACKEND_H */
