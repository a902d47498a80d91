/*
 * Reads a schema without the keywords that are not supported or that nothing
 * can match: what was refused is gone, and the rest is read again, up to
 * LLM_SCHEMA_DROPS times.
 *
 * Invariant: what the schema allows stays allowed.  So what is gone allows
 * anything, and so does its negation; and if a keyword is gone that determines
 * which properties or items others cover, these are gone, too.
 */

#include "engine/grammar/schema/internal.h"

/* most keywords that are removed from one schema, each with two others */
#define LLM_SCHEMA_DROPS  8


static int
llm_near_in(llm_str_t key, const char *const *words, size_t n)
{
    size_t  i;

    for (i = 0; i < n && !llm_str_is(key, words[i]); i++) { /* void */ }

    return i < n;
}


static void
llm_near_add(llm_schema_gone_t *gone, const llm_flat_t *v)
{
    if (v) {
        gone->values[gone->n++] = v;
    }
}


/* the part of v that has `inner`, which may be the name of that part: its
   *name, if v is an object, and its value */

static const llm_flat_t *
llm_near_part(const llm_flat_t *v, const llm_flat_t *inner,
    const llm_flat_t **name)
{
    const llm_flat_t  *c;

    *name = NULL;

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        if (v->type == LLM_FLAT_OBJECT) {
            *name = c;
            c = llm_flat_next(v, c);
        }

        if ((const char *) inner < (const char *) c + c->size) {
            break;
        }
    }

    return c;
}


/* removes the innermost keyword, or schema with a name, that has `refused`;
   LLM_ERROR: there is none.  A refused name is removed together with all other
   names */

static int
llm_near_drop(llm_schema_gone_t *gone, const llm_flat_t *root,
    const llm_flat_t *refused)
{
    int                names, map;
    const llm_flat_t  *at, *k, *c, *cut, *key, *in;

    static const char *const  maps[] = {
        "properties", "patternProperties", "$defs", "definitions",
        "dependentSchemas", "dependencies"
    };
    static const char *const  applicators[] = {
        "$ref", "$dynamicRef", "$recursiveRef", "properties",
        "patternProperties", "allOf", "anyOf", "oneOf", "if",
        "dependentSchemas", "dependencies", "items", "prefixItems", "contains"
    };

    map = 0;
    cut = NULL;
    key = NULL;
    in = NULL;

    for (at = root; at != refused; at = c) {
        names = map;
        c = llm_near_part(at, refused, &k);

        if (c == NULL || (names && k == refused)) {
            break;
        }

        if (k) {
            cut = c;
            in = at;
            key = names ? NULL : k;
            map = !names && llm_near_in(llm_flat_str(k), maps,
                                        llm_nelems(maps));
        }

        if (k == refused) {
            break;
        }
    }

    if (cut == NULL) {
        return LLM_ERROR;
    }

    llm_near_add(gone, cut);

    if (key && llm_near_in(llm_flat_str(key), applicators,
                           llm_nelems(applicators)))
    {
        llm_near_add(gone, llm_flat_get(in, "additionalProperties"));
        llm_near_add(gone, llm_flat_get(in, "additionalItems"));
        gone->unevaluated = 1;
    }

    return LLM_OK;
}


int
llm_gn_schema_near(llm_gram_build_t *b, const llm_flat_t *document,
    const llm_flat_t *part, llm_str_t end, llm_gn_t *node, llm_err_t *err)
{
    int                 rc;
    uint32_t            i;
    const llm_flat_t   *refused;
    llm_schema_gone_t   gone;

    memset(&gone, 0, sizeof(gone));

    for (i = 0; ; i++) {
        rc = llm_schema_read(b, document, part, end, &gone, node, err,
                             &refused);

        if (rc == LLM_OK || refused == NULL || refused == part
            || i == LLM_SCHEMA_DROPS
            || llm_near_drop(&gone, document, refused) != LLM_OK)
        {
            return rc;
        }
    }
}
