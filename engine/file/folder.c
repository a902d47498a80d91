/*
 * Folders of Hugging Face's: config.json says which model it is and its sizes,
 * generation_config.json more of it; the weights are in model.safetensors, or
 * in the files that model.safetensors.index.json lists.
 *
 * Whisper is the family that is read.  Fine-tunes often have a stale
 * generation_config.json, so only the alignment heads are taken from it, and
 * only if they are heads of the model.
 */

#include "engine/base/file.h"
#include "engine/file/internal.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* most bytes of a configuration, of an index */
#define LLM_FOLDER_CONFIG  ((size_t) 16 << 20)
#define LLM_FOLDER_SHARDS  512
#define LLM_FOLDER_HEADS   4096

typedef struct {
    llm_gguf_make_t      mk;
    llm_whisper_dims_t   d;
    llm_files_t          files;
    uint32_t             heads[2 * LLM_FOLDER_HEADS];
    uint32_t             n_heads;
} llm_folder_t;

typedef struct {
    const char  *key;
    size_t       at;                    /* offset in llm_whisper_dims_t */
} llm_folder_size_t;

#define llm_folder_size(key, field)                                          \
    { key, offsetof(llm_whisper_dims_t, field) }

static const llm_folder_size_t  llm_folder_sizes[] = {
    llm_folder_size("vocab_size", n_vocab),
    llm_folder_size("max_source_positions", n_audio_ctx),
    llm_folder_size("encoder_attention_heads", n_audio_head),
    llm_folder_size("encoder_layers", n_audio_layer),
    llm_folder_size("encoder_ffn_dim", n_audio_ff),
    llm_folder_size("max_target_positions", n_text_ctx),
    llm_folder_size("d_model", n_text_state),
    llm_folder_size("decoder_attention_heads", n_text_head),
    llm_folder_size("decoder_layers", n_text_layer),
    llm_folder_size("decoder_ffn_dim", n_text_ff),
    llm_folder_size("num_mel_bins", n_mels)
};


/* reads a file of the folder; LLM_ABSENT: it is not there */

static int
llm_folder_read(const char *path, const char *name, char *full,
    llm_buf_t *b, llm_err_t *err)
{
    struct stat  st;

    if (llm_folder_path(full, path, name) == NULL) {
        return llm_fail(err, "%s: the path is too long", path);
    }

    if (stat(full, &st) == -1) {
        return LLM_ABSENT;
    }

    return llm_file_read(full, b, err);
}


/* whether a config.json names Whisper: {"model_type": "whisper"} */

static int
llm_folder_names_it(llm_str_t text, const char *name)
{
    int                yes, rc;
    llm_str_t          key, s;
    llm_json_reader_t  r;

    yes = 0;
    llm_json_begin(&r, text, name, 4096, NULL);
    rc = llm_json_enter(&r, '{');

    while (rc == LLM_OK && (rc = llm_json_member(&r, &key)) == LLM_OK) {

        if (llm_str_is(key, "model_type") && llm_json_next(&r) == '"') {
            rc = llm_json_string(&r, &s);
            yes = rc == LLM_OK && llm_str_is(s, "whisper");

        } else {
            rc = llm_json_skip(&r);
        }
    }

    llm_json_close(&r);

    return yes;
}


int
llm_folder_is(const char *path)
{
    int          yes;
    char         full[LLM_FOLDER_PATH];
    llm_buf_t    b;
    struct stat  st;

    if (stat(path, &st) == -1 || !S_ISDIR(st.st_mode)) {
        return 0;
    }

    llm_buf_init(&b, LLM_FOLDER_CONFIG);

    yes = llm_folder_read(path, "config.json", full, &b, NULL) == LLM_OK
          && b.len
          && llm_folder_names_it((llm_str_t) { b.len, b.data }, full);

    llm_buf_free(&b);

    return yes;
}


static int
llm_folder_config_member(llm_folder_t *f, llm_json_reader_t *r,
    llm_str_t key)
{
    size_t      i;
    uint64_t    v;
    llm_str_t   s;

    if (llm_str_is(key, "activation_function")) {
        if (llm_json_string(r, &s) != LLM_OK) {
            return LLM_ERROR;
        }

        return llm_str_is(s, "gelu") ? LLM_OK
               : llm_json_wrong(r, "activation_function: only \"gelu\" is "
                                "supported");
    }

    for (i = 0; i < llm_nelems(llm_folder_sizes); i++) {
        if (!llm_str_is(key, llm_folder_sizes[i].key)) {
            continue;
        }

        if (llm_json_uint(r, &v) != LLM_OK) {
            return LLM_ERROR;
        }

        v = llm_min(v, (uint64_t) UINT32_MAX);
        *(uint32_t *) (void *) ((char *) &f->d + llm_folder_sizes[i].at)
            = (uint32_t) v;

        return LLM_OK;
    }

    return llm_json_skip(r);
}


