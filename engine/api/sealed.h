/*
 * Files that outlive nginx: a JSON object on each line.  The first line says
 * what the file is.  The last line has the number of lines between the two,
 * and the digest of all bytes before it:
 *
 *   {"usage_of": "NAME"}
 *   ...
 *   {"accounts": 1, "sha256": "of all bytes before this line"}
 *
 * A file whose last line is missing, or has a wrong number or digest, is torn:
 * none of it is used.
 */

#ifndef LLM_SEALED_H
#define LLM_SEALED_H

#include "engine/base/flat.h"

typedef struct {
    const char   *text;
    size_t        pos;                  /* offset of the next line */
    size_t        end;                  /* offset of the last line */
    size_t        most;                 /* most bytes of a line */
    uint64_t      n;                    /* lines other than the first and the
                                           last */
    llm_buf_t     flat;                 /* flat value of one line */
} llm_sealed_t;

/* adds the last line; `what` names the n lines; LLM_ERROR: out has failed */
int llm_sealed_end(llm_buf_t *out, const char *what, uint64_t n);
/* checks the last line: LLM_ERROR and *err if the file is torn */
int llm_sealed_open(llm_sealed_t *f, const char *text, size_t len,
    size_t most, const char *what, llm_err_t *err);
/* the next line, valid until the next call; NULL and *err: it is no object, or
   there are no more lines */
const llm_flat_t *llm_sealed_line(llm_sealed_t *f, llm_err_t *err);
void llm_sealed_close(llm_sealed_t *f);

/* reads a member that is an integer of at least 0 */
int llm_sealed_number(const llm_flat_t *line, const char *name, uint64_t *to);
void llm_sealed_add_hex(llm_buf_t *out, const void *data, size_t len);

#endif /* LLM_SEALED_H */
