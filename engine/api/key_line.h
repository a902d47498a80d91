/*
 * One line of a file of API keys; see keys.h.
 */

#ifndef LLM_KEY_LINE_H
#define LLM_KEY_LINE_H

#include "engine/api/keys.h"

/* memory for reading lines, kept from line to line */
typedef struct {
    llm_buf_t     flat;
    llm_buf_t     text;
    llm_buf_t     models;
    llm_arena_t  *arena;                /* owns the text of each key */
} llm_key_reader_t;

void llm_key_reader_init(llm_key_reader_t *rd, llm_arena_t *arena);
void llm_key_reader_free(llm_key_reader_t *rd);

/* LLM_ERROR and *err without the line's number */
int llm_key_read_line(llm_key_reader_t *rd, const char *line, size_t len,
    llm_key_t *k, llm_err_t *err);

#endif /* LLM_KEY_LINE_H */
