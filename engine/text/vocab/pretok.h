/*
 * Pre-tokenizers: how a byte-level BPE cuts a text into the pieces inside
 * which it merges.  A model names its own in tokenizer.ggml.pre; the regular
 * expressions are those that its tokenizer.json publishes.
 */

#ifndef LLM_PRETOK_H
#define LLM_PRETOK_H

#include "engine/text/vocab/internal.h"

#define LLM_PRETOK_STEPS     6

#define LLM_PRETOK_MERGES    1          /* a whole piece that is a token needs
                                           no merges */
#define LLM_PRETOK_BOS       2          /* add_bos unless the file says
                                           otherwise */
#define LLM_PRETOK_RAW       4          /* symbols are characters, a space is
                                           U+2581, bytes are <0xXX> */

/*
 * One step cuts every piece of the step before at the beginning and the end of
 * each match.  With thirds, a match is cut into groups of three from its end,
 * as numbers are written; a look-ahead would do the same in quadratic time.
 */
typedef struct {
    const char               *regex;
    int                       thirds;
} llm_pretok_step_t;

typedef struct {
    const char               *names;    /* separated by spaces */
    int                       flags;
    llm_pretok_step_t         steps[LLM_PRETOK_STEPS + 1];
} llm_pretok_row_t;

/* the row of a name, or NULL */
const llm_pretok_row_t *llm_pretok_find(llm_str_t name);

/* compiles a row; NULL and *err when PCRE2 can't */
llm_pretok_t *llm_pretok_create(const llm_pretok_row_t *row,
    llm_err_t *err);
void llm_pretok_free(llm_pretok_t *pt);

/*
 * Cuts p into pieces and passes each on, in order, before it looks for the
 * next; stops if piece() returns LLM_ERROR.  Every byte is in a piece; bytes
 * that are not UTF-8 are pieces of their own.
 */
typedef int (*llm_piece_pt)(llm_tok_t *t, const char *p, size_t n);
int llm_pretok_split(llm_tok_t *t, const char *p, size_t n,
    llm_piece_pt piece);
/* frees what llm_pretok_split() left in t->match */
void llm_pretok_done(llm_tok_t *t);

#endif /* LLM_PRETOK_H */
