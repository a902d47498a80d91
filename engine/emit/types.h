/*
 * What the schema of a tool's arguments says about types, for values that
 * are written without quotes.  Internal to engine/emit/.
 */

#ifndef LLM_TYPES_H
#define LLM_TYPES_H

#include "engine/emit/call.h"

#define LLM_TYPE_STRING   1
#define LLM_TYPE_NUMBER   2
#define LLM_TYPE_BOOLEAN  4
#define LLM_TYPE_NULL     8
#define LLM_TYPE_OBJECT   16
#define LLM_TYPE_ARRAY    32

/* types, or-ed, that a value of this schema, which is part of root, may have;
   0: the schema does not say */
unsigned llm_types_of(const llm_flat_t *root, const llm_flat_t *schema);
/* type of a JSON value, by its first byte */
unsigned llm_type_at(char c);
/* schema of a property of this schema, which is part of root, with references
   resolved; NULL: there is none */
const llm_flat_t *llm_type_schema(const llm_flat_t *root,
    const llm_flat_t *schema, llm_str_t key);

#endif /* LLM_TYPES_H */
