/*
 * Models of every architecture whose header says something else than was
 * meant: they are refused, or they load and run a few tokens; nothing is read
 * or written beside its place, and nothing takes for ever.
 *
 * A seed is taken apart into keys and tensors, those are changed, and a file
 * is made of them, so that each input reaches what reads an architecture.
 * The first byte of the input chooses a tiny model, or a file of
 * LLM_FIXTURES/models if that is set; the second one the device and whether
 * the architecture's name becomes another; every four more are a change: what,
 * which one, and two bytes of how, or, with the first bit of the first, a byte
 * of the file that is made.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE                     /* memfd_create() */
#endif

#include "engine/model/arch.h"
#include "t/unit/gguf_edit.h"
#include "t/unit/steps.h"
#include "t/unit/tiny_expected.h"

#include <glob.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUZZ_SEEDS   256                /* a byte chooses */
#define FUZZ_IDS     3
#define FUZZ_HEADER  8192               /* bytes of a file that changes may
                                           hit */
#define FUZZ_RAW     128


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


#define LLM_ARCH(ID)  extern const llm_arch_t  llm_arch_##ID;
#include "engine/model/archs.def"

static const llm_arch_t  *const fuzz_archs[] = {
#define LLM_ARCH(ID)  &llm_arch_##ID,
#include "engine/model/archs.def"
};

static size_t       fuzz_n_seeds;
static llm_gguf_t  *fuzz_seeds[FUZZ_SEEDS];


static void
fuzz_add_seed(llm_gguf_t *g)
{
    if (g == NULL || fuzz_n_seeds == FUZZ_SEEDS) {
        llm_gguf_close(g);
        return;
    }

    fuzz_seeds[fuzz_n_seeds++] = g;
}


/* opened models to begin with, kept for all inputs */

static void
fuzz_open_seeds(void)
{
    size_t     i;
    glob_t     files;
    char       path[512];
    llm_buf_t  b;
    llm_err_t  err;

    for (i = 0; i < llm_nelems(tinies); i++) {
        if (tinies[i].type == LLM_TYPE_F32) {
            llm_buf_init(&b, 0);

            if (tiny_gguf(&tinies[i], NULL, &b) != LLM_OK) {
                abort();
            }

            fuzz_add_seed(llm_gguf_open_memory(b.data, b.len, "tiny", &err));
        }
    }

    if (getenv("LLM_FIXTURES") == NULL) {
        return;
    }

    snprintf(path, sizeof(path), "%s/models/*-f16.gguf",
             getenv("LLM_FIXTURES"));

    if (glob(path, 0, NULL, &files) == 0) {
        for (i = 0; i < files.gl_pathc; i++) {
            fuzz_add_seed(llm_gguf_open(files.gl_pathv[i], &err));
        }

        globfree(&files);
    }
}


static void
fuzz_load(const llm_buf_t *b, const char *device)
{
    int               fd;
    char              path[64];
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    fd = memfd_create("model", 0);

    if (fd < 0 || write(fd, b->data, b->len) != (ssize_t) b->len) {
        abort();
    }

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

    memset(&o, 0, sizeof(o));
    memset(&err, 0, sizeof(err));
    o.device = device;
    o.threads = 1;
    o.ctx = LLM_KV_PAGE;
    o.batch = FUZZ_IDS;
    o.max_seqs = 1;

    m = llm_model_load(path, &o, &err);

    if (m) {
        (void) steps_run(m, FUZZ_IDS, 2);
        llm_model_free(m);

    } else if (err.msg[0] == '\0') {
        abort();

    } else if (getenv("LLM_FUZZ_SAY")) {
        fprintf(stderr, "%s\n", err.msg);
    }

    close(fd);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t               i, at;
    llm_buf_t            b;
    static edit_file_t   f;

    if (size < 2) {
        return 0;
    }

    if (fuzz_n_seeds == 0) {
        fuzz_open_seeds();
    }

    edit_take(&f, fuzz_seeds[data[0] % fuzz_n_seeds]);

    if (data[1] & 1) {
        edit_rename(&f, fuzz_archs[(data[1] >> 2) % llm_nelems(fuzz_archs)]
                            ->name);
    }

    for (i = 2; i + 4 <= size; i += 4) {
        if (!(data[i] & FUZZ_RAW)) {
            edit_change(&f, data + i);
        }
    }

    edit_write(&f, &b);

    for (i = 2; i + 4 <= size; i += 4) {
        if (data[i] & FUZZ_RAW) {
            at = (data[i + 1] | (size_t) data[i + 2] << 8)
                 % llm_min(b.len, (size_t) FUZZ_HEADER);
            b.data[at] = (char) (b.data[at] ^ data[i + 3]);
        }
    }

    /* the slow one now and then */
    fuzz_load(&b, (data[1] & 14) == 14 ? "reference" : "cpu");

    llm_buf_free(&b);
    edit_free(&f);

    return 0;
}
