/*
 * Devices by name; see backend.h.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE                     /* dladdr() */
#endif

#include "engine/base/file.h"
#include "engine/base/kind.h"
#include "engine/base/products.h"
#include "engine/model/backend.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LLM_NO_GPU        "no GPU of NVIDIA is seen on this machine (there " \
                          "is no /dev/nvidia0)"
#define LLM_BACKEND_GPUS  1024          /* counting stops here; numbers are
                                           below it */


static void
llm_backend_log(const llm_exec_opts_t *opts, int level, const char *fmt, ...)
    llm_printf_like(3, 4);
static int llm_backend_gpus(const char *root);


static void
llm_backend_log(const llm_exec_opts_t *opts, int level, const char *fmt, ...)
{
    char     msg[1024];
    va_list  args;

    if (opts->log == NULL) {
        return;
    }

    va_start(args, fmt);
    vsnprintf(msg, sizeof(msg), fmt, args);
    va_end(args);

    opts->log(opts->log_data, level, msg);
}


/* the folder of the file that this code was loaded from */

static int
llm_backend_own_dir(char *buf, size_t size)
{
    char    *p;
    ssize_t  n;
    Dl_info  info;

    if (dladdr((const void *) &llm_ops_reference, &info) == 0
        || info.dli_fname == NULL
        || strchr(info.dli_fname, '/') == NULL)
    {
        /* dladdr() gives only the name of a program that was found through
           PATH */
        n = readlink("/proc/self/exe", buf, size - 1);
        if (n <= 0) {
            return LLM_ERROR;
        }

        buf[n] = '\0';

    } else {
        if (strlen(info.dli_fname) >= size) {
            return LLM_ERROR;
        }

        strcpy(buf, info.dli_fname);
    }

    p = strrchr(buf, '/');
    if (p == NULL) {
        return LLM_ERROR;
    }

    *p = '\0';

    return LLM_OK;
}


int
llm_backend_folder(const char *dir, char *buf, size_t size)
{
    if (dir == NULL) {
        return llm_backend_own_dir(buf, size);
    }

    if (strlen(dir) >= size) {
        return LLM_ERROR;
    }

    strcpy(buf, dir);

    return LLM_OK;
}


/* makes the path of the backend dir/file; an error if there is no such file */

static int
llm_backend_find(const char *dir, const char *file, char *path, size_t size,
    llm_err_t *err)
{
    char  folder[PATH_MAX];

    if (llm_backend_folder(dir, folder, sizeof(folder)) != LLM_OK) {
        return llm_fail(err, "%s: its folder is not known", file);
    }

    if ((size_t) snprintf(path, size, "%s/%s", folder, file) >= size) {
        return llm_fail(err, "%s: the name of its folder is too long", file);
    }

    if (access(path, F_OK) != 0) {
        return llm_fail(err, "there is no %s", path);
    }

    return LLM_OK;
}


/* makes the error for a shared object that could not be loaded, with advice;
   why: what dlerror() says, which is of use if the file is an object for this
   machine */

static int
llm_backend_why(const char *path, const char *why, llm_err_t *err)
{
    int          fd;
    char         head[64];
    ssize_t      n;
    llm_file_kind_t   kind;
    struct stat  st;

    fd = llm_file_open(path, err);
    if (fd == -1) {
        return LLM_ERROR;
    }

    n = read(fd, head, sizeof(head));

    if (n == -1 || fstat(fd, &st) == -1) {
        (void) llm_fail(err, "%s: %s", path, strerror(errno));
        (void) close(fd);
        return LLM_ERROR;
    }

    (void) close(fd);

    if (llm_file_kind_object(head, (size_t) n, (uint64_t) st.st_size, &kind)
        == LLM_OK)
    {
        return llm_fail(err, "%s: this is %s: %s", path, kind.what,
                        kind.advice);
    }

    if (strstr(why, "GLIBC")) {
        return llm_fail(err, "%.300s: it was built on a newer system: build "
                        "it on this one: ./build.sh build", why);
    }

    return llm_fail(err, "%s%.300s", strstr(why, path) ? "" : path, why);
}


