/*
 * Towers of every family, and the encoders of sound, whose file says something
 * else than was meant: they are refused, or they load and encode a small entry;
 * nothing is read or written beside its place.
 *
 * The first byte of the input chooses a tiny tower; every four more are a
 * change, as in model.c: of a key or a tensor, or, with the first bit of the
 * first, of a byte of the file.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE                     /* memfd_create() */
#endif

#include "engine/model/tower.h"
#include "t/unit/gguf_edit.h"
#include "t/unit/tower_build.h"

#include <sys/mman.h>
#include <unistd.h>

#define FUZZ_HEADER  8192               /* bytes of a file that changes may
                                           hit */
#define FUZZ_RAW     128
#define FUZZ_SIDE    128                /* most pixels of an entry's side */


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_TOWERS  llm_nelems(tower_tiny)

static llm_gguf_t  *fuzz_seeds[FUZZ_TOWERS + llm_nelems(tower_ears)];


static void
fuzz_encode(llm_tower_t *t, uint32_t w, uint32_t h)
{
    float              *out;
    uint8_t            *rgb;
    llm_err_t           err;
    llm_tower_job_t    *job;
    llm_tower_shape_t   s;

    if (llm_tower_shape(t, w, h, &s, &err) != LLM_OK) {
        return;
    }

    rgb = calloc((size_t) w * h, 3);
    out = malloc((size_t) s.n_rows * llm_tower_info(t)->n_cols
                 * sizeof(float));

    if (rgb && out) {
        llm_tower_entry_t  e = { w, h, rgb, NULL, 0 };

        job = llm_tower_begin(t, &e, 1, out, &err);

        while (job && llm_tower_step(job, &err) == LLM_MORE) { /* void */ }

        llm_tower_end(job);
    }

    free(rgb);
    free(out);
}


/* a spectrogram of a few frames */

static void
fuzz_listen(llm_tower_t *t)
{
    float                   *out, *mel;
    uint32_t                 n;
    llm_err_t                err;
    llm_tower_job_t         *job;
    llm_tower_entry_t        e;
    const llm_tower_info_t  *i = llm_tower_info(t);

    n = llm_min(i->max_frames, (uint32_t) FUZZ_SIDE);
    mel = calloc((size_t) i->n_mels * n + 1, sizeof(float));
    out = malloc(((size_t) llm_tower_heard(t, n) * i->n_cols + 1)
                 * sizeof(float));

    if (mel && out) {
        e = (llm_tower_entry_t) { i->n_mels, n, NULL, mel, n };
        job = llm_tower_begin(t, &e, 1, out, &err);

        while (job && llm_tower_step(job, &err) == LLM_MORE) { /* void */ }

        llm_tower_end(job);
    }

    free(mel);
    free(out);
}


static void
fuzz_load(const llm_buf_t *b, int sound)
{
    int                fd;
    char               path[64];
    uint32_t           side;
    llm_err_t          err;
    llm_tower_t       *t;
    llm_model_opts_t   o;
    llm_tower_opts_t   to = { .model = &o, .batch = 20, .max_patches = 128,
                              .sound = sound };

    fd = memfd_create("tower", 0);

    if (fd < 0 || write(fd, b->data, b->len) != (ssize_t) b->len) {
        abort();
    }

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    memset(&o, 0, sizeof(o));
    memset(&err, 0, sizeof(err));
    o.device = "reference";
    t = llm_tower_load(path, NULL, &to, &err);

    if (t && sound) {
        fuzz_listen(t);
        llm_tower_free(t);

    } else if (t) {
        side = llm_tower_info(t)->patch * llm_tower_info(t)->merge;
        side = llm_tower_info(t)->side ? llm_tower_info(t)->side : 2 * side;

        if (side <= FUZZ_SIDE) {
            fuzz_encode(t, side, side);
        }

        llm_tower_free(t);

    } else if (err.msg[0] == '\0') {
        abort();
    }

    close(fd);
}


/* opened towers to begin with, kept for all inputs */

static void
fuzz_open_seeds(void)
{
    size_t     i;
    llm_buf_t  b;
    llm_err_t  err;

    for (i = 0; i < llm_nelems(fuzz_seeds); i++) {
        tower_make(i < FUZZ_TOWERS ? &tower_tiny[i]
                                   : &tower_ears[i - FUZZ_TOWERS], NULL, &b);
        fuzz_seeds[i] = llm_gguf_open_memory(b.data, b.len, "tiny", &err);

        if (fuzz_seeds[i] == NULL) {
            abort();
        }
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t               i, at;
    llm_buf_t            b;
    static edit_file_t   f;

    if (size < 1) {
        return 0;
    }

    if (fuzz_seeds[0] == NULL) {
        fuzz_open_seeds();
    }

    edit_take(&f, fuzz_seeds[data[0] % llm_nelems(fuzz_seeds)]);

    for (i = 1; i + 4 <= size; i += 4) {
        if (!(data[i] & FUZZ_RAW)) {
            edit_change(&f, data + i);
        }
    }

    edit_write(&f, &b);

    for (i = 1; i + 4 <= size; i += 4) {
        if (data[i] & FUZZ_RAW) {
            at = (data[i + 1] | (size_t) data[i + 2] << 8)
                 % llm_min(b.len, (size_t) FUZZ_HEADER);
            b.data[at] = (char) (b.data[at] ^ data[i + 3]);
        }
    }

    fuzz_load(&b, data[0] % llm_nelems(fuzz_seeds) >= FUZZ_TOWERS);
    llm_buf_free(&b);
    edit_free(&f);

    return 0;
}
