/*
 * Models in other formats than GGUF: whisper.cpp's files, and folders of
 * Hugging Face's with their JSON and safetensors.  Whatever the bytes are, the
 * model is refused or opened; what is opened has all tensors inside its files.
 *
 * The first byte of the input says which file of a model it is.  The .bin file
 * is a right one, in which eight bytes each change a place.
 */

#include "engine/file/source.h"
#include "engine/model/whisper.h"
#include "engine/text/vocab/vocab.h"
#include "t/unit/whisper_build.h"

#include <unistd.h>

#define FUZZ_NEAR  4096                 /* bytes after the vocabulary that
                                           changes may hit */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static char       fuzz_dir[64];
static size_t     fuzz_head;            /* bytes of the .bin file's head */

/* files of the folder, the .bin file first */
static const char  *const fuzz_names[] = {
    "model.bin", "model.safetensors", "config.json", "vocab.json",
    "merges.txt", "model.safetensors.index.json", "tokenizer.json",
    "generation_config.json"
};

#define FUZZ_FILES  (sizeof(fuzz_names) / sizeof(fuzz_names[0]))

static llm_buf_t  fuzz_right[FUZZ_FILES];   /* those of a right model, or
                                               empty */


static const char *
fuzz_path(size_t i)
{
    static char  path[128];

    snprintf(path, sizeof(path), "%s/%s", fuzz_dir, fuzz_names[i]);

    return path;
}


static void
fuzz_put(size_t i, const void *data, size_t len)
{
    if (!w_write(fuzz_path(i), data, len)) {
        abort();
    }
}


/* the files of a right folder, made once */

static void
fuzz_make(void)
{
    w_model_t  m;

    w_make(&m, 3);
    w_bin_head(&fuzz_right[0]);
    fuzz_head = fuzz_right[0].len;
    fuzz_right[0].len = 0;
    w_bin(&fuzz_right[0], &m);
    w_safetensors(&fuzz_right[1], &m, 0, m.n);
    w_config(&fuzz_right[2]);
    w_vocab_json(&fuzz_right[3]);
    (void) llm_buf_adds(&fuzz_right[4], "a b\n");
    w_free(&m);
}


static void
fuzz_end(void)
{
    size_t  i;

    for (i = 0; i < FUZZ_FILES; i++) {
        (void) unlink(fuzz_path(i));
        llm_buf_free(&fuzz_right[i]);
    }

    (void) rmdir(fuzz_dir);
}


static void
fuzz_begin(void)
{
    size_t  i;

    snprintf(fuzz_dir, sizeof(fuzz_dir), "/tmp/fuzz_source.XXXXXX");

    if (mkdtemp(fuzz_dir) == NULL) {
        abort();
    }

    for (i = 0; i < FUZZ_FILES; i++) {
        llm_buf_init(&fuzz_right[i], 0);
    }

    fuzz_make();

    for (i = 1; i < FUZZ_FILES; i++) {
        if (fuzz_right[i].len) {
            fuzz_put(i, fuzz_right[i].data, fuzz_right[i].len);
        }
    }

    (void) atexit(fuzz_end);
}


/* a byte of each page of each tensor must be there */

static void
fuzz_touch(const llm_gguf_t *g)
{
    size_t                    i, k;
    volatile char             c;
    const llm_gguf_tensor_t  *t;

    for (i = 0; i < llm_gguf_n_tensors(g); i++) {
        t = llm_gguf_tensor(g, i);

        for (k = 0; t->data && k < t->size; k += 4096) {
            c = ((const char *) t->data)[k];
        }

        if (t->data && t->size) {
            c = ((const char *) t->data)[t->size - 1];
        }
    }

    (void) c;
}


/* vocab: a vocabulary, which takes long, is made of it, too */

static void
fuzz_open(const char *path, int header, int vocab)
{
    llm_err_t            err;
    llm_gguf_t          *g;
    llm_vocab_t         *v;
    llm_whisper_info_t   i;

    err.msg[0] = '\0';
    g = header ? llm_source_open_header(path, &err)
               : llm_source_open(path, &err);

    if (g == NULL) {
        if (err.msg[0] == '\0') {
            abort();
        }

        return;
    }

    fuzz_touch(g);
    (void) llm_whisper_check(g, &i, &err);

    v = vocab ? llm_vocab_load(g, &err) : NULL;
    llm_vocab_free(v);
    llm_gguf_close(g);
}


static void
fuzz_bin(const uint8_t *data, size_t size)
{
    char      *copy;
    size_t     len;
    uint32_t   at, v;

    len = fuzz_right[0].len;
    copy = malloc(len);

    if (copy == NULL) {
        abort();
    }

    memcpy(copy, fuzz_right[0].data, len);

    for ( /* void */ ; size >= 8; data += 8, size -= 8) {
        memcpy(&at, data, 4);
        memcpy(&v, data + 4, 4);

        /* the sizes, or the first tensors */

        at = at % 2 ? at / 2 % 256
                    : (uint32_t) fuzz_head + at / 2 % FUZZ_NEAR;
        memcpy(copy + at, &v, 4);
    }

    if (size) {
        len = len / 256 * data[0];
    }

    fuzz_put(0, copy, len);
    free(copy);

    fuzz_open(fuzz_path(0), (int) (size % 2), 0);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t  i;

    if (fuzz_dir[0] == '\0') {
        fuzz_begin();
    }

    if (size == 0) {
        return 0;
    }

    i = data[0] % FUZZ_FILES;

    if (i == 0) {
        fuzz_bin(data + 1, size - 1);
        return 0;
    }

    fuzz_put(i, data + 1, size - 1);
    fuzz_open(fuzz_dir, (int) (size % 2), i == 3 || i == 4 || i == 6);

    if (fuzz_right[i].len) {
        fuzz_put(i, fuzz_right[i].data, fuzz_right[i].len);

    } else {
        (void) unlink(fuzz_path(i));
    }

    return 0;
}