/* opens a device of the registry `devices`; NULL: a device of its own */

static int
llm_backend_on(llm_devices_t *devices, const llm_ops_t *ops,
    const llm_exec_opts_t *opts, llm_exec_t **exec, llm_err_t *err)
{
    return devices ? llm_devices_open(devices, ops, opts, exec, err)
                   : ops->open(exec, opts, err);
}


/* an error if the cache is to be as only CPUs have it */

static int
llm_backend_no_q8(const llm_exec_opts_t *opts, llm_err_t *err)
{
    if (!opts->kv_q8) {
        return LLM_OK;
    }

    return llm_fail(err, "kv=q8_0 is for CPUs; a GPU has kv=fp8");
}


/* opens a device of the backend in dir/file */

static int
llm_backend_load(llm_devices_t *devices, const char *dir, const char *file,
    const llm_exec_opts_t *opts, llm_exec_t **exec, llm_err_t *err)
{
    void             *lib;
    char              path[PATH_MAX + 64];
    const char       *why, *lacks;
    llm_backend_pt    backend;
    const llm_ops_t  *ops;

    if (llm_backend_no_q8(opts, err) != LLM_OK
        || llm_backend_find(dir, file, path, sizeof(path), err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (lib == NULL) {
        why = dlerror();
        return llm_backend_why(path, why ? why : "", err);
    }

    /* POSIX allows a function's address in an object pointer */
    *(void **) &backend = dlsym(lib, LLM_BACKEND_SYMBOL);
    ops = backend ? backend(LLM_INTERFACE, sizeof(llm_ops_t)) : NULL;

    if (ops == NULL) {
        (void) dlclose(lib);
        return llm_fail(err, "%s is not of the same build as this program: "
                        "build both again", path);
    }

    lacks = llm_ops_lacks(ops);

    if (lacks) {
        (void) dlclose(lib);
        return llm_fail(err, "%s: its table has no operation %s, which its "
                        "capabilities require", path, lacks);
    }

    return llm_backend_on(devices, ops, opts, exec, err);
}


/* an error if fp8 is configured; not_cuda: why no GPU is used, or NULL */

static int
llm_backend_no_fp8(const llm_exec_opts_t *opts, const char *not_cuda,
    llm_err_t *err)
{
    int  products;

    products = llm_products_is(opts->products, LLM_PRODUCTS_FP8);

    if (!opts->weights_fp8 && !opts->kv_fp8 && !products) {
        return LLM_OK;
    }

    return llm_fail(err, "%s=fp8: the CPU has no fp8, a GPU of compute "
                    "capability 8.9 or later is needed%s%s",
                    products ? "products"
                    : opts->weights_fp8 ? "weights" : "kv",
                    not_cuda ? "; " : "", not_cuda ? not_cuda : "");
}


static int
llm_backend_cpu(llm_devices_t *devices, const llm_exec_opts_t *opts,
    const char *not_cuda, llm_exec_t **exec, llm_err_t *err)
{
    if (llm_backend_no_fp8(opts, not_cuda, err) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_backend_on(devices, &llm_ops_cpu, opts, exec, err);
}


/* to load the backend for GPUs, and its libraries, takes longer than to load a
   small model: it is not done where none is seen */

static int
llm_backend_auto(llm_devices_t *devices, const char *dir,
    const llm_exec_opts_t *opts, llm_exec_t **exec, llm_err_t *err)
{
    char       name[256];
    llm_err_t  why;

    if (llm_backend_gpus("") == 0) {
        (void) llm_fail(&why, LLM_NO_GPU);

    } else if (llm_backend_load(devices, dir, "llm_cuda.so", opts, exec, &why)
               == LLM_OK)
    {
        (*exec)->ops->describe(*exec, name, sizeof(name));
        llm_backend_log(opts, LLM_LOG_NOTICE, "device auto: CUDA: %s", name);
        return LLM_OK;
    }

    if (llm_backend_cpu(devices, opts, why.msg, exec, err) != LLM_OK) {
        return LLM_ERROR;
    }

    (*exec)->ops->describe(*exec, name, sizeof(name));
    llm_backend_log(opts, LLM_LOG_NOTICE, "device auto: CPU: %s; not CUDA: "
                    "%s", name, why.msg);

    return LLM_OK;
}


/* the number of a device at *p, which is moved to what follows; -1: there is
   none */

static int
llm_backend_number(const char **p)
{
    char  *end;
    long   n;

    if (**p < '0' || **p > '9') {
        return -1;
    }

    n = strtol(*p, &end, 10);
    *p = end;

    return n < LLM_BACKEND_GPUS ? (int) n : -1;
}


/* devices that have numbers */
static const char  *const llm_backend_numbered[] = { "cuda", "emu" };


/* the length of the name of a device that has numbers, before its colon; 0: the
   name is another one */

static size_t
llm_backend_kind(const char *device)
{
    size_t  i, len;

    for (i = 0; i < llm_nelems(llm_backend_numbered); i++) {
        len = strlen(llm_backend_numbered[i]);

        if (strncmp(device, llm_backend_numbered[i], len) == 0
            && (device[len] == '\0' || device[len] == ':'))
        {
            return len;
        }
    }

    return 0;
}


int
llm_backend_list(const char *device, llm_backend_list_t *list, llm_err_t *err)
{
    int          n, had[LLM_MAX_DEVICES];
    size_t       i, len;
    uint32_t     k;
    const char  *p;

    static const char  *const others[] = { "auto", "cpu", "reference" };

    device = device ? device : "auto";
    len = llm_backend_kind(device);
    list->n = 1;

    for (i = 0; i < llm_nelems(others); i++) {
        if (strcmp(device, others[i]) == 0) {
            strcpy(list->name[0], device);
            return LLM_OK;
        }
    }

    if (len == 0) {
        return llm_fail(err, "device \"%s\" is unknown (auto, cpu, cuda, "
                        "cuda:N, cuda:N,N, emu, emu:N and reference are "
                        "known)", device);
    }

    if (device[len] == '\0') {
        strcpy(list->name[0], device);
        return LLM_OK;
    }

    p = device + len;
    list->n = 0;

    do {
        p++;
        n = llm_backend_number(&p);

        if (n < 0 || (*p != '\0' && *p != ',')) {
            return llm_fail(err, "device \"%s\" is unknown: \"%.*s:\" is "
                            "followed by numbers of devices, with commas "
                            "between them", device, (int) len, device);
        }

        if (list->n == LLM_MAX_DEVICES) {
            return llm_fail(err, "device \"%s\": a model has at most %d "
                            "devices", device, LLM_MAX_DEVICES);
        }

        for (k = 0; k < list->n; k++) {
            if (had[k] == n) {
                return llm_fail(err, "device \"%s\": %d is listed twice",
                                device, n);
            }
        }

        had[list->n] = n;
        snprintf(list->name[list->n++], LLM_BACKEND_NAME, "%.*s:%d",
                 (int) len, device, n);
    } while (*p == ',');

    return LLM_OK;
}


/* the number in the name of one device; -1: it has none */

static int
llm_backend_index(const char *name)
{
    const char  *colon;

    colon = strchr(name, ':');

    return colon ? (int) strtol(colon + 1, NULL, 10) : -1;
}


static int
llm_backend_is_cuda(const char *device)
{
    return strncmp(device, "cuda", 4) == 0;
}


int
llm_backend_check(const char *device, const char *dir, llm_err_t *err)
{
    char       path[PATH_MAX + 64];
    llm_err_t  why;

    if (!llm_backend_is_cuda(device)
        || llm_backend_find(dir, "llm_cuda.so", path, sizeof(path), &why)
           == LLM_OK)
    {
        return LLM_OK;
    }

    return llm_fail(err, "%.300s; \"./build.sh build\" makes it where it "
                    "finds nvcc and cuBLAS, \"./build.sh install\" puts it "
                    "beside the module", why.msg);
}


/* number of entries of the folder whose names are the prefix, a digit and
   more */

static int
llm_backend_entries(const char *root, const char *folder, const char *prefix)
{
    int             n;
    DIR            *dir;
    char            path[PATH_MAX];
    size_t          len;
    struct dirent  *e;

    (void) snprintf(path, sizeof(path), "%s%s", root, folder);

    dir = opendir(path);
    if (dir == NULL) {
        return 0;
    }

    n = 0;
    len = strlen(prefix);

    while (n < LLM_BACKEND_GPUS && (e = readdir(dir)) != NULL) {
        n += strncmp(e->d_name, prefix, len) == 0
             && e->d_name[len] >= '0' && e->d_name[len] <= '9';
    }

    (void) closedir(dir);

    return n;
}


/* number of GPUs that the kernel's files show, without asking the driver; -1:
   there is a driver, but its files do not show how many */

static int
llm_backend_gpus(const char *root)
{
    int     n;
    char    path[PATH_MAX];
    size_t  i;

    /* of WSL; of the driver, before a GPU has its own file; of Jetson */
    static const char  *const files[] = {
        "/dev/dxg", "/dev/nvidiactl", "/dev/nvhost-gpu", "/dev/nvgpu"
    };

    n = llm_backend_entries(root, "/proc/driver/nvidia/gpus", "");
    n = n ? n : llm_backend_entries(root, "/dev", "nvidia");

    for (i = 0; n == 0 && i < llm_nelems(files); i++) {
        (void) snprintf(path, sizeof(path), "%s%s", root, files[i]);
        n = access(path, F_OK) == 0 ? -1 : 0;
    }

    return n;
}


int
llm_backend_is_cpu(const char *device, const char *dir)
{
    char       path[PATH_MAX + 64];
    llm_err_t  why;

    if (llm_backend_is_cuda(device)) {
        return 0;
    }

    return strcmp(device, "auto") != 0 || llm_backend_gpus("") == 0
           || llm_backend_find(dir, "llm_cuda.so", path, sizeof(path), &why)
              != LLM_OK;
}


int
llm_backend_gpu_check(const char *device, const char *root, llm_err_t *err)
{
    int                 n, index;
    uint32_t            i;
    llm_err_t           why;
    llm_backend_list_t  list;

    if (!llm_backend_is_cuda(device)
        || llm_backend_list(device, &list, &why) != LLM_OK)
    {
        return LLM_OK;
    }

    n = llm_backend_gpus(root);

    for (i = 0, index = -1; i < list.n; i++) {
        index = llm_max(index, llm_backend_index(list.name[i]));
    }

    if (n == 0) {
        return llm_fail(err, "device=%s: " LLM_NO_GPU ": is its driver "
                        "loaded?  device=auto takes the CPU where there is "
                        "no GPU", device);
    }

    if (n > 0 && index >= n) {
        return llm_fail(err, "device=%s: this machine has %d GPU%s, whose "
                        "numbers begin with 0", device, n, n > 1 ? "s" : "");
    }

    return LLM_OK;
}


int
llm_backend_open(const char *device, const char *dir, llm_devices_t *devices,
    const llm_exec_opts_t *opts, llm_exec_t **exec, llm_err_t *err)
{
    llm_exec_opts_t     o;
    llm_backend_list_t  list;

    if (llm_backend_list(device, &list, err) != LLM_OK) {
        return LLM_ERROR;
    }

    device = list.name[0];
    o = *opts;
    o.index = llm_backend_index(device);

    if (strcmp(device, "auto") == 0) {
        return llm_backend_auto(devices, dir, &o, exec, err);
    }

    if (strcmp(device, "cpu") == 0) {
        return llm_backend_cpu(devices, &o, NULL, exec, err);
    }

    if (strcmp(device, "reference") == 0) {
        o.isa = "reference";
        return llm_backend_cpu(devices, &o, NULL, exec, err);
    }

    if (!llm_backend_is_cuda(device)) {
        return llm_backend_load(devices, dir, "llm_emu.so", &o, exec, err);
    }

    if (llm_backend_check(device, dir, err) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_backend_load(devices, dir, "llm_cuda.so", &o, exec, err);
}