static int
llm_folder_config(llm_folder_t *f, llm_str_t text, const char *name,
    llm_err_t *err)
{
    int                rc;
    llm_str_t          key;
    llm_json_reader_t  r;

    /* what a configuration leaves out */

    f->d.n_audio_ctx = 1500;
    f->d.n_text_ctx = 448;
    f->d.n_mels = 80;
    f->d.n_vocab = 51865;

    llm_json_begin(&r, text, name, 65536, err);
    rc = llm_json_enter(&r, '{');

    while (rc == LLM_OK && (rc = llm_json_member(&r, &key)) == LLM_OK) {
        rc = llm_folder_config_member(f, &r, key);
    }

    rc = rc == LLM_END ? llm_json_done(&r) : LLM_ERROR;
    llm_json_close(&r);

    f->d.n_audio_state = f->d.n_text_state;

    return rc == LLM_OK ? llm_whisper_dims(&f->d, name, err) : LLM_ERROR;
}


/* [[layer, head], ...] */

static int
llm_folder_heads(llm_folder_t *f, llm_json_reader_t *r)
{
    int       rc;
    uint64_t  v[2];

    if (llm_json_next(r) == 'n') {
        return llm_json_skip(r);
    }

    rc = llm_json_enter(r, '[');

    while (rc == LLM_OK && (rc = llm_json_item(r)) == LLM_OK) {

        if (llm_json_enter(r, '[') != LLM_OK
            || llm_json_item(r) != LLM_OK
            || llm_json_uint(r, &v[0]) != LLM_OK
            || llm_json_item(r) != LLM_OK
            || llm_json_uint(r, &v[1]) != LLM_OK
            || llm_json_item(r) != LLM_END)
        {
            return llm_json_wrong(r, "alignment_heads: no list of pairs");
        }

        if (v[0] >= f->d.n_text_layer || v[1] >= f->d.n_text_head
            || f->n_heads == LLM_FOLDER_HEADS)
        {
            return llm_json_wrong(r, "alignment_heads: the model has no such "
                                  "head");
        }

        f->heads[2 * f->n_heads] = (uint32_t) v[0];
        f->heads[2 * f->n_heads + 1] = (uint32_t) v[1];
        f->n_heads++;
    }

    return rc == LLM_END ? LLM_OK : LLM_ERROR;
}


static int
llm_folder_generation(llm_folder_t *f, llm_str_t text, const char *name,
    llm_err_t *err)
{
    int                rc;
    llm_str_t          key;
    llm_json_reader_t  r;

    llm_json_begin(&r, text, name, 65536, err);
    rc = llm_json_enter(&r, '{');

    while (rc == LLM_OK && (rc = llm_json_member(&r, &key)) == LLM_OK) {
        rc = llm_str_is(key, "alignment_heads") ? llm_folder_heads(f, &r)
                                                : llm_json_skip(&r);
    }

    rc = rc == LLM_END ? llm_json_done(&r) : LLM_ERROR;
    llm_json_close(&r);

    return rc;
}


/* whether the name can only be that of a file in the folder */

static int
llm_folder_is_name(llm_str_t s)
{
    size_t  i;

    if (s.len == 0 || s.len > 255 || s.data[0] == '.') {
        return 0;
    }

    for (i = 0; i < s.len; i++) {
        if (s.data[i] == '/' || s.data[i] == '\\' || s.data[i] == '\0') {
            return 0;
        }
    }

    return 1;
}


/* adds the name to a list of different names */

static int
llm_folder_shard(llm_json_reader_t *r, char (*names)[256], uint32_t *n,
    llm_str_t s)
{
    uint32_t  i;

    if (!llm_folder_is_name(s)) {
        return llm_json_wrong(r, "not the name of a file in this folder");
    }

    for (i = 0; i < *n; i++) {
        if (llm_str_is(s, names[i])) {
            return LLM_OK;
        }
    }

    if (*n == LLM_FOLDER_SHARDS) {
        return llm_json_wrong(r, "too many files");
    }

    memcpy(names[*n], s.data, s.len);
    names[*n][s.len] = '\0';
    (*n)++;

    return LLM_OK;
}


/* {"weight_map": {tensor: file}} */

