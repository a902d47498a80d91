/*
 * Types of schemas; see types.h.
 */

#include "engine/emit/types.h"


static int
llm_types_is(llm_str_t s, const char *word)
{
    return s.len == strlen(word) && memcmp(s.data, word, s.len) == 0;
}


static unsigned
llm_type_named(llm_str_t name)
{
    size_t  i;

    static const struct {
        const char  *name;
        unsigned     type;
    } types[] = {
        { "string", LLM_TYPE_STRING }, { "number", LLM_TYPE_NUMBER },
        { "integer", LLM_TYPE_NUMBER }, { "boolean", LLM_TYPE_BOOLEAN },
        { "null", LLM_TYPE_NULL }, { "object", LLM_TYPE_OBJECT },
        { "array", LLM_TYPE_ARRAY }
    };

    for (i = 0; i < llm_nelems(types); i++) {
        if (llm_types_is(name, types[i].name)) {
            return types[i].type;
        }
    }

    return 0;
}


static unsigned
llm_type_of_value(const llm_flat_t *v)
{
    static const unsigned  types[] = {
        LLM_TYPE_NULL, LLM_TYPE_BOOLEAN, LLM_TYPE_NUMBER, LLM_TYPE_NUMBER,
        LLM_TYPE_STRING, LLM_TYPE_ARRAY, LLM_TYPE_OBJECT
    };

    return types[v->type];
}


unsigned
llm_type_at(char c)
{
    switch (c) {

    case '"':
        return LLM_TYPE_STRING;

    case '{':
        return LLM_TYPE_OBJECT;

    case '[':
        return LLM_TYPE_ARRAY;

    case 't':
    case 'f':
        return LLM_TYPE_BOOLEAN;

    case 'n':
        return LLM_TYPE_NULL;

    default:
        return LLM_TYPE_NUMBER;
    }
}


unsigned
llm_types_of(const llm_flat_t *schema, int depth)
{
    size_t             i;
    unsigned           types;
    const llm_flat_t  *v, *item;

    static const char *const  lists[] = { "anyOf", "oneOf", "allOf" };

    if (schema == NULL || schema->type != LLM_FLAT_OBJECT || depth == 8) {
        return 0;
    }

    types = 0;
    v = llm_flat_get(schema, "type");

    if (v && v->type == LLM_FLAT_STRING) {
        return llm_type_named(llm_flat_str(v));
    }

    if (v && v->type == LLM_FLAT_ARRAY) {
        for (item = llm_flat_first(v); item; item = llm_flat_next(v, item)) {
            types |= item->type == LLM_FLAT_STRING
                     ? llm_type_named(llm_flat_str(item)) : 0;
        }

        return types;
    }

    v = llm_flat_get(schema, "enum");

    if (v && v->type == LLM_FLAT_ARRAY) {
        for (item = llm_flat_first(v); item; item = llm_flat_next(v, item)) {
            types |= llm_type_of_value(item);
        }

        return types;
    }

    v = llm_flat_get(schema, "const");

    if (v) {
        return llm_type_of_value(v);
    }

    for (i = 0; i < llm_nelems(lists); i++) {
        v = llm_flat_get(schema, lists[i]);

        if (v == NULL || v->type != LLM_FLAT_ARRAY) {
            continue;
        }

        for (item = llm_flat_first(v); item; item = llm_flat_next(v, item)) {
            types |= llm_types_of(item, depth + 1);
        }
    }

    return types;
}


const llm_flat_t *
llm_type_schema(const llm_flat_t *schema, llm_str_t key)
{
    const llm_flat_t  *props, *k, *v;

    if (schema == NULL || schema->type != LLM_FLAT_OBJECT) {
        return NULL;
    }

    props = llm_flat_get(schema, "properties");

    if (props == NULL || props->type != LLM_FLAT_OBJECT) {
        return NULL;
    }

    for (k = llm_flat_first(props); k; k = llm_flat_next(props, v)) {
        v = llm_flat_next(props, k);

        if (llm_flat_str(k).len == key.len
            && memcmp(llm_flat_str(k).data, key.data, key.len) == 0)
        {
            return v;
        }
    }

    return NULL;
}
