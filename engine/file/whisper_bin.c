/*
 * Models of whisper.cpp: ggml's format before GGUF, without alignment, little
 * endian.
 *
 *   u32 0x67676d6c, i32 [11] sizes
 *   i32 n_mels, i32 n_fft, f32 [n_mels][n_fft]     filters, computed here
 *   i32 count, then count times: u32 length, bytes  tokens
 *   until the end of the file: i32 n_dims, i32 length of the name, i32 type,
 *   i32 [n_dims] (rows first), name, data           tensors
 *
 * Nothing says how many tensors there are: that all are there is checked by
 * their names, when a model is made of them.
 */

#include "engine/base/alphabet.h"
#include "engine/file/internal.h"

#include <stdio.h>
#include <unistd.h>

#define LLM_BIN_TOKEN   256             /* bytes of a token, at most */
#define LLM_BIN_FFT     4096            /* filters of a mel band, at most */


typedef struct {
    llm_bytes_t          b;
    llm_gguf_make_t      mk;
    llm_gguf_source_t    src;
    llm_whisper_dims_t   d;
    llm_str_t           *texts;         /* [n_text] ordinary tokens */
    llm_arena_t          arena;         /* owns their bytes */
} llm_bin_t;


int
llm_whisper_bin_is(const char *head, size_t n)
{
    uint32_t  v[2];

    if (n < sizeof(v)) {
        return 0;
    }

    memcpy(v, head, sizeof(v));

    return v[0] == 0x67676d6c && llm_whisper_is_vocab(v[1]);
}


static int
llm_bin_sizes(llm_bin_t *f)
{
    int32_t              v[12];
    llm_whisper_dims_t  *d = &f->d;

    if (llm_bytes_read(&f->b, v, sizeof(v), "sizes") != LLM_OK) {
        return LLM_ERROR;
    }

    d->n_vocab = (uint32_t) v[1];
    d->n_audio_ctx = (uint32_t) v[2];
    d->n_audio_state = (uint32_t) v[3];
    d->n_audio_head = (uint32_t) v[4];
    d->n_audio_layer = (uint32_t) v[5];
    d->n_text_ctx = (uint32_t) v[6];
    d->n_text_state = (uint32_t) v[7];
    d->n_text_head = (uint32_t) v[8];
    d->n_text_layer = (uint32_t) v[9];
    d->n_mels = (uint32_t) v[10];
    d->n_audio_ff = 4 * d->n_audio_state;
    d->n_text_ff = 4 * d->n_text_state;

    return llm_whisper_dims(d, f->b.name, f->b.err);
}


