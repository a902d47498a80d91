/*
 * Files that outlive nginx: a JSON object on each line.  The first line says
 * what the file is, the last one how many lines are between them and the
 * digest of all that is before it:
 *
 *   {"usage_of": "NAME"}
 *   ...
 *   {"accounts": 1, "sha256": "of all bytes before this line"}
 *
 * A file without its last line, or with another number or digest there, is
 * torn: none of it is used.
 */

#ifndef LLM_SEALED_H
#define LLM_SEALED_H

#include "engine/base/flat.h"

typedef struct {
    const char   *text;
    size_t        pos;                  /* of the next line */
    size_t        end;                  /* where the last line begins */
    size_t        most;                 /* bytes of a line */
    uint64_t      n;                    /* lines but for the first and the
                                           last */
    llm_buf_t     flat;                 /* of one line */
} llm_sealed_t;

/* adds the last line; what names the n lines; LLM_ERROR: out has failed */
int llm_sealed_end(llm_buf_t *out, const char *what, uint64_t n);
/* looks at the last line: LLM_ERROR and *err if the file is torn */
int llm_sealed_open(llm_sealed_t *f, const char *text, size_t len,
    size_t most, const char *what, llm_err_t *err);
/* the next line, valid until the next call; NULL and *err: it is no object,
   or there is none */
const llm_flat_t *llm_sealed_line(llm_sealed_t *f, llm_err_t *err);
void llm_sealed_close(llm_sealed_t *f);

/* a member that is a number from 0 on */
int llm_sealed_number(const llm_flat_t *line, const char *name, uint64_t *to);
void llm_sealed_add_hex(llm_buf_t *out, const void *data, size_t len);

#endif /* LLM_SEALED_H */
