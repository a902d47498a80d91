/*
 * A tiny model in a temporary file, as it is or changed, and options to load
 * it with; tiny_begin() makes the file, tiny_end() removes it.
 */

#ifndef LLM_T_TINY_MODEL_H
#define LLM_T_TINY_MODEL_H

#include "engine/model/model.h"
#include "t/unit/tap.h"
#include "t/unit/tiny_expected.h"

#include <unistd.h>

#define change(...)  ((tiny_change_t) { __VA_ARGS__ })


static char  path[] = "/tmp/llm-tiny-XXXXXX";


static inline int
tiny_begin(void)
{
    int  fd;

    fd = mkstemp(path);

    if (!ok(fd >= 0, "a temporary file")) {
        return 0;
    }

    close(fd);

    return 1;
}


static inline void
tiny_end(void)
{
    unlink(path);
}


static inline int
write_model(const tiny_t *t, const tiny_change_t *change)
{
    int        rc;
    FILE      *f;
    llm_buf_t  b;

    llm_buf_init(&b, 0);
    rc = tiny_gguf(t, change, &b);

    f = fopen(path, "wb");
    rc = rc == LLM_OK && f && fwrite(b.data, 1, b.len, f) == b.len;

    if (f) {
        fclose(f);
    }

    llm_buf_free(&b);

    return rc;
}


static inline void
set_opts(llm_model_opts_t *o, const char *device, const char *isa)
{
    memset(o, 0, sizeof(llm_model_opts_t));
    o->device = device;
    o->isa = isa;
    o->threads = 2;
    o->max_seqs = 2;
    o->batch = 16;
}

#endif /* LLM_T_TINY_MODEL_H */
