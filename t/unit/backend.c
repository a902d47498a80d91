/*
 * Backends of another build are refused: their tables are lists of functions
 * in an order that changes.
 */

#include "t/unit/tap.h"
#include "engine/model/backend.h"

#include <dlfcn.h>
#include <unistd.h>

static char  dir[] = "/tmp/llm-backend-XXXXXX";


/* a shared object with this source as dir/llm_emu.so; 0: there is no
   compiler */

static int
build(const char *source)
{
    char         path[256], command[1024];
    FILE        *f;
    const char  *cc;

    snprintf(path, sizeof(path), "%s/backend.c", dir);
    f = fopen(path, "w");

    if (f == NULL) {
        return 0;
    }

    fputs(source, f);
    fclose(f);

    cc = getenv("CC");
    snprintf(command, sizeof(command), "%s -shared -fPIC -o %s/llm_emu.so %s",
             cc ? cc : "cc", dir, path);

    return system(command) == 0;
}


static void
test_refused(const char *source, const char *why, const char *what)
{
    llm_exec_t      *d;
    llm_err_t        err;
    llm_exec_opts_t  o;

    if (!build(source)) {
        skip("there is no C compiler");
        return;
    }

    memset(&o, 0, sizeof(o));
    err.msg[0] = '\0';

    ok(llm_backend_open("emu", dir, NULL, &o, &d, &err) == LLM_ERROR
       && strstr(err.msg, why), "%s: %s", what, err.msg);
}


/* what a table lacks though it can do what needs it, by the rows of ops.def */

