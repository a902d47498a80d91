/*
 * What gguf.c, gguf_reader.c and gguf_tensors.c, which read the bytes of a
 * file, gguf_file.c and gguf_path.c, which get them, gguf_parts.c, which joins
 * the files of a model, and gguf_get.c, which answers questions about them,
 * share.
 */

#ifndef LLM_GGUF_INTERNAL_H
#define LLM_GGUF_INTERNAL_H

#include "engine/gguf/gguf.h"
#include "engine/gguf/map.h"

#define LLM_GGUF_N_TYPES  (LLM_GGUF_F64 + 1)

/* the end of messages about sizes that the file does not have */
#define LLM_GGUF_DAMAGED  "the file is damaged, or its download was cut"


struct llm_gguf_s {
    char                      *name;    /* owned */
    const char                *data;
    size_t                     len;     /* of the file */
    size_t                     head;    /* bytes at data: len, less if only the
                                           header is read */
    llm_map_t                 *mapping; /* of data, or ... */
    char                      *owned;   /* ... malloc()ed; if both are NULL the
                                           bytes are the caller's */

    uint32_t                   version;
    uint32_t                   alignment;
    size_t                     n_kv;
    size_t                     n_tensors;   /* of all parts */
    llm_gguf_kv_t             *kv;      /* in the file's order */
    llm_gguf_tensor_t         *tensors;
    const llm_gguf_kv_t      **kv_sorted;
    const llm_gguf_tensor_t  **tensors_sorted;
    char                      *unknown; /* the message about the first tensor
                                           of an unknown type, of all parts,
                                           owned; NULL: all are known */

    /* the other files of a model in parts, owned; of these only bytes and name
       are in use once their tensors are among those above */
    llm_gguf_t               **parts;
    size_t                     n_parts;
    size_t                     n_own;   /* tensors that this file has */
};


/* a name of the file, safe for a message */
typedef struct {
    char                       text[80];
} llm_gguf_label_t;


typedef struct {
    llm_gguf_t                *g;
    size_t                     pos;
    int                        more;    /* bytes beyond g->head are needed */
    llm_err_t                 *err;
} llm_gguf_reader_t;

/* gguf_reader.c; field is a name for messages */

/* are the next n bytes in memory? */
int llm_gguf_here(llm_gguf_reader_t *r, size_t n);
/* the error of a field that the file's end cuts off */
int llm_gguf_truncated(llm_gguf_reader_t *r, const char *field);
int llm_gguf_read(llm_gguf_reader_t *r, void *out, size_t n,
    const char *field);
int llm_gguf_read_str(llm_gguf_reader_t *r, llm_str_t *s, const char *field);

/* gguf_tensors.c: g->tensors and their order; the cursor is at the table */
int llm_gguf_read_tensors(llm_gguf_reader_t *r);
/* makes tensors_sorted anew; a tensor that is there twice is an error */
int llm_gguf_sort_tensors(llm_gguf_t *g, llm_err_t *err);

/*
 * gguf_path.c: a regular file for reading, or -1 and in *err what is there
 * instead, and what to do
 */
int llm_gguf_open_path(const char *path, size_t *len, llm_err_t *err);

/*
 * gguf_parts.c: if the file is the first of several, opens the others by its
 * name and joins them; an error if it is another one.  open() opens one file
 * as g was.
 */
typedef llm_gguf_t *(*llm_gguf_open_pt)(const char *path, llm_err_t *err);
int llm_gguf_join(llm_gguf_t *g, llm_gguf_open_pt open, llm_err_t *err);


llm_gguf_t *llm_gguf_create(const char *name, llm_err_t *err);
/* data, len and head are set; LLM_SHORT: more than head bytes are needed */
int llm_gguf_parse(llm_gguf_t *g, llm_err_t *err);
/* frees what parse() has found, before it is called again */
void llm_gguf_forget(llm_gguf_t *g);

const char *llm_gguf_label(llm_gguf_label_t *l, llm_str_t s);

/* bytes of a value; 0 for strings and arrays; type is below N_TYPES */
size_t llm_gguf_type_size(uint32_t type);

/* the order of kv_sorted and tensors_sorted, for qsort() and bsearch() */
int llm_gguf_kv_cmp(const void *one, const void *two);
int llm_gguf_tensor_cmp(const void *one, const void *two);

#endif /* LLM_GGUF_INTERNAL_H */
