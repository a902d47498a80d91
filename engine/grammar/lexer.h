/*
 * The states of a text that matches an expression, either as it is or as the
 * inside of a string of JSON, where escapes stand for characters.
 *
 * Invariant: from each state there is a way to the end, so a byte that leads
 * to a state is allowed; equal states have the same number.  States are made
 * when a text leads to them, and rows, with the next state by byte, when they
 * are needed.
 *
 * A lexer owns its states, but not the pool of expressions.
 */

#ifndef LLM_LEXER_H
#define LLM_LEXER_H

#include "engine/grammar/regex/internal.h"

#define LLM_LEX_DEAD   0
#define LLM_LEX_FINAL  1                /* the string of JSON has ended */

/* meaning of the next byte */
typedef enum {
    LLM_LEX_RAW = 0,                    /* itself */
    LLM_LEX_QUOTE,                      /* the opening quote */
    LLM_LEX_INSIDE,
    LLM_LEX_ESCAPE,                     /* a character after a backslash */
    LLM_LEX_HEX,                        /* a digit of \uXXXX */
    LLM_LEX_LOW,                        /* the backslash of the second \u of
                                           a pair */
    LLM_LEX_LOW_U,                      /* the u after that backslash */
    LLM_LEX_END                         /* nothing may follow */
} llm_lex_mode_t;

typedef struct {
    llm_rx_t     rx;                    /* expression of the rest of the text */
    uint8_t      mode;
    uint8_t      digits;                /* HEX: digits read */
    uint16_t     value;                 /* value of these digits */
    uint16_t     high;                  /* first half of the pair, or 0 */
    uint8_t      accepts;               /* 1: the text may end here */
    uint32_t    *row;                   /* next states by byte, or NULL */
    uint64_t     first[4];              /* bytes that lead to a state */
} llm_lex_state_t;

typedef struct {
    llm_rx_pool_t            *pool;
    llm_vec(llm_lex_state_t)  states;
    llm_table_t               table;
    uint32_t                  max_states;
    uint32_t                  n_rows;   /* states with a row */
    uint32_t                  max_rows;
    int                       failed;   /* 1: out of memory, out of time or out
                                           of states; the pool has a flag of
                                           its own */
    uint64_t                  limit_us; /* bound of CPU time for rows, counted
                                           from the first one; 0: none */
    uint64_t                  until_us; /* CPU time at which limit_us ends; 0:
                                           no row yet */
} llm_lexer_t;

int llm_lex_init(llm_lexer_t *x, llm_rx_pool_t *pool, uint32_t max_states,
    uint32_t max_rows);
void llm_lex_free(llm_lexer_t *x);
/* mode: LLM_LEX_RAW, LLM_LEX_QUOTE or LLM_LEX_INSIDE; returns LLM_LEX_DEAD if
   no text matches */
uint32_t llm_lex_start(llm_lexer_t *x, llm_rx_t rx, llm_lex_mode_t mode);
/* CPU time of this thread, in microseconds */
uint64_t llm_lex_now_us(void);
/* has limit_us passed? */
int llm_lex_late(llm_lexer_t *x);
/* the next states by byte, 256; NULL: failed */
const uint32_t *llm_lex_row(llm_lexer_t *x, uint32_t state);

#endif /* LLM_LEXER_H */
