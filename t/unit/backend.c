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
test_refused(const char *source, const char *what)
{
    llm_dev_t       *d;
    llm_err_t        err;
    llm_dev_opts_t   o;

    if (!build(source)) {
        skip("there is no C compiler");
        return;
    }

    memset(&o, 0, sizeof(o));
    err.msg[0] = '\0';

    ok(llm_backend_open("emu", dir, &o, &d, &err) == LLM_ERROR
       && strstr(err.msg, "is not of the same build"), "%s: %s", what,
       err.msg);
}


static void
test_table(void)
{
    void            *lib;
    char             path[1024];
    const char      *objs;
    llm_backend_pt   table;

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

    ok(table(LLM_INTERFACE, sizeof(llm_ops_t)) != NULL,
       "to a program of the same build");
    ok(table(LLM_INTERFACE + 1, sizeof(llm_ops_t)) == NULL,
       "but not to one with other headers");
    ok(table(LLM_INTERFACE, sizeof(llm_ops_t) + sizeof(void *)) == NULL,
       "nor to one whose table is longer");

    dlclose(lib);
}


int
main(void)
{
    char    path[256];
    size_t  i;

    static const char  *const left[] = { "backend.c", "llm_emu.so" };

    if (mkdtemp(dir) == NULL) {
        printf("Bail out! no folder for files\n");
        return 1;
    }

    test_table();
    test_refused("const void *llm_backend(void) { return 0; }\n",
                 "a backend from before tables had a number");
    test_refused("const void *llm_backend_table(unsigned i, "
                 "unsigned long n)\n"
                 "{ (void) i; (void) n; return 0; }\n",
                 "one with other headers");

    for (i = 0; i < llm_nelems(left); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, left[i]);
        (void) unlink(path);
    }

    (void) rmdir(dir);

    return done_testing();
}
