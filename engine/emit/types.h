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

/* what a value of this schema, which stands in root, may be, or-ed; 0: the
   schema does not say */
unsigned llm_types_of(const llm_flat_t *root, const llm_flat_t *schema);
/* of a value as JSON, by its first byte */
unsigned llm_type_at(char c);
/* of a schema that stands in root: that of a property, or what it refers to;
   NULL: there is none */
const llm_flat_t *llm_type_schema(const llm_flat_t *root,
    const llm_flat_t *schema, llm_str_t key);

#endif /* LLM_TYPES_H */
