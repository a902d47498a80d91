/*
 * Recognises the format of a file by its first bytes, for messages about files
 * that are not GGUF models: models in other formats, archives, web pages, Git
 * LFS pointers, and so on.
 */

#ifndef LLM_KIND_H
#define LLM_KIND_H

#include "engine/base/base.h"

typedef struct {
    char         what[200];             /* noun phrase, safe for a message:
                                           "a ZIP archive" */
    const char  *advice;                /* what to do: "unpack it ..." */
    int          text;                  /* 1: no certain format: plain text, or
                                           unknown bytes */
} llm_file_kind_t;

/* data: the first n of the file's len bytes; at most 64 KiB are examined */
void llm_file_kind(const char *data, size_t n, uint64_t len,
    llm_file_kind_t *k);

/*
 * kind_object.c: for a shared object that could not be loaded: is the file no
 * shared object, or one for another system or processor?  LLM_OK: yes, *k
 * says which; LLM_ABSENT: its first bytes are those of a shared object for
 * this machine.
 */
int llm_file_kind_object(const char *data, size_t n, uint64_t len,
    llm_file_kind_t *k);

#endif /* LLM_KIND_H */
