/*
 * JSON values that must not be repeated, as expressions: the texts of strings,
 * and all ways to write another scalar.
 *
 * Plain functions over a pool.
 */

#ifndef LLM_GRAMMAR_VALUES_H
#define LLM_GRAMMAR_VALUES_H

#include "engine/grammar/internal.h"

/*
 * The text inside of a JSON string, escapes decoded; LLM_RX_NONE if it is
 * none, or if out of memory (then the pool has failed).
 */
llm_rx_t llm_value_string(llm_rx_pool_t *p, const char *text, size_t len);

/*
 * All ways to write the same number, true, false or null.  For numbers with an
 * exponent: all texts with the same digits, because whether exponent and zeros
 * match is not a regular property.
 */
llm_rx_t llm_value_raw(llm_rx_pool_t *p, const char *text, size_t len);

/*
 * The number of values, at most limit, that match any of the nodes (texts,
 * strings, expressions).
 */
uint32_t llm_value_count(llm_gram_build_t *b, const llm_gn_t *nodes,
    uint32_t n, uint32_t limit);
/* the same for texts that match an expression */
uint32_t llm_value_texts(llm_rx_pool_t *p, llm_rx_t rx, uint32_t limit);

#endif /* LLM_GRAMMAR_VALUES_H */
