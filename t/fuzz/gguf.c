/*
 * GGUF files with anything in them: refused with a message, or opened, and
 * then every key and tensor can be read and a vocabulary loaded and used.
 *
 * The first byte of the input chooses a tiny vocabulary, which every four
 * more change: offset (two bytes), how, value; or the rest is the file.
 */

#include "t/unit/vocab_build.h"

#include <math.h>

#define FUZZ_RAW  3


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


/* a file in memory of exactly its size, so that no read beyond goes unseen */

static char *
fuzz_file(const uint8_t *data, size_t size, size_t *len)
{
    char           *copy;
    size_t          i, at;
    llm_buf_t       b;
    tiny_vocab_t    none = { 0 };

    static const tiny_pt  builders[] = {
        tiny_bpe, tiny_spm, tiny_wordpiece, NULL, tiny_unigram
    };

    llm_buf_init(&b, 0);

    if (data[0] % llm_nelems(builders) == FUZZ_RAW) {
        (void) llm_buf_add(&b, data + 1, size - 1);

    } else {
        builders[data[0] % llm_nelems(builders)](&b, &none);

        for (i = 1; i + 4 <= size; i += 4) {
            at = ((size_t) data[i] | (size_t) data[i + 1] << 8) % b.len;

            switch (data[i + 2] % 4) {

            case 0:
                b.data[at] = (char) data[i + 3];
                break;

            case 1:
                b.data[at] = (char) (b.data[at] ^ data[i + 3]);
                break;

            case 2:
                b.data[at] = (char) (b.data[at] + data[i + 3]);
                break;

            default:
                b.len = at + 1;
            }
        }
    }

    *len = b.len;
    copy = malloc(b.len ? b.len : 1);

    if (copy == NULL) {
        abort();
    }

    if (b.len) {
        memcpy(copy, b.data, b.len);
    }

    llm_buf_free(&b);

    return copy;
}


/* reads all that the file says, so that a sanitizer can object */

static double
fuzz_read(const llm_gguf_t *g)
{
    double                    sum;
    size_t                    i, k;
    const char               *p;
    const llm_gguf_kv_t      *kv;
    const llm_gguf_tensor_t  *t;

    sum = 0;

    for (i = 0; i < llm_gguf_n_kv(g); i++) {
        kv = llm_gguf_kv(g, i);
        p = kv->data;

        for (k = 0; k < kv->count; k++) {
            sum += kv->item == LLM_GGUF_STR
                   ? (double) llm_gguf_next_str(&p).len
                   : llm_gguf_item_double(kv, k);
        }
    }

    for (i = 0; i < llm_gguf_n_tensors(g); i++) {
        t = llm_gguf_tensor(g, i);

        if (t->data == NULL) {
            if (llm_gguf_types_known(g, NULL) == LLM_OK) {
                abort();
            }

            continue;
        }

        sum += ((const char *) t->data)[0] + ((const char *) t->data)[t->size
                                                                      - 1];
    }

    return sum;
}


static void
fuzz_vocab(const llm_gguf_t *g)
{
    size_t        i;
    llm_err_t     err;
    llm_ids_t     ids = { 0 };
    llm_vocab_t  *v;

    static const char  text[] = "hello world <|im_end|> 12 \xc3\xa9\xff abc"
                                " ABe\xcc\x81\t\xef\xac\x81";

    err.msg[0] = '\0';
    v = llm_vocab_load(g, &err);

    if (v == NULL) {
        if (err.msg[0] == '\0') {
            abort();
        }

        return;
    }

    if (llm_vocab_tokenize(v, text, sizeof(text) - 1, NULL, 0,
                           LLM_TOKENIZE_SPECIAL|LLM_TOKENIZE_ADD, 0, &ids,
                           &err)
        == LLM_OK)
    {
        for (i = 0; i < ids.len; i++) {
            if (ids.data[i] < 0
                || (uint32_t) ids.data[i] >= llm_vocab_size(v))
            {
                abort();
            }
        }
    }

    free(ids.data);
    llm_vocab_free(v);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char        *file;
    size_t       len;
    llm_err_t    err;
    llm_gguf_t  *g;

    if (size == 0) {
        return 0;
    }

    err.msg[0] = '\0';
    file = fuzz_file(data, size, &len);
    g = llm_gguf_open_memory(file, len, "fuzz", &err);

    if (g) {
        if (isnan(fuzz_read(g)) && len == 0) {
            abort();
        }

        fuzz_vocab(g);

    } else if (strncmp(err.msg, "fuzz: ", 6) != 0) {
        abort();
    }

    llm_gguf_close(g);
    free(file);

    return 0;
}
