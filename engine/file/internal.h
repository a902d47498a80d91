/*
 * Shared by the readers of this folder: source.c chooses one by the first bytes
 * or by what is in the folder; bytes.c reads a file piece by piece;
 * whisper_bin.c reads whisper.cpp's files, folder.c Hugging Face's with
 * json.c, safetensors.c and hub_vocab.c; whisper_keys.c and whisper_names.c
 * have what both kinds of Whisper files share.
 */

#ifndef LLM_FILE_INTERNAL_H
#define LLM_FILE_INTERNAL_H

#include "engine/file/json.h"
#include "engine/file/source.h"
#include "engine/gguf/gguf_make.h"

#define LLM_FILE_BUFFER   65536

/* most tensors of a model */
#define LLM_FILE_TENSORS  65536

/* the end of messages about sizes that are larger than the file */
#define LLM_FILE_DAMAGED  "the file is damaged, or its download was cut"


/* ---- bytes.c: a cursor in an open file ---- */

typedef struct {
    int           fd;
    const char   *name;                 /* for messages */
    size_t        len;                  /* bytes of the file */
    size_t        pos;
    size_t        at;                   /* buf holds the bytes from `at` on */
    size_t        n;
    llm_err_t    *err;
    char          buf[LLM_FILE_BUFFER];
} llm_bytes_t;

/* opens path as *src, mapped unless `header`; *fd: for the caller to read and
   to close.  LLM_ERROR: nothing is open */
int llm_bytes_open(const char *path, int header, llm_gguf_source_t *src,
    int *fd, llm_err_t *err);
/* copies the next n bytes, or skips them if out is NULL; field is for messages.
   An error if the file has fewer */
int llm_bytes_read(llm_bytes_t *b, void *out, size_t n, const char *field);
int llm_bytes_i32(llm_bytes_t *b, int32_t *v, const char *field);
/* a file of a folder: "path/name"; NULL: too long */
#define LLM_FOLDER_PATH  4096
const char *llm_folder_path(char *out, const char *path, const char *name);


/* ---- Whisper ---- */

/* sizes, as both kinds of files have them */
typedef struct {
    uint32_t      n_vocab;
    uint32_t      n_audio_ctx;
    uint32_t      n_audio_state;
    uint32_t      n_audio_head;
    uint32_t      n_audio_layer;
    uint32_t      n_audio_ff;
    uint32_t      n_text_ctx;
    uint32_t      n_text_state;
    uint32_t      n_text_head;
    uint32_t      n_text_layer;
    uint32_t      n_text_ff;
    uint32_t      n_mels;
} llm_whisper_dims_t;

/* whisper_keys.c: whether a vocabulary has the size of one of Whisper's; the
   number of its ordinary tokens, whose ids come first */
int llm_whisper_is_vocab(uint32_t n_vocab);
uint32_t llm_whisper_n_text(uint32_t n_vocab);
/* an error if a size is none that a Whisper model can have */
int llm_whisper_dims(const llm_whisper_dims_t *d, const char *name,
    llm_err_t *err);
/* adds the keys of the model */
void llm_whisper_keys(llm_gguf_make_t *mk, const llm_whisper_dims_t *d);
/* adds the alignment heads, by the size of the model, if it is a known one;
   path: large-v1 and large-v2 differ in the name alone */
void llm_whisper_heads(llm_gguf_make_t *mk, const llm_whisper_dims_t *d,
    const char *path);
/* adds the keys of the vocabulary: texts[llm_whisper_n_text()] in GPT-2's
   alphabet, then the special tokens */
void llm_whisper_tokens(llm_gguf_make_t *mk, const llm_whisper_dims_t *d,
    const llm_str_t *texts);

/* whisper_names.c: the name of a tensor here; LLM_ABSENT: Whisper has no such
   tensor.  hub: it is a name of Hugging Face's, else of OpenAI's */
#define LLM_WHISPER_NAME  64
int llm_whisper_name(llm_str_t name, int hub, char *out);
/* adds a tensor with dims ne[n_dims]: kernels of convolutions become
   matrices, biases of one column become vectors */
void llm_whisper_tensor(llm_gguf_make_t *mk, const char *name,
    uint32_t n_dims, const uint64_t *ne, uint32_t type, const void *data);


/* ---- readers ---- */

/* whisper_bin.c: whether this is the beginning of such a file; opens it */
int llm_whisper_bin_is(const char *head, size_t n);
llm_gguf_t *llm_whisper_bin_open(const char *path, int header,
    llm_err_t *err);

/* folder.c: whether the folder has a model that its reader knows; opens it */
int llm_folder_is(const char *path);
llm_gguf_t *llm_folder_open(const char *path, int header, llm_err_t *err);

/* safetensors.c: adds the tensors of a file to the model, by the names of
   Whisper, and the file to files; LLM_ERROR and *err */
typedef struct {
    llm_gguf_source_t  *files;
    size_t              n;
    size_t              cap;
} llm_files_t;

int llm_safetensors_read(llm_gguf_make_t *mk, const char *path, int header,
    llm_files_t *files, llm_err_t *err);
void llm_files_free(llm_files_t *f);

/* hub_vocab.c: adds the keys of the vocabulary of a folder's tokenizer.json, or
   of its vocab.json and merges.txt */
int llm_hub_vocab(llm_gguf_make_t *mk, const llm_whisper_dims_t *d,
    const char *path, llm_err_t *err);

#endif /* LLM_FILE_INTERNAL_H */
