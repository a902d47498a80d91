/*
 * GGUF v2 and v3: a file mapped read-only (or all files of a split model), its
 * metadata and its table of tensors.  The format: docs/gguf.md of
 * github.com/ggml-org/ggml.
 *
 * Invariant: the contents of an opened file have been checked: every string,
 * array and tensor lies inside the mapping, products of sizes do not
 * overflow, and rows are whole blocks.  A tensor of an unknown type has no
 * bytes; see llm_gguf_types_known().  Errors name the file, the field and the
 * reason.
 *
 * llm_gguf_t owns the mappings and its index; names, values and tensor data
 * point into the mappings and live until llm_gguf_close().
 */

#ifndef LLM_GGUF_H
#define LLM_GGUF_H

#include "engine/base/base.h"
#include "kernels/types.h"

typedef enum {
    LLM_GGUF_U8 = 0,
    LLM_GGUF_I8,
    LLM_GGUF_U16,
    LLM_GGUF_I16,
    LLM_GGUF_U32,
    LLM_GGUF_I32,
    LLM_GGUF_F32,
    LLM_GGUF_BOOL,
    LLM_GGUF_STR,
    LLM_GGUF_ARRAY,
    LLM_GGUF_U64,
    LLM_GGUF_I64,
    LLM_GGUF_F64
} llm_gguf_type_t;

typedef struct {
    llm_str_t         key;
    llm_gguf_type_t   type;
    llm_gguf_type_t   item;             /* type of an array's items; else the
                                           same as type */
    uint64_t          count;            /* items of an array, else 1 */
    const char       *data;             /* unaligned: read with memcpy */
} llm_gguf_kv_t;

typedef struct {
    llm_str_t         name;
    uint32_t          n_dims;
    uint64_t          ne[4];            /* ne[0] is the row length */
    llm_type_t        type;
    size_t            size;             /* bytes; 0: the type is not known */
    const void       *data;             /* NULL: not known, or only the header
                                           was read */
} llm_gguf_tensor_t;

typedef struct llm_gguf_s  llm_gguf_t;

/*
 * Maps a file; NULL and *err on any error.  See llm_gguf_intact().  A split
 * model is opened by its first part, whose tensors are then those of all parts;
 * any other part is refused.
 */
llm_gguf_t *llm_gguf_open(const char *path, llm_err_t *err);
/* reads only the headers, into memory: tensors have no data.  For processes
   that must not get SIGBUS from an unreadable page */
llm_gguf_t *llm_gguf_open_header(const char *path, llm_err_t *err);
/* opens the bytes of one file, which the caller keeps alive; name is for
   messages */
llm_gguf_t *llm_gguf_open_memory(const void *data, size_t len,
    const char *name, llm_err_t *err);
void llm_gguf_close(llm_gguf_t *g);

/*
 * LLM_OK if all pages have been readable so far.  Pages of a file that was
 * truncated, or whose disk failed, read as zeros; from then on this returns
 * LLM_ERROR and *err with status 503 and the code LLM_FILE_ERROR.  May be
 * called from any thread.
 */
#define LLM_FILE_ERROR  "model_file_error"
int llm_gguf_intact(const llm_gguf_t *g, llm_err_t *err);

/*
 * LLM_ERROR if the type of a tensor is not known; *err names the first one.
 * To be called before a tensor's bytes are used: a tensor of an unknown type
 * has size 0 and no data.
 */
int llm_gguf_types_known(const llm_gguf_t *g, llm_err_t *err);

const char *llm_gguf_name(const llm_gguf_t *g);
uint32_t llm_gguf_version(const llm_gguf_t *g);
/* the name of another format that the model was read from; NULL: it is GGUF */
const char *llm_gguf_format(const llm_gguf_t *g);
/* bytes of all files; number of files */
size_t llm_gguf_size(const llm_gguf_t *g);
size_t llm_gguf_n_files(const llm_gguf_t *g);
/* a number that is another one once a file was changed: the sum of their times
   of modification, in nanoseconds */
uint64_t llm_gguf_changed(const llm_gguf_t *g);

size_t llm_gguf_n_kv(const llm_gguf_t *g);
const llm_gguf_kv_t *llm_gguf_kv(const llm_gguf_t *g, size_t i);
/* NULL: there is no such key */
const llm_gguf_kv_t *llm_gguf_find(const llm_gguf_t *g, const char *key);

/*
 * Typed look-ups.  LLM_OK and *out; LLM_ABSENT if there is no such key (*out
 * is unchanged); LLM_ERROR and *err if it has another type or does not fit.
 * Any integer type is accepted for an integer, any number for a float.
 */
int llm_gguf_get_u32(const llm_gguf_t *g, const char *key, uint32_t *out,
    llm_err_t *err);
int llm_gguf_get_f32(const llm_gguf_t *g, const char *key, float *out,
    llm_err_t *err);
int llm_gguf_get_bool(const llm_gguf_t *g, const char *key, int *out,
    llm_err_t *err);
int llm_gguf_get_str(const llm_gguf_t *g, const char *key, llm_str_t *out,
    llm_err_t *err);

/* a key that made headers have (gguf_make.h) if the ids of a byte-level
   vocabulary are its ranks, as tiktoken's are, and the file has no merges */
#define LLM_GGUF_RANKED  "tokenizer.ggml.ranked"

/* a tensor of integers of 64 bits, which are the only integers that a file may
   have: the token of the model that each token of a draft head stands for */
#define LLM_GGUF_WORDS  "d2t"

/* "ARCH.name": the key of an architecture's field */
typedef struct {
    char  text[96];
} llm_gguf_key_t;

/* returns key->text */
const char *llm_gguf_key(llm_gguf_key_t *key, const char *arch,
    const char *name);

/*
 * Iterates over an array of strings: *p starts at kv->data and is moved to the
 * end of the string that is returned; the caller counts up to kv->count.
 */
llm_str_t llm_gguf_next_str(const char **p);
/* item i of an array of numbers (or the scalar itself if i is 0) */
int64_t llm_gguf_item_int(const llm_gguf_kv_t *kv, uint64_t i);
double llm_gguf_item_double(const llm_gguf_kv_t *kv, uint64_t i);

size_t llm_gguf_n_tensors(const llm_gguf_t *g);
const llm_gguf_tensor_t *llm_gguf_tensor(const llm_gguf_t *g, size_t i);
/* NULL: there is no such tensor */
const llm_gguf_tensor_t *llm_gguf_find_tensor(const llm_gguf_t *g,
    const char *name);

#endif /* LLM_GGUF_H */
