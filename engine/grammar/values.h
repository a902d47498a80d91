/*
 * Values of JSON that must not come twice, as expressions: the texts of
 * strings, and all ways to write another scalar.
 *
 * Plain functions over a pool.
 */

#ifndef LLM_GRAMMAR_VALUES_H
#define LLM_GRAMMAR_VALUES_H

#include "engine/grammar/internal.h"

/*
 * The text of a JSON string's inside, escapes read; LLM_RX_NONE if it is none
 * or memory ends (then the pool has failed).
 */
llm_rx_t llm_value_string(llm_rx_pool_t *p, const char *text, size_t len);

/*
 * What writes the same number, true, false or null.  Where a number has an
 * exponent, all with the same digits: whether the exponents make up for the
 * zeros is no regular question.
 */
llm_rx_t llm_value_raw(llm_rx_pool_t *p, const char *text, size_t len);

/*
 * How many values, at most limit, match any of the nodes (texts, strings,
 * expressions).
 */
uint32_t llm_value_count(llm_gram_build_t *b, const llm_gn_t *nodes,
    uint32_t n, uint32_t limit);
/* the same for texts that match an expression */
uint32_t llm_value_texts(llm_rx_pool_t *p, llm_rx_t rx, uint32_t limit);

#endif /* LLM_GRAMMAR_VALUES_H */
