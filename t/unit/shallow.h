/*
 * The demo model with fewer layers, for tests on the emulator that want its
 * tokens and its steps and not its text: a step costs as many times less.
 *
 * The file is in memory and lives as long as the process.
 */

#ifndef LLM_T_SHALLOW_H
#define LLM_T_SHALLOW_H

#include "engine/gguf/gguf.h"
#include "t/unit/gguf_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHALLOW_OF     "models/demo.gguf"
#define SHALLOW_COUNT  "qwen3.block_count"


/* is it a tensor of the first n layers, or of none? */

static inline int
shallow_keeps(llm_str_t name, uint32_t n)
{
    unsigned  layer;
    char      text[64];

    snprintf(text, sizeof(text), "%.*s", (int) name.len, name.data);

    return sscanf(text, "blk.%u.", &layer) != 1 || layer < n;
}


/* the keys as they are in the file, but for the number of layers */

static inline void
shallow_keys(llm_buf_t *b, const llm_gguf_t *g, uint32_t n_layers)
{
    size_t                i, at;
    const char           *from, *to;
    const llm_gguf_kv_t  *kv;

    from = llm_gguf_kv(g, 0)->key.data - 8;
    to = llm_gguf_tensor(g, 0)->name.data - 8;
    at = b->len;
    (void) llm_buf_add(b, from, (size_t) (to - from));

    for (i = 0; i < llm_gguf_n_kv(g); i++) {
        kv = llm_gguf_kv(g, i);

        if (llm_str_is(kv->key, SHALLOW_COUNT)) {
            memcpy(b->data + at + (kv->data - from), &n_layers, 4);
        }
    }
}


static inline void
shallow_tensors(llm_buf_t *b, const llm_gguf_t *g, uint32_t n_layers)
{
    size_t                    i;
    uint32_t                  d;
    uint64_t                  at;
    const llm_gguf_tensor_t  *t;

    for (i = 0, at = 0; i < llm_gguf_n_tensors(g); i++) {
        t = llm_gguf_tensor(g, i);

        if (!shallow_keeps(t->name, n_layers)) {
            continue;
        }

        gguf_str(b, t->name.data, t->name.len);
        gguf_u32(b, t->n_dims);

        for (d = 0; d < t->n_dims; d++) {
            gguf_u64(b, t->ne[d]);
        }

        gguf_u32(b, t->type);
        gguf_u64(b, at);
        at += llm_align(t->size, 32);
    }

    gguf_pad(b, 32);

    for (i = 0; i < llm_gguf_n_tensors(g); i++) {
        t = llm_gguf_tensor(g, i);

        if (shallow_keeps(t->name, n_layers)) {
            (void) llm_buf_add(b, t->data, t->size);
            gguf_pad(b, 32);
        }
    }
}


/* the path of the model with its first n_layers */

static inline const char *
shallow_model(uint32_t n_layers)
{
    int          fd;
    size_t       i, n;
    llm_buf_t    b;
    llm_err_t    err;
    llm_gguf_t  *g;
    static char  path[64];

    g = llm_gguf_open(SHALLOW_OF, &err);
    if (g == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    for (i = 0, n = 0; i < llm_gguf_n_tensors(g); i++) {
        n += shallow_keeps(llm_gguf_tensor(g, i)->name, n_layers);
    }

    gguf_begin(&b, 3, n, llm_gguf_n_kv(g));
    shallow_keys(&b, g, n_layers);
    shallow_tensors(&b, g, n_layers);
    llm_gguf_close(g);

    fd = memfd_create("shallow.gguf", 0);
    if (fd == -1 || write(fd, b.data, b.len) != (ssize_t) b.len) {
        printf("Bail out! no file in memory\n");
        exit(1);
    }

    llm_buf_free(&b);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

    return path;
}

#endif /* LLM_T_SHALLOW_H */
