/*
 * Reads JSON of files value by value, as the caller asks for them: a tokenizer
 * of 30 MB becomes no tree.  What the caller does not want is skipped.
 *
 * Strict RFC 8259; nesting has a bound.  After an error all functions return
 * LLM_ERROR, and the first one has set *err.  A reader owns its buffer of the
 * last string; the text is the caller's.
 */

#ifndef LLM_JSON_READER_H
#define LLM_JSON_READER_H

#include "engine/base/base.h"

typedef struct {
    const char   *p;
    const char   *start;
    const char   *end;
    const char   *name;                 /* for messages */
    int           fresh;                /* just entered an array or object */
    int           failed;
    llm_buf_t     text;                 /* the last string or key */
    llm_err_t    *err;
} llm_json_reader_t;

/* limit: most bytes of a string */
void llm_json_begin(llm_json_reader_t *r, llm_str_t s, const char *name,
    size_t limit, llm_err_t *err);
void llm_json_close(llm_json_reader_t *r);
/* an error unless only white space is left */
int llm_json_done(llm_json_reader_t *r);

/* the first character of the next value: one of {["tfn, or 0 for a number; -1:
   there is none */
int llm_json_next(llm_json_reader_t *r);

/* begin an object or an array, whose members are then read until LLM_END */
int llm_json_enter(llm_json_reader_t *r, char open);
/* *key, valid until the next string is read; LLM_END: the object has ended */
int llm_json_member(llm_json_reader_t *r, llm_str_t *key);
/* LLM_OK: a value follows; LLM_END: the array has ended */
int llm_json_item(llm_json_reader_t *r);

/* values; an error if the next one has another type.  *s is valid until the
   next string is read, and may have NUL in it */
int llm_json_string(llm_json_reader_t *r, llm_str_t *s);
int llm_json_uint(llm_json_reader_t *r, uint64_t *v);
/* any value */
int llm_json_skip(llm_json_reader_t *r);

/* makes an error at this place; returns LLM_ERROR */
int llm_json_wrong(llm_json_reader_t *r, const char *what);

#endif /* LLM_JSON_READER_H */
