/*
 * Models with a few bytes of their header changed: they are refused, or they
 * load and run; whatever numbers come out, nothing is read or written beside
 * its place.
 *
 * The first byte of the input chooses a tiny model, every four more change
 * it: offset (two bytes), how, value.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE                     /* memfd_create() */
#endif

#include "engine/model/model.h"
#include "t/unit/tiny_expected.h"

#include <sys/mman.h>
#include <unistd.h>

#define FUZZ_HEADER  8192               /* bytes that changes may hit */
#define FUZZ_IDS     3


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


/* the bytes of a small model, made once */

static const llm_buf_t *
fuzz_model(uint8_t which)
{
    size_t            i, n;
    static llm_buf_t  models[llm_nelems(tinies)];

    /* those with other types come last and are larger */

    for (n = 0; n < llm_nelems(tinies); n++) {
        if (tinies[n].type != LLM_TYPE_F32) {
            break;
        }
    }

    i = which % n;

    if (models[i].len == 0) {
        llm_buf_init(&models[i], 0);

        if (tiny_gguf(&tinies[i], NULL, &models[i]) != LLM_OK) {
            abort();
        }
    }

    return &models[i];
}


static void
fuzz_change(llm_buf_t *b, const uint8_t *c)
{
    size_t    at;
    uint8_t  *p;

    at = (c[0] | (size_t) c[1] << 8) % llm_min(b->len, FUZZ_HEADER);
    p = (uint8_t *) b->data + at;

    switch (c[2] % 4) {

    case 0:
        *p = c[3];
        break;

    case 1:
        *p = (uint8_t) (*p + c[3]);
        break;

    case 2:
        *p ^= (uint8_t) (1 << (c[3] & 7));
        break;

    default:
        memset(p, c[3], llm_min(b->len - at, (size_t) 4));
        break;
    }
}


static void
fuzz_run(llm_model_t *m)
{
    int32_t      ids[FUZZ_IDS] = { 0, 0, 0 };
    uint32_t     i, pos[FUZZ_IDS], rows[2] = { 0, FUZZ_IDS };
    uint32_t     kv_len = FUZZ_IDS, page = 0, slot = 0;
    llm_err_t    err;
    llm_batch_t  b;

    for (i = 0; i < FUZZ_IDS; i++) {
        pos[i] = i;
        ids[i] = (int32_t) (i % llm_model_hparams(m)->n_vocab);
    }

    memset(&b, 0, sizeof(b));
    b.n_tokens = FUZZ_IDS;
    b.n_seqs = 1;
    b.n_out = FUZZ_IDS;
    b.max_pages = 1;
    b.tokens = ids;
    b.pos = pos;
    b.seq_rows = rows;
    b.kv_len = &kv_len;
    b.pages = &page;
    b.out_rows = pos;
    b.slots = &slot;

    if (llm_model_forward(m, &b, &err) == LLM_OK) {
        (void) llm_model_logits(m, FUZZ_IDS - 1);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int               fd;
    char              path[64];
    size_t            i;
    llm_buf_t         b;
    llm_err_t         err;
    llm_model_t      *m;
    const llm_buf_t  *from;
    llm_model_opts_t  o;

    if (size == 0) {
        return 0;
    }

    from = fuzz_model(data[0]);
    llm_buf_init(&b, 0);

    if (llm_buf_add(&b, from->data, from->len) != LLM_OK) {
        abort();
    }

    for (i = 1; i + 4 <= size; i += 4) {
        fuzz_change(&b, data + i);
    }

    fd = memfd_create("model", 0);

    if (fd < 0 || write(fd, b.data, b.len) != (ssize_t) b.len) {
        abort();
    }

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

    memset(&o, 0, sizeof(o));
    o.device = "reference";
    o.ctx = LLM_KV_PAGE;
    o.batch = FUZZ_IDS;
    o.max_seqs = 1;

    m = llm_model_load(path, &o, &err);

    if (m) {
        fuzz_run(m);
        llm_model_free(m);
    }

    close(fd);
    llm_buf_free(&b);

    return 0;
}
