/*
 * Finds types in schemas; see types.h.
 */

#include "engine/emit/types.h"

/* most levels of references and of schemas in schemas */
#define LLM_TYPE_DEPTH  8
/* most schemas looked at for one type: lists of references to lists could grow
   without end */
#define LLM_TYPE_LOOKS  1000


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
        if (llm_str_is(name, types[i].name)) {
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


/* a member of an object, of any type */

static const llm_flat_t *
llm_type_member(const llm_flat_t *object, llm_str_t key)
{
    const llm_flat_t  *k, *v;

    if (object->type != LLM_FLAT_OBJECT) {
        return NULL;
    }

    for (k = llm_flat_first(object); k; k = llm_flat_next(object, v)) {
        v = llm_flat_next(object, k);

        if (llm_str_eq(llm_flat_str(k), key)) {
            return v;
        }
    }

    return NULL;
}


/* the schema that a reference ("#/$defs/name" and similar) stands for; the
   schema itself if it is no reference, or another kind of reference */

static const llm_flat_t *
llm_type_refers(const llm_flat_t *root, const llm_flat_t *schema)
{
    int                depth;
    llm_str_t          ref, key;
    const char        *p;
    const llm_flat_t  *v, *at;

    for (depth = 0; depth < LLM_TYPE_DEPTH; depth++) {
        v = schema->type == LLM_FLAT_OBJECT ? llm_flat_get(schema, "$ref")
                                            : NULL;

        if (v == NULL || v->type != LLM_FLAT_STRING) {
            return schema;
        }

        ref = llm_flat_str(v);

        if (ref.len < 2 || ref.data[0] != '#' || ref.data[1] != '/'
            || memchr(ref.data, '~', ref.len)
            || memchr(ref.data, '%', ref.len))
        {
            return schema;
        }

        at = root;
        ref.data += 2;
        ref.len -= 2;

        for ( ;; ) {
            p = memchr(ref.data, '/', ref.len);
            key.data = ref.data;
            key.len = p ? (size_t) (p - ref.data) : ref.len;

            at = llm_type_member(at, key);
            if (at == NULL) {
                return schema;
            }

            if (p == NULL) {
                break;
            }

            ref.data += key.len + 1;
            ref.len -= key.len + 1;
        }

        schema = at;
    }

    return schema;
}


static unsigned
llm_types_in(const llm_flat_t *root, const llm_flat_t *schema, int depth,
    uint32_t *left)
{
    size_t             i;
    unsigned           types;
    const llm_flat_t  *v, *item;

    static const char *const  lists[] = { "anyOf", "oneOf", "allOf" };

    if (schema == NULL || schema->type != LLM_FLAT_OBJECT
        || depth == LLM_TYPE_DEPTH || *left == 0)
    {
        return 0;
    }

    (*left)--;

    schema = llm_type_refers(root, schema);

    if (schema->type != LLM_FLAT_OBJECT) {
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

        for (item = llm_flat_first(v); item && *left;
             item = llm_flat_next(v, item))
        {
            types |= llm_types_in(root, item, depth + 1, left);
        }
    }

    return types;
}


unsigned
llm_types_of(const llm_flat_t *root, const llm_flat_t *schema)
{
    uint32_t  left;

    left = LLM_TYPE_LOOKS;

    return llm_types_in(root, schema, 0, &left);
}


const llm_flat_t *
llm_type_schema(const llm_flat_t *root, const llm_flat_t *schema,
    llm_str_t key)
{
    const llm_flat_t  *props, *v;

    if (schema == NULL) {
        return NULL;
    }

    schema = llm_type_refers(root, schema);

    if (schema->type != LLM_FLAT_OBJECT) {
        return NULL;
    }

    props = llm_flat_get(schema, "properties");
    v = props ? llm_type_member(props, key) : NULL;

    return v ? llm_type_refers(root, v) : NULL;
}


int
llm_tool_takes_text(const llm_tool_t *tool, llm_str_t key)
{
    return llm_types_of(tool->schema,
                        llm_type_schema(tool->schema, tool->schema, key))
           == LLM_TYPE_STRING;
}