static void
test_whole(void)
{
    size_t     n;
    llm_ops_t  ops;

    ok(llm_ops_lacks(&llm_ops_cpu) == NULL, "the CPU's table is whole");
    ok(llm_ops_lacks(&llm_ops_reference) == NULL, "so is the reference's");

    n = 0;

#define LLM_OP(group, needs, result, name, parameters)                       \
    ops = llm_ops_cpu;                                                       \
    ops.name = NULL;                                                         \
    n++;                                                                     \
    ok(LLM_CAN_##needs == LLM_CAN_OPTION                                     \
       ? llm_ops_lacks(&ops) == NULL                                         \
       : llm_ops_lacks(&ops)                                                 \
         && strcmp(llm_ops_lacks(&ops), #name " (" #group ")") == 0,         \
       "%s is missed", #name);                                               \
    ops.can &= ~(uint32_t) LLM_CAN_##needs;                                  \
    ok((LLM_CAN_##needs == LLM_CAN_ALWAYS) == (llm_ops_lacks(&ops) != NULL)  \
       || LLM_CAN_##needs == LLM_CAN_OPTION, "unless %s", #needs);
#include "kernels/ops.def"

    ok(n > 50, "%zu operations", n);
    ok(sizeof(llm_ops_t) == sizeof(void *) * (n + 2), "the table has them");
}


static void
test_table(void)
{
    void            *lib;
    char             path[1024];
    const char      *objs;
    llm_backend_pt   table;
    const llm_ops_t  *ops;

    objs = getenv("LLM_OBJS");
    snprintf(path, sizeof(path), "%s/llm_emu.so", objs ? objs : "objs");

    if (access(path, F_OK) != 0) {
        skip("there is no llm_emu.so");
        return;
    }

    lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    *(void **) &table = lib ? dlsym(lib, LLM_BACKEND_SYMBOL) : NULL;

    if (!ok(table != NULL, "the emulator shows its table")) {
        return;
    }

    ops = table(LLM_INTERFACE, sizeof(llm_ops_t));

    ok(ops != NULL, "to a program of the same build");
    ok(ops && llm_ops_lacks(ops) == NULL, "and it is whole");
    ok(table(LLM_INTERFACE + 1, sizeof(llm_ops_t)) == NULL,
       "but not to one with other headers");
    ok(table(LLM_INTERFACE, sizeof(llm_ops_t) + sizeof(void *)) == NULL,
       "nor to one whose table is longer");

    dlclose(lib);
}


/* files in the place of a backend that are none for this machine */

static void
test_other_objects(void)
{
    FILE             *f;
    char              path[256];
    size_t            i;
    llm_exec_t       *d;
    llm_err_t         err;
    llm_exec_opts_t   o;

    static const struct {
        const char  *bytes;
        size_t       len;
        const char  *what;
    } files[] = {
        { "", 0, "this is an empty file" },
        { "<!DOCTYPE html>", 15, "this is an HTML page" },
        { "version https://git-lfs.github.com/spec/v1\nsize 5\n", 50,
          "this is a Git LFS pointer" },
        { "\xcf\xfa\xed\xfe\x0c\0\0\1\0\0\0\0\6\0\0\0", 16, "of macOS" },
        { "MZ\x90\0\3\0\0\0\4\0\0\0", 12, "of Windows" },
        { "\x7f" "ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0\x16\0\1\0\0\0", 24,
          "a library for s390x, and this machine is" },
    };

    snprintf(path, sizeof(path), "%s/llm_emu.so", dir);

    for (i = 0; i < llm_nelems(files); i++) {
        f = fopen(path, "w");

        if (!ok(f != NULL, "%s: written", files[i].what)) {
            continue;
        }

        fwrite(files[i].bytes, 1, files[i].len, f);
        fclose(f);

        memset(&o, 0, sizeof(o));
        err.msg[0] = '\0';

        ok(llm_backend_open("emu", dir, NULL, &o, &d, &err) == LLM_ERROR
           && strstr(err.msg, path) && strstr(err.msg, files[i].what)
           && strstr(err.msg, "./build.sh build"), "%s: %s", files[i].what,
           err.msg);
    }
}


/* a GPU is seen by what the kernel shows below the root */

static void
test_gpus(void)
{
    size_t     i;
    char       command[1024];
    llm_err_t  err;

    static const struct {
        const char  *make;              /* below the root */
        const char  *device;
        const char  *why;               /* NULL: it is there */
    } cases[] = {
        { "dev", "cuda", "no GPU of NVIDIA is seen" },
        { "dev", "cuda:1", "no GPU of NVIDIA is seen" },
        { "dev", "cpu", NULL },
        { "dev", "auto", NULL },
        { "dev", "emu", NULL },
        { "dev/nvidiaX", "cuda", "no GPU of NVIDIA is seen" },
        { "dev/nvidia0", "cuda", NULL },
        { "dev/nvidia0", "cuda:0", NULL },
        { "dev/nvidia0", "cuda:1", "this machine has 1 GPU, whose" },
        { "dev/nvidia0 dev/nvidia1", "cuda:1", NULL },
        { "dev/nvidia0 dev/nvidia1", "cuda:2", "this machine has 2 GPUs" },
        { "dev/nvidia0 dev/nvidia1", "cuda:0,1", NULL },
        { "dev/nvidia0 dev/nvidia1", "cuda:3,1", "this machine has 2 GPUs" },
        { "dev/nvidia0 dev/nvidia1", "emu:3,1", NULL },
        { "proc/driver/nvidia/gpus/0000:01:00.0", "cuda", NULL },
        { "proc/driver/nvidia/gpus/0000:01:00.0", "cuda:1", "has 1 GPU" },
        { "dev/nvidiactl", "cuda:3", NULL },
        { "dev/dxg", "cuda", NULL },
        { "dev/nvhost-gpu", "cuda", NULL }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        snprintf(command, sizeof(command), "cd %s && rm -rf root && "
                 "mkdir -p root && cd root && mkdir -p %s", dir,
                 cases[i].make);

        if (!ok(system(command) == 0, "%s", cases[i].make)) {
            continue;
        }

        snprintf(command, sizeof(command), "%s/root", dir);
        err.msg[0] = '\0';

        ok(llm_backend_gpu_check(cases[i].device, command, &err)
           == (cases[i].why ? LLM_ERROR : LLM_OK)
           && (cases[i].why == NULL || strstr(err.msg, cases[i].why)),
           "%s: %s", cases[i].device, cases[i].why ? err.msg : "there");
    }

    snprintf(command, sizeof(command), "rm -rf %s/root", dir);
    ok(system(command) == 0, "removed");
}


int
main(void)
{
    char    path[256];
    size_t  i;

    static const char         other[] = "is not of the same build";
    static const char  *const left[] = { "backend.c", "llm_emu.so" };

    if (mkdtemp(dir) == NULL) {
        printf("Bail out! no folder for files\n");
        return 1;
    }

    test_whole();
    test_table();
    test_refused("const void *llm_backend(void) { return 0; }\n", other,
                 "a backend from before tables had a number");
    test_refused("const void *llm_backend_table(unsigned i, "
                 "unsigned long n)\n"
                 "{ (void) i; (void) n; return 0; }\n", other,
                 "one with other headers");
    test_refused("const void *llm_backend_table(unsigned i, "
                 "unsigned long n)\n"
                 "{ static char table[4096]; (void) i; (void) n; "
                 "return table; }\n", "has no operation device_open (life)",
                 "one that lacks operations");
    test_other_objects();
    test_gpus();

    for (i = 0; i < llm_nelems(left); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, left[i]);
        (void) unlink(path);
    }

    (void) rmdir(dir);

    return done_testing();
}
