/*
 * A pattern as a tree, between regex/parse.c, which reads it, and
 * regex/anchors.c, which makes an expression of it.
 *
 * A pattern without anchors and look-aheads is one leaf.  The tree owns its
 * arrays; its parts are numbers.
 */

#ifndef LLM_REGEX_PATTERN_H
#define LLM_REGEX_PATTERN_H

#include "engine/grammar/regex/internal.h"

typedef enum {
    LLM_RXP_PLAIN = 0,                  /* an expression */
    LLM_RXP_CAT,                        /* kids from first on; count: how
                                           many */
    LLM_RXP_ALT,
    LLM_RXP_REPEAT,                     /* the kid `first`, min to max times */
    LLM_RXP_START,                      /* ^ */
    LLM_RXP_END,                        /* $ */
    LLM_RXP_WORD,                       /* \b */
    LLM_RXP_NO_WORD,                    /* \B */
    LLM_RXP_AHEAD,                      /* (?=kid) */
    LLM_RXP_NOT_AHEAD
} llm_rxp_kind_t;

typedef struct {
    uint32_t     kind;
    llm_rx_t     rx;
    uint32_t     first;
    uint32_t     count;
    uint32_t     min;
    uint32_t     max;
} llm_rxp_node_t;

typedef struct {
    llm_rx_pool_t           *pool;
    llm_vec(llm_rxp_node_t)  nodes;
    llm_vec(uint32_t)        kids;
} llm_rxp_t;

/* most copies of a repeated part with anchors inside */
#define LLM_RXP_MAX_UNROLL  64

/* ---- regex/anchors.c ---- */

/*
 * Makes *rx, the texts that the pattern matches; returns NULL, or what is not
 * supported.
 */
const char *llm_rxp_compile(llm_rxp_t *t, uint32_t root, int mode,
    llm_rx_t *rx);

#endif /* LLM_REGEX_PATTERN_H */
