/*
 * A pattern that is being read: regex/parse.c reads its structure,
 * regex/class.c its characters.
 *
 * The struct is on the reader's stack; each set belongs to the function that
 * made it.
 */

#ifndef LLM_REGEX_SCAN_H
#define LLM_REGEX_SCAN_H

#include "engine/grammar/regex/pattern.h"

#define LLM_RXS_NO_CASE   1             /* flag i */
#define LLM_RXS_DOT_ALL   2             /* flag s */

typedef struct {
    const char     *p;
    size_t          len;
    size_t          at;
    unsigned        flags;
    uint32_t        depth;              /* depth of groups */
    llm_rx_pool_t  *pool;
    llm_rxp_t       tree;
    const char     *reason;             /* what is wrong, or NULL */
    size_t          reason_at;
} llm_rxs_t;

typedef llm_vec(llm_rx_range_t)  llm_rxs_set_t;

/* ---- regex/class.c ---- */

/* keeps the first reason; returns LLM_ERROR */
int llm_rxs_fail(llm_rxs_t *s, const char *reason);
/* the next byte, or -1 */
int llm_rxs_peek(const llm_rxs_t *s);
/* skips the text if it is next; returns 1 if it was */
int llm_rxs_skip(llm_rxs_t *s, const char *text);

/* makes a class of the set's characters, or of all others, in both cases if
   the flags ask for that; sorts the set */
int llm_rxs_class(llm_rxs_t *s, llm_rxs_set_t *set, int all_but,
    llm_rx_t *rx);
/* reads what follows a backslash: 1: added to the set; 0: one character, *cp;
   LLM_ERROR */
int llm_rxs_escape(llm_rxs_t *s, llm_rxs_set_t *set, uint32_t *cp);
/* reads what follows "[" */
int llm_rxs_bracket(llm_rxs_t *s, llm_rx_t *rx);

#endif /* LLM_REGEX_SCAN_H */
