/*
 * Regular languages of text, as expressions whose derivatives are computed
 * when they are needed (Brzozowski: "Derivatives of Regular Expressions",
 * 1964).  Intersection and complement are ordinary operations, and an
 * automaton is never built as a whole: its states are those derivatives that a
 * text has led to.
 *
 * Invariant: an expression is the number of a node in a pool; equal
 * expressions have the same number, so a derivative that has been computed
 * before is found again.  All texts are UTF-8; derivatives are by bytes.
 *
 * A pool owns its nodes and has a bound on their number.  When the bound is
 * reached the pool has failed, every further result is LLM_RX_NONE, and the
 * caller refuses the whole grammar.  A pool is used by one thread at a time.
 */

#ifndef LLM_GRAMMAR_REGEX_H
#define LLM_GRAMMAR_REGEX_H

#include "engine/base/base.h"

typedef struct llm_rx_pool_s  llm_rx_pool_t;

typedef uint32_t  llm_rx_t;

#define LLM_RX_NONE   0                 /* no text */
#define LLM_RX_EMPTY  1                 /* the empty text */
#define LLM_RX_CHAR   2                 /* any one character */
#define LLM_RX_TEXT   3                 /* any text */

#define LLM_RX_NO_MAX  UINT32_MAX

/* characters from .. to, both included; surrogates are ignored */
typedef struct {
    uint32_t     from;
    uint32_t     to;
} llm_rx_range_t;

llm_rx_pool_t *llm_rx_create(uint32_t max_nodes);
void llm_rx_free(llm_rx_pool_t *p);
/* has the bound been reached, or memory run out? */
int llm_rx_failed(const llm_rx_pool_t *p);

/* a mark, and the return to it: later nodes are removed, and with them a
   failure.  LLM_ERROR: out of memory */
typedef struct {
    uint32_t     nodes;
    uint32_t     arcs;
    uint32_t     kids;
} llm_rx_mark_t;

void llm_rx_mark(const llm_rx_pool_t *p, llm_rx_mark_t *m);
int llm_rx_reset(llm_rx_pool_t *p, const llm_rx_mark_t *m);

llm_rx_t llm_rx_literal(llm_rx_pool_t *p, const char *text, size_t len);
/* any one of n texts */
llm_rx_t llm_rx_literals(llm_rx_pool_t *p, const llm_str_t *texts, size_t n);
/* decimal digits, at least one, whose number modulo m is r (m > 0) */
llm_rx_t llm_rx_residue(llm_rx_pool_t *p, uint32_t m, uint32_t r);
/* one character of these ranges, which may be in any order and overlap */
llm_rx_t llm_rx_class(llm_rx_pool_t *p, const llm_rx_range_t *ranges,
    size_t n);
llm_rx_t llm_rx_cat(llm_rx_pool_t *p, llm_rx_t a, llm_rx_t b);
llm_rx_t llm_rx_or(llm_rx_pool_t *p, llm_rx_t a, llm_rx_t b);
llm_rx_t llm_rx_and(llm_rx_pool_t *p, llm_rx_t a, llm_rx_t b);
/* all UTF-8 texts that do not match a */
llm_rx_t llm_rx_not(llm_rx_pool_t *p, llm_rx_t a);
/* a, min to max times; LLM_RX_NO_MAX: without bound */
llm_rx_t llm_rx_repeat(llm_rx_pool_t *p, llm_rx_t a, uint32_t min,
    uint32_t max);

/*
 * Reads a pattern in the syntax of ECMA-262 with the "u" flag and of Python's
 * re.  Look-arounds are supported where the rest of the pattern is known (at
 * the top level of a concatenation and of its groups).  Back references and
 * other things that are not regular are refused, with the position.
 * LLM_RX_SEARCH: the pattern may match anywhere in the text unless it has
 * anchors (JSON Schema's "pattern"); LLM_RX_WHOLE: it matches the whole text.
 */
#define LLM_RX_SEARCH  0
#define LLM_RX_WHOLE   1

int llm_rx_parse(llm_rx_pool_t *p, const char *pattern, size_t len,
    int mode, llm_rx_t *rx, llm_err_t *err);

/* 1: no text matches; 0: some text does; LLM_ERROR: undecided after budget
   derivatives */
int llm_rx_is_none(llm_rx_pool_t *p, llm_rx_t a, uint32_t budget);
int llm_rx_matches(llm_rx_pool_t *p, llm_rx_t a, const char *text,
    size_t len);

#endif /* LLM_GRAMMAR_REGEX_H */
