/*
 * What the emulator has counted: see llm_emu_count() in t/gpu/emu/emu.h.
 */

#ifndef LLM_TEST_EMU_COUNT_H
#define LLM_TEST_EMU_COUNT_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>


/* llm_emu.so is loaded, as a device of it is or was open */

static inline unsigned long
emu_count(const char *name)
{
    char            path[1024];
    void           *lib;
    const char     *objs;
    unsigned long  (*count)(const char *name);

    objs = getenv("LLM_OBJS");
    snprintf(path, sizeof(path), "%s/llm_emu.so", objs ? objs : "objs");

    lib = dlopen(path, RTLD_NOW|RTLD_NOLOAD);
    *(void **) &count = lib ? dlsym(lib, "llm_emu_count") : NULL;

    if (count == NULL) {
        printf("Bail out! %s does not count\n", path);
        exit(1);
    }

    return count(name);
}

#endif /* LLM_TEST_EMU_COUNT_H */
