/*
 * A grammar in llama.cpp's GBNF as a tree of its rules, between
 * gbnf_parse.c, which reads it, and gbnf.c, which makes nodes of it.
 *
 * The tree owns its arrays; names point into the text.
 */

#ifndef LLM_GBNF_H
#define LLM_GBNF_H

#include "engine/grammar/internal.h"

typedef enum {
    LLM_GBNF_CHARS = 0,                 /* an expression */
    LLM_GBNF_SEQ,                       /* kids from first on; count: how
                                           many */
    LLM_GBNF_ALT,
    LLM_GBNF_REPEAT,                    /* the part `first`, min to max times */
    LLM_GBNF_RULE                       /* the rule `first` */
} llm_gbnf_kind_t;

typedef struct {
    uint32_t     kind;
    llm_rx_t     rx;
    uint32_t     first;
    uint32_t     count;
    uint32_t     min;
    uint32_t     max;
} llm_gbnf_part_t;

typedef struct {
    llm_str_t    name;
    uint32_t     line;                  /* line of the definition, or else of
                                           the first mention */
    uint32_t     part;
    int          defined;

    /* gbnf.c */
    int          regular;               /* 1: the rule does not refer to
                                           itself, and rx is its expression */
    llm_rx_t     rx;
    llm_gn_t     ref;
} llm_gbnf_rule_t;

typedef struct {
    const char                *p;
    size_t                     len;
    size_t                     at;
    uint32_t                   line;
    uint32_t                   depth;
    llm_rx_pool_t             *pool;
    llm_vec(llm_gbnf_part_t)   parts;
    llm_vec(uint32_t)          kids;
    llm_vec(llm_gbnf_rule_t)   rules;
    llm_table_t                names;
    llm_err_t                 *err;
} llm_gbnf_t;

#define LLM_GBNF_MAX_DEPTH  200
#define LLM_GBNF_MAX_RULES  5000

/* ---- gbnf_text.c: read at g->at, and move it past what was read ---- */

/* sets the error, with the line; returns LLM_ERROR */
int llm_gbnf_fail(llm_gbnf_t *g, const char *what);
/* the next byte; 0 at the end: a zero byte in the text begins nothing either */
char llm_gbnf_peek(const llm_gbnf_t *g);
/* skips the text if it is next; returns 1 if it was */
int llm_gbnf_skip(llm_gbnf_t *g, const char *text);
/* skips white space and comments; lines: also line ends */
void llm_gbnf_space(llm_gbnf_t *g, int lines);
int llm_gbnf_is_name(char c);
/* reads a name; empty if there is none */
llm_str_t llm_gbnf_name(llm_gbnf_t *g);
/* reads a number; 0: there is none */
int llm_gbnf_number(llm_gbnf_t *g, uint32_t *n);
/* reads one character of a literal or a class, escapes decoded; LLM_ERROR */
int llm_gbnf_char(llm_gbnf_t *g, uint32_t *cp);

/* ---- gbnf_parse.c ---- */

/* fills rules and parts; LLM_ERROR, with the line */
int llm_gbnf_parse(llm_gbnf_t *g);
void llm_gbnf_free(llm_gbnf_t *g);

#endif /* LLM_GBNF_H */
