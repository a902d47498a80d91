/*
 * What a file is, by its first bytes, for messages about files that are not
 * what they were taken for: other formats of models, archives, web pages,
 * pointers in the place of large files, and so on.
 */

#ifndef LLM_KIND_H
#define LLM_KIND_H

#include "engine/base/base.h"

typedef struct {
    char         what[200];             /* "a ZIP archive": a noun phrase, safe
                                           for a message */
    const char  *advice;                /* what to do: "unpack it ..." */
    int          text;                  /* it may as well be text that somebody
                                           has written, or bytes of any kind:
                                           no certain format */
} llm_file_kind_t;

/* data: the first n of the file's len bytes; more than 64 KiB are not looked
   at */
void llm_file_kind(const char *data, size_t n, uint64_t len,
    llm_file_kind_t *k);

/*
 * kind_object.c: a shared object that could not be loaded: is it one of
 * another system or another processor, or none at all?  LLM_OK and the reason
 * in *k, LLM_ABSENT: its first bytes are those of an object of this machine.
 */
int llm_file_kind_object(const char *data, size_t n, uint64_t len,
    llm_file_kind_t *k);

#endif /* LLM_KIND_H */
