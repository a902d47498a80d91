/*
 * Shared by the files of this folder: gguf.c, gguf_reader.c and gguf_tensors.c
 * parse the bytes of a file, gguf_file.c and gguf_path.c open it, gguf_parts.c
 * joins the parts of a split model, gguf_get.c has the look-ups.
 */

#ifndef LLM_GGUF_INTERNAL_H
#define LLM_GGUF_INTERNAL_H

#include "engine/gguf/gguf.h"
#include "engine/gguf/map.h"

#define LLM_GGUF_N_TYPES  (LLM_GGUF_F64 + 1)

/* the end of messages about sizes that are larger than the file */
#define LLM_GGUF_DAMAGED  "the file is damaged, or its download was cut"


struct llm_gguf_s {
    char                      *name;    /* owned */
    const char                *data;
    const char                *format;  /* of another format: its name */
    size_t                     len;     /* bytes of the file */
    uint64_t                   changed; /* when it was, in ns */
    size_t                     head;    /* bytes at data: len, or fewer if only
                                           the header is read */
    llm_map_t                 *mapping; /* where data is mapped, or NULL */
    char                      *owned;   /* data if it is malloc()ed, or NULL;
                                           if both are NULL, data belongs to
                                           the caller */

    uint32_t                   version;
    uint32_t                   alignment;
    size_t                     n_kv;
    size_t                     n_tensors;   /* of all parts */
    llm_gguf_kv_t             *kv;      /* in the file's order */
    llm_gguf_tensor_t         *tensors;
    const llm_gguf_kv_t      **kv_sorted;
    const llm_gguf_tensor_t  **tensors_sorted;
    char                      *unknown; /* owned: error message about the first
                                           tensor, of all parts, whose type is
                                           unknown; NULL: all are known */

    /* owned: the other files of a split model; once their tensors are in the
       list above, only their bytes and names are in use */
    llm_gguf_t               **parts;
    size_t                     n_parts;
    size_t                     n_own;   /* tensors of this file, if there are
                                           parts */
};


/* of an open file */
typedef struct {
    size_t                     len;     /* bytes */
    uint64_t                   changed; /* time of modification, in ns */
} llm_gguf_stat_t;


/* a key or a tensor's name, safe for a message */
typedef struct {
    char                       text[80];
} llm_gguf_label_t;


typedef struct {
    llm_gguf_t                *g;
    size_t                     pos;     /* in bytes */
    int                        more;    /* bytes beyond g->head are needed */
    llm_err_t                 *err;
} llm_gguf_reader_t;

/* gguf_reader.c; field is a name for messages */

/* an error, and r->more, if the next n bytes are not in memory; the file must
   have them */
int llm_gguf_here(llm_gguf_reader_t *r, size_t n);
/* makes the error: the file ends inside a field */
int llm_gguf_truncated(llm_gguf_reader_t *r, const char *field);
int llm_gguf_read(llm_gguf_reader_t *r, void *out, size_t n,
    const char *field);
int llm_gguf_read_str(llm_gguf_reader_t *r, llm_str_t *s, const char *field);

/* gguf_tensors.c: reads and sorts g->tensors; the cursor is at the table */
int llm_gguf_read_tensors(llm_gguf_reader_t *r);
/* rebuilds tensors_sorted; an error if two tensors have the same name */
int llm_gguf_sort_tensors(llm_gguf_t *g, llm_err_t *err);

/*
 * gguf_path.c: a descriptor of a regular file for reading; or -1, and *err says
 * what is there instead, and what to do.
 */
int llm_gguf_open_path(const char *path, llm_gguf_stat_t *st, llm_err_t *err);

/*
 * gguf_parts.c: if the file is the first part of a split model, opens the
 * others by its name and joins them; any other part is an error.  open() opens
 * one file, as g was opened.
 */
typedef llm_gguf_t *(*llm_gguf_open_pt)(const char *path, llm_err_t *err);
int llm_gguf_join(llm_gguf_t *g, llm_gguf_open_pt open, llm_err_t *err);


llm_gguf_t *llm_gguf_create(const char *name, llm_err_t *err);
/* data, len and head must be set; LLM_SHORT: more than head bytes are needed */
int llm_gguf_parse(llm_gguf_t *g, llm_err_t *err);
/* frees the results of parse(), before parse() is called again */
void llm_gguf_forget(llm_gguf_t *g);

const char *llm_gguf_label(llm_gguf_label_t *l, llm_str_t s);

/* bytes of a value; 0 for strings and arrays; type < LLM_GGUF_N_TYPES */
size_t llm_gguf_type_size(uint32_t type);

/* the order of kv_sorted and tensors_sorted, for qsort() and bsearch() */
int llm_gguf_kv_cmp(const void *one, const void *two);
int llm_gguf_tensor_cmp(const void *one, const void *two);

#endif /* LLM_GGUF_INTERNAL_H */