static int
llm_bin_filters(llm_bin_t *f)
{
    int32_t  n_mels, n_fft;

    if (llm_bytes_i32(&f->b, &n_mels, "filters") != LLM_OK
        || llm_bytes_i32(&f->b, &n_fft, "filters") != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (n_mels != (int32_t) f->d.n_mels || n_fft < 1 || n_fft > LLM_BIN_FFT) {
        return llm_fail(f->b.err, "%s: filters: %d by %d, for %u mel bands",
                        f->b.name, n_mels, n_fft, f->d.n_mels);
    }

    return llm_bytes_read(&f->b, NULL,
                          (size_t) n_mels * (size_t) n_fft * sizeof(float),
                          "filters");
}


/* the next token, in GPT-2's alphabet */

static int
llm_bin_token(llm_bin_t *f, uint32_t i, uint32_t n_text)
{
    char      raw[LLM_BIN_TOKEN], text[2 * LLM_BIN_TOKEN];
    size_t    k, len;
    uint32_t  n;

    if (llm_bytes_read(&f->b, &n, sizeof(n), "vocabulary") != LLM_OK) {
        return LLM_ERROR;
    }

    if (n > sizeof(raw)) {
        return llm_fail(f->b.err, "%s: vocabulary: token %u has %u bytes, "
                        "at most %d are expected", f->b.name, i, n,
                        LLM_BIN_TOKEN);
    }

    if (llm_bytes_read(&f->b, raw, n, "vocabulary") != LLM_OK) {
        return LLM_ERROR;
    }

    if (i >= n_text) {
        return LLM_OK;                  /* its text follows from its id */
    }

    for (k = 0, len = 0; k < n; k++) {
        len += llm_byte_char(text + len, (unsigned char) raw[k]);
    }

    f->texts[i].len = len;
    f->texts[i].data = llm_arena_dup(&f->arena, text, len);

    return f->texts[i].data ? LLM_OK
           : llm_fail(f->b.err, "%s: no memory for its vocabulary",
                      f->b.name);
}


static int
llm_bin_vocab(llm_bin_t *f)
{
    int32_t   count;
    uint32_t  i, n;

    n = llm_whisper_n_text(f->d.n_vocab);

    if (llm_bytes_i32(&f->b, &count, "vocabulary") != LLM_OK) {
        return LLM_ERROR;
    }

    if (count < (int32_t) n || count > (int32_t) f->d.n_vocab) {
        return llm_fail(f->b.err, "%s: vocabulary: %d tokens, %u to %u are "
                        "expected", f->b.name, count, n, f->d.n_vocab);
    }

    f->texts = calloc(n, sizeof(*f->texts));
    if (f->texts == NULL) {
        return llm_fail(f->b.err, "%s: no memory for its vocabulary",
                        f->b.name);
    }

    for (i = 0; i < (uint32_t) count; i++) {
        if (llm_bin_token(f, i, n) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    llm_whisper_tokens(&f->mk, &f->d, f->texts);
    llm_gguf_make_bool(&f->mk, LLM_GGUF_RANKED, 1);

    return LLM_OK;
}


/* the bytes of a tensor; an error if they overflow or the file has fewer */

static int
llm_bin_size(llm_bin_t *f, const char *name, const int32_t *h,
    const uint64_t *ne, size_t *size)
{
    int32_t  i;
    size_t   n, type;

    type = (size_t) h[2];

    if (llm_type_name((uint32_t) type) == NULL) {
        return llm_fail(f->b.err, "%s: %s: tensors of type %d are not "
                        "supported", f->b.name, name, h[2]);
    }

    for (i = 0, n = 1; i < h[0]; i++) {
        if (llm_mul_overflow(n, (size_t) ne[i], &n)) {
            return llm_fail(f->b.err, "%s: %s: its dimensions overflow",
                            f->b.name, name);
        }
    }

    if (ne[0] % llm_type_block((uint32_t) type)) {
        return llm_fail(f->b.err, "%s: %s: a row of %llu elements is no "
                        "whole number of %s blocks of %zu", f->b.name, name,
                        (unsigned long long) ne[0],
                        llm_type_name((uint32_t) type),
                        llm_type_block((uint32_t) type));
    }

    n /= llm_type_block((uint32_t) type);

    if (llm_mul_overflow(n, llm_type_block_size((uint32_t) type), size)) {
        return llm_fail(f->b.err, "%s: %s: its dimensions overflow",
                        f->b.name, name);
    }

    return LLM_OK;
}


static int
llm_bin_tensor(llm_bin_t *f)
{
    char         name[LLM_WHISPER_NAME], ours[LLM_WHISPER_NAME], shown[160];
    size_t       size = 0;
    int32_t      h[3], dim[3], i;
    uint64_t     ne[3];
    const char  *data;

    if (llm_bytes_read(&f->b, h, sizeof(h), "a tensor's head") != LLM_OK) {
        return LLM_ERROR;
    }

    if (h[0] < 1 || h[0] > 3 || h[1] < 1
        || h[1] >= (int32_t) sizeof(name))
    {
        return llm_fail(f->b.err, "%s: a tensor at %zu: %d dimensions, a name "
                        "of %d bytes: " LLM_FILE_DAMAGED, f->b.name,
                        f->b.pos - sizeof(h), h[0], h[1]);
    }

    if (llm_bytes_read(&f->b, dim, (size_t) h[0] * sizeof(*dim),
                       "a tensor's head") != LLM_OK
        || llm_bytes_read(&f->b, name, (size_t) h[1], "a tensor's name")
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    name[h[1]] = '\0';
    (void) llm_clean(shown, sizeof(shown), name, (size_t) h[1]);

    for (i = 0; i < h[0]; i++) {
        if (dim[i] < 1) {
            return llm_fail(f->b.err, "%s: %s: dimension %d is %d", f->b.name,
                            shown, i, dim[i]);
        }

        ne[i] = (uint64_t) dim[i];
    }

    if (llm_whisper_name((llm_str_t) { (size_t) h[1], name }, 0, ours)
        != LLM_OK)
    {
        return llm_fail(f->b.err, "%s: %s: Whisper has no such tensor",
                        f->b.name, shown);
    }

    if (llm_bin_size(f, shown, h, ne, &size) != LLM_OK) {
        return LLM_ERROR;
    }

    data = f->src.map ? llm_map_data(f->src.map) + f->b.pos : NULL;

    if (llm_bytes_read(&f->b, NULL, size, shown) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_whisper_tensor(&f->mk, ours, (uint32_t) h[0], ne, (uint32_t) h[2],
                       data);

    return LLM_OK;
}


static int
llm_bin_read(llm_bin_t *f, const char *path)
{
    size_t  n;

    if (llm_bin_sizes(f) != LLM_OK
        || llm_bin_filters(f) != LLM_OK
        || llm_bin_vocab(f) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (f->b.pos == f->b.len) {
        return llm_fail(f->b.err, "%s: it has a vocabulary and no tensors: an "
                        "empty model, which whisper.cpp uses in its own "
                        "tests; name a model with weights", f->b.name);
    }

    for (n = 0; f->b.pos < f->b.len; n++) {
        if (n == LLM_FILE_TENSORS) {
            return llm_fail(f->b.err, "%s: more than %d tensors", f->b.name,
                            LLM_FILE_TENSORS);
        }

        if (llm_bin_tensor(f) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    llm_whisper_keys(&f->mk, &f->d);
    llm_whisper_heads(&f->mk, &f->d, path);

    return LLM_OK;
}


llm_gguf_t *
llm_whisper_bin_open(const char *path, int header, llm_err_t *err)
{
    int          rc;
    llm_bin_t   *f;
    llm_gguf_t  *g;

    f = calloc(1, sizeof(*f));
    if (f == NULL) {
        (void) llm_fail(err, "%s: no memory", path);
        return NULL;
    }

    g = NULL;
    llm_gguf_make(&f->mk);
    llm_arena_init(&f->arena, (size_t) 64 << 20);

    if (llm_bytes_open(path, header, &f->src, &f->b.fd, err) == LLM_OK) {
        f->b.name = path;
        f->b.len = f->src.len;
        f->b.err = err;

        rc = llm_bin_read(f, path);
        (void) close(f->b.fd);

        if (rc == LLM_OK) {
            g = llm_gguf_made(&f->mk, path, "ggml (whisper.cpp)", &f->src, 1,
                              err);

        } else {
            llm_gguf_source_free(&f->src);
        }
    }

    llm_gguf_unmake(&f->mk);
    llm_arena_free(&f->arena);
    free(f->texts);
    free(f);

    return g;
}