static int
llm_folder_index(llm_str_t text, const char *name, char (*names)[256],
    uint32_t *n, llm_err_t *err)
{
    int                rc;
    llm_str_t          key;
    llm_json_reader_t  r;

    *n = 0;
    llm_json_begin(&r, text, name, 65536, err);
    rc = llm_json_enter(&r, '{');

    while (rc == LLM_OK && (rc = llm_json_member(&r, &key)) == LLM_OK) {

        if (!llm_str_is(key, "weight_map")) {
            rc = llm_json_skip(&r);
            continue;
        }

        rc = llm_json_enter(&r, '{');

        while (rc == LLM_OK && (rc = llm_json_member(&r, &key)) == LLM_OK) {
            rc = llm_json_string(&r, &key);
            rc = rc == LLM_OK ? llm_folder_shard(&r, names, n, key) : rc;
        }

        rc = rc == LLM_END ? LLM_OK : rc;
    }

    rc = rc == LLM_END ? llm_json_done(&r) : LLM_ERROR;
    llm_json_close(&r);

    return rc;
}


static int
llm_folder_weights(llm_folder_t *f, const char *path, int header,
    llm_err_t *err)
{
    int        rc;
    char       full[LLM_FOLDER_PATH], (*names)[256];
    uint32_t   i, n;
    llm_buf_t  b;

    names = calloc(LLM_FOLDER_SHARDS, sizeof(*names));
    f->files.files = calloc(LLM_FOLDER_SHARDS, sizeof(*f->files.files));
    f->files.cap = LLM_FOLDER_SHARDS;

    if (names == NULL || f->files.files == NULL) {
        free(names);
        return llm_fail(err, "%s: no memory", path);
    }

    n = 1;
    strcpy(names[0], "model.safetensors");
    llm_buf_init(&b, LLM_FOLDER_CONFIG);
    rc = llm_folder_read(path, "model.safetensors.index.json", full, &b, err);

    if (rc == LLM_OK) {
        rc = llm_folder_index((llm_str_t) { b.len, b.len ? b.data : "" },
                              full, names, &n, err);

    } else if (rc == LLM_ABSENT) {
        rc = LLM_OK;
    }

    llm_buf_free(&b);

    for (i = 0; rc == LLM_OK && i < n; i++) {
        rc = llm_folder_path(full, path, names[i])
             ? llm_safetensors_read(&f->mk, full, header, &f->files, err)
             : llm_fail(err, "%s: the path is too long", path);
    }

    if (rc == LLM_OK && n == 0) {
        rc = llm_fail(err, "%s: model.safetensors.index.json: it lists no "
                      "file", path);
    }

    free(names);

    return rc;
}


static void
llm_folder_add_heads(llm_folder_t *f, const char *path)
{
    uint32_t  i;

    if (f->n_heads == 0) {
        llm_whisper_heads(&f->mk, &f->d, path);
        return;
    }

    llm_gguf_make_array(&f->mk, "whisper.alignment_heads", LLM_GGUF_U32);

    for (i = 0; i < 2 * f->n_heads; i++) {
        llm_gguf_make_item(&f->mk, f->heads[i]);
    }

    llm_gguf_make_end(&f->mk);
}


static int
llm_folder_model(llm_folder_t *f, const char *path, int header,
    llm_err_t *err)
{
    int        rc;
    char       full[LLM_FOLDER_PATH];
    llm_buf_t  b;

    llm_buf_init(&b, LLM_FOLDER_CONFIG);
    rc = llm_folder_read(path, "config.json", full, &b, err);

    if (rc == LLM_OK) {
        rc = llm_folder_config(f, (llm_str_t) { b.len, b.len ? b.data : "" },
                               full, err);
    }

    if (rc == LLM_OK) {
        b.len = 0;
        rc = llm_folder_read(path, "generation_config.json", full, &b, err);

        if (rc == LLM_OK && llm_folder_generation(f, (llm_str_t)
                                { b.len, b.len ? b.data : "" }, full, NULL)
                            != LLM_OK)
        {
            f->n_heads = 0;             /* a stale one: the model's own */
        }

        rc = rc == LLM_ERROR ? LLM_ERROR : LLM_OK;
    }

    llm_buf_free(&b);

    /* the vocabulary is last: it takes longest */

    if (rc != LLM_OK
        || llm_folder_weights(f, path, header, err) != LLM_OK
        || llm_hub_vocab(&f->mk, &f->d, path, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_whisper_keys(&f->mk, &f->d);
    llm_folder_add_heads(f, path);

    return LLM_OK;
}


llm_gguf_t *
llm_folder_open(const char *path, int header, llm_err_t *err)
{
    llm_gguf_t    *g;
    llm_folder_t  *f;

    f = calloc(1, sizeof(*f));
    if (f == NULL) {
        (void) llm_fail(err, "%s: no memory", path);
        return NULL;
    }

    g = NULL;
    llm_gguf_make(&f->mk);

    if (llm_folder_model(f, path, header, err) == LLM_OK) {
        g = llm_gguf_made(&f->mk, path, "safetensors", f->files.files,
                          f->files.n, err);
    }

    llm_gguf_unmake(&f->mk);
    llm_files_free(&f->files);
    free(f);

    return g;
}
