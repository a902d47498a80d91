/*
 * Reads a schema without the keywords that are not supported or that nothing
 * can match: the refused keyword is removed and the rest is read again, up to
 * LLM_SCHEMA_DROPS times.
 *
 * Invariant: what the schema allows stays allowed.  So a keyword below a
 * negation ("not", "if") is removed together with the whole negation; a
 * "oneOf" around it becomes an "anyOf"; and if the keyword determines which
 * properties or items a keyword like unevaluatedProperties covers, that one is
 * removed, too.
 */

#include "engine/grammar/schema/internal.h"

/* most keywords that are removed from one schema */
#define LLM_SCHEMA_DROPS  8

typedef struct {
    const llm_flat_t  *cut;             /* key of the pair to remove or, in a
                                           map of names, the name whose schema
                                           is removed */
    int                named;           /* 1: cut is such a name */
    int                applies;         /* 1: the keyword decides which
                                           properties or items count as
                                           evaluated */
    const llm_flat_t  *in;              /* object that has the pair */

    const llm_flat_t  *path[LLM_FLAT_MAX_DEPTH + 1];    /* values from the root
                                                           to the cut */
    uint32_t           n;

    const llm_flat_t  *part;            /* value whose place in out is
                                           tracked */
    size_t             at;              /* its place in out; SIZE_MAX: not
                                           copied yet */
    llm_buf_t         *out;
} llm_near_t;


static int
llm_near_one_of(const llm_flat_t *key, const char *const *words, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (llm_str_is(llm_flat_str(key), words[i])) {
            return 1;
        }
    }

    return 0;
}

#define llm_near_in(key, words)                                            \
    llm_near_one_of(key, words, llm_nelems(words))


static int
llm_near_holds(const llm_flat_t *v, const llm_flat_t *inner)
{
    const char  *p = (const char *) v, *i = (const char *) inner;

    return i >= p && i < p + v->size;
}


/* finds what to remove so that `refused` is gone */

static int
llm_near_aim(llm_near_t *d, const llm_flat_t *root,
    const llm_flat_t *refused)
{
    int                names, stop;
    const llm_flat_t  *at, *k, *c;

    static const char *const  maps[] = {
        "properties", "patternProperties", "$defs", "definitions",
        "dependentSchemas", "dependencies"
    };
    static const char *const  negations[] = { "not", "if" };
    static const char *const  applicators[] = {
        "$ref", "$dynamicRef", "$recursiveRef", "properties",
        "patternProperties", "allOf", "anyOf", "oneOf", "if",
        "dependentSchemas", "dependencies", "items", "prefixItems", "contains"
    };

    names = 0;
    stop = 0;
    at = root;
    d->cut = NULL;
    d->n = 0;

    while (at != refused && !stop && d->n < llm_nelems(d->path)) {
        d->path[d->n++] = at;
        k = NULL;

        for (c = llm_flat_first(at); c; c = llm_flat_next(at, c)) {
            if (at->type == LLM_FLAT_OBJECT) {
                k = c;
                stop = k == refused;
                c = llm_flat_next(at, c);
            }

            if (stop || llm_near_holds(c, refused)) {
                break;
            }
        }

        if (c == NULL) {
            return LLM_ERROR;
        }

        /* a refused name of patternProperties is removed together with all of
           them */

        if (k && !(names && stop)) {
            d->cut = k;
            d->in = at;
            d->named = names;
            stop |= !names && llm_near_in(k, negations);
            names = !names && llm_near_in(k, maps);
        }

        at = c;
    }

    if (d->cut == NULL) {
        return LLM_ERROR;
    }

    d->applies = !d->named && llm_near_in(d->cut, applicators);

    return LLM_OK;
}


static int
llm_near_on_path(const llm_near_t *d, const llm_flat_t *v)
{
    uint32_t  i;

    for (i = 0; i < d->n && d->path[i] != v; i++) { /* void */ }

    return i < d->n;
}


/* is this pair of an object on the path to be removed? */

static int
llm_near_goes(const llm_near_t *d, const llm_flat_t *object,
    const llm_flat_t *key, const llm_flat_t *value)
{
    static const char *const  others[] = {
        "additionalProperties", "additionalItems"
    };
    static const char *const  unevaluated[] = {
        "unevaluatedProperties", "unevaluatedItems"
    };

    if (key == d->cut) {
        return !d->named;
    }

    if (llm_str_is(llm_flat_str(key), "oneOf")
        && llm_near_on_path(d, value) && llm_flat_get(object, "anyOf"))
    {
        return 1;
    }

    return d->applies
           && ((object == d->in && llm_near_in(key, others))
               || llm_near_in(key, unevaluated));
}


static void
llm_near_copy(llm_near_t *d, const llm_flat_t *v)
{
    size_t             handle;
    uint32_t           n;
    const llm_flat_t  *k, *c;

    if (v == d->part) {
        d->at = d->out->len;
    }

    if (!llm_near_on_path(d, v)) {
        if (llm_near_holds(v, d->part)) {
            d->at = d->out->len + (size_t) ((const char *) d->part
                                            - (const char *) v);
        }

        llm_flat_add_node(d->out, v);
        return;
    }

    handle = llm_flat_open(d->out, v->type);
    n = 0;

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        if (v->type == LLM_FLAT_OBJECT) {
            k = c;
            c = llm_flat_next(v, c);

            if (llm_near_goes(d, v, k, c)) {
                continue;
            }

            if (llm_str_is(llm_flat_str(k), "oneOf")
                && llm_near_on_path(d, c))
            {
                llm_flat_add_str(d->out, "anyOf", 5);

            } else {
                llm_flat_add_node(d->out, k);
            }

            if (k == d->cut) {
                llm_flat_add_bool(d->out, 1);
                n++;
                continue;
            }
        }

        llm_near_copy(d, c);
        n++;
    }

    llm_flat_close(d->out, handle, n);
}


/* copies root without what is to be removed; *part is moved to the copy */

static int
llm_near_drop(const llm_flat_t *root, const llm_flat_t *refused,
    const llm_flat_t **part, llm_buf_t *out)
{
    llm_near_t  d;

    d.part = *part;
    d.at = SIZE_MAX;
    d.out = out;

    if (llm_near_aim(&d, root, refused) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_near_copy(&d, root);

    if (out->failed || d.at == SIZE_MAX) {
        return LLM_ERROR;
    }

    *part = (const llm_flat_t *) (out->data + d.at);

    return LLM_OK;
}


int
llm_gn_schema_near(llm_gram_build_t *b, const llm_flat_t *document,
    const llm_flat_t *part, llm_str_t end, llm_gn_t *node, llm_err_t *err)
{
    int                rc;
    uint32_t           i;
    llm_buf_t          now, next;
    const llm_flat_t  *refused;

    llm_buf_init(&now, 0);

    for (i = 0; ; i++) {
        rc = llm_schema_read(b, document, part, end, node, err, &refused);

        if (rc == LLM_OK || refused == NULL || i == LLM_SCHEMA_DROPS) {
            break;
        }

        llm_buf_init(&next, 0);

        if (llm_near_drop(document, refused, &part, &next) != LLM_OK) {
            llm_buf_free(&next);
            break;
        }

        llm_buf_free(&now);
        now = next;
        document = (const llm_flat_t *) now.data;
    }

    llm_buf_free(&now);

    return rc;
}
