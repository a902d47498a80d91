/*
 * The states of a text that matches an expression, either as it is or as the
 * inside of a string of JSON, where escapes stand for characters.
 *
 * Invariant: from each state there is a way to the end, so a byte that leads
 * to one is allowed; equal states have the same number.  States are made when
 * a text leads to them, each with a row of what follows every byte.
 *
 * A lexer owns its states, not the pool of expressions.
 */

#ifndef LLM_LEXER_H
#define LLM_LEXER_H

#include "engine/grammar/regex/internal.h"

#define LLM_LEX_DEAD   0
#define LLM_LEX_FINAL  1                /* the string of JSON is over */

/* what the next byte means */
typedef enum {
    LLM_LEX_RAW = 0,                    /* itself */
    LLM_LEX_QUOTE,                      /* the opening quote */
    LLM_LEX_INSIDE,
    LLM_LEX_ESCAPE,                     /* behind a backslash */
    LLM_LEX_HEX,                        /* a digit of \uXXXX */
    LLM_LEX_LOW,                        /* the backslash of the second \u of
                                           a pair */
    LLM_LEX_LOW_U,                      /* and its u */
    LLM_LEX_END                         /* nothing may follow */
} llm_lex_mode_t;

typedef struct {
    llm_rx_t     rx;                    /* for the rest of the text */
    uint8_t      mode;
    uint8_t      digits;                /* HEX: that were read */
    uint16_t     value;                 /* their value */
    uint16_t     high;                  /* the pair's first half, or 0 */
    uint8_t      accepts;               /* the text may be over here */
    uint32_t    *row;                   /* the next state by byte, or NULL */
    uint64_t     first[4];              /* bytes that lead anywhere */
} llm_lex_state_t;

typedef struct {
    llm_rx_pool_t            *pool;
    llm_vec(llm_lex_state_t)  states;
    llm_table_t               table;
    uint32_t                  max_states;
    uint32_t                  n_rows;   /* states that have one */
    uint32_t                  max_rows;
    int                       failed;   /* memory, time or the bound has
                                           ended; the pool's failure is its
                                           own */
    uint64_t                  limit_us; /* of the thread's CPU time, from the
                                           first row that is made: none is made
                                           later; 0: any time */
    uint64_t                  until_us; /* its end; 0: no row yet */
} llm_lexer_t;

int llm_lex_init(llm_lexer_t *x, llm_rx_pool_t *pool, uint32_t max_states,
    uint32_t max_rows);
void llm_lex_free(llm_lexer_t *x);
/* LLM_LEX_RAW, LLM_LEX_QUOTE or LLM_LEX_INSIDE; LLM_LEX_DEAD if no text
   matches */
uint32_t llm_lex_start(llm_lexer_t *x, llm_rx_t rx, llm_lex_mode_t mode);
/* CPU time of this thread */
uint64_t llm_lex_now_us(void);
/* has limit_us passed? */
int llm_lex_late(llm_lexer_t *x);
/* 256 states; NULL: failed */
const uint32_t *llm_lex_row(llm_lexer_t *x, uint32_t state);

#endif /* LLM_LEXER_H */
